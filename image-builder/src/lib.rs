//! Dockerfile → reproducible OCI image.
//!
//! The crate is laid out along the data flow: a Dockerfile is read into a [`Recipe`], the
//! recipe's `COPY` steps take files from a [`Context`], the resulting file tree becomes
//! one layer, the layer and the settings become an [`Image`]. The image is the bytes of an OCI
//! layout, or of an archive that engines load; where they go is the caller's part. In the
//! other direction, [`read_identity`] recomputes every digest of a layout from elsewhere.
//!
//! # Terminology
//!
//! - **Recipe**: what a Dockerfile asks for, after everything that could not be
//!   reproduced byte for byte has been refused.
//! - **Context**: where `COPY` finds its sources, a directory or a map in memory.
//! - **Base**: an OCI layout named by `FROM`; its layers are copied verbatim.
//! - **Diff id**: the SHA-256 of a layer before compression.
//! - **Identity**: manifest digest, config digest and diff ids of an image.
//!
//! Nothing in here opens a network connection, starts a program, reads a clock
//! or looks at the environment: equal inputs give equal bytes. Nothing is written to disk, and
//! only what the caller names is read.
//!
//! # Example
//!
//! ```
//! use oci_image::{BuildOptions, Context, Recipe, build};
//! use std::collections::BTreeMap;
//!
//! let dockerfile = b"FROM scratch\nCOPY greeting /greeting\nUSER 1000:1000\n";
//! let recipe = Recipe::parse("Dockerfile", dockerfile)?;
//! let files = BTreeMap::from([("greeting".to_owned(), b"hello\n".to_vec())]);
//! let options = BuildOptions {
//!     tag: "greeting:example".to_owned(),
//!     ..BuildOptions::default()
//! };
//! let image = build(&recipe, &Context::memory(files)?, &options)?;
//! println!("{}", image.manifest_digest);
//! // The same digest on every machine and at any time, so it can be pinned.
//! # let again = build(&recipe, &Context::memory(BTreeMap::from([("greeting".to_owned(), b"hello\n".to_vec())]))?, &options)?;
//! assert!(image.files().contains_key("index.json"));
//! # assert_eq!(image, again);
//! # Ok::<(), oci_image::ImageError>(())
//! ```

#![forbid(unsafe_code)]

mod archive;
mod base;
mod build;
mod config;
mod context;
mod copy_line;
mod digest;
mod dockerfile;
mod error;
mod files;
mod ids;
mod layer;
mod layout;
mod manifest;
mod name;
mod pairs;
mod paths;
mod reader;
mod recipe;
mod refusal;
mod text;
mod tree;

#[cfg(test)]
mod testing;

pub use archive::{Image, Stored};
pub use build::{BuildOptions, build};
pub use context::Context;
pub use error::{ContextError, DockerfileError, ImageError, LayoutError, Location};
pub use layout::{Identity, read_identity};
pub use recipe::{Base, Copy, Owner, Recipe, Settings, Step};
