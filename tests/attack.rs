//! The tool under attack, by local users and by the owners of directories that it
//! writes to. Each of these was made to happen with version 0.1.0.

/// A base image.
mod base;
/// The owner of an output directory.
mod out;
/// Users of the same host while root attests.
mod users;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `attack` over and over, without a pause, while `work` runs.
fn beside<T>(attack: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                attack();
            }
        });
        // Also if it panics: the other thread would go on for ever.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Exchanges every name in a directory that begins so with `bait`.
fn exchange(folder: &Path, prefix: &str, bait: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(prefix) && path != bait {
            let _ = renameat_with(CWD, bait, CWD, &path, RenameFlags::EXCHANGE);
        }
    }
}
