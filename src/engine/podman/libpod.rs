//! Podman's own API, as far as it is needed. What it answers is taken apart
//! leniently: later versions say more.

use crate::engine::api::raw::Raw;
use crate::engine::api::volumes;
use crate::engine::error::EngineError;
use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The version of the API that is spoken: every Podman from 4.0 on knows it.
pub(super) const API: &str = "/v4.0.0/libpod";

/// How long Podman may take to see that a container has ended, once its monitor
/// has.
const UNWATCHED: Duration = Duration::from_secs(5);

/// What Podman says about its host. The question takes it longer than making a
/// container, because it asks the package manager.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The runtime that containers are made with if nobody names another one.
    pub oci_runtime: HostRuntime,
    /// The controllers that it could use.
    #[serde(default)]
    cgroup_controllers: Option<Vec<String>>,
    /// The kernel under it.
    #[serde(default)]
    pub kernel: String,
    /// Its host's name.
    #[serde(default)]
    pub hostname: String,
    /// How it makes control groups.
    #[serde(default)]
    cgroup_manager: String,
}

impl Host {
    /// The controllers whose limits it sets for a user who is not root, if systemd makes
    /// groups for it. By itself it makes some only below a group that is named to it, and
    /// without one says nothing.
    pub fn controllers_of_a_user(self) -> Option<Vec<String>> {
        (self.cgroup_manager == "systemd").then(|| self.cgroup_controllers.unwrap_or_default())
    }
}

/// A runtime.
#[derive(Clone, Debug, Deserialize)]
pub struct HostRuntime {
    /// Its name.
    pub name: String,
}

/// Asks what it says about its host.
pub async fn host(raw: &Raw) -> Result<Host, EngineError> {
    #[derive(Deserialize)]
    struct Info {
        host: Host,
    }
    let info: Info = raw.get(&format!("{API}/info")).await?;
    Ok(info.host)
}

/// Asks for the directory in which it keeps its containers; as slow a question.
pub async fn storage(raw: &Raw) -> Result<PathBuf, EngineError> {
    #[derive(Deserialize)]
    struct Info {
        store: Storage,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Storage {
        graph_root: PathBuf,
    }
    let info: Info = raw.get(&format!("{API}/info")).await?;
    Ok(info.store.graph_root)
}

/// A container in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its names.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// Its labels.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Podman's word for its state.
    #[serde(default)]
    pub state: String,
    /// The id of its image.
    #[serde(default, rename = "ImageID")]
    pub image_id: String,
    /// Its status, once it has ended.
    #[serde(default)]
    exit_code: Option<i64>,
}

impl Listed {
    /// A label's value.
    pub fn label(&self, name: &str) -> Option<&String> {
        self.labels.as_ref()?.get(name)
    }

    /// It has ended.
    fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "exited" | "stopped" | "removing")
    }
}

/// Every container, running or not.
pub async fn containers(raw: &Raw) -> Result<Vec<Listed>, EngineError> {
    let found: Option<Vec<Listed>> = raw.get(&format!("{API}/containers/json?all=true")).await?;
    Ok(found.unwrap_or_default())
}

/// Every container, and every one that is in the storage and of which Podman
/// knows nothing else (state `storage`).
pub async fn containers_and_storage(raw: &Raw) -> Result<Vec<Listed>, EngineError> {
    let target = format!("{API}/containers/json?all=true&external=true");
    match patiently(raw, &target).await {
        Err(EngineError::Refused { .. }) => containers(raw).await,
        other => other.map(Option::unwrap_or_default),
    }
}

/// Asks for a list. Podman fails over what is removed while it looks.
async fn patiently<T: DeserializeOwned>(raw: &Raw, target: &str) -> Result<T, EngineError> {
    for _ in 0..20 {
        match raw.get(target).await {
            Err(EngineError::Refused { .. }) => {}
            other => return other,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    raw.get(target).await
}

/// The ids of its networks.
pub async fn networks(raw: &Raw) -> Result<Vec<String>, EngineError> {
    #[derive(Deserialize)]
    struct Network {
        id: String,
    }
    let found: Option<Vec<Network>> = raw.get(&format!("{API}/networks/json")).await?;
    let ids = found.into_iter().flatten().map(|network| network.id);
    Ok(sorted(ids.collect()))
}

/// Every volume.
pub async fn volumes(raw: &Raw) -> Result<Vec<volumes::Listed>, EngineError> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Volume {
        name: String,
        driver: String,
        labels: Option<BTreeMap<String, String>>,
        options: Option<BTreeMap<String, String>>,
        created_at: String,
    }
    let found: Option<Vec<Volume>> = patiently(raw, &format!("{API}/volumes/json")).await?;
    let listed = found.into_iter().flatten().map(|volume| volumes::Listed {
        name: volume.name,
        driver: volume.driver,
        labels: volume.labels.unwrap_or_default(),
        options: volume.options.unwrap_or_default(),
        created: volume.created_at,
    });
    Ok(listed.collect())
}

pub(super) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

/// Makes a container; gives its id. The name stands in the request as well, so
/// that a log of requests tells the runs apart.
pub async fn create(raw: &Raw, name: &str, spec: Vec<u8>) -> Result<String, EngineError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Created {
        id: String,
    }
    let target = format!("{API}/containers/create?name={name}");
    let answer = raw.ask(Method::POST, &target, Some(spec)).await?;
    let request = "POST /libpod/containers/create";
    let created: Created = raw.read(request, &answer.body)?;
    // It becomes part of every later request.
    if created.id.is_empty() || !created.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(EngineError::Vanished {
            host: raw.host.clone(),
            request: request.into(),
            reason: "the id that it gave is none".into(),
        });
    }
    Ok(created.id)
}

/// Has the runtime prepare a container up to its start.
pub async fn init(raw: &Raw, id: &str) -> Result<(), EngineError> {
    let target = format!("{API}/containers/{id}/init");
    raw.ask(Method::POST, &target, None).await.map(drop)
}

/// What Podman says about a container, verbatim.
pub async fn inspect(raw: &Raw, id: &str) -> Result<serde_json::Value, EngineError> {
    raw.get(&format!("{API}/containers/{id}/json")).await
}

/// Waits until a container has ended, and removes it; gives its status, if
/// Podman still knows it. Podman's own `wait` would answer only when the
/// container's monitor has removed it, by starting Podman once more. Of a container
/// whose monitor was killed Podman never hears that it has ended. `removed` is told
/// if this was the removal, and all of it: otherwise the monitor's Podman may still be
/// at it.
pub async fn end(
    raw: &Raw,
    id: &str,
    monitor_is_gone: impl Fn() -> bool,
    removed: impl Fn(),
) -> Result<Option<i64>, EngineError> {
    let pause = || tokio::time::sleep(Duration::from_millis(1));
    let mut gone_since = None;
    let status = loop {
        match listed(raw, id).await? {
            None => return Ok(None),
            Some(container) if container.is_over() => break container.exit_code,
            Some(_) if monitor_is_gone() => {
                let since = *gone_since.get_or_insert_with(Instant::now);
                if since.elapsed() > UNWATCHED {
                    return Err(EngineError::Vanished {
                        host: raw.host.clone(),
                        request: "waiting for the container's end".into(),
                        reason: "the container's monitor (conmon) was killed".into(),
                    });
                }
                pause().await;
            }
            Some(_) => pause().await,
        }
    };
    let target = format!("{API}/containers/{id}?force=true&v=true&volumes=true");
    loop {
        match raw.ask(Method::DELETE, &target, None).await {
            Ok(_) => {
                removed();
                return Ok(status);
            }
            Err(EngineError::Refused { status: 404, .. }) => return Ok(status),
            // The monitor's Podman is at it as well.
            Err(EngineError::Refused { .. }) if listed(raw, id).await?.is_some() => pause().await,
            Err(EngineError::Refused { .. }) => return Ok(status),
            Err(error) => return Err(error),
        }
    }
}

/// One container as the list has it.
async fn listed(raw: &Raw, id: &str) -> Result<Option<Listed>, EngineError> {
    // {"id":["…"]}
    let filter = format!("%7B%22id%22%3A%5B%22{id}%22%5D%7D");
    let target = format!("{API}/containers/json?all=true&filters={filter}");
    let found: Option<Vec<Listed>> = raw.get(&target).await?;
    Ok(found.into_iter().flatten().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_controllers_that_systemd_sets() {
        let of = |rest: &str| {
            let text = format!(r#"{{"ociRuntime":{{"name":"crun"}}{rest}}}"#);
            let host: Host = serde_json::from_str(&text).unwrap();
            host.controllers_of_a_user()
        };
        let two = r#","cgroupControllers":["memory","pids"],"cgroupManager":"#;
        let found = of(&format!(r#"{two}"systemd""#));
        assert_eq!(found.unwrap(), ["memory", "pids"]);
        for rest in [
            r#","cgroupManager":"systemd""#,
            r#","cgroupManager":"systemd","cgroupControllers":null"#,
        ] {
            assert_eq!(of(rest).unwrap(), [""; 0], "{rest}");
        }
        for rest in [format!(r#"{two}"cgroupfs""#), String::new()] {
            assert_eq!(of(&rest), None, "{rest}");
        }
    }
}
