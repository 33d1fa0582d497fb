//! Processes whose maker was killed before the kernel could be told to end them
//! with it. They come to the nearest process above that asked for them, which
//! ends them.

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid,
};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// Keepers of this process that are no orphans. Held while one is started, so
/// that none is taken for an orphan before it is known.
static KEEPERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The list of keepers.
pub fn keepers() -> MutexGuard<'static, Vec<u32>> {
    KEEPERS.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Orphans below this process come to it from now on.
pub fn adopt() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Ends every child for which `is_orphan` says so, and those that come after it.
pub fn end(is_orphan: impl Fn(&[u8]) -> bool) {
    let known = keepers();
    loop {
        let orphans: Vec<Pid> = children()
            .into_iter()
            .filter(|pid| !known.contains(&pid.as_raw_nonzero().get().unsigned_abs()))
            .filter(|pid| is_orphan(&command_line(*pid)))
            .collect();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            let _ = kill_process(orphan, Signal::KILL);
            let _ = waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED);
        }
    }
}

/// What a process was started with. A process that has ended has no such line,
/// and is left to whoever waits for it.
fn command_line(pid: Pid) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The children of all threads of this process.
fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.filter_map(|thread| {
        let list: &Path = &thread.path().join("children");
        fs::read_to_string(list).ok()
    });
    lists
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|word| word.parse().ok());
            pids.filter_map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect()
}
