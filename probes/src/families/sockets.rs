//! Socket files: where engines keep theirs, and anywhere else.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys;
use crate::walk::{self, Kind};
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
    ("walk-for-sockets", walk_for_sockets),
];

fn stat(path: &CStr) -> Outcome {
    Outcome::attempt(sys::stat(path).map(|_| 0), &[])
}

fn walk_for_sockets(context: &Context) -> Outcome {
    walk::find(context.tree(), |_, kind| kind == Kind::Socket)
}
