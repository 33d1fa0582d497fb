//! Volumes that a container of ours gets by name. Podman would make them with the
//! container, and without labels.

use super::libpod::API;
use crate::engine::api::raw::Raw;
use crate::engine::contract::Launch;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use hyper::Method;
use serde_json::{Map, Value, json};

/// Makes those that are not there.
pub fn make(driver: &mut Driver, raw: &Raw, launch: &Launch) -> Result<(), EngineError> {
    let labels: Map<String, Value> = launch
        .labels
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    for volume in &launch.volumes {
        let body = json!({"Name": volume.name, "Driver": "local", "Label": labels});
        let target = format!("{API}/volumes/create");
        let request = "POST /libpod/volumes/create";
        let asked = raw.ask(Method::POST, &target, Some(body.to_string().into()));
        match driver.run(request, asked) {
            // An earlier try to launch the same container has made it.
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
