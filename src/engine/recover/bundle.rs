//! What a runtime was told about a container: `config.json` in its bundle. It tells
//! whose the container is when the engine no longer does. It is not taken on trust: what
//! does not look like ours in every respect is not ours.

use crate::engine::contract::{INSPECTOR, PROBER, PROGRAMS};
use crate::engine::names::{Run, is_id, run_of};
use crate::files::read_beside;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use tki_evidence::wire::ABSTRACT_CANARY;

/// The longest description that is read: ours have a seccomp profile each.
pub const LONGEST: u64 = 4 << 20;

/// A container of ours.
#[derive(Debug, PartialEq, Eq)]
pub struct RuntimeBundle {
    /// Where its file system is mounted.
    pub root: PathBuf,
    /// The run that it belongs to.
    pub run: Run,
    /// What Podman passes on of its labels. Docker passes on none.
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Config {
    process: Process,
    root: Root,
    mounts: Vec<Bound>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Process {
    args: Vec<String>,
}

#[derive(Deserialize)]
struct Root {
    path: PathBuf,
}

/// Something that a container sees of the host.
#[derive(Debug, Deserialize)]
pub struct Bound {
    /// Where the container sees it.
    pub destination: String,
    /// What it is on the host.
    #[serde(default)]
    pub source: Option<PathBuf>,
}

impl RuntimeBundle {
    /// The container of ours that is described; `None` if it is not one. A program of ours
    /// is its process, and /in and /out lie together in the directory of a run.
    pub fn read(text: &[u8]) -> Option<Self> {
        let config: Config = serde_json::from_slice(text).ok()?;
        errand(&config.process.args)?;
        let run = run_by_sides(&config.mounts)?;
        let root = config.root.path;
        let annotations = config.annotations;
        is_plain(&root).then_some(Self {
            root,
            run,
            annotations,
        })
    }

    /// The same of the file in a bundle's directory, which nobody but root and this user
    /// may have written.
    pub fn at(folder: &Path) -> Option<Self> {
        let file = folder.join("config.json");
        if !is_unreachable(folder) || !is_unreachable(&file) {
            return None;
        }
        Self::read(&read_beside(&file, LONGEST).ok()?)
    }

    /// It was made by the engine whose storage this is.
    pub fn is_in(&self, storage: &Path) -> bool {
        self.root.starts_with(storage)
    }
}

/// What the prober is told to do, in most containers of ours.
pub const ARGUMENT: &str = "probe";

/// The same in a control that joins a neighbour's processes.
pub const GUEST: &str = "guest";

/// The same in a control that shows two threads.
pub const THREADS: &str = "threads";

/// The same in the container that does something for controls. The abstract name of a socket
/// follows.
pub const NEIGHBOUR: &str = "neighbour";

/// What the inspector is told to do.
pub const INSPECT: &str = "inspect";

/// What a program of ours was told to do by these words; `None` if no container of ours
/// executes them.
pub fn errand(words: &[String]) -> Option<&str> {
    let (program, words) = words.split_first()?;
    let (errand, more) = words.split_first()?;
    let is_known = match errand.as_str() {
        ARGUMENT | GUEST | THREADS => is_prober(program) && more.is_empty(),
        NEIGHBOUR => is_prober(program) && matches!(more, [name] if is_canary(name)),
        INSPECT => is_called(program, INSPECTOR) && more.is_empty(),
        _ => false,
    };
    is_known.then_some(errand.as_str())
}

/// The abstract name of a canary's socket.
fn is_canary(name: &str) -> bool {
    let random = name.strip_prefix(ABSTRACT_CANARY);
    random.is_some_and(|random| {
        random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The run whose directory holds both what is bound to /in and what is bound to /out, or
/// whose volume is /in while /out is one, too.
pub fn run_by_sides(mounts: &[Bound]) -> Option<Run> {
    if let Some(name) = volume(mounts, "/in") {
        let out = volume(mounts, "/out")?;
        let run = run_of(name)?;
        let fits = is_id(out) || run_of(out).is_some_and(|found| found.id == run.id);
        return fits.then_some(run);
    }
    let scratch = side(mounts, "/in", "in")?;
    let together = side(mounts, "/out", "out")? == scratch;
    let names = scratch.iter().filter_map(|name| name.to_str());
    let mut runs = names.filter_map(run_of);
    let run = runs.next()?;
    (together && runs.next().is_none()).then_some(run)
}

/// The volume that is mounted there, and nothing else is: engines keep each in a directory
/// of its name.
fn volume<'a>(mounts: &'a [Bound], destination: &str) -> Option<&'a str> {
    let folder = side(mounts, destination, "_data")?;
    folder.file_name()?.to_str()
}

/// The directory whose entry of that name is bound there, and nothing else is.
fn side<'a>(mounts: &'a [Bound], destination: &str, name: &str) -> Option<&'a Path> {
    let is_there = |mount: &&Bound| mount.destination == destination;
    let mut found = mounts.iter().filter(is_there);
    let source = found.next()?.source.as_deref()?;
    let fits = found.next().is_none() && is_plain(source);
    let fits = fits && source.file_name().is_some_and(|last| last == name);
    source.parent().filter(|_| fits)
}

/// It is there, no link, and nobody but root and this user may write to it.
pub fn is_unreachable(path: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw();
    let found = std::fs::symlink_metadata(path);
    found.is_ok_and(|found| {
        let is_plain = !found.file_type().is_symlink();
        is_plain && [0, us].contains(&found.uid()) && found.mode() & 0o022 == 0
    })
}

/// The program is the prober.
pub fn is_prober(program: &str) -> bool {
    is_called(program, PROBER)
}

/// The program is one of ours.
pub fn is_ours(program: &str) -> bool {
    PROGRAMS.iter().any(|name| is_called(program, name))
}

fn is_called(program: &str, name: &str) -> bool {
    Path::new(program).file_name() == Some(name.as_ref())
}

/// Absolute, and without a way up.
pub fn is_plain(path: &Path) -> bool {
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
            "process": {"user": {"uid": 58713, "gid": 58713}, "args": ["/tki-prober", "probe"],
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

    fn read(config: &Value) -> Option<RuntimeBundle> {
        RuntimeBundle::read(config.to_string().as_bytes())
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
        let mut inspection = config();
        inspection["process"]["args"] = json!(["/tki-inspector", "inspect"]);
        assert_eq!(read(&inspection).unwrap().run, bundle.run);
    }

    #[test]
    fn whatever_differs_is_not_ours() {
        let production = "/run/tki-attest-production";
        for (pointer, value) in [
            ("/process/args", json!(["/bin/postgres"])),
            ("/process/args", json!(["/tki-prober"])),
            ("/process/args", json!(["/tki-prober", "serve"])),
            ("/process/args", json!(["/tki-prober", "probe", "x"])),
            ("/process/args", json!(["/tki-prober/", "/.."])),
            ("/process/args", json!("/tki-prober probe")),
            ("/process/args", json!(["/tki-prober", "inspect"])),
            ("/process/args", json!(["/tki-inspector", "probe"])),
            ("/process/args", json!(["/tki-inspector"])),
            ("/process/args", json!(["/tki-inspector", "inspect", "x"])),
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
            assert_eq!(RuntimeBundle::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(RuntimeBundle::read(b"\xff"), None);
    }
}
