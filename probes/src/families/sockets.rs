//! Socket files: where engines keep theirs, and anywhere else.

use super::{Context, Operation};
use crate::io;
use crate::outcome::Outcome;
use crate::sys::{self, O_DIRECTORY, O_NOFOLLOW, O_RDONLY};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::CStr;

/// PR-SOCK-DOCKER.
pub const ENGINE_SOCKETS: &[Operation] = &[
    ("stat(/var/run/docker.sock)", |_| {
        stat(c"/var/run/docker.sock")
    }),
    ("stat(/run/docker.sock)", |_| stat(c"/run/docker.sock")),
    ("stat(/run/podman/podman.sock)", |_| {
        stat(c"/run/podman/podman.sock")
    }),
    ("stat(/var/run/podman/podman.sock)", |_| {
        stat(c"/var/run/podman/podman.sock")
    }),
    ("stat(/run/containerd/containerd.sock)", |_| {
        stat(c"/run/containerd/containerd.sock")
    }),
    ("stat(/var/run/containerd/containerd.sock)", |_| {
        stat(c"/var/run/containerd/containerd.sock")
    }),
    ("stat(/run/crio/crio.sock)", |_| {
        stat(c"/run/crio/crio.sock")
    }),
    ("stat(/var/run/crio/crio.sock)", |_| {
        stat(c"/var/run/crio/crio.sock")
    }),
    ("walk-for-sockets", walk),
];

fn stat(path: &CStr) -> Outcome {
    Outcome::attempt(sys::file_mode(path), &[])
}

/// Enough for any image of ours; a tree beyond it is not ours.
const MAX_ENTRIES: usize = 20_000;

/// Kernel file systems: they hold no socket files and have no end.
const SKIPPED: &[&str] = &["/proc", "/sys"];

fn walk(_: &Context) -> Outcome {
    const DT_UNKNOWN: u8 = 0;
    const DT_DIR: u8 = 4;
    const DT_SOCK: u8 = 12;
    const S_IFMT: u32 = 0o170000;
    const S_IFSOCK: u32 = 0o140000;
    const S_IFDIR: u32 = 0o040000;

    let mut found: Vec<String> = Vec::new();
    let mut waiting = vec![String::from("/")];
    let mut entries = 0;
    while let Some(folder) = waiting.pop() {
        let fd = match io::c_path(&folder)
            .and_then(|path| sys::open(&path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0))
        {
            Ok(fd) => fd,
            // What cannot be searched was not searched: no claim about it.
            Err(_) => return Outcome::error(format!("cannot list {folder}")),
        };
        let listed = io::each_entry(fd, |name, kind| {
            entries += 1;
            let path = match folder.as_str() {
                "/" => format!("/{name}"),
                folder => format!("{folder}/{name}"),
            };
            let mode = match kind {
                DT_DIR => S_IFDIR,
                DT_SOCK => S_IFSOCK,
                DT_UNKNOWN => io::c_path(&path)
                    .and_then(|path| sys::file_mode(&path))
                    .unwrap_or(0),
                _ => 0,
            } & S_IFMT;
            if mode == S_IFSOCK {
                found.push(path);
            } else if mode == S_IFDIR && !SKIPPED.contains(&path.as_str()) {
                waiting.push(path);
            }
        });
        sys::close(fd);
        if listed.is_err() || entries > MAX_ENTRIES {
            return Outcome::error(format!("{folder} was not listed to its end"));
        }
    }
    found.sort();
    Outcome::fact(found.join(","))
}
