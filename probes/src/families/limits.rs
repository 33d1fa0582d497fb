//! Running into limits. Each attempt is bounded by twice the limit, so that a
//! limit that is not there costs little and is seen.

use super::{Context, Operation, in_child};
use crate::io;
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, Mapping, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY};
use alloc::vec::Vec;
use core::ffi::CStr;
use tki_evidence::facts;

/// XP-LIM-PIDS.
pub const PIDS: &[Operation] = &[("fork", fork_until_denied)];
/// XP-LIM-MEMORY.
pub const MEMORY: &[Operation] = &[("allocate", allocate)];
/// XP-LIM-OUT.
pub const OUT: &[Operation] = &[("fill(/out)", |context| {
    fill(c"/out/tki-probe-fill", context.limits.out_bytes)
})];
/// XP-LIM-TMP.
pub const TMP: &[Operation] = &[("fill(/tmp)", |context| {
    fill(c"/tmp/tki-probe-fill", context.limits.tmp_bytes)
})];
/// XP-LIM-NOFILE.
pub const NOFILE: &[Operation] = &[("open", open_until_denied)];
/// XP-LIM-CPU.
pub const CPU: &[Operation] = &[("throttling", throttling)];

fn not_set() -> Outcome {
    Outcome::error("the launcher set no limit")
}

fn fork_until_denied(context: &Context) -> Outcome {
    if context.limits.pids == 0 {
        return not_set();
    }
    let mut children = Vec::new();
    let mut outcome = Outcome::attempt(Ok(0), &[]);
    for _ in 0..context.limits.pids.saturating_mul(2) {
        match sys::fork() {
            Ok(None) => {
                let _ = sys::poll(&mut [], 10_000);
                sys::exit(0)
            }
            Ok(Some(pid)) => children.push(pid),
            Err(errno) => {
                outcome = Outcome::attempt(Err::<i64, _>(errno), &[]);
                break;
            }
        }
    }
    for pid in children {
        let _ = sys::kill(pid);
        let _ = sys::wait(pid);
    }
    outcome
}

fn allocate(context: &Context) -> Outcome {
    const SIGKILL: i32 = 9;
    let Ok(limit) = usize::try_from(context.limits.memory_bytes) else {
        return not_set();
    };
    if limit == 0 {
        return not_set();
    }
    let ended = in_child(|| {
        // If anybody has to go, it is this one.
        if let Ok(fd) = sys::open(c"/proc/self/oom_score_adj", O_WRONLY, 0) {
            let _ = io::write_all(fd, b"1000");
        }
        match Mapping::filled(limit.saturating_mul(2)) {
            Ok(_) => 0,
            Err(errno) => errno.0,
        }
    });
    match ended {
        Ok(Ended::Exit(0)) => Outcome::attempt(Ok(0), &[]),
        Ok(Ended::Exit(number)) => Outcome::not_reached("mmap", Errno(number)),
        Ok(Ended::Signal(SIGKILL)) => Outcome::killed(SIGKILL),
        Ok(Ended::Signal(number)) => Outcome::signal(number),
        Err(errno) => Outcome::not_reached("fork", errno),
    }
}

fn fill(path: &CStr, limit: u64) -> Outcome {
    if limit == 0 {
        return not_set();
    }
    let fd = match sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600) {
        Ok(fd) => fd,
        Err(errno) => return Outcome::not_reached("open", errno),
    };
    let block = alloc::vec![0u8; 128 * 1024];
    let mut written = 0;
    let result = loop {
        match sys::write(fd, &block) {
            Ok(count) => written += count as u64,
            Err(Errno::EINTR) => {}
            Err(errno) => break Err(errno),
        }
        if written > limit.saturating_mul(2) {
            break Ok(written as i64);
        }
    };
    sys::close(fd);
    let _ = sys::unlink(path);
    Outcome::attempt(result, &[])
}

fn open_until_denied(context: &Context) -> Outcome {
    if context.limits.nofile == 0 {
        return not_set();
    }
    let mut open = Vec::new();
    let mut outcome = Outcome::attempt(Ok(0), &[]);
    for _ in 0..context.limits.nofile.saturating_mul(2) {
        match sys::open(c"/dev/null", O_RDONLY, 0) {
            Ok(fd) => open.push(fd),
            Err(errno) => {
                outcome = Outcome::attempt(Err::<i64, _>(errno), &[]);
                break;
            }
        }
    }
    for fd in open {
        sys::close(fd);
    }
    outcome
}

/// How many periods the busy children may last.
const MOST_PERIODS: u64 = 40;

/// More work than the quota has room for, until the kernel's own count says
/// that it held the container back. If it never does, the time that was used
/// tells a quota that is not there from a machine that was too busy to use it.
fn throttling(context: &Context) -> Outcome {
    let period = u64::from(context.limits.cpu_period_us);
    let quota = u64::from(context.limits.cpu_quota_us);
    if period == 0 || quota == 0 {
        return not_set();
    }
    let Some(before) = throttled() else {
        return Outcome::error("the cgroup's cpu.stat cannot be read");
    };
    let started = sys::now_us();
    let until = started + MOST_PERIODS * period;
    let mut children = Vec::new();
    for _ in 0..2 {
        match sys::fork() {
            Ok(None) => {
                while sys::now_us() < until {}
                sys::exit(0)
            }
            Ok(Some(pid)) => children.push(pid),
            Err(errno) => return Outcome::not_reached("fork", errno),
        }
    }
    let mut held_back = false;
    while !held_back && sys::now_us() < until {
        let _ = sys::poll(&mut [], period / 1000 + 1);
        held_back = throttled().is_some_and(|count| count > before);
    }
    let mut used = 0;
    for pid in children {
        let _ = sys::kill(pid);
        used += sys::wait_for_usage(pid).unwrap_or(0);
    }
    let room = (sys::now_us() - started) * quota / period;
    if held_back {
        Outcome::fact("throttled".into())
    } else if used > room {
        Outcome::fact("not throttled".into())
    } else {
        Outcome::error("the machine was too busy to use more than the quota")
    }
}

fn throttled() -> Option<u64> {
    let places = [
        c"/sys/fs/cgroup/cpu/cpu.stat",
        c"/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
        c"/sys/fs/cgroup/cpu.stat",
    ];
    let text = places
        .into_iter()
        .find_map(|path| io::read_text(path).ok())?;
    facts::stat_row(&text, "nr_throttled")
}
