//! An OCI layout that another tool may have written: nothing in it is
//! believed that can be computed again, and nothing in it can make the reader
//! use more memory or time than the limits below allow.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::digest;
use crate::error::{ImageError, LayoutError};
use crate::files::{self, Child};
use crate::manifest::{self, Descriptor, Index, LayoutMarker, Manifest};
use crate::text::shown;

/// The largest JSON document.
const MAX_JSON: u64 = 4 * 1024 * 1024;
/// The most layers that engines stack.
const MAX_LAYERS: usize = 127;
/// The most compressed bytes of all layers together.
const MAX_COMPRESSED: u64 = 256 * 1024 * 1024;
/// The most bytes that all layers may decompress to.
const MAX_UNPACKED: u64 = 1024 * 1024 * 1024;

const MALFORMED: &str = "layout.malformed";
const WRITE_AGAIN: &str = "write the layout again with the tool that built the image";

/// What pins an image, whichever engine reports on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The manifest's digest, `sha256:…`.
    pub manifest_digest: String,
    /// The configuration's digest, `sha256:…`.
    pub config_digest: String,
    /// The digests of the layers before compression, `sha256:…`.
    pub diff_ids: Vec<String>,
}

/// Reads an OCI layout and recomputes every digest in it.
pub fn read_identity(dir: &Path) -> Result<Identity, ImageError> {
    let layout = Layout::open(dir)?;
    let mut limits = Limits::default();
    for index in 0..layout.manifest.layers.len() {
        let compressed = layout.layer(index, &mut limits)?;
        layout.unpack(index, &compressed, &mut limits, |_| Ok(()))?;
    }
    Ok(layout.identity())
}

/// What may still be read.
#[derive(Debug)]
pub(crate) struct Limits {
    compressed: u64,
    unpacked: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed: MAX_COMPRESSED,
            unpacked: MAX_UNPACKED,
        }
    }
}

/// A layout whose documents have been checked; its layers have not, yet.
#[derive(Debug)]
pub(crate) struct Layout {
    blobs: Blobs,
    manifest_digest: String,
    pub(crate) manifest: Manifest,
    pub(crate) config: Config,
}

impl Layout {
    /// Reads marker, index, manifest and configuration.
    pub(crate) fn open(dir: &Path) -> Result<Self, ImageError> {
        let root = files::open_root(dir).map_err(|error| ImageError::read(dir, error))?;
        let marker: LayoutMarker = document(dir, "oci-layout", &root)?;
        if marker.image_layout_version != manifest::LAYOUT_VERSION {
            let version = shown(&marker.image_layout_version);
            let why = format!("has layout version `{version}`, and only 1.0.0 is known");
            return Err(malformed(&dir.join("oci-layout"), why).into());
        }
        let index: Index = document(dir, "index.json", &root)?;
        let entry = only_manifest(&dir.join("index.json"), &index)?;
        let parent = directory(dir, "blobs", &root)?;
        let blobs = Blobs {
            layout: dir.to_owned(),
            directory: directory(&dir.join("blobs"), "sha256", &parent)?,
        };
        let manifest: Manifest = blobs.json(entry)?;
        check_manifest(&blobs.path(entry), &manifest)?;
        let config: Config = blobs.json(&manifest.config)?;
        check_config(
            &blobs.path(&manifest.config),
            &config,
            manifest.layers.len(),
        )?;
        Ok(Self {
            blobs,
            manifest_digest: entry.digest.clone(),
            manifest,
            config,
        })
    }

    /// The identity; true only if every layer has been unpacked.
    fn identity(self) -> Identity {
        Identity {
            manifest_digest: self.manifest_digest,
            config_digest: self.manifest.config.digest,
            diff_ids: self.config.rootfs.diff_ids,
        }
    }

    /// A layer's bytes as stored, with size and digest checked.
    pub(crate) fn layer(&self, index: usize, limits: &mut Limits) -> Result<Vec<u8>, LayoutError> {
        let descriptor = &self.manifest.layers[index];
        let left = limits.compressed.checked_sub(descriptor.size);
        limits.compressed = left.ok_or_else(|| {
            let why = format!("has more than {} MiB of layers", MAX_COMPRESSED >> 20);
            LayoutError::new(
                "layout.limit",
                &self.blobs.layout,
                why,
                "use a smaller image",
            )
        })?;
        self.blobs.get(descriptor, descriptor.size)
    }

    /// Decompresses a layer, shows the tar to `visit`, and checks the diff id.
    pub(crate) fn unpack(
        &self,
        index: usize,
        stored: &[u8],
        limits: &mut Limits,
        visit: impl FnOnce(&mut dyn Read) -> Result<(), LayoutError>,
    ) -> Result<(), LayoutError> {
        let descriptor = &self.manifest.layers[index];
        let path = self.blobs.path(descriptor);
        let source: Box<dyn Read> = match descriptor.media_type.as_str() {
            manifest::LAYER_TAR => Box::new(stored),
            _ => Box::new(MultiGzDecoder::new(stored)),
        };
        let mut tar = Counted {
            source,
            hash: Sha256::new(),
            left: limits.unpacked,
            exceeded: false,
        };
        // A visitor that fails because the limit was hit must not hide that.
        let visited = visit(&mut tar);
        let drained = match &visited {
            Ok(()) => io::copy(&mut tar, &mut io::sink()).map(drop),
            Err(_) => Ok(()),
        };
        if tar.exceeded {
            let why = format!("decompresses to more than {} MiB", MAX_UNPACKED >> 20);
            return Err(LayoutError::new(
                "layout.limit",
                &path,
                why,
                "use a smaller image",
            ));
        }
        visited?;
        drained.map_err(|error| malformed(&path, format!("does not decompress: {error}")))?;
        limits.unpacked = tar.left;
        let found = digest::prefixed(&digest::finish(tar.hash));
        let claimed = &self.config.rootfs.diff_ids[index];
        if found != *claimed {
            let why = format!("decompresses to {found}, but the configuration says {claimed}");
            return Err(LayoutError::new("layout.digest", &path, why, WRITE_AGAIN));
        }
        Ok(())
    }
}

fn check_manifest(path: &Path, manifest: &Manifest) -> Result<(), LayoutError> {
    let kind = manifest.media_type.as_deref().unwrap_or(manifest::MANIFEST);
    let odd = kind != manifest::MANIFEST || manifest.manifests.is_some();
    if manifest.schema_version != 2 || odd {
        return Err(malformed(path, "is not an OCI image manifest".to_owned()));
    }
    if manifest.config.media_type != manifest::CONFIG {
        return Err(unsupported(
            path,
            "configuration",
            &manifest.config.media_type,
        ));
    }
    if manifest.layers.len() > MAX_LAYERS {
        let why = format!("has more than {MAX_LAYERS} layers");
        return Err(LayoutError::new(
            "layout.limit",
            path,
            why,
            "use a smaller image",
        ));
    }
    let known = [manifest::LAYER_GZIP, manifest::LAYER_TAR];
    let mut kinds = manifest
        .layers
        .iter()
        .map(|layer| layer.media_type.as_str());
    match kinds.find(|kind| !known.contains(kind)) {
        Some(kind) => Err(unsupported(path, "layer", kind)),
        None => Ok(()),
    }
}

fn check_config(path: &Path, config: &Config, layers: usize) -> Result<(), LayoutError> {
    let rootfs = &config.rootfs;
    if rootfs.kind != "layers" {
        let why = "has a rootfs that is not of type `layers`";
        return Err(malformed(path, why.to_owned()));
    }
    let ids = rootfs.diff_ids.len();
    if layers != ids {
        let why = format!("lists {ids} diff_ids for {layers} layers");
        return Err(malformed(path, why));
    }
    match rootfs
        .diff_ids
        .iter()
        .find(|id| digest::parse(id).is_none())
    {
        Some(id) => Err(malformed(
            path,
            format!("has `{}` for a diff_id", shown(id)),
        )),
        None => Ok(()),
    }
}

/// The blobs of a layout, by digest.
#[derive(Debug)]
struct Blobs {
    layout: PathBuf,
    directory: OwnedFd,
}

impl Blobs {
    fn json<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, LayoutError> {
        let bytes = self.get(descriptor, MAX_JSON)?;
        parse(&self.path(descriptor), &bytes)
    }

    /// A blob's bytes, if they are what the descriptor says.
    fn get(&self, descriptor: &Descriptor, limit: u64) -> Result<Vec<u8>, LayoutError> {
        let Some(hex) = digest::parse(&descriptor.digest) else {
            let why = format!(
                "refers to `{}`, which is not a sha256 digest",
                shown(&descriptor.digest)
            );
            return Err(malformed(&self.layout, why));
        };
        let path = self.path(descriptor);
        let bytes = regular(&path, &self.directory, hex, limit.min(descriptor.size))?;
        if bytes.len() as u64 != descriptor.size {
            let why = format!("has {} bytes instead of {}", bytes.len(), descriptor.size);
            return Err(LayoutError::new("layout.digest", &path, why, WRITE_AGAIN));
        }
        let found = digest::hex(&bytes);
        if found != hex {
            let why = format!("has the digest sha256:{found}, not the one in its name");
            return Err(LayoutError::new("layout.digest", &path, why, WRITE_AGAIN));
        }
        Ok(bytes)
    }

    /// Where a blob is, or would be if its digest were one.
    fn path(&self, descriptor: &Descriptor) -> PathBuf {
        self.layout.join(descriptor.blob_path())
    }
}

/// The one manifest of an index. Several entries for the same manifest, which
/// is how tools write several tags, are one.
fn only_manifest<'a>(path: &Path, index: &'a Index) -> Result<&'a Descriptor, LayoutError> {
    let kind = index.media_type.as_deref().unwrap_or(manifest::INDEX);
    if index.schema_version != 2 || kind != manifest::INDEX || index.layers.is_some() {
        return Err(malformed(path, "is not an OCI image index".to_owned()));
    }
    let Some(first) = index.manifests.first() else {
        return Err(malformed(path, "lists no image".to_owned()));
    };
    let same = |entry: &Descriptor| entry.digest == first.digest && entry.size == first.size;
    if !index.manifests.iter().all(same) {
        let why = format!(
            "lists {} images, and one is expected",
            index.manifests.len()
        );
        let next = "copy the one image into a layout of its own, for example with skopeo copy";
        return Err(LayoutError::new("layout.several", path, why, next));
    }
    match first.media_type.as_str() {
        manifest::MANIFEST => Ok(first),
        other => Err(unsupported(path, "manifest", other)),
    }
}

/// Reads one of the two documents at the root of a layout.
fn document<T: DeserializeOwned>(dir: &Path, name: &str, root: &OwnedFd) -> Result<T, LayoutError> {
    let path = dir.join(name);
    parse(&path, &regular(&path, root, name, MAX_JSON)?)
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, LayoutError> {
    serde_json::from_slice(bytes)
        .map_err(|error| malformed(path, shown(&format!("is not what it should be: {error}"))))
}

fn regular(path: &Path, parent: &OwnedFd, name: &str, limit: u64) -> Result<Vec<u8>, LayoutError> {
    let unreadable = |error: io::Error| unreadable(path, &error);
    match files::child(parent, name).map_err(unreadable)? {
        Child::File(file, _) => files::read_bounded(file, limit)
            .map_err(unreadable)?
            .ok_or_else(|| {
                malformed(
                    path,
                    format!("is larger than the {limit} bytes it may have"),
                )
            }),
        _ => Err(malformed(path, "is not a regular file".to_owned())),
    }
}

fn directory(parent: &Path, name: &str, root: &OwnedFd) -> Result<OwnedFd, LayoutError> {
    let path = parent.join(name);
    match files::child(root, name).map_err(|error| unreadable(&path, &error))? {
        Child::Directory(opened) => Ok(opened),
        _ => Err(malformed(&path, "is not a directory".to_owned())),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> LayoutError {
    let next = "give a directory that holds an OCI layout";
    let code = match error.kind() {
        io::ErrorKind::NotFound => "layout.missing",
        _ => "layout.unreadable",
    };
    LayoutError::new(code, path, format!("cannot be read: {error}"), next)
}

fn malformed(path: &Path, why: String) -> LayoutError {
    LayoutError::new(MALFORMED, path, why, WRITE_AGAIN)
}

fn unsupported(path: &Path, what: &str, media_type: &str) -> LayoutError {
    let why = format!(
        "has a {what} of type `{}`, which is not supported",
        shown(media_type)
    );
    let next = "convert the image, for example with skopeo copy --format oci";
    LayoutError::new("layout.unsupported", path, why, next)
}

/// A reader that hashes what passes and stops at a limit.
struct Counted<'a> {
    source: Box<dyn Read + 'a>,
    hash: Sha256,
    left: u64,
    exceeded: bool,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                self.exceeded = true;
                return Err(io::Error::other("too many bytes"));
            }
        }
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
