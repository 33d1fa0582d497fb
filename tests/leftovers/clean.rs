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
    let scratch = format!("/run/{name}");
    let is_there = || {
        let filter = format!("name=^{name}$");
        !engine
            .docker(&["ps", "-aq", "--filter", &filter])
            .is_empty()
    };
    // A run that lives is left alone, container and directory.
    assert!(clean(&[]).contains("kept (in use)"));
    assert!(is_there() && Path::new(&scratch).join("in").is_dir());

    kill_children(held.child.id(), "internal-janitor");
    send(&held.child, Signal::KILL);
    assert_eq!(said(held.child.wait_with_output().unwrap()).status, -1);
    // The start request never reaches the engine: the gate stays shut.
    let planned = clean(&["--dry-run", "--force"]);
    assert!(planned.contains("would remove  container"), "{planned}");
    assert!(
        planned.contains(&format!("would remove  directory {scratch}")),
        "{planned}"
    );
    assert!(is_there() && Path::new(&scratch).is_dir());
    let kept = clean(&[]);
    assert!(kept.contains("kept (in use) container"), "{kept}");
    assert!(is_there(), "its time limit has not passed");
    let removed = clean(&["--force"]);
    assert!(removed.contains("removed       container"), "{removed}");
    assert!(!is_there());
    assert_eq!(clean(&["--force"]), "nothing to clean\n");
    assert_eq!(clean(&["-q"]), "");
    nothing_written(out.path());
    before.nothing_new();
}

#[test]
fn clean_removes_nothing_that_does_not_carry_our_label() {
    let _engine = whole_engine();
    let bystanders = Bystanders::new();
    let before = bystanders.described();
    let foreign = format!("/run/tki-attest-not-ours-{}", std::process::id());
    fs::create_dir(&foreign).unwrap();
    fs::write(Path::new(&foreign).join("file"), "somebody's").unwrap();
    // One of a run whose time limit passed long ago, and one that does not say.
    let names = ["old", "undated"].map(|n| format!("tki-test-{n}-{}", std::process::id()));
    run(tool().args(["build", "--load"])).succeeded();
    for (name, label) in names.iter().zip(["dev.tki.attest.deadline=1", "x=y"]) {
        let run_label = format!("--label=dev.tki.attest.run={name}");
        let label = format!("--label={label}");
        let fixed = ["create", "--pids-limit=8", "--network=none", "--name", name];
        docker(&[&fixed[..], &[&run_label, &label, "tki-inspector:attest"]].concat());
    }
    let host = format!("unix://{ENGINE_SOCKET}");
    let printed = clean(&host, &["--format", "json"]);
    let file_stays = Path::new(&foreign).join("file").is_file();
    fs::remove_dir_all(&foreign).unwrap();
    assert!(file_stays, "a directory without a run's lock is not ours");
    let rows: Value = serde_json::from_str(&printed).unwrap();
    for name in &names {
        let about = |row: &&Value| row["what"].as_str().unwrap().contains(name.as_str());
        let row = rows.as_array().unwrap().iter().find(about);
        assert_eq!(row.unwrap()["action"], "removed", "{rows}");
        let filter = format!("name=^{name}$");
        assert_eq!(docker(&["ps", "-aq", "--filter", &filter]), "");
    }
    assert_eq!(bystanders.described(), before);
}
