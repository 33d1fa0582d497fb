//! Running into limits. Each attempt is bounded by twice the limit, so that a
//! limit that is not there costs little and is seen.

use super::{Context, Operation, in_child};
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, Mapping, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::CStr;
use tki_evidence::facts;
use tki_inside::io;

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
/// XP-LIM-INODES.
pub const INODES: &[Operation] = &[
    ("files(/out)", |context| {
        many_files("/out", context.limits.out_files)
    }),
    ("files(/tmp)", |context| {
        many_files("/tmp", context.limits.tmp_files)
    }),
];
/// XP-CORE.
pub const CORE: &[Operation] = &[
    ("core dumps", core_dumps),
    ("setrlimit(core, 0)", |_| {
        Outcome::attempt(sys::lower_core_limit(), &[])
    }),
];
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
        // Not the memory, but the addresses are limited.
        Ok(Ended::Exit(number)) => Outcome::attempt(Err::<i64, _>(Errno(number)), &[]),
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

/// Empty files, which go again.
fn many_files(folder: &str, limit: u64) -> Outcome {
    if limit == 0 {
        return not_set();
    }
    let path = |number| io::c_path(&format!("{folder}/tki-probe-file-{number}"));
    let make = |number| {
        let fd = sys::open(&path(number)?, O_WRONLY | O_CREAT | O_EXCL, 0o600)?;
        sys::close(fd);
        Ok(())
    };
    let most = limit.saturating_mul(2);
    let mut made = 0;
    let denied = loop {
        if made == most {
            break Ok(made as i64);
        }
        match make(made) {
            Ok(()) => made += 1,
            Err(Errno::EINTR) => {}
            Err(errno) => break Err(errno),
        }
    };
    for number in 0..made {
        if let Ok(path) = path(number) {
            let _ = sys::unlink(&path);
        }
    }
    Outcome::attempt(denied, &[])
}

/// Where the kernel sends core dumps, and the limit of their size.
fn core_dumps(_: &Context) -> Outcome {
    let texts = (
        io::read_line(c"/proc/sys/kernel/core_pattern"),
        io::read_text(c"/proc/self/limits"),
    );
    let (pattern, limits) = match texts {
        (Ok(pattern), Ok(limits)) => (pattern, limits),
        (Err(errno), _) | (_, Err(errno)) => return Outcome::unreadable(errno),
    };
    let kind = match pattern.as_bytes().first() {
        Some(b'|') => "program",
        Some(b'@') => "socket",
        _ => "file",
    };
    match facts::limit(&limits, "Max core file size") {
        Some((soft, hard)) => Outcome::fact(format!("{kind} {soft}:{hard}")),
        None => Outcome::error("the limits have no such row"),
    }
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

/// How many periods the busy children last at a time.
const PERIODS: u64 = 8;
/// How often that is tried on a machine that has no time to spare.
const ATTEMPTS: u32 = 30;

/// What a while of more work than the quota has room for showed.
enum Busy {
    /// The kernel's own count says that it held the container back.
    HeldBack,
    /// More time was used than the quota has.
    BeyondQuota,
    /// Too little was used to say: others had the processors.
    TooLittle,
}

/// More work than the quota has room for, until the kernel's own count says
/// that it held the container back. If it does not, the time that was used
/// tells a quota that is not there from a machine that was too busy to use it,
/// and on such a machine a quota of the kernel's that is larger than it should
/// be settles it: that one could not have held anything back.
fn throttling(context: &Context) -> Outcome {
    let period = u64::from(context.limits.cpu_period_us);
    let quota = u64::from(context.limits.cpu_quota_us);
    if period == 0 || quota == 0 {
        return not_set();
    }
    let Some(before) = throttled() else {
        return Outcome::error("the cgroup's cpu.stat cannot be read");
    };
    for _ in 0..ATTEMPTS {
        match keep_busy(period, quota, before) {
            Ok(Busy::HeldBack) => return Outcome::fact("throttled".into()),
            Ok(Busy::BeyondQuota) => return Outcome::fact("not throttled".into()),
            Ok(Busy::TooLittle) => match kernel_quota() {
                Some((None, _)) => {
                    return Outcome::fact("not throttled: the kernel has no quota".into());
                }
                Some((Some(found), of)) if found * period > quota * of => {
                    return Outcome::fact(format!(
                        "not throttled: the kernel's quota is {found} us of {of} us"
                    ));
                }
                _ => {}
            },
            Err(errno) => return Outcome::not_reached("fork", errno),
        }
    }
    Outcome::error("the machine was too busy to use more than the quota")
}

fn keep_busy(period: u64, quota: u64, before: u64) -> sys::Result<Busy> {
    let started = sys::now_us();
    let until = started + PERIODS * period;
    let mut children = Vec::new();
    let mut failed = None;
    for _ in 0..2 {
        match sys::fork() {
            Ok(None) => {
                while sys::now_us() < until {}
                sys::exit(0)
            }
            Ok(Some(pid)) => children.push(pid),
            Err(errno) => failed = Some(errno),
        }
    }
    let mut held_back = false;
    while failed.is_none() && !held_back && sys::now_us() < until {
        let _ = sys::poll(&mut [], period / 1000 + 1);
        held_back = throttled().is_some_and(|count| count > before);
    }
    let mut used = 0;
    for pid in children {
        let _ = sys::kill(pid);
        used += sys::wait_for_usage(pid).unwrap_or(0);
    }
    let room = (sys::now_us() - started) * quota / period;
    match failed {
        Some(errno) => Err(errno),
        None if held_back => Ok(Busy::HeldBack),
        None if used > room => Ok(Busy::BeyondQuota),
        None => Ok(Busy::TooLittle),
    }
}

/// Where the container's own CPU group may be mounted, in either version.
const CPU_GROUPS: &[&str] = &[
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup",
];

fn read_cpu(name: &str) -> Option<String> {
    CPU_GROUPS.iter().find_map(|group| {
        let path = io::c_path(&format!("{group}/{name}")).ok()?;
        io::read_text(&path).ok()
    })
}

fn throttled() -> Option<u64> {
    facts::stat_row(&read_cpu("cpu.stat")?, "nr_throttled")
}

/// What the kernel itself says the quota is, if it has one, and its period.
fn kernel_quota() -> Option<(Option<u64>, u64)> {
    let (quota, period) = match read_cpu("cpu.max") {
        Some(both) => {
            let (quota, period) = both.trim().split_once(' ')?;
            (String::from(quota), String::from(period))
        }
        None => (
            read_cpu("cpu.cfs_quota_us")?,
            read_cpu("cpu.cfs_period_us")?,
        ),
    };
    // Without a quota version 1 says -1, version 2 `max`.
    Some((quota.trim().parse().ok(), period.trim().parse().ok()?))
}
