//! Packets: where they are written, and what they are called.

use crate::common::{run, tool};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes a packet; gives its path.
fn packet(folder: &Path, audience: &str, name: &str) -> PathBuf {
    let path = folder.join(name);
    run(tool()
        .args(["packet", "--for", audience, "--out"])
        .arg(&path))
    .succeeded();
    path
}

#[test]
fn a_packet_that_cannot_be_written_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let odd = folder.path().join("a\nb.md");
    for path in [
        file.join("packet.md"),
        "/proc/packet.md".into(),
        "/".into(),
        odd,
    ] {
        let said = run(tool()
            .args(["packet", "--for", "operator", "--out"])
            .arg(&path));
        said.failed(2, "packet.unwritable");
    }
    let said = run(tool().args(["packet", "--for", "nobody", "--out", "x"]));
    assert_eq!(said.status, 2, "{said:?}");
}

/// A project's own pipeline is not lost; an earlier packet makes way.
#[test]
fn only_an_earlier_packet_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(".gitlab-ci.yml");
    fs::write(&own, "build:\n  script: make\n").unwrap();
    let link = folder.path().join("link.yml");
    std::os::unix::fs::symlink("/nowhere/at/all", &link).unwrap();
    for path in [&own, &link, &folder.path().to_owned()] {
        let said = run(tool()
            .args(["packet", "--for", "gitlab-ci", "--out"])
            .arg(path));
        said.failed(2, "packet.exists");
    }
    assert_eq!(fs::read(&own).unwrap(), b"build:\n  script: make\n");
    for audience in ["operator", "github-actions", "gitlab-ci", "kubernetes"] {
        let first = fs::read(packet(folder.path(), audience, "packet.txt")).unwrap();
        let second = fs::read(packet(folder.path(), audience, "packet.txt")).unwrap();
        assert_ne!(first, second, "{audience}");
    }
}

/// What a profile's file is called reaches no program that reads the packet. A
/// built-in profile in another file once was called by that file's name.
#[test]
fn the_name_of_a_file_becomes_no_step() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, audience: &str, text: &str| {
        let profile = folder.path().join(name);
        fs::write(&profile, text).unwrap();
        let out = folder.path().join("packet.yml");
        let said = run(tool()
            .args(["packet", "--for", audience, "--out"])
            .arg(&out)
            .arg("--seccomp")
            .arg(&profile));
        fs::remove_file(profile).unwrap();
        (said, out)
    };
    let built_in = tki_evidence::DENY_BY_DEFAULT;
    let other = built_in.replacen('{', "{ ", 1);
    for audience in ["github-actions", "gitlab-ci", "kubernetes", "operator"] {
        for name in [
            "${{ github.token }}.json",
            "x\n      - name: more\n        run: id\n",
            "x\r# y",
            "$[[ inputs.x ]]",
            "x\u{2028}y",
            "a: 'b' #",
            "`id`",
        ] {
            for text in [built_in, &other] {
                let (said, out) = write(name, audience, text);
                said.failed(2, "packet.name");
                assert!(!out.exists(), "{name}");
            }
        }
        // A plain name is shown; the command line does not need it.
        for text in [built_in, &other] {
            let (said, out) = write("my profile (1).json", audience, text);
            said.succeeded();
            let packet = fs::read_to_string(&out).unwrap();
            assert!(packet.contains("my profile (1).json"), "{packet}");
            assert!(!packet.contains("--seccomp 'my"), "{packet}");
            if ["github-actions", "gitlab-ci"].contains(&audience) {
                let named = packet.contains("--seccomp deny-by-default");
                assert_eq!(named, text == built_in, "{packet}");
            }
            // Files that no packet names any more are not replaced.
            fs::remove_file(&out).unwrap();
            let _ = fs::remove_dir_all(folder.path().join("packet.files"));
        }
    }
}
