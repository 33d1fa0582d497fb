//! What is replaced, what is not, and that nothing is left behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{write_archive, write_layout};
use crate::image::{BuildOptions, Context, Image, Recipe, build, read_identity};

fn image(text: &str) -> Image {
    let recipe = Recipe::parse("Dockerfile", b"FROM scratch\nCOPY a /a\n").unwrap();
    let files = BTreeMap::from([("a".to_owned(), text.as_bytes().to_vec())]);
    let options = BuildOptions {
        tag: "t:t".into(),
        ..BuildOptions::default()
    };
    build(&recipe, &Context::memory(files).unwrap(), &options).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_layout_replaces_a_layout_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let layout = dir.path().join("layout");
    for text in ["one", "two", "two"] {
        let image = image(text);
        write_layout(&image, &layout).unwrap();
        let identity = read_identity(&layout).unwrap();
        assert_eq!(identity.manifest_digest, image.manifest_digest);
        assert_eq!(identity.config_digest, image.config_digest);
        assert_eq!(identity.diff_ids, image.diff_ids);
    }
    assert_eq!(names(dir.path()), ["layout"]);
    assert_eq!(names(&layout.join("blobs/sha256")).len(), 3);
}

#[test]
fn an_empty_directory_is_filled() {
    let dir = tempfile::tempdir().unwrap();
    write_layout(&image("x"), dir.path()).unwrap();
    read_identity(dir.path()).unwrap();
}

#[test]
fn what_is_not_a_layout_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("thesis.txt"), "").unwrap();
    let error = write_layout(&image("x"), &mine).unwrap_err();
    assert_eq!(error.code(), "image.occupied");

    let mixed = dir.path().join("mixed");
    write_layout(&image("x"), &mixed).unwrap();
    fs::write(mixed.join("thesis.txt"), "").unwrap();
    assert!(write_layout(&image("y"), &mixed).is_err());
    assert!(mixed.join("thesis.txt").exists());

    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&mine, &link).unwrap();
    assert!(write_layout(&image("x"), &link).is_err());
    assert!(write_archive(&image("x"), &link).is_err());
    assert!(write_archive(&image("x"), &mine).is_err());
    assert_eq!(names(dir.path()), ["link", "mine", "mixed"]);
}

#[test]
fn an_archive_is_replaced_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image.tar");
    fs::write(&path, "old").unwrap();
    let image = image("x");
    write_archive(&image, &path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), image.archive());
    assert_eq!(names(dir.path()), ["image.tar"]);
    let error = write_archive(&image, &dir.path().join("none/image.tar")).unwrap_err();
    assert_eq!(error.code(), "image.write");
}
