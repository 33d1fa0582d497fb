//! Manifest, index and layout marker: the documents that tie blobs together.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::digest;
use crate::name::ImageName;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(crate) const LAYER_TAR: &str = "application/vnd.oci.image.layer.v1.tar";

/// The only version of the layout there is.
pub(crate) const LAYOUT_VERSION: &str = "1.0.0";

/// A reference to a blob by what it is, its digest and its size.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    /// Describes a blob.
    pub(crate) fn of(media_type: &str, blob: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: digest::prefixed(&digest::hex(blob)),
            size: blob.len() as u64,
            annotations: None,
        }
    }

    /// Where a layout keeps the blob, or would if its digest were one.
    pub(crate) fn blob_path(&self) -> String {
        blob_path(digest::parse(&self.digest).unwrap_or("?"))
    }
}

/// An image manifest.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    pub(crate) media_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    /// Present only in a document that wants to be read as an index, too.
    #[serde(skip_serializing)]
    pub(crate) manifests: Option<IgnoredAny>,
}

/// An index of manifests.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    pub(crate) schema_version: u32,
    pub(crate) media_type: Option<String>,
    pub(crate) manifests: Vec<Descriptor>,
    /// Present only in a document that wants to be read as a manifest, too.
    #[serde(skip_serializing)]
    pub(crate) layers: Option<IgnoredAny>,
}

/// The file `oci-layout`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LayoutMarker {
    pub(crate) image_layout_version: String,
}

/// An entry of the `manifest.json` that `docker load` reads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DockerEntry {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

/// The bytes of a manifest.
pub(crate) fn manifest(config: Descriptor, layers: Vec<Descriptor>) -> Vec<u8> {
    json(&Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        config,
        layers,
        manifests: None,
    })
}

/// The bytes of an index with one manifest, named for all the tools that look
/// for a name: umoci and skopeo read the first annotation, Podman the second.
pub(crate) fn index(mut manifest: Descriptor, name: &ImageName) -> Vec<u8> {
    manifest.annotations = Some(BTreeMap::from([
        (
            "org.opencontainers.image.ref.name".to_owned(),
            name.tag().to_owned(),
        ),
        ("io.containerd.image.name".to_owned(), name.canonical()),
    ]));
    json(&Index {
        schema_version: 2,
        media_type: Some(INDEX.to_owned()),
        manifests: vec![manifest],
        layers: None,
    })
}

/// The bytes of `oci-layout`.
pub(crate) fn layout_marker() -> Vec<u8> {
    json(&LayoutMarker {
        image_layout_version: LAYOUT_VERSION.to_owned(),
    })
}

/// The bytes of Docker's `manifest.json`, whose paths point at the OCI blobs.
pub(crate) fn docker_manifest(config: &str, layers: &[Descriptor], name: &ImageName) -> Vec<u8> {
    json(&[DockerEntry {
        config: blob_path(config),
        repo_tags: vec![name.reference()],
        layers: layers.iter().map(Descriptor::blob_path).collect(),
    }])
}

/// Where a layout keeps a blob.
pub(crate) fn blob_path(hex: &str) -> String {
    format!("blobs/sha256/{hex}")
}

/// The bytes of a document; the fields' order is the structs', maps are sorted.
pub(crate) fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("these documents have string keys and no floats")
}
