//! What a context gives out, and what it refuses.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::{Budget, Context, Found, Item};
use crate::ImageError;

fn file(text: &str, executable: bool) -> Item {
    Item::File {
        data: text.into(),
        executable,
    }
}

fn memory(files: &[(&str, &str)]) -> Result<Context, ImageError> {
    let own = |&(path, text): &(&str, &str)| (path.to_owned(), text.as_bytes().to_vec());
    Context::memory(files.iter().map(own).collect::<BTreeMap<_, _>>())
}

fn refusal(context: &Context, source: &str) -> &'static str {
    context
        .read(source, &mut Budget::default())
        .unwrap_err()
        .code
}

#[test]
fn memory_has_files_and_implied_directories() {
    let context = memory(&[("a/b/c", "1"), ("a/d", "2"), ("e", "3")]).unwrap();
    let read = |source| context.read(source, &mut Budget::default()).unwrap();
    assert_eq!(read("e"), Found::File(file("3", false)));
    let expected = vec![
        ("b".to_owned(), Item::Directory),
        ("b/c".to_owned(), file("1", false)),
        ("d".to_owned(), file("2", false)),
    ];
    assert_eq!(read("a"), Found::Directory(expected));
    assert_eq!(refusal(&context, "a/x"), "context.missing");
}

#[test]
fn memory_can_have_directories_with_nothing_in_them() {
    let files = BTreeMap::from([("a/b".to_owned(), b"1".to_vec())]);
    let context = Context::memory_with(files.clone(), &["a/c", "d"]).unwrap();
    let read = |source| context.read(source, &mut Budget::default()).unwrap();
    let expected = vec![
        ("b".to_owned(), file("1", false)),
        ("c".to_owned(), Item::Directory),
    ];
    assert_eq!(read("a"), Found::Directory(expected));
    assert_eq!(read("d"), Found::Directory(Vec::new()));
    for wrong in ["a/b", "a/b/c", "a", "..", ""] {
        assert!(
            Context::memory_with(files.clone(), &[wrong]).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn memory_paths_must_be_clean_and_distinct() {
    for files in [
        &[("../a", "")][..],
        &[("", "")],
        &[("a", ""), ("./a", "")],
        &[("a", ""), ("a/b", "")],
        &[(".wh.a", "")],
    ] {
        assert!(memory(files).is_err(), "{files:?}");
    }
}

#[test]
fn a_directory_is_read_in_order_with_the_executable_bit() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/z"), "z").unwrap();
    fs::write(root.join("d/a"), "a").unwrap();
    fs::set_permissions(root.join("d/a"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("/etc/passwd", root.join("d/link")).unwrap();
    let context = Context::directory(root).unwrap();
    let found = context.read("d", &mut Budget::default()).unwrap();
    let expected = vec![
        ("a".to_owned(), file("a", true)),
        ("link".to_owned(), Item::Symlink("/etc/passwd".into())),
        ("z".to_owned(), file("z", false)),
    ];
    assert_eq!(found, Found::Directory(expected));
}

#[test]
fn links_are_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    let directory = tempfile::tempdir().unwrap();
    symlink(outside.path(), directory.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), directory.path().join("s")).unwrap();
    let context = Context::directory(directory.path()).unwrap();
    assert_eq!(refusal(&context, "s"), "context.symlink");
    assert_eq!(refusal(&context, "out/secret"), "context.symlink");
    assert_eq!(refusal(&context, "none"), "context.missing");
}

#[test]
fn special_files_and_odd_names_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let at = rustix::fs::CWD;
    rustix::fs::mknodat(at, root.join("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    fs::create_dir(root.join("odd")).unwrap();
    fs::write(
        root.join("odd").join(std::ffi::OsStr::from_bytes(b"\xff")),
        "",
    )
    .unwrap();
    fs::create_dir(root.join("bell")).unwrap();
    fs::write(root.join("bell/\u{7}"), "").unwrap();
    fs::create_dir(root.join("white")).unwrap();
    fs::write(root.join("white/.wh.x"), "").unwrap();
    let context = Context::directory(root).unwrap();
    assert_eq!(refusal(&context, "fifo"), "context.special");
    assert_eq!(refusal(&context, ""), "context.name");
    for source in ["odd", "bell", "white"] {
        assert_eq!(refusal(&context, source), "context.name", "{source}");
    }
}

#[test]
fn budgets_end() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), "12345").unwrap();
    fs::write(directory.path().join("b"), "12345").unwrap();
    let on_disk = Context::directory(directory.path()).unwrap();
    let in_memory = memory(&[("a", "12345"), ("b", "12345")]).unwrap();
    for context in [on_disk, in_memory] {
        for (bytes, entries, fits) in [(10, 2, true), (9, 2, false), (10, 1, false)] {
            let mut budget = Budget { bytes, entries };
            let found = context.read("", &mut budget);
            assert_eq!(found.is_ok(), fits, "{bytes} {entries}");
            if let Err(error) = found {
                assert_eq!(error.code, "context.limit");
            }
        }
    }
}

#[test]
fn an_ignore_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(".dockerignore"), "*").unwrap();
    let error = Context::directory(directory.path()).unwrap_err();
    assert_eq!(error.code(), "context.ignore");
}
