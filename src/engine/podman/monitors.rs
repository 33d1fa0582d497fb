//! Podman's monitors. Each container has one (`conmon`), which stays when the
//! container has ended: it starts Podman once more to tidy up, whoever has done
//! so already. What it starts for a container that is gone is asked to end. Nobody
//! has to wait for all that before writing down what happened, but nothing of a run
//! may be left when the run is over.

use crate::engine::process::wait_for;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long monitors may take to end, all together.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked what a monitor has started.
const GLANCE: Duration = Duration::from_millis(2);

/// The monitors of a run's containers; waited for when dropped.
#[derive(Debug, Default)]
pub struct Monitors(Mutex<Vec<Arc<Monitor>>>);

/// The monitor of a container.
#[derive(Debug)]
pub struct Monitor {
    pid: Pid,
    held: OwnedFd,
    /// Podman has removed the container.
    idle: AtomicBool,
}

impl Monitors {
    /// Remembers a container's monitor. A number that is no monitor's here is
    /// not followed: it may be one of another machine.
    pub fn watch(&self, pid: i64) -> Option<Arc<Monitor>> {
        let positive = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        let pid = positive.and_then(Pid::from_raw)?;
        let monitor = Arc::new(Monitor {
            pid,
            held: hold(pid)?,
            idle: AtomicBool::new(false),
        });
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .push(Arc::clone(&monitor));
        Some(monitor)
    }
}

impl Monitor {
    /// It has ended.
    pub fn is_gone(&self) -> bool {
        wait_for(self.held.as_fd(), Instant::now())
    }

    /// Podman has removed the container: there is nothing left to tidy up.
    pub fn is_not_needed(&self) {
        self.idle.store(true, Ordering::SeqCst);
        self.call_off();
    }

    /// Asks the Podman that it has started to end, as Podman itself provides for.
    fn call_off(&self) {
        if self.idle.load(Ordering::SeqCst) {
            let started = children(self.pid, self.held.as_fd()).into_iter();
            for podman in started.filter(|child| child.name == "podman") {
                let _ = pidfd_send_signal(&podman.held, Signal::TERM);
            }
        }
    }

    fn wait(&self, give_up: Instant) {
        while Instant::now() < give_up {
            self.call_off();
            if wait_for(self.held.as_fd(), give_up.min(Instant::now() + GLANCE)) {
                break;
            }
        }
    }
}

/// A process that another one has started.
#[derive(Debug)]
pub struct Started {
    /// It itself.
    pub held: OwnedFd,
    /// What it is called.
    pub name: String,
}

/// What a process that is held has started and that goes on.
pub fn children(parent: Pid, held: BorrowedFd) -> Vec<Started> {
    let pid = parent.as_raw_nonzero();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let numbers = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    let children = numbers.filter_map(Pid::from_raw).filter_map(|child| {
        let started = pidfd_open(child, PidfdFlags::empty()).ok()?;
        let path = format!("/proc/{}/status", child.as_raw_nonzero());
        let status = std::fs::read_to_string(path).ok()?;
        let field = |name: &str| {
            let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().map(str::trim).unwrap_or_default()
        };
        // While the parent lives nobody else has its number.
        let is_its = field("PPid:") == pid.to_string() && !wait_for(held, Instant::now());
        is_its.then(|| Started {
            held: started,
            name: field("Name:").to_owned(),
        })
    });
    children.collect()
}

/// Holds a process if it is called like a monitor. The name is read once the
/// process is held, so that it is this one's.
pub fn hold(pid: Pid) -> Option<OwnedFd> {
    let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let name = std::fs::read(format!("/proc/{}/comm", pid.as_raw_nonzero()));
    name.is_ok_and(|name| name == b"conmon\n").then_some(held)
}

impl Drop for Monitors {
    fn drop(&mut self) {
        let give_up = Instant::now() + GRACE;
        let held = self.0.get_mut().unwrap_or_else(|p| p.into_inner());
        for monitor in held.drain(..) {
            monitor.wait(give_up);
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Child, Command};

    /// The child with that name, once it is there.
    pub fn child_called(name: &str, parent: &Child) -> OwnedFd {
        let pid = Pid::from_child(parent);
        let held = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let started = Instant::now();
        loop {
            let mut found = children(pid, held.as_fd()).into_iter();
            if let Some(child) = found.find(|child| child.name == name) {
                return child.held;
            }
            assert!(started.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_monitor_starts_is_called_off_once_its_container_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let waiting = format!("read word <{}", place("wait").display());
        for (name, text) in [
            (
                "conmon",
                format!("{0}/podman & {0}/runc & wait", folder.path().display()),
            ),
            ("podman", waiting.clone()),
            ("runc", waiting),
        ] {
            std::fs::write(place(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(place(name), open).unwrap();
        }
        let made = Command::new("mkfifo").arg(place("wait")).status();
        assert!(made.unwrap().success());
        let mut conmon = Command::new(place("conmon")).spawn().unwrap();
        let podman = child_called("podman", &conmon);
        let runc = child_called("runc", &conmon);
        let monitors = Monitors::default();
        let monitor = monitors.watch(i64::from(conmon.id())).unwrap();
        let has_ended = |process: &OwnedFd, within| {
            wait_for(
                process.as_fd(),
                Instant::now() + Duration::from_secs(within),
            )
        };
        monitor.call_off();
        assert!(!has_ended(&podman, 0));
        monitor.is_not_needed();
        assert!(has_ended(&podman, 60));
        assert!(!has_ended(&runc, 0) && !monitor.is_gone());
        pidfd_send_signal(&runc, Signal::KILL).unwrap();
        monitor.wait(Instant::now() + Duration::from_secs(60));
        assert!(monitor.is_gone());
        conmon.wait().unwrap();
    }

    #[test]
    fn only_a_monitor_is_waited_for() {
        let monitors = Monitors::default();
        let us = i64::from(std::process::id());
        for pid in [us, 1, 0, -1, i64::MAX] {
            assert!(monitors.watch(pid).is_none());
        }
        assert!(monitors.0.lock().unwrap().is_empty());
    }
}
