//! What OCI runtimes keep about containers of ours, which Podman may have
//! forgotten. They are asked by their own commands, and only programs that this
//! process finds itself are executed.

use crate::engine::names::{Run, is_id};
use crate::engine::recover::bundle::{Bound, LONGEST, is_unreachable, run_by_sides};
use crate::files::read_beside;
use crate::host::process::{find_program, told_by};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
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
    /// The run of ours whose directories it was given as /in and /out. The runtime's own
    /// files tell, whatever has become of the bundle.
    #[serde(skip)]
    pub run: Option<Run>,
}

/// Every container of which a runtime knows something, without those that are
/// listed elsewhere. What a runtime itself cannot read is left out.
pub fn states(listed: &[String]) -> Vec<State> {
    let mut found = Vec::new();
    for name in KNOWN {
        for id in kept(name) {
            if !listed.contains(&id) {
                found.extend(state(name, &id));
            }
        }
    }
    found
}

/// What a runtime knows about a container, if one does.
pub fn state_of(id: &str) -> Option<State> {
    let mut knowing = KNOWN
        .iter()
        .filter(|name| kept(name).iter().any(|kept| kept == id));
    knowing.find_map(|name| state(name, id))
}

/// Has the runtime that knows the container end it and forget it, if what the runtime
/// knows is of a container that is to be ended.
pub fn forget(id: &str, is_ours: impl Fn(&State) -> bool) {
    for name in KNOWN {
        if kept(name).iter().any(|kept| kept == id)
            && state(name, id).is_some_and(|state| is_ours(&state))
            && let Some(program) = find_program(name)
        {
            let mut command = Command::new(program);
            told_by(command.args(["delete", "--force", id]), PATIENCE);
        }
    }
}

/// The ids of the containers of which a runtime keeps something.
fn kept(name: &str) -> Vec<String> {
    let folder = folder(name).filter(|folder| is_unreachable(folder));
    folder.map_or(Vec::new(), |folder| ids_in(&folder))
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
    let mut command = Command::new(find_program(name)?);
    let told = told_by(command.args(["state", id]), PATIENCE)?;
    let state: State = serde_json::from_slice(&told).ok()?;
    (state.id == id).then(|| State {
        run: folder(name).and_then(|folder| run(name, &folder.join(id))),
        ..state
    })
}

/// The run whose directories a container has, from the file that its runtime keeps: runc
/// its own form of the configuration, crun the configuration as it was given.
fn run(name: &str, folder: &Path) -> Option<Run> {
    #[derive(Deserialize)]
    struct Kept {
        config: Mounts,
    }
    #[derive(Deserialize)]
    struct Mounts {
        mounts: Vec<Bound>,
    }
    let file = folder.join(match name {
        "runc" => "state.json",
        _ => "config.json",
    });
    if !is_unreachable(folder) || !is_unreachable(&file) {
        return None;
    }
    let text = read_beside(&file, LONGEST).ok()?;
    let kept = match name {
        "runc" => serde_json::from_slice::<Kept>(&text).ok()?.config,
        _ => serde_json::from_slice::<Mounts>(&text).ok()?,
    };
    run_by_sides(&kept.mounts)
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

    /// As runc 1.1 and crun 1.8 keep it, cut.
    #[test]
    fn a_runtimes_own_file_tells_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let place = |mode| {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), mode).unwrap();
        };
        place(0o711);
        let mounts = |id: &str| {
            format!(
                r#"{{"mounts":[
                {{"destination":"/proc","source":"proc","device":"proc"}},
                {{"destination":"/in","source":"/run/tki-attest-{id}/in","flags":20481}},
                {{"destination":"/out","source":"/run/tki-attest-{id}/out"}}]}}"#
            )
        };
        let id = "20261116t113832z-ee16ab8f";
        for (name, file, text) in [
            ("crun", "config.json", mounts(id)),
            (
                "runc",
                "state.json",
                format!(r#"{{"config":{}}}"#, mounts(id)),
            ),
        ] {
            std::fs::write(folder.path().join(file), &text).unwrap();
            assert_eq!(run(name, folder.path()).unwrap().id, id);
            // Anybody could have written it.
            place(0o777);
            assert_eq!(run(name, folder.path()), None);
            place(0o711);
            std::fs::write(folder.path().join(file), text.replace(id, "production")).unwrap();
            assert_eq!(run(name, folder.path()), None);
        }
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
