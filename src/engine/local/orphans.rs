//! Processes whose maker was killed before the kernel could be told to end them
//! with it. They come to the nearest process above that asked for them, which
//! ends them.

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid,
};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

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

/// How long to wait for a child that is about to end, and between two looks.
const ABOUT_TO_END: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Ends every child for which `is_orphan` says so, and those that come after it. One that
/// is about to end by itself is waited for: until it has, its own children are not ours.
pub fn end(is_orphan: impl Fn(&[u8]) -> bool) {
    let known = keepers();
    let give_up = Instant::now() + ABOUT_TO_END;
    // Those that had ended before the children were listed, and so had handed on theirs.
    let mut ended: Vec<Pid> = Vec::new();
    loop {
        let mut again = false;
        let unknown = children()
            .into_iter()
            .filter(|pid| !known.contains(&pid.as_raw_nonzero().get().unsigned_abs()));
        for child in unknown {
            let line = command_line(child);
            if is_orphan(&line) {
                let _ = kill_process(child, Signal::KILL);
                let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED);
                again = true;
            } else if line.is_empty() && !ended.contains(&child) && Instant::now() < give_up {
                match has_ended(child) {
                    true => ended.push(child),
                    false => std::thread::sleep(PAUSE),
                }
                again = true;
            }
        }
        if !again {
            return;
        }
    }
}

/// What a process was started with. A process has no such line any more from before it
/// hands its children on; it is left to the process that waits for it.
fn command_line(pid: Pid) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// It has ended, and its children are another process's. Its parent still finds it.
fn has_ended(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), look), Ok(None))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    /// So much memory that its end takes a while, and a child with a line of its own.
    const LARGE: &str = r#"
        my $large = "x" x (256 << 20);
        if (!fork) { exec { "sleep" } "$ARGV[0]", "60" }
        $| = 1;
        print "ready\n";
        sleep 60;
    "#;

    #[test]
    fn the_child_of_one_that_is_about_to_end_is_found() {
        let name = format!("orphan-of-{}", std::process::id());
        adopt().unwrap();
        let mut large = Command::new("perl")
            .args(["-e", LARGE, &name])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = large.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        let named = || -> Vec<i32> {
            let entries = fs::read_dir("/proc").unwrap().flatten();
            let pids = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
            let is_named = |pid: &i32| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.starts_with(name.as_bytes())
            };
            pids.filter(is_named).collect()
        };
        let started = Instant::now();
        while named().is_empty() {
            assert!(started.elapsed() < Duration::from_secs(50));
            std::thread::sleep(PAUSE);
        }
        large.kill().unwrap();
        let pid = Pid::from_child(&large);
        while !command_line(pid).is_empty() {
            std::thread::yield_now();
        }
        end(|line| line.starts_with(name.as_bytes()));
        assert_eq!(named(), Vec::<i32>::new());
        // Its end was not taken from its parent.
        assert!(!large.wait().unwrap().success());
    }
}
