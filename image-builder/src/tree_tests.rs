//! `COPY`'s rules. The expectations were read off images that BuildKit built.

use std::collections::BTreeMap;

use super::{BaseNode, Budget, Context, Copy, Node, Owner, Tree};
use crate::{ContextError, Location};

fn context() -> Context {
    let names = ["f", "d/x", "d/sub/y", "e/z", "e/sub/w"];
    let files = names.map(|name| (name.to_owned(), name.as_bytes().to_vec()));
    Context::memory(files.into()).unwrap()
}

fn step(sources: &[&str], destination: &str, mode: Option<u32>, owner: Option<(u32, u32)>) -> Copy {
    Copy {
        sources: sources.iter().map(|&source| source.to_owned()).collect(),
        destination: destination.trim_matches('/').to_owned(),
        absolute: destination.starts_with('/'),
        into_directory: destination.ends_with('/'),
        mode,
        owner: owner.map(|(uid, gid)| Owner { uid, gid }),
        at: Location {
            file: "Dockerfile".into(),
            line: 1,
            column: 1,
        },
    }
}

fn apply(tree: &mut Tree, copy: &Copy) -> Result<(), ContextError> {
    tree.copy(copy, "wd", &context(), &mut Budget::default())
}

/// The tree as `path mode uid:gid` lines.
fn listing(tree: Tree) -> Vec<String> {
    let line = |(path, entry): (String, super::Entry)| {
        let slash = if entry.node == Node::Directory {
            "/"
        } else {
            ""
        };
        let Owner { uid, gid } = entry.owner;
        format!("{path}{slash} {:o} {uid}:{gid}", entry.mode)
    };
    tree.into_entries().into_iter().map(line).collect()
}

#[test]
fn a_directory_gives_its_content_and_chmod_spares_the_destination() {
    let mut tree = Tree::default();
    apply(&mut tree, &step(&["d"], "/p/q/", Some(0o1777), None)).unwrap();
    let expected = [
        "p/ 755 0:0",
        "p/q/ 755 0:0",
        "p/q/sub/ 1777 0:0",
        "p/q/sub/y 1777 0:0",
        "p/q/x 1777 0:0",
    ];
    assert_eq!(listing(tree), expected);
}

#[test]
fn chown_applies_to_created_parents_too() {
    let mut tree = Tree::default();
    apply(&mut tree, &step(&["f"], "/a/x", None, Some((7, 7)))).unwrap();
    apply(
        &mut tree,
        &step(&["f"], "/a/b/y", Some(0o600), Some((8, 9))),
    )
    .unwrap();
    let expected = ["a/ 755 7:7", "a/b/ 755 8:9", "a/b/y 600 8:9", "a/x 644 7:7"];
    assert_eq!(listing(tree), expected);
}

#[test]
fn later_copies_win_also_over_the_metadata_of_nested_directories() {
    let mut tree = Tree::default();
    apply(&mut tree, &step(&["d"], "/m", None, Some((5, 5)))).unwrap();
    apply(&mut tree, &step(&["e"], "/m", Some(0o700), None)).unwrap();
    let expected = [
        "m/ 755 5:5",
        "m/sub/ 700 0:0",
        "m/sub/w 700 0:0",
        "m/sub/y 644 5:5",
        "m/x 644 5:5",
        "m/z 700 0:0",
    ];
    assert_eq!(listing(tree), expected);
}

#[test]
fn a_file_goes_into_an_existing_directory_or_becomes_the_destination() {
    let mut tree = Tree::default();
    apply(&mut tree, &step(&["d"], "/m", None, None)).unwrap();
    apply(&mut tree, &step(&["f"], "/m", None, None)).unwrap();
    apply(&mut tree, &step(&["f"], "/n", None, None)).unwrap();
    apply(&mut tree, &step(&["f"], "rel/", None, None)).unwrap();
    apply(&mut tree, &step(&["f", "e"], "/two/", None, None)).unwrap();
    let entries = tree.into_entries();
    for path in ["m/f", "n", "wd/rel/f", "two/f", "two/z"] {
        assert!(matches!(entries[path].node, Node::File(_)), "{path}");
    }
}

#[test]
fn a_workdir_leaves_an_existing_directory_alone() {
    let mut tree = Tree::default();
    let owner = Owner { uid: 9, gid: 9 };
    apply(&mut tree, &step(&["d"], "/m", Some(0o700), None)).unwrap();
    tree.make_directory("m/sub", owner).unwrap();
    tree.make_directory("m/new", owner).unwrap();
    tree.make_directory("", owner).unwrap();
    let entries = tree.into_entries();
    assert_eq!(entries["m/sub"].mode, 0o700);
    assert_eq!(entries["m/new"].owner, owner);
}

#[test]
fn conflicts_are_refused() {
    for second in [
        step(&["f"], "/n/x", None, None),
        step(&["d"], "/n", None, None),
        step(&["f"], "/n/", None, None),
    ] {
        let mut tree = Tree::default();
        apply(&mut tree, &step(&["f"], "/n", None, None)).unwrap();
        let error = apply(&mut tree, &second).unwrap_err();
        assert_eq!(error.code, "context.conflict");
        assert!(error.why.contains("`/n`"), "{error}");
    }
}

#[test]
fn directories_of_the_base_keep_their_mode_and_owner() {
    let owner = Owner { uid: 3, gid: 4 };
    let etc = BaseNode::Directory { mode: 0o750, owner };
    let base = [
        ("etc", etc),
        ("bin", BaseNode::Symlink),
        ("init", BaseNode::Other),
    ];
    let base = base.map(|(path, node)| (path.to_owned(), node));
    let mut tree = Tree::over(BTreeMap::from(base));
    apply(&mut tree, &step(&["f"], "/etc", None, None)).unwrap();
    apply(&mut tree, &step(&["f"], "/init", None, None)).unwrap();
    for destination in ["/bin/x", "/bin/", "/bin"] {
        assert!(apply(&mut tree, &step(&["f"], destination, None, None)).is_err());
    }
    let expected = ["etc/ 750 3:4", "etc/f 644 0:0", "init 644 0:0"];
    assert_eq!(listing(tree), expected);
}
