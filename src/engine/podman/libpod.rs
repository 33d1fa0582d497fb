//! Podman's own API, as far as it is needed. What it answers is taken apart
//! leniently: later versions say more.

use crate::engine::api::raw::Raw;
use crate::engine::error::EngineError;
use hyper::Method;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tki_evidence::evidence::Holdings;

/// The version of the API that is spoken: every Podman from 4.0 on knows it.
const API: &str = "/v4.0.0/libpod";

/// What an engine says when it is greeted.
#[derive(Clone, Debug)]
pub struct Ping {
    /// Podman's version.
    pub version: String,
    /// The version of Docker's API that it speaks.
    pub api: (usize, usize),
}

/// Greets an engine: Podman gives its version, any other engine `None`.
pub async fn ping(raw: &Raw) -> Result<Option<Ping>, EngineError> {
    let answer = raw.ask(Method::GET, "/_ping", None).await?;
    let header = |name: &str| {
        let value = answer.headers.get(name)?.to_str().ok()?;
        Some(value.to_owned()).filter(|value| value.len() < 64)
    };
    let Some(version) = header("libpod-api-version") else {
        return Ok(None);
    };
    let api = header("api-version").unwrap_or_default();
    let (major, minor) = api.split_once('.').unwrap_or((&api, ""));
    Ok(Some(Ping {
        version,
        api: (major.parse().unwrap_or(0), minor.parse().unwrap_or(0)),
    }))
}

/// What Podman says about its host. The question takes it longer than making a
/// container, because it asks the package manager.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The runtime that containers are made with if nobody names another one.
    pub oci_runtime: HostRuntime,
    /// The controllers that it can use.
    #[serde(default)]
    pub cgroup_controllers: Option<Vec<String>>,
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

/// A container in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its labels.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Podman's word for its state.
    #[serde(default)]
    pub state: String,
}

impl Listed {
    /// A label's value.
    pub fn label(&self, name: &str) -> Option<&String> {
        self.labels.as_ref()?.get(name)
    }
}

/// Every container, running or not.
pub async fn containers(raw: &Raw) -> Result<Vec<Listed>, EngineError> {
    let found: Option<Vec<Listed>> = raw.get(&format!("{API}/containers/json?all=true")).await?;
    Ok(found.unwrap_or_default())
}

/// What Podman holds, without containers that carry `label`.
pub async fn holdings(raw: &Raw, label: &str) -> Result<Holdings, EngineError> {
    #[derive(Deserialize)]
    struct Network {
        id: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Volume {
        name: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Image {
        id: String,
    }
    let (networks, volumes, images) = (
        format!("{API}/networks/json"),
        format!("{API}/volumes/json"),
        format!("{API}/images/json?all=true"),
    );
    let (containers, networks, volumes, images) = tokio::try_join!(
        containers(raw),
        raw.get::<Option<Vec<Network>>>(&networks),
        raw.get::<Option<Vec<Volume>>>(&volumes),
        raw.get::<Option<Vec<Image>>>(&images),
    )?;
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names.dedup();
        names
    };
    let foreign = containers.into_iter().filter(|c| c.label(label).is_none());
    let (networks, volumes, images) = (
        networks.unwrap_or_default(),
        volumes.unwrap_or_default(),
        images.unwrap_or_default(),
    );
    Ok(Holdings {
        containers: sorted(foreign.map(|container| container.id).collect()),
        networks: sorted(networks.into_iter().map(|network| network.id).collect()),
        volumes: sorted(volumes.into_iter().map(|volume| volume.name).collect()),
        images: sorted(images.into_iter().map(|i| digest(&i.id)).collect()),
    })
}

/// Podman writes an image's id without the name of the hash.
pub fn digest(id: &str) -> String {
    match id.contains(':') {
        true => id.to_owned(),
        false => format!("sha256:{id}"),
    }
}

/// The id of an image by name or digest, `None` if there is no such image.
pub async fn image_id(raw: &Raw, name: &str) -> Result<Option<String>, EngineError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Image {
        id: String,
    }
    match raw.get::<Image>(&format!("{API}/images/{name}/json")).await {
        Ok(image) => Ok(Some(digest(&image.id))),
        Err(EngineError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
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
    let created: Created = raw.read("POST /libpod/containers/create", &answer.body)?;
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

/// Waits until a container has ended and is removed; gives its status, if
/// Podman still knows it.
pub async fn wait_for_removal(raw: Raw, id: String) -> Result<Option<i64>, EngineError> {
    let target = format!("{API}/containers/{id}/wait?condition=stopped&interval=10ms");
    let status = match raw.ask(Method::POST, &target, None).await {
        Ok(answer) => Some(raw.read("POST /libpod/containers/wait", &answer.body)?),
        // It was removed before Podman heard the question.
        Err(EngineError::Refused { status: 404, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let target = format!("{API}/containers/{id}/exists");
    loop {
        match raw.ask(Method::GET, &target, None).await {
            Err(EngineError::Refused { status: 404, .. }) => return Ok(status),
            Err(error) => return Err(error),
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}
