//! Building an image: the same bytes everywhere, and the modes that probes rely on.

use crate::common::layers::{Bench, options, tree};
use crate::common::root;
use oci_image::{Context, Recipe, build, read_identity};
use std::collections::BTreeMap;
use std::fs;

#[test]
fn two_builds_in_two_places_are_the_same_bytes() {
    let (one, two) = (
        Bench::new("tki-image-test:same"),
        Bench::new("tki-image-test:same"),
    );
    assert_eq!(one.image.manifest_digest, two.image.manifest_digest);
    assert_eq!(
        fs::read(one.archive()).unwrap(),
        fs::read(two.archive()).unwrap()
    );
    let identities = [one.layout(), two.layout()].map(|path| read_identity(&path).unwrap());
    assert_eq!(identities[0], identities[1]);
    assert_eq!(identities[0].manifest_digest, one.image.manifest_digest);
    assert_eq!(identities[0].diff_ids, one.image.diff_ids);
}

#[test]
fn memory_and_directory_contexts_are_equal() {
    let bench = Bench::new("tki-image-test:memory");
    let mut files = BTreeMap::new();
    let mut pending = vec![bench.path("context")];
    while let Some(path) = pending.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let path = entry.path();
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(bench.path("context")).unwrap();
                files.insert(name.to_str().unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    let recipe = Recipe::read(&root().join("image/Dockerfile.sandbox")).unwrap();
    let empty = ["rootfs/volumes/in", "rootfs/volumes/out"];
    let context = Context::memory_with(files, &empty).unwrap();
    let image = build(&recipe, &context, &options("tki-image-test:memory")).unwrap();
    assert_eq!(image, bench.image);
}

/// PR-FS-ESC-1 and PR-FS-ESC-2 prove something only if no file mode denies the
/// write. A destination directory does not take `--chmod`; what is copied does.
#[test]
fn the_escape_directory_is_open_to_everybody() {
    let bench = Bench::new("tki-image-test:escape");
    let contents = tree(&bench.image.archive());
    let escape = &contents.entries["escape"];
    assert_eq!(format!("{:o}", escape.mode), "1777");
}

/// An engine copies them into new volumes, owner and mode included.
#[test]
fn what_goes_into_volumes_is_open_to_everybody() {
    let bench = Bench::new("tki-image-test:volumes");
    let contents = tree(&bench.image.archive());
    for (path, mode) in [
        ("in", "777"),
        ("in/tki-probe-target", "666"),
        ("out", "777"),
    ] {
        let entry = &contents.entries[path];
        assert_eq!(format!("{:o}", entry.mode), mode, "{path}");
        assert_eq!(entry.owner, (58713, 58713), "{path}");
    }
    let below = |path: &&String| path.starts_with("out/") || path.starts_with("in/");
    assert_eq!(contents.entries.keys().filter(below).count(), 1);
}
