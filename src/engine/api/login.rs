//! The `ssh` of a tunnel: a process that is started, heard and ended.

use crate::host::process::wait_at_most;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, ErrorKind, Read};
use std::process::{Child, ChildStderr, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tki_text::printable;

/// How often to look whether it has said anything.
const LOOK: Duration = Duration::from_millis(5);

/// How long `ssh` may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait for what `ssh` has to say about a failure. It may say nothing, and after
/// its end something that it started may hold its standard error open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The most bytes of what `ssh` says that are kept, and the most characters that are shown.
const MOST_SAID: usize = 4096;
const MOST_SHOWN: usize = 600;

/// What a process said: the last of it, since a server's banner comes first.
#[derive(Debug, Default)]
struct Words {
    last: Vec<u8>,
    /// How many bytes there were in all.
    count: usize,
}

/// The process, and what it said; ended when dropped.
#[derive(Debug)]
pub struct Login {
    child: Mutex<Child>,
    said: Arc<Mutex<Words>>,
    /// Closed when all that it said has been heard.
    heard: Mutex<Receiver<()>>,
    /// Tells its keeper to go.
    _keeper: Sender<()>,
}

impl Login {
    /// Starts it. The kernel takes the end of the thread that starts a process for the end
    /// of its parent, so that thread stays for as long as the process.
    pub fn start(command: Command) -> io::Result<Self> {
        let said = Arc::<Mutex<Words>>::default();
        let (keeper, ended) = channel();
        let (started, result) = channel();
        let (hearing, heard) = channel();
        let words = Arc::clone(&said);
        std::thread::spawn(move || keep(command, &started, hearing, &words, &ended));
        let gone = |_| io::Error::other("its keeper panicked");
        let child = result.recv().map_err(gone)??;
        Ok(Self {
            child: Mutex::new(child),
            said,
            heard: Mutex::new(heard),
            _keeper: keeper,
        })
    }

    /// It runs no more.
    pub fn has_ended(&self) -> bool {
        !matches!(lock(&self.child).try_wait(), Ok(None))
    }

    /// How many bytes it has said so far.
    pub fn heard(&self) -> usize {
        lock(&self.said).count
    }

    /// The last lines that it said about what failed just now, before which so many bytes
    /// had been heard: the reason and the end of a connection come by different ways.
    pub fn next_words(&self, heard: usize) -> String {
        let give_up = Instant::now() + LAST_WORDS;
        while self.heard() == heard && !self.has_ended() && Instant::now() < give_up {
            std::thread::sleep(LOOK);
        }
        self.last_words()
    }

    /// The last lines that it said, cut and without terminal escapes.
    pub fn last_words(&self) -> String {
        let ended = self.has_ended();
        if ended {
            // It may have ended a moment before anybody has read what it said.
            let _ = lock(&self.heard).recv_timeout(LAST_WORDS);
        }
        let said = lock(&self.said);
        let text = String::from_utf8_lossy(&said.last);
        let lines = last_lines(&text);
        match (lines.is_empty(), ended) {
            (false, _) => printable(&lines.join("; "), MOST_SHOWN),
            (true, true) => "ssh ended without a word".into(),
            (true, false) => "the connection was closed over there".into(),
        }
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        if let Ok(None) = child.try_wait() {
            // It has not been waited for, so its number is nobody else's.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            if wait_at_most(&mut child, GRACE).is_none() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// A poisoned lock holds what it held.
fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Starts `ssh`, hears what it says, and stays until it is not needed any more.
fn keep(
    mut command: Command,
    started: &Sender<io::Result<Child>>,
    hearing: Sender<()>,
    said: &Mutex<Words>,
    ended: &Receiver<()>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return drop(started.send(Err(error))),
    };
    let stderr = child.stderr.take();
    if let Err(unsent) = started.send(Ok(child)) {
        // Nobody waits for it any more.
        if let Ok(mut child) = unsent.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
        return;
    }
    if let Some(stderr) = stderr {
        hear(stderr, said);
    }
    drop(hearing);
    let _ = ended.recv();
}

/// Keeps the last of what is said.
fn hear(mut stderr: ChildStderr, said: &Mutex<Words>) {
    let mut piece = [0; 1024];
    loop {
        match stderr.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let mut said = lock(said);
                said.last.extend_from_slice(&piece[..count]);
                let over = said.last.len().saturating_sub(MOST_SAID);
                said.last.drain(..over);
                said.count += count;
            }
        }
    }
}

/// The last lines of a text that are shown: at least one that is not empty, if there is one.
fn last_lines(text: &str) -> Vec<&str> {
    let lines = text.split(['\r', '\n']).map(str::trim);
    let mut shown = 0;
    let mut last: Vec<&str> = lines
        .rev()
        .filter(|line| !line.is_empty())
        .take_while(|line| {
            let is_first = shown == 0;
            shown += line.chars().count() + 2;
            is_first || shown <= MOST_SHOWN
        })
        .collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_shown_whatever_comes_before_it() {
        let banner = "Authorised use alone.\r\n".repeat(100);
        let lines = format!("{banner}\n\nPermission denied (publickey).\r\n");
        let last = last_lines(&lines);
        assert_eq!(last.last(), Some(&"Permission denied (publickey)."));
        assert!(last.len() > 1 && last.join("; ").chars().count() <= MOST_SHOWN);
        assert_eq!(last_lines(" \n"), [""; 0]);
        let long = "x".repeat(MOST_SHOWN * 2);
        assert_eq!(last_lines(&long), [&long]);
    }
}
