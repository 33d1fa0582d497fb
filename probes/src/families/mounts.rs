//! The mount table, changing it, and paths that only the host has.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys::{self, Errno, O_RDONLY};
use core::ffi::CStr;
use tki_evidence::facts;
use tki_inside::io;

/// PR-MOUNT-1.
pub const MOUNTS: &[Operation] = &[
    ("mount-table", mount_table),
    ("mount(2)", |_| {
        Outcome::attempt(sys::mount_impossible(c"/out"), &[Errno::ENODEV])
    }),
    ("umount2(/out)", |_| {
        Outcome::attempt(sys::umount_impossible(c"/out"), &[Errno::EINVAL])
    }),
    ("open(/etc/shadow)", |_| open(c"/etc/shadow")),
    ("open(/root)", |_| open(c"/root")),
    ("open(/home)", |_| open(c"/home")),
    ("open(/usr)", |_| open(c"/usr")),
    ("open(/var/lib)", |_| open(c"/var/lib")),
    ("open(/boot)", |_| open(c"/boot")),
    ("open(/host)", |_| open(c"/host")),
];

fn mount_table(_: &Context) -> Outcome {
    match io::read_text(c"/proc/self/mountinfo") {
        Err(errno) => Outcome::unreadable(errno),
        Ok(text) => match facts::mounts(&text) {
            Ok(mounts) => Outcome::fact(facts::mount_summary(&mounts)),
            Err(line) => Outcome::error(alloc::format!("mount table, line {}", line.0)),
        },
    }
}

fn open(path: &CStr) -> Outcome {
    let result = sys::open(path, O_RDONLY, 0);
    if let Ok(fd) = result {
        sys::close(fd);
    }
    Outcome::attempt(result, &[])
}
