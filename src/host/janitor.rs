//! The janitor: this tool, executed again as a process of its own that does
//! nothing while the tool lives. Should the tool be killed, it takes away what
//! the tool can no longer: directories and mounts on the host, and containers
//! that were created and perhaps never started.

use crate::host::claim;
use crate::host::error::HostError;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The first argument that makes this tool a janitor. Not for people.
pub const ARGUMENT: &str = "internal-janitor";

/// How long the janitor goes on looking for containers of a run whose tool was
/// killed: the engine may still be at work on its last request.
const LOOK_FOR: Duration = Duration::from_secs(3);

/// On a busy host that request takes longer, and so does every other: this many times as long
/// as the slowest look is waited for.
const AS_LONG_AS: u32 = 12;

/// And no longer than this.
const LOOK_FOR_AT_MOST: Duration = Duration::from_secs(30);

/// How long to go on looking, by the slowest look so far.
fn patience(slowest: Duration) -> Duration {
    (slowest * AS_LONG_AS).clamp(LOOK_FOR, LOOK_FOR_AT_MOST)
}

/// What the tool tells the janitor, one JSON line each.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// A run begins.
    Run(String),
    /// A directory is about to be made.
    Make(PathBuf),
    /// It is gone.
    Gone(PathBuf),
    /// The tool has ended a run that failed; the engine may be another one by now.
    Look,
    /// All is well and nothing is left.
    Done,
}

/// The tool's side.
#[derive(Debug)]
pub struct Janitor {
    child: Mutex<Child>,
    pipe: Mutex<Option<ChildStdin>>,
}

impl Janitor {
    /// Starts one. `engine` are the arguments by which it finds the engine.
    pub fn start(engine: &[OsString]) -> Result<Self, HostError> {
        let mut child = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .args(engine)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the tool.
            .process_group(0)
            .spawn()
            .map_err(HostError::Janitor)?;
        let pipe = child.stdin.take();
        Ok(Self {
            child: Mutex::new(child),
            pipe: Mutex::new(pipe),
        })
    }

    fn tell(&self, word: &Word) {
        let mut pipe = self.pipe.lock().unwrap_or_else(|p| p.into_inner());
        let line = serde_json::to_vec(word).map(|mut line| {
            line.push(b'\n');
            line
        });
        if let (Some(pipe), Ok(line)) = (pipe.as_mut(), line) {
            // A janitor that was killed is missed only if the tool is, too.
            let _ = pipe.write_all(&line);
        }
    }

    /// A run begins.
    pub fn run(&self, id: &str) {
        self.tell(&Word::Run(id.to_owned()));
    }

    /// Nothing is left of any run: the janitor may go.
    pub fn done(&self) {
        self.tell(&Word::Done);
        *self.pipe.lock().unwrap_or_else(|p| p.into_inner()) = None;
    }

    /// The engine is gone in the middle of a run: the janitor does what it would
    /// do if the tool had been killed.
    pub fn take_over(&self) {
        *self.pipe.lock().unwrap_or_else(|p| p.into_inner()) = None;
    }

    /// A container ended early: should a part of the engine have been killed, what
    /// the tool could not remove is looked for once.
    pub fn look(&self) {
        self.tell(&Word::Look);
    }

    /// A directory is about to be made.
    pub fn make(&self, path: &Path) {
        self.tell(&Word::Make(path.to_owned()));
    }

    /// It is gone.
    pub fn gone(&self, path: &Path) {
        self.tell(&Word::Gone(path.to_owned()));
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.done();
        let mut child = self.child.lock().unwrap_or_else(|p| p.into_inner());
        let _ = child.wait();
    }
}

/// The janitor's whole life. `tidy` removes the containers of a run and tells
/// whether there is an engine to ask, be it once more.
pub fn main(tidy: impl Fn(&str) -> bool) -> ExitCode {
    let mut runs: Vec<String> = Vec::new();
    let mut places: Vec<PathBuf> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(word) = line
            .map_err(drop)
            .and_then(|line| serde_json::from_str::<Word>(&line).map_err(drop))
        else {
            break;
        };
        match word {
            Word::Run(id) => runs.push(id),
            Word::Make(path) => places.push(path),
            Word::Gone(path) => places.retain(|known| *known != path),
            Word::Look => drop(runs.last().map(|id| tidy(id))),
            Word::Done => return ExitCode::SUCCESS,
        }
    }
    // A container that is about to start and misses its directory fails to.
    for place in places {
        // Nobody is left who could be told.
        let _ = claim::remove(&place);
    }
    let (started, mut slowest) = (Instant::now(), Duration::ZERO);
    loop {
        let began = Instant::now();
        let asked = runs.last().is_none_or(|id| tidy(id));
        slowest = slowest.max(began.elapsed());
        if !asked || started.elapsed() > patience(slowest) {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_engine_is_looked_at_for_longer_and_not_for_ever() {
        let milliseconds = Duration::from_millis;
        assert_eq!(patience(milliseconds(20)), LOOK_FOR);
        assert_eq!(patience(milliseconds(900)), milliseconds(10_800));
        assert_eq!(patience(milliseconds(60_000)), LOOK_FOR_AT_MOST);
    }
}
