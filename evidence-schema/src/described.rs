//! An engine's own description of a container → what it says of the container, in the
//! common form. The description is kept as the artifact `container.json`; `run` reads
//! it with the functions that `verify` reads it with, so that what evidence calls
//! `configured` can be derived again from the artifact's bytes and nothing else.

pub mod bwrap;
pub mod docker;
pub mod embedded;
mod error;
pub mod local;
pub mod names;
mod oci;
mod options;
pub mod podman;
mod unique;

pub use error::DescribedError;

use crate::engine_kind::EngineKind;
use crate::settings::Settings;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// The most bytes of a description.
pub const MAX_DESCRIPTION: usize = 12 << 20;

/// What a description says.
#[derive(Clone, Debug)]
pub struct Described {
    /// The container's settings.
    pub settings: Settings,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The image that it was made from.
    pub image_id: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The OCI runtime that it was made with, if the engine tells it.
    pub oci_runtime: Option<String>,
    /// The process id of its init, if the engine tells it.
    pub pid: Option<i32>,
}

/// Reads the description of a container that this engine made.
pub fn read(engine: &str, bytes: &[u8]) -> Result<Described, DescribedError> {
    if bytes.len() > MAX_DESCRIPTION {
        return Err(DescribedError::TooLarge(bytes.len()));
    }
    match EngineKind::find(engine) {
        Some(EngineKind::Docker) => docker::read(bytes),
        Some(EngineKind::Podman) => podman::read(bytes),
        Some(EngineKind::Embedded | EngineKind::Bwrap) => local::read(engine, bytes),
        None => Err(DescribedError::Engine),
    }
}
