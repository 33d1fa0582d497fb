//! Reading bounded and writing whole.

mod folder;
mod write;

pub use folder::{Folder, Stage, is_folder, is_regular, is_trusted};
pub use tki_files::{folder_of, read_at_most, read_beside, read_bounded, read_owned};
pub use write::{
    OPEN, READABLE, is_unfinished, replace, replace_in, replace_private, sync_all, write_new,
    write_new_exactly,
};
