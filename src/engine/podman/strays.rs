//! What is left of a container when Podman's service or monitor was killed in the
//! middle of something, and what Podman itself then no longer lists: a monitor
//! that waits for ever, a process that was never started, what the runtime and
//! the kernel keep about it. Podman is asked first; only what still stands after
//! that is ended here, and only what has a name or a label of ours.

use super::{monitors, runtimes};
use crate::engine::api::groups;
use crate::engine::api::names::{Run, is_id, run_of};
use crate::engine::contract::{LABEL_DEADLINE, LABEL_RUN, Leftover, NAME_PREFIX};
use crate::engine::held::{Held, value_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a monitor may go on by itself: one whose container has ended starts
/// Podman once more.
const GRACE: Duration = Duration::from_secs(1);

/// A container of ours that still is something and that Podman does not list.
#[derive(Debug)]
pub struct Stray {
    /// What is left.
    pub leftover: Leftover,
    bundle: PathBuf,
}

impl Stray {
    /// It was made by the Podman whose storage this is.
    pub fn is_in(&self, storage: &Path) -> bool {
        self.bundle.starts_with(storage)
    }
}

/// Containers of ours that Podman does not list.
pub fn unlisted(listed: &[String]) -> Vec<Stray> {
    let mut monitors = our_monitors();
    monitors.retain(|monitor| !listed.contains(&monitor.watched.container));
    let until = Instant::now() + GRACE;
    monitors.retain(|monitor| !monitor.process.has_ended_by(until));
    let watched = monitors.into_iter().map(|monitor| monitor.watched);
    let watched = watched.map(|it| stray(it.container, it.bundle, it.run));
    let kept = runtimes::states(listed).into_iter().filter_map(|state| {
        let run = labelled(&state.annotations)?;
        Some(stray(state.id, state.bundle, run))
    });
    // What the runtime was told is more exact.
    let strays = watched.chain(kept);
    let by_id = strays.map(|stray| (stray.leftover.id.clone(), stray));
    by_id.collect::<BTreeMap<_, _>>().into_values().collect()
}

fn stray(id: String, bundle: PathBuf, run: Run) -> Stray {
    Stray {
        leftover: Leftover {
            id,
            run_id: run.id,
            state: "unlisted".into(),
            deadline: Some(run.nobodys_after),
        },
        bundle,
    }
}

/// The run and the deadline of a container, which its runtime was told as well.
fn labelled(annotations: &BTreeMap<String, String>) -> Option<Run> {
    let id = annotations.get(LABEL_RUN)?;
    let run = run_of(&format!("{NAME_PREFIX}{id}")).filter(|run| run.id == *id)?;
    let nobodys_after = annotations.get(LABEL_DEADLINE)?.parse().ok()?;
    Some(Run {
        nobodys_after,
        ..run
    })
}

/// Ends what is left of a container of ours that Podman has removed, or cannot
/// remove.
pub fn end(id: &str) {
    if !is_id(id) {
        return;
    }
    let mut monitors = our_monitors();
    monitors.retain(|monitor| monitor.watched.container == id);
    let until = Instant::now() + GRACE;
    for monitor in monitors {
        if !monitor.process.has_ended_by(until) {
            monitor.end();
        }
    }
    runtimes::forget(id);
    groups::take_away(id);
}

/// A monitor of a container of ours.
#[derive(Debug)]
struct Monitor {
    process: Held,
    watched: Watched,
}

/// What a monitor's command line tells.
#[derive(Debug, PartialEq, Eq)]
struct Watched {
    container: String,
    bundle: PathBuf,
    run: Run,
}

impl Monitor {
    /// The monitor, if this process is one: of this user, for a name of ours.
    fn of(process: Held) -> Option<Self> {
        let watched = watched_by(&process.command_line()?)?;
        Some(Self { process, watched })
    }

    /// Ends it and the runtime that it has started. It goes first: otherwise it
    /// would take the end of the other for the container's, and start Podman.
    fn end(self) {
        let is_runtime = |name: &str| name.starts_with("runc") || name.starts_with("crun");
        let children = self.process.children(is_runtime);
        self.process.end_with(children);
    }
}

fn our_monitors() -> Vec<Monitor> {
    let monitors = Held::all(monitors::PROGRAM);
    monitors.filter_map(Monitor::of).collect()
}

/// The container that a monitor was started for, from its command line.
fn watched_by(line: &[u8]) -> Option<Watched> {
    let line = std::str::from_utf8(line).ok()?;
    // What it is to start in the end has options of its own.
    let words = line.split('\0');
    let words: Vec<&str> = words
        .take_while(|word| !word.starts_with("--exit-command"))
        .collect();
    let value = |option: &str| value_of(&words, option);
    let container = value("-c").filter(|id| is_id(id))?;
    Some(Watched {
        container: container.to_owned(),
        bundle: value("-b")?.into(),
        run: run_of(value("-n")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::held::tests::parent_and_child;
    use rustix::process::geteuid;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    const NAME: &str = "tki-attest-20261116t113832z-ee16ab8f";

    /// As Podman 4.3 starts it, cut.
    fn line(id: &str, name: &str) -> Vec<u8> {
        let words = [
            "/usr/bin/conmon",
            "--api-version",
            "1",
            "-c",
            id,
            "-u",
            id,
            "-r",
            "/usr/bin/runc",
            "-b",
            "/storage/bundle",
            "-n",
            name,
            "--exit-dir",
            "/run/libpod/exits",
            "-s",
            "--exit-command",
            "/usr/bin/podman",
            "--exit-command-arg",
            "-n",
            "--exit-command-arg",
            id,
        ];
        words.map(|word| format!("{word}\0")).concat().into_bytes()
    }

    #[test]
    fn a_monitor_is_ours_by_its_name_alone() {
        let id = "ab".repeat(32);
        let watched = watched_by(&line(&id, NAME)).unwrap();
        assert_eq!(watched.container, id);
        assert_eq!(watched.bundle, Path::new("/storage/bundle"));
        assert_eq!(watched.run.id, NAME[11..]);
        for (id, name) in [
            (id.as_str(), "postgres"),
            (&id, ""),
            (&id, "tki-attest-production"),
            (&id[..12], NAME),
            ("--all", NAME),
        ] {
            assert_eq!(watched_by(&line(id, name)), None, "{id} {name}");
        }
        // Twice is not once, and at the end is not at all.
        let twice = [line(&id, NAME), line(&id, NAME)].concat();
        let start = String::from_utf8(twice).unwrap();
        let start = start.replace("--exit-command", "--exit");
        assert_eq!(watched_by(start.as_bytes()), None);
        assert_eq!(watched_by(b"conmon\0-n\0"), None);
        assert_eq!(watched_by(b"\xff"), None);
        assert_eq!(watched_by(b""), None);
    }

    #[test]
    fn a_runtime_was_told_whose_its_container_is() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(n, v)| ((*n).into(), (*v).into()));
            labelled(&pairs.collect())
        };
        let (run, deadline) = ((LABEL_RUN, &NAME[11..]), (LABEL_DEADLINE, "7"));
        let told = of(&[run, deadline]).unwrap();
        assert_eq!((told.id.as_str(), told.nobodys_after), (run.1, 7));
        assert_eq!(of(&[run]), None);
        assert_eq!(of(&[deadline]), None);
        assert_eq!(of(&[(LABEL_RUN, "mine"), deadline]), None);
        assert_eq!(of(&[run, (LABEL_DEADLINE, "never")]), None);
    }

    /// A process called like a monitor, with a child called like a runtime. Both
    /// wait for ever.
    fn impostor(folder: &Path, user: u32, id: &str, name: &str) -> (Child, Held) {
        let open = || std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder, open()).unwrap();
        let wait = folder.join("wait");
        let scripts = [
            ("conmon", format!("{}/runc & wait", folder.display())),
            ("runc", format!("read word <{}", wait.display())),
        ];
        for (name, text) in scripts {
            std::fs::write(folder.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(folder.join(name), open()).unwrap();
        }
        assert!(
            Command::new("mkfifo")
                .arg(&wait)
                .status()
                .unwrap()
                .success()
        );
        let child = Command::new(folder.join("conmon"))
            .args(["-c", id, "-n", name, "-b", "/storage/bundle"])
            .uid(user)
            .spawn()
            .unwrap();
        let (_, runtime) = parent_and_child(&child, monitors::PROGRAM, "runc");
        (child, runtime)
    }

    #[test]
    fn a_stray_is_ended_and_nothing_of_others() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let folder = |number: usize| folders[number].path();
        let id = "c1".repeat(32);
        let us = geteuid();
        let (mut ours, our_runtime) = impostor(folder(0), us.as_raw(), &id, NAME);
        let mut foreign = vec![impostor(folder(1), us.as_raw(), &id, "postgres")];
        if us.is_root() {
            foreign.push(impostor(folder(2), 58713, &id, NAME));
        }
        let is_found = |listed: &[String]| {
            let found = unlisted(listed);
            let mut found = found.iter().filter(|stray| stray.leftover.id == id);
            let stray = found.next()?;
            assert!(stray.is_in(Path::new("/storage")) && !stray.is_in(Path::new("/stor")));
            Some(stray.leftover.run_id.clone())
        };
        assert_eq!(is_found(&[]).as_deref(), Some(&NAME[11..]));
        assert_eq!(is_found(std::slice::from_ref(&id)), None);
        end(&"c2".repeat(32));
        end("");
        assert!(ours.try_wait().unwrap().is_none());
        end(&id);
        let now = Instant::now;
        assert!(our_runtime.has_ended_by(now()));
        assert_eq!(ours.wait().unwrap().signal(), Some(9));
        for (mut monitor, runtime) in foreign {
            assert!(!runtime.has_ended_by(now()));
            assert!(monitor.try_wait().unwrap().is_none());
            monitor.kill().unwrap();
            monitor.wait().unwrap();
            runtime.end_with(Vec::new());
        }
    }
}
