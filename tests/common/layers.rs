//! Images that are built for tests, and what is in them.

use super::root;
use oci_image::{BuildOptions, Context, Image, Recipe, build};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tki_attest::image::store;

/// A context with everything that the sandbox's Dockerfile copies, and files to
/// try `COPY` with. The modes are those that the image stage would give anyway.
pub fn stage(place: &Path) {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &target),
                false => drop(fs::copy(entry.path(), target).unwrap()),
            }
        }
    }
    copy(&root().join("image/rootfs"), &place.join("rootfs"));
    let volumes = ["rootfs/volumes/in", "rootfs/volumes/out"];
    for path in ["d/sub", "e/sub"].iter().chain(&volumes) {
        fs::create_dir_all(place.join(path)).unwrap();
    }
    for path in [
        "tki-inspector",
        "tki-prober",
        "f",
        "d/x",
        "d/sub/y",
        "e/z",
        "e/sub/w",
    ] {
        fs::write(place.join(path), path).unwrap();
    }
    std::os::unix::fs::symlink("../f", place.join("d/link")).unwrap();
    normalise(place);
    for path in ["tki-inspector", "tki-prober", "d/x"] {
        fs::set_permissions(place.join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn normalise(path: &Path) {
    let found = fs::symlink_metadata(path).unwrap();
    if found.is_symlink() {
        return;
    }
    let mode = if found.is_dir() { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            normalise(&entry.unwrap().path());
        }
    }
}

/// What every build here is given.
pub fn options(tag: &str) -> BuildOptions {
    BuildOptions {
        epoch: 1_700_000_000,
        tag: tag.to_owned(),
        bases: BTreeMap::new(),
    }
}

fn sandbox_image(context: &Path, tag: &str) -> Image {
    let recipe = Recipe::read(&root().join("image/Dockerfile.sandbox")).unwrap();
    let context = Context::directory(context).unwrap();
    build(&recipe, &context, &options(tag)).unwrap()
}

/// A staged context and the image built from it.
pub struct Bench {
    dir: tempfile::TempDir,
    /// What was built.
    pub image: Image,
}

impl Bench {
    /// The sandbox's image, built in a new directory.
    pub fn new(tag: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let context = dir.path().join("context");
        stage(&context);
        let image = sandbox_image(&context, tag);
        Self { dir, image }
    }

    /// A path in that directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the image as a layout.
    pub fn layout(&self) -> PathBuf {
        let path = self.path("layout");
        store::write_layout(&self.image, &path).unwrap();
        path
    }

    /// Writes it as an archive.
    pub fn archive(&self) -> PathBuf {
        let path = self.path("image.tar");
        store::write_archive(&self.image, &path).unwrap();
        path
    }
}

/// What an archive in Docker's format holds.
pub struct Contents {
    /// The image's configuration.
    pub config: Value,
    /// Its files, by their paths.
    pub entries: BTreeMap<String, Entry>,
}

/// A file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    kind: tar::EntryType,
    /// Its permissions.
    pub mode: u32,
    /// User and group.
    pub owner: (u64, u64),
    data: Vec<u8>,
}

/// Reads an archive in Docker's format.
pub fn tree(archive: &[u8]) -> Contents {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut data = Vec::new();
        entry.read_to_end(&mut data).unwrap();
        files.insert(path, data);
    }
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let config = manifest[0]["Config"].as_str().unwrap();
    let config = serde_json::from_slice(&files[config]).unwrap();
    let mut entries = BTreeMap::new();
    for layer in manifest[0]["Layers"].as_array().unwrap() {
        let stored = &files[layer.as_str().unwrap()];
        let mut layer = Vec::new();
        match stored.starts_with(&[0x1f, 0x8b]) {
            true => drop(
                flate2::read::GzDecoder::new(&**stored)
                    .read_to_end(&mut layer)
                    .unwrap(),
            ),
            false => layer.clone_from(stored),
        }
        for entry in tar::Archive::new(&*layer).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry
                .path()
                .unwrap()
                .to_str()
                .unwrap()
                .trim_matches('/')
                .to_owned();
            let header = entry.header().clone();
            let mut data = entry
                .link_name_bytes()
                .map(|link| link.into_owned())
                .unwrap_or_default();
            entry.read_to_end(&mut data).unwrap();
            let entry = Entry {
                kind: header.entry_type(),
                mode: header.mode().unwrap() & 0o7777,
                owner: (header.uid().unwrap(), header.gid().unwrap()),
                data,
            };
            entries.insert(path, entry);
        }
    }
    Contents { config, entries }
}
