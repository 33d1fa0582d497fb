//! Who the prober is.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys::{self, Errno};
use crate::walk::{self, Kind};
use alloc::format;
use alloc::string::ToString;
use tki_evidence::facts;
use tki_inside::io;

/// XP-ID-USER.
pub const USER: &[Operation] = &[("ids", |_| status(facts::identity))];

/// XP-ID-CAPS.
pub const CAPABILITIES: &[Operation] = &[
    ("CapInh", |_| field("CapInh")),
    ("CapPrm", |_| field("CapPrm")),
    ("CapEff", |_| field("CapEff")),
    ("CapBnd", |_| field("CapBnd")),
    ("CapAmb", |_| field("CapAmb")),
];

/// XP-ID-NNP.
pub const NO_NEW_PRIVS: &[Operation] = &[("NoNewPrivs", |_| field("NoNewPrivs"))];

/// XP-ID-SECCOMP.
pub const SECCOMP: &[Operation] = &[("Seccomp", |_| field("Seccomp"))];

/// XP-ID-THREADS.
pub const THREADS: &[Operation] = &[("threads", threads)];

/// XP-ID-LSM. Without a security module the kernel has no such text, or nothing to say in it.
pub const LABEL: &[Operation] = &[("lsm-label", |_| {
    match io::read_text(c"/proc/self/attr/current") {
        Ok(text) => Outcome::fact(text.trim_end_matches(['\n', '\0']).into()),
        Err(Errno::EINVAL | Errno::ENOENT) => Outcome::fact("none".into()),
        Err(errno) => Outcome::unreadable(errno),
    }
})];

/// XP-ID-SUID.
pub const SUID: &[Operation] = &[("walk-for-suid", suid)];

fn status(read: impl Fn(&str) -> Option<alloc::string::String>) -> Outcome {
    match io::read_text(c"/proc/self/status") {
        Err(errno) => Outcome::unreadable(errno),
        Ok(text) => match read(&text) {
            Some(value) => Outcome::fact(value),
            None => Outcome::error("the status has no such field"),
        },
    }
}

fn field(name: &str) -> Outcome {
    status(|text| facts::status_field(text, name).map(ToString::to_string))
}

/// The probe runs in a child of the prober, which has one thread whatever the prober
/// has.
fn threads(_: &Context) -> Outcome {
    let tasks = io::read_text(c"/proc/self/status").and_then(|text| {
        let parent = facts::status_field(&text, "PPid").unwrap_or("unknown");
        io::list(&io::c_path(&format!("/proc/{parent}/task"))?)
    });
    match tasks {
        Ok(names) => Outcome::fact(names.len().to_string()),
        Err(errno) => Outcome::unreadable(errno),
    }
}

fn suid(context: &Context) -> Outcome {
    const S_ISUID: u32 = 0o4000;
    const S_ISGID: u32 = 0o2000;
    walk::find(context.tree(), |path, kind| {
        kind == Kind::File
            && io::c_path(path)
                .and_then(|path| sys::stat(&path))
                .is_ok_and(|stat| stat.mode & (S_ISUID | S_ISGID) != 0)
    })
}
