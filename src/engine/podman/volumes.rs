//! Volumes that a container of ours gets by name. Podman would make them with the
//! container, and without labels.

use super::libpod::API;
use crate::engine::api::raw::Raw;
use crate::engine::contract::Launch;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use hyper::Method;
use serde_json::{Map, Value, json};
use tki_evidence::settings::BindKind;

/// Makes those that are not there.
pub fn make(driver: &mut Driver, raw: &Raw, launch: &Launch) -> Result<(), EngineError> {
    let labels: Map<String, Value> = launch
        .labels
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let binds = launch.settings.binds.iter();
    let volumes = binds.filter(|bind| bind.kind == BindKind::Volume && !bind.source.is_empty());
    let mut names: Vec<&str> = volumes.map(|bind| bind.source.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let body = json!({"Name": name, "Driver": "local", "Label": labels});
        let target = format!("{API}/volumes/create");
        let request = "POST /libpod/volumes/create";
        let asked = raw.ask(Method::POST, &target, Some(body.to_string().into()));
        match driver.run(request, asked) {
            // The neighbour has it already.
            Err(EngineError::Refused { status: 409, .. }) => {}
            Err(EngineError::Refused {
                status: 500,
                message,
                ..
            }) if message.contains("already exists") => {}
            other => drop(other?),
        }
    }
    Ok(())
}
