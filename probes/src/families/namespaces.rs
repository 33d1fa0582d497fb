//! Which namespaces the prober is in, and what can be seen through them.

use super::{Context, Operation, network};
use crate::outcome::Outcome;
use crate::sys::{self, Errno};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::CStr;
use tki_evidence::wire::abstract_canary;
use tki_inside::io;

/// XP-NS-FRESH.
pub const FRESH: &[Operation] = &[
    ("ns-mnt", |_| link("mnt")),
    ("ns-pid", |_| link("pid")),
    ("ns-net", |_| link("net")),
    ("ns-ipc", |_| link("ipc")),
    ("ns-uts", |_| link("uts")),
    ("ns-cgroup", |_| link("cgroup")),
    ("ns-user", |_| link("user")),
    ("ns-time", |_| link("time")),
];

/// XP-NS-PID.
pub const PROCESSES: &[Operation] = &[("pid-1", init), ("processes", processes)];

/// XP-NS-HOSTNAME.
pub const HOSTNAME: &[Operation] = &[("hostname", |_| {
    fact(io::read_line(c"/proc/sys/kernel/hostname"))
})];

/// XP-NS-IPC.
pub const IPC: &[Operation] = &[
    ("sysvipc-shm", |_| rows(c"/proc/sysvipc/shm")),
    ("sysvipc-sem", |_| rows(c"/proc/sysvipc/sem")),
    ("sysvipc-msg", |_| rows(c"/proc/sysvipc/msg")),
];

/// XP-NS-ABSTRACT.
pub const ABSTRACT: &[Operation] = &[
    ("proc-net-unix", |_| rows(c"/proc/net/unix")),
    (
        "connect(abstract canary)",
        |context| match abstract_canary(&context.env_canary) {
            Some(name) => network::connect_abstract(&name),
            None => Outcome::error("the launcher made no canary"),
        },
    ),
];

/// XP-NS-SIGNAL.
pub const SIGNAL: &[Operation] = &[("kill(-1, 0)", |_| {
    Outcome::attempt(sys::signal_nothing_to_all(), &[])
})];

fn fact(result: sys::Result<String>) -> Outcome {
    match result {
        Ok(value) => Outcome::fact(value),
        Err(errno) => Outcome::unreadable(errno),
    }
}

fn link(kind: &str) -> Outcome {
    fact(io::read_link(&format!("/proc/self/ns/{kind}")))
}

/// The probe runs in a child of the prober, which must be process 1.
fn init(_: &Context) -> Outcome {
    let status = io::read_text(c"/proc/self/status");
    fact(status.map(|text| {
        let parent = tki_evidence::facts::status_field(&text, "PPid");
        parent.unwrap_or("unknown").to_string()
    }))
}

fn processes(_: &Context) -> Outcome {
    let entries = match io::list(c"/proc") {
        Ok(entries) => entries,
        Err(errno) => return Outcome::unreadable(errno),
    };
    let mut names: Vec<String> = entries
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|pid| {
            let path = io::c_path(&format!("/proc/{pid}/comm")).ok()?;
            io::read_line(&path).ok()
        })
        .collect();
    names.sort();
    names.dedup();
    Outcome::fact(names.join(","))
}

/// Rows below the heading. A kernel without the table has none.
fn rows(path: &CStr) -> Outcome {
    match io::read_text(path) {
        Ok(text) => Outcome::fact(text.lines().count().saturating_sub(1).to_string()),
        Err(Errno::ENOENT) => Outcome::fact("0".into()),
        Err(errno) => Outcome::unreadable(errno),
    }
}
