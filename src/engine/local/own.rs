//! Namespaces of the tool's own, for users who are not root: in a user
//! namespace that maps nobody but themselves they may mount, and so everything
//! else goes the same way as for root.

use rustix::mount::{MountPropagationFlags, mount_change};
use std::fs;
use std::io::{Error, Result};

/// Moves this process into a user namespace and a mount namespace of its own.
/// Does nothing for root. The process must have one thread only.
pub fn enter() -> Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        return Ok(());
    }
    // SAFETY: the process has one thread; the kernel refuses otherwise.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
        return Err(Error::last_os_error());
    }
    // Without the right to change groups, a map of one's own group is allowed.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))?;
    // Mounts of the host stay visible as they come and go; ours do not show.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave)?;
    Ok(())
}
