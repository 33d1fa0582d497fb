//! Directories that are held open, so that a path below one of them is looked up from there.
//!
//! The kernel asks for permission at the start of every lookup. Where the root directory is in
//! user space (fuse-overlayfs, as Docker has it without overlayfs and Podman without root), it
//! sends a question to that file system for each path that begins with `/`, and waits: hundreds
//! of them, a third of the time that the probes take.

use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, Ordering};

/// A directory, and its descriptor once it is held.
struct Held {
    path: &'static CStr,
    descriptor: AtomicI32,
}

impl Held {
    fn descriptor(&self) -> Option<i32> {
        Some(self.descriptor.load(Ordering::Relaxed)).filter(|descriptor| *descriptor >= 0)
    }
}

const fn not_yet(path: &'static CStr) -> Held {
    Held {
        path,
        descriptor: AtomicI32::new(-1),
    }
}

static HELD: [Held; 6] = [
    not_yet(c"/proc"),
    not_yet(c"/out"),
    not_yet(c"/sys"),
    not_yet(c"/tmp"),
    not_yet(c"/in"),
    not_yet(c"/dev"),
];

/// Opens each directory with `open`. One that cannot be opened is not held, and paths below
/// it are looked up from the root.
pub(super) fn hold(open: impl Fn(&CStr) -> super::Result<i32>) {
    for held in &HELD {
        if let Ok(descriptor) = open(held.path) {
            held.descriptor.store(descriptor, Ordering::Relaxed);
        }
    }
}

/// Where a lookup of `path` starts and what is left of the path, if it is below a directory
/// that is held. A path that goes up again is looked up as it is written.
pub(super) fn start(path: &CStr) -> Option<(i32, &CStr)> {
    let bytes = path.to_bytes_with_nul();
    let (descriptor, rest) = HELD.iter().find_map(|held| {
        let rest = bytes.strip_prefix(held.path.to_bytes())?;
        Some((held.descriptor()?, rest.strip_prefix(b"/")?))
    })?;
    let goes_up = rest.windows(2).any(|pair| pair == b"..");
    let is_relative = rest.first().is_some_and(|first| !matches!(first, 0 | b'/'));
    match CStr::from_bytes_with_nul(rest) {
        Ok(rest) if is_relative && !goes_up => Some((descriptor, rest)),
        _ => None,
    }
}

/// The descriptor of a directory that is held itself.
pub(super) fn itself(path: &CStr) -> Option<i32> {
    let held = HELD.iter().find(|held| held.path == path)?;
    held.descriptor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Errno;

    #[test]
    fn only_what_is_below_a_held_directory_starts_there() {
        hold(|path| match path.to_bytes() {
            b"/proc" => Ok(70),
            b"/out" => Ok(71),
            _ => Err(Errno::ENOENT),
        });
        assert_eq!(start(c"/proc/self/status"), Some((70, c"self/status")));
        assert_eq!(start(c"/out/a"), Some((71, c"a")));
        assert_eq!(itself(c"/proc"), Some(70));
        assert_eq!(itself(c"/proc/"), None);
        assert_eq!(itself(c"/tmp"), None);
        for as_written in [
            c"/proc",
            c"/proc/",
            c"/proc//etc",
            c"/process/1",
            c"/out/../escape/a",
            c"/out/a/..",
            c"/tmp/a",
            c"proc/self",
            c"/etc/shadow",
            c"",
        ] {
            assert_eq!(start(as_written), None, "{as_written:?}");
        }
        for held in &HELD {
            held.descriptor.store(-1, Ordering::Relaxed);
        }
    }
}
