//! What Podman tells about a container: its description, and the configuration
//! that it handed to the runtime. Both are long, and are read beside everything else.

use super::configured::{Description, Oci};
use super::libpod;
use crate::engine::api::raw::Raw;
use crate::engine::error::EngineError;
use crate::files::read_bounded;
use serde_json::Value;
use std::path::Path;

/// The request, as errors name it.
pub const REQUEST: &str = "GET /libpod/containers/json";

/// The most that an OCI configuration may have.
const MAX_CONFIG: u64 = 4 << 20;

/// What it told.
#[derive(Debug)]
pub struct Told {
    /// Its description.
    pub described: Description,
    /// What it handed to the runtime.
    pub oci: Oci,
    /// Both as they were told, laid out to be read.
    pub verbatim: String,
}

/// Asks, and reads the answer where nobody waits for it.
pub async fn ask(raw: Raw, id: String) -> Result<Told, EngineError> {
    let found = libpod::inspect(&raw, &id).await?;
    let host = raw.host.clone();
    let reading = tokio::task::spawn_blocking(move || read(&raw, found));
    reading.await.unwrap_or_else(|_| {
        Err(EngineError::Vanished {
            host,
            request: REQUEST.into(),
            reason: "its answer was dropped".into(),
        })
    })
}

fn read(raw: &Raw, found: Value) -> Result<Told, EngineError> {
    let unread = |error: serde_json::Error| EngineError::Vanished {
        host: raw.host.clone(),
        request: REQUEST.into(),
        reason: format!("its description of the container cannot be read: {error}"),
    };
    let described: Description = serde_json::from_value(found.clone()).map_err(unread)?;
    let config = oci_config(&described.oci_config_path)?;
    let oci: Oci = serde_json::from_slice(&config).map_err(unread)?;
    let config: Value = serde_json::from_slice(&config).map_err(unread)?;
    let both = serde_json::json!({"inspect": found, "oci_config": config});
    Ok(Told {
        described,
        oci,
        verbatim: serde_json::to_string_pretty(&both).unwrap_or_default(),
    })
}

/// What Podman handed to the runtime.
fn oci_config(path: &str) -> Result<Vec<u8>, EngineError> {
    read_bounded(Path::new(path), MAX_CONFIG).map_err(|error| EngineError::Unusable {
        engine: "podman",
        reason: format!("what it set cannot be read from {path}: {error}"),
        next: "run as the user that Podman's service runs as, on the same host".into(),
    })
}
