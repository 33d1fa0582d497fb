//! Bind mounts that engines without a daemon make.

use rustix::mount::{MountFlags, mount_bind, mount_remount};
use std::path::Path;

/// A bind of a pseudo file system that can only be read.
pub fn read_only_bind(path: &Path, at: &Path) -> rustix::io::Result<()> {
    mount_bind(path, at)?;
    let flags = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    mount_remount(at, flags, "")
}
