//! The finished image, and its one-file form.

use std::collections::BTreeMap;

use crate::digest;
use crate::layer::Archive;
use crate::manifest::{self, Descriptor};
use crate::name::ImageName;

/// A finished image, held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The manifest's digest, `sha256:…`. This is what evidence pins.
    pub manifest_digest: String,
    /// The configuration's digest, `sha256:…`. Docker reports it as the image's id.
    pub config_digest: String,
    /// The digests of the layers before compression, `sha256:…`.
    pub diff_ids: Vec<String>,
    /// The image's name with its tag.
    pub tag: String,
    epoch: u64,
    /// Marker, index and blobs by their path in a layout.
    files: BTreeMap<String, Vec<u8>>,
    docker_manifest: Vec<u8>,
    layers: Vec<Descriptor>,
}

/// A layer as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// They are a gzip file with a tar in it, and not a tar.
    pub gzip: bool,
}

/// What an image is put together from.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) name: ImageName,
    pub(crate) epoch: u64,
    pub(crate) config: Vec<u8>,
    pub(crate) diff_ids: Vec<String>,
    pub(crate) layers: Vec<(Descriptor, Vec<u8>)>,
}

impl Image {
    /// Writes the manifest and the index over the parts.
    pub(crate) fn assemble(parts: Parts) -> Self {
        let Parts {
            name,
            epoch,
            config,
            diff_ids,
            layers,
        } = parts;
        let mut files = BTreeMap::from([("oci-layout".to_owned(), manifest::layout_marker())]);
        let mut store = |blob: Vec<u8>| {
            let hex = digest::hex(&blob);
            files.insert(manifest::blob_path(&hex), blob);
            hex
        };
        let config_entry = Descriptor::of(manifest::CONFIG, &config);
        let config_hex = store(config);
        let (layers, blobs): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
        let manifest = manifest::manifest(config_entry, layers.clone());
        let manifest_entry = Descriptor::of(manifest::MANIFEST, &manifest);
        let manifest_hex = store(manifest);
        // The maker of the parts has hashed these.
        for (layer, blob) in layers.iter().zip(blobs) {
            files.insert(layer.blob_path(), blob);
        }
        files.insert(
            "index.json".to_owned(),
            manifest::index(manifest_entry, &name),
        );
        Self {
            manifest_digest: digest::prefixed(&manifest_hex),
            config_digest: digest::prefixed(&config_hex),
            diff_ids,
            tag: name.reference(),
            epoch,
            files,
            docker_manifest: manifest::docker_manifest(&config_hex, &layers, &name),
            layers,
        }
    }

    /// The files of the OCI layout by relative path: `oci-layout`, `index.json`, and the blobs
    /// as `blobs/sha256/…`. Writing them is the caller's part.
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// The layers, the lowest first.
    pub fn layers(&self) -> Vec<Stored<'_>> {
        let stored = self.layers.iter().filter_map(|layer| {
            Some(Stored {
                bytes: self.files.get(&layer.blob_path())?,
                gzip: layer.media_type != manifest::LAYER_TAR,
            })
        });
        stored.collect()
    }

    /// The image as one tar that is an OCI archive and a Docker archive at once,
    /// so that every engine finds what it knows. The bytes are reproducible, but
    /// pin the digests instead: they survive a repacking, the archive does not.
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = Archive::new(self.epoch);
        let mut files: BTreeMap<&str, Option<&[u8]>> = BTreeMap::new();
        for (path, data) in &self.files {
            files.insert(path, Some(data));
        }
        files.insert("manifest.json", Some(&self.docker_manifest));
        files.insert("blobs/", None);
        files.insert("blobs/sha256/", None);
        for (path, data) in files {
            let written = match data {
                Some(data) => archive.file(path, data),
                None => archive.directory(path),
            };
            written.expect("these names are short and memory does not fail");
        }
        archive.finish()
    }
}
