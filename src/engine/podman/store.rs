//! What Podman holds, without containers of ours.

use super::libpod::{self, API, sorted};
use super::listed;
use crate::engine::api::raw::Raw;
use crate::engine::api::volumes;
use crate::engine::contract::ImageNames;
use crate::engine::error::EngineError;
use serde::Deserialize;
use tki_evidence::described::podman::digest;
use tki_evidence::evidence::Holdings;

/// An image in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListedImage {
    id: String,
    /// Its manifest's digest.
    #[serde(default)]
    digest: String,
}

/// What is in Podman's store: all that it holds but its networks.
#[derive(Debug)]
pub struct Store {
    /// Without containers of ours.
    containers: Vec<String>,
    volumes: Vec<String>,
    images: Vec<ListedImage>,
}

impl Store {
    /// What it holds, without containers of ours.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            containers: self.containers.clone(),
            networks: Vec::new(),
            volumes: self.volumes.clone(),
            images: sorted(self.images.iter().map(|image| digest(&image.id)).collect()),
            modules: Vec::new(),
        }
    }

    /// The id of an image that is there under either digest.
    pub fn held(&self, names: &ImageNames) -> Option<String> {
        let by = |is_it: &dyn Fn(&ListedImage) -> bool| {
            let found = self.images.iter().find(|image| is_it(image));
            found.map(|image| digest(&image.id))
        };
        by(&|image| digest(&image.id) == names.config_digest)
            .or_else(|| by(&|image| image.digest == names.manifest_digest))
    }
}

/// Asks what is in the store.
pub async fn store(raw: &Raw) -> Result<Store, EngineError> {
    let images = format!("{API}/images/json?all=true");
    let (containers, volumes, images) = tokio::try_join!(
        foreign_containers(raw),
        libpod::volumes(raw),
        raw.get::<Option<Vec<ListedImage>>>(&images),
    )?;
    Ok(Store {
        containers,
        volumes: volumes::foreign(&volumes),
        images: images.unwrap_or_default(),
    })
}

/// What Podman holds, without containers of ours.
pub async fn holdings(raw: &Raw) -> Result<Holdings, EngineError> {
    let (held, networks) = tokio::try_join!(store(raw), libpod::networks(raw))?;
    Ok(Holdings {
        networks,
        ..held.holdings()
    })
}

/// The ids of containers that are not ours.
async fn foreign_containers(raw: &Raw) -> Result<Vec<String>, EngineError> {
    let listed = libpod::containers(raw).await?;
    Ok(sorted(listed::foreign(raw, &listed).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Podman 4.3 answers, cut.
    const IMAGES: &str = r#"[
        {"Id":"dfa0","RepoTags":null,"Digest":"sha256:34cd","Dangling":true},
        {"Id":"9265","RepoTags":["docker.io/library/tki-inspector:attest"],"Digest":"sha256:48cb"},
        {"Id":"1111","RepoTags":["localhost/not-tki-inspector:attest"]}
    ]"#;

    #[test]
    fn an_image_is_found_by_either_digest() {
        let store = Store {
            containers: Vec::new(),
            volumes: Vec::new(),
            images: serde_json::from_str(IMAGES).unwrap(),
        };
        let held = |config: &str, manifest: &str| {
            store.held(&ImageNames {
                config_digest: config.into(),
                manifest_digest: manifest.into(),
            })
        };
        assert_eq!(held("sha256:dfa0", "").as_deref(), Some("sha256:dfa0"));
        assert_eq!(held("", "sha256:48cb").as_deref(), Some("sha256:9265"));
        // The third one has no digest, and no digest is none.
        assert_eq!(held("sha256:x", "sha256:y"), None);
    }
}
