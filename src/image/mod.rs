//! The image: [`oci_image`] builds and reads it, [`built_in`] is what this tool carries,
//! [`source`] where another comes from, [`store`] puts an image on disk.

pub mod built_in;
mod failure;
pub mod source;
pub mod store;

pub use oci_image::{
    BuildOptions, Context, Identity, Image, ImageError, Recipe, Stored, build, read_identity,
};
