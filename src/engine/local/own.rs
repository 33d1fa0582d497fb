//! Namespaces of the tool's own, for users who are not root: in a user
//! namespace that maps nobody but themselves they may mount, and so everything
//! else goes the same way as for root.

use crate::host::namespaces::unshare;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
};
use std::fs;
use std::io::Result;

/// Moves this process into a user namespace and a mount namespace of its own.
/// Does nothing for root. The process must have one thread only.
pub fn enter() -> Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        return Ok(());
    }
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    map(0, user.as_raw(), 0, group.as_raw())?;
    // Mounts of the host stay visible as they come and go; ours do not show.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave)?;
    Ok(())
}

/// Moves this process from a namespace in which it is root into one in which it
/// is another user, without any capability but those that `keep` leaves in
/// reach. The process must have one thread only.
pub fn become_user(uid: u32, gid: u32, keep: CapabilitySet) -> Result<()> {
    unshare(libc::CLONE_NEWUSER)?;
    map(uid, 0, gid, 0)?;
    // The kernel gives every capability in a new namespace.
    for number in 0..CAPABILITIES {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if !keep.contains(one) {
            match remove_capability_from_bounding_set(one) {
                // A kernel with fewer.
                Err(Errno::INVAL) | Ok(()) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// As many as a set has room for.
const CAPABILITIES: u32 = 64;

/// Maps one user and one group of the namespace outside.
fn map(uid: u32, outer_uid: u32, gid: u32, outer_gid: u32) -> Result<()> {
    // Without the right to change groups, a map of one's own group is allowed.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {outer_uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {outer_gid} 1"))
}
