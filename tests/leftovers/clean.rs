//! `clean`: what it removes and what it keeps.

use super::{Held, send};
use crate::common::impostor::Bystanders;
use crate::common::private_engine::PrivateEngine;
use crate::common::proxy::Request;
use crate::common::traces::{Before, nothing_written};
use crate::common::{ENGINE_SOCKET, docker, kill_children, run, said, tool, whole_engine};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn clean(host: &str, arguments: &[&str]) -> String {
    let said = run(tool().args(["clean", "--host", host]).args(arguments));
    said.succeeded();
    assert_eq!(said.stderr, "");
    said.stdout
}

/// `kill -9` between create and start, of the tool and of its janitor, is the one
/// thing after which a container stays. On an engine of its own, because `--force` would end the
/// runs of others.
#[test]
fn a_created_container_stays_after_kill_9_until_it_is_cleaned() {
    let _engine = whole_engine();
    let before = Before::look();
    let engine = PrivateEngine::start();
    let clean = |arguments: &[&str]| clean(&engine.host(), arguments);
    let out = tempfile::tempdir().unwrap();
    let held = Held::at(Request::is_start, &engine.socket(), out.path());
    let name = held.container();
    let has = |arguments: &[&str]| {
        let filter = format!("name=^{name}$");
        let arguments = [arguments, &["--filter", &filter]].concat();
        !engine.docker(&arguments).is_empty()
    };
    let is_there = || has(&["ps", "-aq"]) && has(&["volume", "ls", "-q"]);
    // A run that lives is left alone, container and volumes.
    assert!(clean(&[]).contains("kept (in use)"));
    assert!(is_there());

    kill_children(held.child.id(), "internal-janitor");
    send(&held.child, Signal::KILL);
    assert_eq!(said(held.child.wait_with_output().unwrap()).status, -1);
    // The start request never reaches the engine: the gate stays shut.
    let planned = clean(&["--dry-run", "--force"]);
    assert!(planned.contains("would remove  container"), "{planned}");
    assert!(
        planned.contains(&format!("would remove  volume {name}")),
        "{planned}"
    );
    assert!(is_there());
    let kept = clean(&[]);
    assert!(kept.contains("kept (in use) container"), "{kept}");
    assert!(is_there(), "its time limit has not passed");
    let removed = clean(&["--force"]);
    assert!(removed.contains("removed       container"), "{removed}");
    assert!(!has(&["ps", "-aq"]));
    // The one without a name has gone with the container.
    assert_eq!(engine.docker(&["volume", "ls", "-q"]), "");
    assert_eq!(clean(&["--force"]), "nothing to clean\n");
    assert_eq!(clean(&["-q"]), "");
    nothing_written(out.path());
    before.nothing_new();
}

#[test]
fn clean_removes_nothing_that_is_not_ours() {
    let _engine = whole_engine();
    let bystanders = Bystanders::new();
    let before = bystanders.described();
    let foreign = format!("/run/tki-attest-not-ours-{}", std::process::id());
    fs::create_dir(&foreign).unwrap();
    fs::write(Path::new(&foreign).join("file"), "foreign").unwrap();
    run(tool().args(["build", "--load"])).succeeded();
    // One of a run whose time limit passed long ago, and one that says so and is otherwise
    // nobody's of ours: label and name alone make none.
    let folder = tempfile::tempdir().unwrap();
    let id = format!("20200101t000000z-{:08x}", std::process::id());
    let old = Labelled::create(&folder, &format!("tki-attest-{id}"), &id, true);
    let name = format!("tki-test-undated-{}", std::process::id());
    let undated = Labelled::create(&folder, &name, &name, false);
    let host = format!("unix://{ENGINE_SOCKET}");
    let printed = clean(&host, &["--format", "json"]);
    let file_stays = Path::new(&foreign).join("file").is_file();
    fs::remove_dir_all(&foreign).unwrap();
    assert!(file_stays, "a directory without a run's lock is not ours");
    let rows: Value = serde_json::from_str(&printed).unwrap();
    for (one, action) in [(&old, "removed"), (&undated, "kept (not ours)")] {
        let about = |row: &&Value| row["what"].as_str().unwrap().contains(&one.run);
        let row = rows.as_array().unwrap().iter().find(about);
        assert_eq!(row.unwrap()["action"], action, "{rows}");
        assert_eq!(one.is_there(), action != "removed");
    }
    assert_eq!(bystanders.described(), before);
}

/// A container that carries our label; removed when dropped.
struct Labelled {
    name: String,
    run: String,
}

impl Labelled {
    /// Made as this tool makes one, or with no more than the label.
    fn create(folder: &tempfile::TempDir, name: &str, run: &str, like_ours: bool) -> Self {
        let mut words: Vec<String> = ["create", "--pids-limit=8", "--network=none", "--name"]
            .map(str::to_owned)
            .into();
        words.extend([name.into(), format!("--label=dev.tki.attest.run={run}")]);
        if like_ours {
            for label in ["role=probe", "deadline=1"] {
                words.push(format!("--label=dev.tki.attest.{label}"));
            }
            for side in ["in", "out"] {
                let path = folder.path().join(name).join(side);
                fs::create_dir_all(&path).unwrap();
                let path = path.display();
                words.push(format!("--mount=type=bind,source={path},target=/{side}"));
            }
            words.push("--rm".into());
        }
        words.extend(["tki-inspector:attest", "probe"].map(str::to_owned));
        docker(&words.iter().map(String::as_str).collect::<Vec<_>>());
        Self {
            name: name.into(),
            run: run.into(),
        }
    }

    fn is_there(&self) -> bool {
        let filter = format!("name=^{}$", self.name);
        !docker(&["ps", "-aq", "--filter", &filter]).is_empty()
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        let mut remove = std::process::Command::new("docker");
        let _ = remove.args(["rm", "-f", &self.name]).output();
    }
}
