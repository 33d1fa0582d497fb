//! Keepers: what they do when the exec gate breaks or the tool is killed, and that `clean`
//! finds one that could not end.

use crate::common::impostor::Impostor;
use crate::common::{eventually, isolated, run, said, whole_engine};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ENGINES: [&str; 2] = ["embedded", "bwrap"];

/// Long before a run's own time limit, which is the only other end.
const SOON: Duration = Duration::from_secs(60);

/// A name of its own for the tool: its keepers execute that, and nobody else's do.
struct Named {
    folder: tempfile::TempDir,
}

impl Named {
    fn new() -> Self {
        let original = Path::new(env!("CARGO_BIN_EXE_tki-attest"));
        // Beside the original, where a link can be made.
        let folder = tempfile::tempdir_in(original.parent().unwrap()).unwrap();
        fs::hard_link(original, folder.path().join("tki-attest")).unwrap();
        Self { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("tki-attest")
    }

    /// A run of an image that misbehaves.
    fn run(&self, engine: &str, impostor: &Impostor) -> Command {
        let mut command = isolated(&self.program());
        command
            .args([
                "run",
                "--venue",
                "vps",
                "--controls",
                "none",
                "--gate",
                "require",
            ])
            .args(["--seccomp", "targeted-deny", "--timeout", "300"])
            .args(["--engine", engine, "--out"])
            .arg(self.folder.path().join("out"))
            .args(impostor.arguments());
        command
    }

    fn clean(&self, arguments: &[&str]) -> String {
        let said = run(isolated(&self.program()).arg("clean").args(arguments));
        said.succeeded();
        said.stdout
    }

    /// Its processes that are executed as keepers, and their containers.
    fn keepers(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_ours = |pid: &i32| {
            let process = Path::new("/proc").join(pid.to_string());
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            let program = fs::read_link(process.join("exe"));
            program.is_ok_and(|program| program == self.program())
                && line.windows(15).any(|word| word == b"internal-keeper")
        };
        pids.filter(is_ours).collect()
    }
}

/// Probers in control groups of ours.
fn groups() -> Vec<String> {
    let hierarchies = ["", "pids", "memory", "cpu"];
    let folders = hierarchies.map(|name| Path::new("/sys/fs/cgroup").join(name));
    let names = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    let names = names
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("tki-attest-"))
        .collect()
}

fn spawn(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for a process of ours, for so long at most; tells whether it has ended.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let give_up = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > give_up {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The container tries more execs than any gate answers: it ends, and the run is BLOCKED.
#[test]
fn a_container_that_breaks_its_gate_is_ended_at_once() {
    let _engine = whole_engine();
    let impostor = Impostor::new("hello-execs");
    for engine in ENGINES {
        let named = Named::new();
        let mut child = spawn(&mut named.run(engine, &impostor));
        let ended = ends_within(&mut child, SOON);
        let _ = child.kill();
        let said = said(child.wait_with_output().unwrap());
        assert!(ended, "{engine}: {said:?}");
        said.failed(3, "gate.broken");
        assert!(said.stderr.contains("more than 4096"), "{said:?}");
        assert_eq!(named.keepers(), [0; 0], "{engine}");
    }
}

/// The same while the tool is killed: nothing outlives it.
#[test]
fn with_a_broken_gate_nothing_outlives_a_tool_that_is_killed() {
    let _engine = whole_engine();
    let impostor = Impostor::new("hello-execs");
    for engine in ENGINES {
        for wait in [Duration::from_millis(300), Duration::from_secs(5)] {
            let named = Named::new();
            let mut child = spawn(&mut named.run(engine, &impostor));
            ends_within(&mut child, wait);
            let _ = child.kill();
            child.wait_with_output().unwrap();
            eventually("keeper and container are gone", || {
                named.keepers().is_empty()
            });
            assert_eq!(named.clean(&["--engine", engine]), "nothing to clean\n");
        }
    }
}

/// A keeper that is stopped cannot end with its tool: `clean` ends it and its container,
/// whichever engine it is asked for.
#[test]
fn clean_finds_a_keeper_whose_tool_is_gone() {
    let _engine = whole_engine();
    let impostor = Impostor::new("hello-hang");
    for (engine, arguments) in [
        ("embedded", &["--engine", "embedded"][..]),
        ("bwrap", &["--engine", "bwrap"]),
        ("embedded", &[]),
    ] {
        let named = Named::new();
        let before = groups();
        let mut child = spawn(&mut named.run(engine, &impostor));
        eventually("the container runs", || prober_below(child.id()).is_some());
        let container = prober_below(child.id()).unwrap();
        // One whose tool lives is nobody else's.
        let planned = named.clean(&[arguments, &["--dry-run"]].concat());
        assert!(!planned.contains("keeper"), "{planned}");
        let keepers: Vec<Pid> = named
            .keepers()
            .into_iter()
            .filter_map(Pid::from_raw)
            .collect();
        for keeper in &keepers {
            kill_process(*keeper, Signal::STOP).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What has ended may stay listed until a client asks for its status.
        let is_there = || fs::read_link(format!("/proc/{container}/exe")).is_ok();
        let planned = named.clean(&[arguments, &["--dry-run"]].concat());
        let stays = is_there() && !named.keepers().is_empty();
        let cleaned = named.clean(arguments);
        let left = (named.keepers(), is_there());
        for keeper in named.keepers().into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(keeper, Signal::KILL);
        }
        assert!(stays, "{engine}: {planned}");
        let row = |action: &str| format!("{action:<13} container tki-attest-");
        assert!(
            planned.contains(&row("would remove")),
            "{engine}: {planned}"
        );
        assert!(
            planned.contains("keeper without its tool"),
            "{engine}: {planned}"
        );
        assert!(cleaned.contains(&row("removed")), "{engine}: {cleaned}");
        assert_eq!(left, (Vec::new(), false), "{engine}: {cleaned}");
        assert!(
            groups().iter().all(|name| before.contains(name)),
            "{engine}"
        );
        assert!(!named.clean(arguments).contains("keeper"), "{engine}");
    }
}

/// The container of a tool: the prober, somewhere below it.
fn prober_below(pid: u32) -> Option<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let mut children = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.find_map(|child: u32| {
        let program = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
        match program.ends_with("tki-prober") {
            true => Some(child),
            false => prober_below(child),
        }
    })
}
