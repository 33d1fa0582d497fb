//! Another program, run with a deadline and a bound on what it may say.

use crate::deadline::{Deadline, Stopped};
use crate::host::process::{find_in, find_program};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// How long its output may take to close once it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, or `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The start of its standard output.
    pub stdout: Vec<u8>,
    /// The start of its standard error.
    pub stderr: Vec<u8>,
    /// It said more than was kept.
    pub cut: bool,
    /// Something that it started holds on to its output, outside its process
    /// group: it was not waited for and not ended.
    pub left_behind: bool,
}

impl Ended {
    /// Both streams.
    pub fn said(&self) -> Vec<u8> {
        let mut all = self.stdout.clone();
        if !all.is_empty() && !all.ends_with(b"\n") && !self.stderr.is_empty() {
            all.push(b'\n');
        }
        all.extend_from_slice(&self.stderr);
        all
    }

    /// How it ended, for a person.
    pub fn how(&self) -> String {
        let how = match (self.status, self.signal) {
            (Some(status), _) => format!("exit {status}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown end".into(),
        };
        match self.left_behind {
            true => how + " (a process that it started still runs)",
            false => how,
        }
    }
}

/// Why there is no end to tell of.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be started.
    #[error("{0}")]
    Start(io::Error),
    /// It was ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Runs a program to its end, to the deadline or to Ctrl-C. It is alone in its
/// process group, and the whole group ends with it.
pub fn run(command: &mut Command, most: usize, deadline: &Deadline) -> Result<Ended, ProgramError> {
    deadline.left()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(ProgramError::Start)?;
    let pid = Pid::from_child(&child);
    let stdout = child.stdout.take().map(|stream| Heard::of(stream, most));
    let stderr = child.stderr.take().map(|stream| Heard::of(stream, most));
    let stopped = loop {
        // Its status stays to be collected, so that its number stays its own.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Ok(Some(_)) | Err(_) => break None,
        }
        match deadline.tick() {
            Ok(tick) => std::thread::sleep(tick.min(Duration::from_millis(5))),
            Err(stopped) => break Some(stopped),
        }
    };
    if stopped.is_some() {
        let _ = kill_process_group(pid, Signal::TERM);
        wait_a_little(pid);
    }
    // A process that it started and left behind goes too, and lets go of the pipes;
    // one that left the group does not, and is not waited for.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait().map_err(ProgramError::Start)?;
    let give_up = Instant::now() + LAST_WORDS;
    let stdout = stdout.map(|heard| heard.until(give_up)).unwrap_or_default();
    let stderr = stderr.map(|heard| heard.until(give_up)).unwrap_or_default();
    match stopped {
        Some(stopped) => Err(stopped.into()),
        None => Ok(Ended {
            status: status.code(),
            signal: status.signal(),
            cut: stdout.more || stderr.more,
            left_behind: !(stdout.ended && stderr.ended),
            stdout: stdout.bytes,
            stderr: stderr.bytes,
        }),
    }
}

fn wait_a_little(pid: Pid) {
    let give_up = Instant::now() + GRACE;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while Instant::now() < give_up {
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            _ => return,
        }
    }
}

/// What a stream has said so far.
#[derive(Clone, Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    more: bool,
    ended: bool,
}

/// A stream that a thread listens to.
struct Heard {
    kept: Arc<Mutex<Kept>>,
    end: Receiver<()>,
}

impl Heard {
    /// Hears everything, keeps the start.
    fn of(mut stream: impl Read + Send + 'static, most: usize) -> Self {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let (sender, end) = mpsc::channel();
        let own = Arc::clone(&kept);
        std::thread::spawn(move || {
            let _until_the_end = sender;
            let mut buffer = [0; 8192];
            loop {
                let count = match stream.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(count) => count,
                    Err(_) => 0,
                };
                let mut kept = own.lock().unwrap_or_else(|poison| poison.into_inner());
                if count == 0 {
                    kept.ended = true;
                    return;
                }
                let room = most.saturating_sub(kept.bytes.len());
                kept.bytes.extend_from_slice(&buffer[..count.min(room)]);
                kept.more |= count > room;
            }
        });
        Self { kept, end }
    }

    /// What was heard by then.
    fn until(self, give_up: Instant) -> Kept {
        let left = give_up.saturating_duration_since(Instant::now());
        let _ = self.end.recv_timeout(left);
        let kept = self
            .kept
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        kept.clone()
    }
}

/// Where a program is, by the search path or where administrators' programs are,
/// which a user's path does not lead to.
pub fn find(name: &str) -> Option<PathBuf> {
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    find_program(name).or_else(|| find_in(usual.into_iter(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_bounded_and_end_with_all_that_they_started() {
        let deadline = Deadline::for_cleaning();
        let mut sh = Command::new("sh");
        let script = "echo $$; yes | head -c 100000; sleep 600 & exit 3";
        let ended = run(sh.args(["-c", script]), 1000, &deadline).unwrap();
        assert_eq!(
            (ended.status, ended.stdout.len(), ended.cut),
            (Some(3), 1000, true)
        );
        assert!(!ended.left_behind);
        assert!(matches!(
            run(&mut Command::new("/nowhere/at/all"), 10, &deadline),
            Err(ProgramError::Start(_))
        ));
    }

    #[test]
    fn what_leaves_the_group_is_told_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut sh = Command::new("sh");
        let script = "mkfifo gone; setsid sh -c 'echo $$; echo > gone; exec sleep 600' & \
                      read -r _ < gone";
        sh.args(["-c", script]).current_dir(folder.path());
        let ended = run(&mut sh, 1000, &Deadline::for_cleaning()).unwrap();
        assert!(ended.left_behind && ended.how().contains("still runs"));
        let pid: i32 = String::from_utf8(ended.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
}
