//! What is left of a container when Podman's service or monitor was killed in the
//! middle of something, and what Podman itself then no longer lists: a monitor
//! that waits for ever, a process that was never started, what the runtime and
//! the kernel keep about it. Podman is asked first; only what still stands after
//! that is ended here. A monitor's command line says where to look; it is ours if it
//! executes Podman's monitor for this user on this host, and Podman's or the runtime's own
//! files tell that the container is.

use super::monitors;
use super::runtimes::{self, State};
use crate::engine::contract::Leftover;
use crate::engine::names::{Run, is_id, run_of};
use crate::engine::recover::bundle::{RuntimeBundle, is_plain};
use crate::engine::recover::groups::{self, Maker};
use crate::engine::recover::ours::told;
use crate::host::held::{Held, value_of};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
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
    let states = runtimes::states(listed);
    let watched = monitors.into_iter().filter_map(|monitor| {
        let Watched {
            container, bundle, ..
        } = monitor.watched;
        let state = states.iter().find(|state| state.id == container);
        let run = run_told(&container, &bundle, state)?;
        (run.id == monitor.watched.run.id).then(|| stray(container, bundle, run))
    });
    let kept = states.iter().filter_map(|state| {
        let run = run_told(&state.id, &state.bundle, Some(state))?;
        Some(stray(state.id.clone(), state.bundle.clone(), run))
    });
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
            deadline: Some(run.removable_after),
            foreign: None,
        },
        bundle,
    }
}

/// The run of ours that a container belongs to, by what Podman and the runtime have written
/// down about it. A monitor or a state that nobody has written anything about is nobody's;
/// what is written down twice must agree.
fn run_told(id: &str, bundle: &Path, state: Option<&State>) -> Option<Run> {
    let parts: Vec<&OsStr> = bundle.iter().rev().take(2).collect();
    if !is_plain(bundle) || parts != ["userdata", id] {
        return None;
    }
    let by_bundle = match bundle.join("config.json").symlink_metadata() {
        // Podman may have removed it, and not what the runtime keeps.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => {
            let found = RuntimeBundle::at(bundle)?;
            Some(told(&found.annotations).filter(|run| run.id == found.run.id)?)
        }
    };
    let by_state = match state {
        None => None,
        Some(state) => {
            let run = told(&state.annotations)?;
            let agrees = state.bundle == bundle && state.run.as_ref()?.id == run.id;
            Some(agrees.then_some(run)?)
        }
    };
    match (by_bundle, by_state) {
        (Some(one), Some(other)) => (one == other).then_some(one),
        (one, other) => one.or(other),
    }
}

/// Ends what is left of a container of ours that Podman has removed, or cannot
/// remove.
pub fn end(id: &str) {
    if !is_id(id) {
        return;
    }
    let mut monitors = our_monitors();
    monitors.retain(|monitor| monitor.watched.container == id);
    let state = runtimes::state_of(id);
    let until = Instant::now() + GRACE;
    for monitor in monitors {
        let run = run_told(id, &monitor.watched.bundle, state.as_ref());
        let is_its = run.is_some_and(|run| run.id == monitor.watched.run.id);
        if is_its && !monitor.process.has_ended_by(until) {
            monitor.end();
        }
    }
    runtimes::forget(id, |state| {
        run_told(id, &state.bundle, Some(state)).is_some()
    });
    groups::take_away(Maker::Podman, id);
}

/// A monitor of a container of ours.
#[derive(Debug)]
struct Monitor {
    process: Held,
    watched: Watched,
}

/// What a monitor's command line says.
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
    let monitors = Held::parts(monitors::PROGRAM, monitors::is_program);
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
    use crate::engine::contract::{LABEL_DEADLINE, LABEL_ROLE, LABEL_RUN};
    use crate::host::held::tests::parent_and_child;
    use rustix::process::geteuid;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
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
    fn a_monitors_command_line_says_where_to_look() {
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

    /// Podman's file about a container, and what a runtime says about it.
    #[test]
    fn what_is_written_down_tells_the_run_and_must_agree() {
        let folder = tempfile::tempdir().unwrap();
        let id = "ab".repeat(32);
        let run = &NAME[11..];
        let bundle = folder.path().join(&id).join("userdata");
        std::fs::create_dir_all(&bundle).unwrap();
        let file = bundle.join("config.json");
        let annotations = |run: &str| -> BTreeMap<String, String> {
            let pairs = [
                (LABEL_RUN, run),
                (LABEL_ROLE, "probe"),
                (LABEL_DEADLINE, "7"),
            ];
            pairs.map(|(n, v)| (n.into(), v.into())).into()
        };
        let write = |run: &str, told: &BTreeMap<String, String>, program: &str| {
            let side = |side: &str| {
                let source = format!("/run/tki-attest-{run}/{side}");
                serde_json::json!({"destination": format!("/{side}"), "source": source})
            };
            let config = serde_json::json!({
                "process": {"args": [program, "probe"]},
                "root": {"path": "/storage/merged"},
                "mounts": [side("in"), side("out")],
                "annotations": told,
            });
            std::fs::write(&file, config.to_string()).unwrap();
        };
        let state = |run: &str, bundle: &Path| State {
            id: id.clone(),
            bundle: bundle.to_owned(),
            annotations: annotations(run),
            run: run_of(&format!("tki-attest-{run}")),
        };
        let ours = state(run, &bundle);
        let is_ours = |state: Option<&State>| {
            let found = run_told(&id, &bundle, state)?;
            assert_eq!(found.removable_after, 7);
            Some(found.id)
        };
        // Nobody has written anything down: the monitor's word is nothing.
        assert_eq!(is_ours(None), None);
        // Podman has forgotten it, and the runtime has not.
        assert_eq!(is_ours(Some(&ours)).as_deref(), Some(run));
        write(run, &annotations(run), "/tki-prober");
        assert_eq!(is_ours(None).as_deref(), Some(run));
        assert_eq!(is_ours(Some(&ours)).as_deref(), Some(run));
        let other = "20261116t113832z-ee16ab90";
        for state in [
            state(other, &bundle),
            state(run, Path::new("/elsewhere")),
            state("production", &bundle),
        ] {
            assert_eq!(is_ours(Some(&state)), None, "{state:?}");
        }
        for (run, told, program) in [
            ("production", annotations(run), "/tki-prober"),
            (other, annotations(run), "/tki-prober"),
            (run, annotations("production"), "/tki-prober"),
            (run, BTreeMap::new(), "/tki-prober"),
            (run, annotations(run), "/bin/postgres"),
        ] {
            write(run, &told, program);
            assert_eq!(is_ours(None), None, "{run} {told:?} {program}");
        }
        // Anybody could have written it.
        write(run, &annotations(run), "/tki-prober");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(is_ours(None), None);
        // It is another container's.
        assert_eq!(run_told(&"cd".repeat(32), &bundle, None), None);
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

    /// Whatever a process calls itself and says: a shell is no monitor, this user's as
    /// little as another's.
    #[test]
    fn what_only_looks_like_a_monitor_is_left_alone() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let id = "c1".repeat(32);
        let us = geteuid();
        let mut forged = vec![impostor(folders[0].path(), us.as_raw(), &id, NAME)];
        if us.is_root() {
            forged.push(impostor(folders[1].path(), 58713, &id, NAME));
        }
        let found = unlisted(&[]);
        assert!(!found.iter().any(|stray| stray.leftover.id == id));
        end(&id);
        end("");
        for (mut monitor, runtime) in forged {
            assert!(!runtime.has_ended_by(Instant::now()));
            assert!(monitor.try_wait().unwrap().is_none());
            monitor.kill().unwrap();
            monitor.wait().unwrap();
            runtime.end_with(Vec::new());
        }
    }
}
