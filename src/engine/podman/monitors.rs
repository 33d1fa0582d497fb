//! Podman's monitors. Each container has one (`conmon`), which stays when the
//! container has ended: it starts Podman once more to tidy up, whoever has done
//! so already. Nobody has to wait for that before writing down what happened,
//! but nothing of a run may be left when the run is over.

use crate::engine::process::wait_for;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long monitors may take to end, all together.
const GRACE: Duration = Duration::from_secs(5);

/// The monitors of a run's containers; waited for when dropped.
#[derive(Debug, Default)]
pub struct Monitors(Mutex<Vec<Arc<OwnedFd>>>);

impl Monitors {
    /// Remembers a container's monitor. A number that is no monitor's here is
    /// not followed: it may be one of another machine.
    pub fn watch(&self, pid: i64) -> Option<Arc<OwnedFd>> {
        let positive = i32::try_from(pid).ok().filter(|pid| *pid > 0);
        let held = Arc::new(hold(positive.and_then(Pid::from_raw)?)?);
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .push(Arc::clone(&held));
        Some(held)
    }
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
            wait_for(monitor.as_fd(), give_up);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
