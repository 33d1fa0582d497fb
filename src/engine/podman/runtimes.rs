//! What OCI runtimes keep about containers of ours, which Podman may have
//! forgotten. They are asked by their own commands, and only programs that this
//! process finds itself are executed.

use crate::engine::api::names::is_id;
use crate::engine::process::{find_program, wait_at_most};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The runtimes that Podman uses when nobody names another one.
const KNOWN: [&str; 2] = ["runc", "crun"];

/// How long a runtime may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A container as a runtime describes it.
#[derive(Debug, Deserialize)]
pub struct State {
    /// Its id.
    pub id: String,
    /// The directory that it was made from.
    pub bundle: PathBuf,
    /// Podman's and ours.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Every container of which a runtime knows something, without those that are
/// listed elsewhere. What a runtime itself cannot read is left out.
pub fn states(listed: &[String]) -> Vec<State> {
    let mut found = Vec::new();
    for name in KNOWN {
        for id in kept(name) {
            if !listed.contains(&id) {
                found.extend(state(name, &id).filter(|state| state.id == id));
            }
        }
    }
    found
}

/// Has the runtime that knows the container end it and forget it.
pub fn forget(id: &str) {
    for name in KNOWN {
        if kept(name).iter().any(|kept| kept == id)
            && let Some(mut child) = start(name, &["delete", "--force", id], Stdio::null())
        {
            end(&mut child);
        }
    }
}

/// The ids of the containers of which a runtime keeps something.
fn kept(name: &str) -> Vec<String> {
    folder(name).map_or(Vec::new(), |folder| ids_in(&folder))
}

/// Where a runtime keeps what it knows, if Podman does not tell it otherwise.
fn folder(name: &str) -> Option<PathBuf> {
    let place = match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/run"),
        false => std::env::var_os("XDG_RUNTIME_DIR")?.into(),
    };
    Some(place.join(name))
}

fn ids_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_id(name)).collect()
}

fn state(name: &str, id: &str) -> Option<State> {
    let mut child = start(name, &["state", id], Stdio::piped())?;
    // One that says more than a pipe holds does not end, and is not believed.
    let told = end(&mut child);
    let mut text = Vec::new();
    child.stdout.take()?.read_to_end(&mut text).ok()?;
    told.then(|| serde_json::from_slice(&text).ok())?
}

fn start(name: &str, arguments: &[&str], output: Stdio) -> Option<Child> {
    Command::new(find_program(name)?)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// Waits for a program's end, or makes it; tells whether it has done its work.
fn end(child: &mut Child) -> bool {
    let status = wait_at_most(child, PATIENCE);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    status.is_some_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_podmans_ids_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let id = "ab".repeat(32);
        for name in [
            id.as_str(),
            "moby",
            &id[..12],
            &"AB".repeat(32),
            &"-x".repeat(32),
        ] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!(ids_in(folder.path()), [id]);
        assert_eq!(ids_in(Path::new("/nowhere")), [""; 0]);
    }

    /// As runc 1.1 answers, cut.
    #[test]
    fn annotations_are_read_and_may_be_missing() {
        let read = |text| serde_json::from_str::<State>(text).unwrap();
        let text = r#"{"ociVersion":"1.0.2-dev","id":"ab","pid":0,"status":"stopped",
            "bundle":"/b","annotations":{"dev.tki.attest.run":"x"},"owner":""}"#;
        assert_eq!(read(text).annotations["dev.tki.attest.run"], "x");
        assert!(read(r#"{"id":"ab","bundle":"/b"}"#).annotations.is_empty());
    }
}
