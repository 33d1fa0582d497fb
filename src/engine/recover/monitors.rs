//! Podman's monitors. Each container has one (`conmon`), which stays when the
//! container has ended: it starts Podman once more to tidy up, even if another process has done
//! so already. What it starts for a container that is gone may be asked to end, if that
//! can be of no harm. Nobody has to wait for all that before writing down what happened,
//! but nothing of a run may be left when the run is over.

use crate::host::held::Held;
use rustix::process::Pid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What a monitor is called.
pub const PROGRAM: &str = "conmon";

/// The file that a monitor executes.
pub fn is_program(name: &str) -> bool {
    name == PROGRAM
}

/// How long monitors may take to end, all together.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked what a monitor has started.
const GLANCE: Duration = Duration::from_millis(2);

/// The monitors of a run's containers; waited for when dropped.
#[derive(Debug, Default)]
pub struct Monitors {
    held: Mutex<Vec<Arc<Monitor>>>,
    /// What they start for containers that are gone is not wanted.
    called_off: AtomicBool,
}

/// The monitor of a container.
#[derive(Debug)]
pub struct Monitor {
    process: Held,
    /// Podman has removed the container.
    idle: AtomicBool,
}

impl Monitors {
    /// Remembers a container's monitor. A number that is no monitor's here is
    /// not followed: it may be one of another machine, or anybody's.
    pub fn watch(&self, pid: i64) -> Option<Arc<Monitor>> {
        let positive = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        let process = Held::named(positive.and_then(Pid::from_raw)?, PROGRAM)?;
        process.is_part(is_program).then(|| self.remember(process))
    }

    fn remember(&self, process: Held) -> Arc<Monitor> {
        let monitor = Arc::new(Monitor {
            process,
            idle: AtomicBool::new(false),
        });
        self.list().push(Arc::clone(&monitor));
        monitor
    }

    /// From now on, what they start for containers that are gone is asked to end.
    pub fn call_off(&self) {
        self.called_off.store(true, Ordering::SeqCst);
        for monitor in self.list().iter() {
            monitor.call_off();
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Monitor>>> {
        let list = self.held.lock();
        list.unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Monitor {
    /// It has ended.
    pub fn is_gone(&self) -> bool {
        self.process.has_ended_by(Instant::now())
    }

    /// Podman has removed the container: there is nothing left to tidy up.
    pub fn release(&self) {
        self.idle.store(true, Ordering::SeqCst);
    }

    /// Asks the Podman that it has started to end, as Podman itself provides for.
    fn call_off(&self) {
        if self.idle.load(Ordering::SeqCst) {
            for podman in self.process.children(|name| name == "podman") {
                podman.ask_to_end();
            }
        }
    }

    /// Waits for its end, and calls off what it still starts.
    fn wait_and_call_off(&self, give_up: Instant) {
        while Instant::now() < give_up {
            self.call_off();
            let glance = give_up.min(Instant::now() + GLANCE);
            if self.process.has_ended_by(glance) {
                break;
            }
        }
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        let give_up = Instant::now() + GRACE;
        for monitor in self.list().drain(..) {
            match self.called_off.load(Ordering::SeqCst) {
                true => monitor.wait_and_call_off(give_up),
                false => drop(monitor.process.has_ended_by(give_up)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::held::tests::parent_and_child;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn what_a_monitor_starts_is_called_off_once_its_container_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let waiting = format!("read word <{}", place("wait").display());
        let both = format!("{0}/podman & {0}/runc & wait", folder.path().display());
        for (name, text) in [(PROGRAM, &both), ("podman", &waiting), ("runc", &waiting)] {
            std::fs::write(place(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(place(name), open).unwrap();
        }
        let made = Command::new("mkfifo").arg(place("wait")).status();
        assert!(made.unwrap().success());
        let mut conmon = Command::new(place(PROGRAM)).spawn().unwrap();
        let (process, podman) = parent_and_child(&conmon, PROGRAM, "podman");
        let (_, runc) = parent_and_child(&conmon, PROGRAM, "runc");
        let monitors = Monitors::default();
        // A shell that is called like a monitor is none.
        assert!(monitors.watch(i64::from(conmon.id())).is_none());
        let monitor = monitors.remember(process);
        let soon = || Instant::now() + Duration::from_secs(60);
        monitors.call_off();
        assert!(!podman.has_ended_by(Instant::now()));
        monitor.release();
        assert!(!podman.has_ended_by(Instant::now()));
        monitors.call_off();
        assert!(podman.has_ended_by(soon()));
        assert!(!runc.has_ended_by(Instant::now()) && !monitor.is_gone());
        runc.end_with(Vec::new());
        monitor.wait_and_call_off(soon());
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
        assert!(monitors.list().is_empty());
    }
}
