//! Containers that Podman lists with our label, or keeps in its storage under a name of
//! ours, and whose they are.

use super::libpod::{API, Listed};
use crate::engine::api::raw::Raw;
use crate::engine::contract::{LABEL_RUN, Leftover};
use crate::engine::error::EngineError;
use crate::engine::names::run_of;
use crate::engine::recover::ours::{Described, ImageDescribed, Labels, Mounted, Whole};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Those of the containers that are ours or look like it. One that is gone by now is left
/// out.
pub async fn leftovers(raw: &Raw, listed: Vec<Listed>) -> Result<Vec<Leftover>, EngineError> {
    let mut found = Vec::new();
    for container in listed {
        if container.label(LABEL_RUN).is_some() {
            let described = describe(raw, &container).await?;
            found.extend(described.map(Described::leftover));
        } else if let Some(leftover) = stored(&container) {
            let image = image(raw, &container.image_id).await?;
            let is_ours = image.is_some_and(|image| image.is_for_the_prober());
            found.push(Leftover {
                foreign: (!is_ours).then_some("its image is not ours"),
                ..leftover
            });
        }
    }
    Ok(found)
}

/// The ids of those of the containers that are another party's. One that carries our label
/// and is gone by now is nobody's.
pub async fn foreign(raw: &Raw, listed: &[Listed]) -> Result<Vec<String>, EngineError> {
    let mut ids = Vec::new();
    for container in listed {
        let is_foreign = match container.label(LABEL_RUN) {
            None => true,
            Some(_) => {
                let described = describe(raw, container).await?;
                described.is_some_and(|described| described.run().is_err())
            }
        };
        if is_foreign {
            ids.push(container.id.clone());
        }
    }
    Ok(ids)
}

/// What Podman knows only from its storage has no labels, but its name.
fn stored(container: &Listed) -> Option<Leftover> {
    if container.state != "storage" {
        return None;
    }
    let mut names = container.names.iter().flatten();
    let run = names.find_map(|name| run_of(name))?;
    Some(Leftover {
        id: container.id.clone(),
        run_id: run.id,
        state: container.state.clone(),
        deadline: Some(run.removable_after),
        foreign: None,
    })
}

/// A container as Podman describes it, as far as is needed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Inspected {
    path: String,
    args: Option<Vec<String>>,
    mounts: Option<Vec<InspectedMount>>,
    host_config: InspectedHost,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedMount {
    r#type: String,
    name: String,
    source: String,
    destination: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct InspectedHost {
    auto_remove: bool,
}

/// Asks for a container that is listed; `None` if it is gone.
async fn describe(raw: &Raw, listed: &Listed) -> Result<Option<Described>, EngineError> {
    let target = format!("{API}/containers/{}/json", listed.id);
    let whole = match raw.get::<Inspected>(&target).await {
        Err(EngineError::Refused { status: 404, .. }) => return Ok(None),
        // It is being made or removed, and must not be in the way of the others.
        Err(EngineError::Refused { .. }) => None,
        found => Some(found?.whole()),
    };
    Ok(Some(Described {
        id: listed.id.clone(),
        name: listed
            .names
            .iter()
            .flatten()
            .next()
            .cloned()
            .unwrap_or_default(),
        state: listed.state.clone(),
        labels: listed.labels.clone().unwrap_or_default(),
        whole,
        image: image(raw, &listed.image_id).await?,
    }))
}

impl Inspected {
    fn whole(self) -> Whole {
        let mounts = self.mounts.unwrap_or_default().into_iter();
        let program = [self.path].into_iter();
        Whole {
            program: program.chain(self.args.unwrap_or_default()).collect(),
            auto_remove: self.host_config.auto_remove,
            mounts: mounts
                .map(|mount| Mounted {
                    kind: mount.r#type,
                    name: mount.name,
                    source: mount.source,
                    destination: mount.destination,
                })
                .collect(),
        }
    }
}

/// Asks for an image; `None` if it is gone.
async fn image(raw: &Raw, id: &str) -> Result<Option<ImageDescribed>, EngineError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Image {
        config: Option<Config>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Config {
        #[serde(default)]
        labels: Option<Labels>,
        #[serde(default)]
        entrypoint: Option<Vec<String>>,
    }
    // It becomes part of the request.
    let digest = tki_evidence::described::podman::digest(id);
    let Some(hex) = digest.strip_prefix("sha256:") else {
        return Ok(None);
    };
    if hex.is_empty() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let found: Option<Image> = there(raw, &format!("{API}/images/{hex}/json")).await?;
    let config = found.map(|image| image.config.unwrap_or_default());
    Ok(config.map(|config| ImageDescribed {
        labels: config.labels.unwrap_or_default(),
        entrypoint: config.entrypoint.unwrap_or_default(),
    }))
}

/// The answer, or `None` for "no such object".
async fn there<T: DeserializeOwned>(raw: &Raw, target: &str) -> Result<Option<T>, EngineError> {
    match raw.get(target).await {
        Err(EngineError::Refused { status: 404, .. }) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Podman 4.3 answers, cut.
    const CONTAINERS: &str = r#"[
        {"Id":"a1","Names":["x"],"Labels":{"dev.tki.attest.run":"r"},"State":"running"},
        {"Id":"a2","Names":["tki-attest-20261116t113832z-ee16ab8f"],"Labels":null,"State":"storage"},
        {"Id":"a3","Names":["tki-attest-20261116t113832z-ee16ab8f"],"Labels":null,"State":"running"},
        {"Id":"a4","Names":["postgres"],"Labels":null,"State":"storage"},
        {"Id":"a5","Names":null,"State":"storage"}
    ]"#;

    #[test]
    fn only_what_cannot_have_a_label_is_known_by_its_name() {
        let listed: Vec<Listed> = serde_json::from_str(CONTAINERS).unwrap();
        let found: Vec<Leftover> = listed.iter().filter_map(stored).collect();
        let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["a2"]);
        assert_eq!(found[0].run_id, "20261116t113832z-ee16ab8f");
        assert!(found[0].deadline.is_some());
    }
}
