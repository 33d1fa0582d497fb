//! What containerd was told about a container: `config.json` in its bundle. It tells
//! whose the container is when Docker no longer does. It is not taken on trust: what
//! does not look like ours in every respect is somebody else's.

use crate::engine::api::names::{Run, run_of};
use crate::engine::contract::INSPECTOR;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};

/// The longest description that is read: ours have a seccomp profile each.
pub const LONGEST: u64 = 4 << 20;

/// A container of ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Where its file system is mounted.
    pub root: PathBuf,
    /// The run that it belongs to.
    pub run: Run,
}

#[derive(Deserialize)]
struct Config {
    process: Process,
    root: Root,
    mounts: Vec<Mount>,
}

#[derive(Deserialize)]
struct Process {
    args: Vec<String>,
}

#[derive(Deserialize)]
struct Root {
    path: PathBuf,
}

#[derive(Deserialize)]
struct Mount {
    destination: String,
    source: Option<PathBuf>,
}

impl Bundle {
    /// The container of ours that is described; `None` if it is not one. The inspector
    /// is its process, and /in and /out lie together in the directory of a run.
    pub fn read(text: &[u8]) -> Option<Self> {
        let config: Config = serde_json::from_slice(text).ok()?;
        let [program, argument] = config.process.args.as_slice() else {
            return None;
        };
        let is_inspector = is_inspector(program) && argument == "probe";
        let scratch = config.side("/in", "in")?;
        let together = config.side("/out", "out")? == scratch;
        let run = run_of(scratch.file_name()?.to_str()?)?;
        let root = config.root.path.clone();
        (is_inspector && together && is_plain(&root)).then_some(Self { root, run })
    }

    /// It was made by the engine whose storage this is.
    pub fn is_in(&self, storage: &Path) -> bool {
        self.root.starts_with(storage)
    }
}

impl Config {
    /// The directory whose entry of that name is bound there, and nothing else is.
    fn side(&self, destination: &str, name: &str) -> Option<&Path> {
        let is_there = |mount: &&Mount| mount.destination == destination;
        let mut found = self.mounts.iter().filter(is_there);
        let source = found.next()?.source.as_deref()?;
        let fits = found.next().is_none() && is_plain(source);
        let fits = fits && source.file_name().is_some_and(|last| last == name);
        source.parent().filter(|_| fits)
    }
}

/// The program is the inspector.
pub fn is_inspector(program: &str) -> bool {
    Path::new(program).file_name() == Some(INSPECTOR.as_ref())
}

/// Absolute, and without a way up.
fn is_plain(path: &Path) -> bool {
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    path.is_absolute() && path.components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SCRATCH: &str = "/run/tki-attest-20261116t144406z-c1e21157";

    /// As Docker 20.10 writes it, cut.
    fn config() -> Value {
        json!({
            "ociVersion": "1.0.2-dev",
            "process": {"user": {"uid": 58713, "gid": 58713}, "args": ["/tki-inspector", "probe"],
                "rlimits": [{"type": "RLIMIT_CORE", "hard": u64::MAX, "soft": 0}]},
            "root": {"path": "/var/lib/docker/overlay2/a74b/merged", "readonly": true},
            "hostname": "sandbox",
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/in", "type": "bind", "source": format!("{SCRATCH}/in")},
                {"destination": "/out", "type": "bind", "source": format!("{SCRATCH}/out")},
                {"destination": "/sys", "type": "sysfs"},
            ],
        })
    }

    fn read(config: &Value) -> Option<Bundle> {
        Bundle::read(config.to_string().as_bytes())
    }

    #[test]
    fn a_container_of_ours_tells_its_run_and_its_engine() {
        let bundle = read(&config()).unwrap();
        assert_eq!(bundle.run.id, "20261116t144406z-c1e21157");
        assert!(bundle.is_in(Path::new("/var/lib/docker")));
        assert!(!bundle.is_in(Path::new("/var/lib/dock")));
        assert!(!bundle.is_in(Path::new("/tmp/other")));
        let mut control = config();
        control["mounts"][1]["source"] = format!("{SCRATCH}-network/in").into();
        control["mounts"][2]["source"] = format!("{SCRATCH}-network/out").into();
        assert_eq!(read(&control).unwrap().run, bundle.run);
    }

    #[test]
    fn whatever_differs_is_somebody_elses() {
        let production = "/run/tki-attest-production";
        for (pointer, value) in [
            ("/process/args", json!(["/bin/postgres"])),
            ("/process/args", json!(["/tki-inspector"])),
            ("/process/args", json!(["/tki-inspector", "serve"])),
            ("/process/args", json!(["/tki-inspector", "probe", "x"])),
            ("/process/args", json!(["/tki-inspector/", "/.."])),
            ("/process/args", json!("/tki-inspector probe")),
            ("/process", json!(null)),
            ("/root/path", json!("overlay2/a74b/merged")),
            ("/root/path", json!("/var/lib/docker/../../../srv")),
            ("/root", json!({})),
            ("/mounts/1/source", json!(format!("{production}/in"))),
            ("/mounts/1/source", json!(format!("{SCRATCH}/other"))),
            ("/mounts/1/source", json!(format!("{SCRATCH}/x/../in"))),
            ("/mounts/1/source", json!(format!("{SCRATCH}-network/in"))),
            ("/mounts/1/source", json!(&SCRATCH[1..])),
            ("/mounts/1/source", json!(null)),
            ("/mounts/1/destination", json!("/input")),
            ("/mounts/0/destination", json!("/in")),
            ("/mounts/0/destination", json!("/out")),
            ("/mounts", json!([])),
            ("/mounts", json!({})),
        ] {
            let mut config = config();
            *config.pointer_mut(pointer).unwrap() = value.clone();
            assert_eq!(read(&config), None, "{pointer} {value}");
        }
        let text = config().to_string();
        let twice = text.replacen('{', r#"{"root":{"path":"/srv"},"#, 1);
        for text in [twice.as_str(), &text[..text.len() - 1], "", "[]", "null"] {
            assert_eq!(Bundle::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Bundle::read(b"\xff"), None);
    }
}
