//! A directory of files and a `claims.toml` become an evidence packet: `packet.json` beside
//! copies of the items, for the offline inspector. The packer writes what is claimed and where
//! it stands; digests, sizes, media types and the lines of quotes are filled in here.
//!
//! [`make`] packs, [`check`] looks at a packet again, [`init`] writes a first `claims.toml`.
//! [`form`] is what may stand in `claims.toml` and [`source`] its text, for the line and column
//! of a mistake; [`plan`] makes items and claims of it; [`tree`] reads a directory without
//! following links; [`content`] looks for quotes, JSON pointers and steps; [`error`] is what can
//! go wrong.

pub mod check;
pub mod content;
pub mod error;
pub mod form;
pub mod init;
pub mod make;
pub mod media;
pub mod mistake;
pub mod plan;
pub mod source;
pub mod tree;

pub use form::AsOf;
