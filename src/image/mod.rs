//! Dockerfile → reproducible OCI image.
//!
//! The way of the data: a Dockerfile is read into a [`Recipe`], the recipe's
//! `COPY` steps take files from a [`Context`], the resulting file tree becomes
//! one layer, the layer and the settings become an [`Image`], and the image is
//! written as an OCI layout or as an archive that engines load. In the other
//! direction, [`read_identity`] recomputes every digest of a layout that
//! somebody else has written.
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
//! or looks at the environment: equal inputs give equal bytes.

mod archive;
mod base;
mod build;
mod config;
mod context;
mod copy_line;
mod digest;
pub mod embedded;
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
mod store;
mod text;
mod tree;

pub use archive::{Image, Stored};
pub use build::{BuildOptions, build};
pub use context::Context;
pub use error::{ContextError, DockerfileError, ImageError, LayoutError, Location};
pub use layout::{Identity, read_identity};
pub use recipe::{Base, Copy, Owner, Recipe, Settings, Step};
