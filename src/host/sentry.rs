//! The process that runs a kernel of its own for a container: gVisor's sentry, or a virtual
//! machine's monitor. The host's kernel does not know what runs in there. The process is
//! named by the engine and held like any other; it counts if it executes a program that is
//! known to run a kernel, in the container's control group.

use crate::host::first::{Marks, Named, is_in};
use crate::host::held::Held;
use crate::host::proc::bounded;
use rustix::process::Pid;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;
use tki_evidence::kernel::{self, KernelKind};

/// The longest command line that is kept, in bytes.
const MOST_COMMAND: u64 = 64 * 1024;

/// Such a process, held.
#[derive(Debug)]
pub struct Sentry {
    process: Held,
    /// What it executes; empty if this user has no right to know.
    pub executable: String,
    /// Its command line, by words.
    pub command: Vec<String>,
}

impl Sentry {
    /// The process that the engine names, if it runs a kernel for this very container.
    pub fn find(named: Named, marks: &Marks) -> Option<Self> {
        let process = Held::of(Pid::from_raw(named.pid?)?)?;
        let folder = process.folder();
        let executable = fs::read_link(folder.join("exe")).unwrap_or_default();
        let line = bounded(&folder.join("cmdline"), MOST_COMMAND).ok()?;
        let membership = fs::read_to_string(folder.join("cgroup")).ok()?;
        let sentry = Self {
            process,
            executable: executable.to_string_lossy().into_owned(),
            command: words(&line),
        };
        let runs = kernel::of_process(&sentry.executable, &sentry.command);
        let is_its = match marks.has_groups() {
            true => is_in(&membership, named.group),
            // Then only its own words tell whose it is.
            false => sentry.command.iter().any(|word| word == named.group),
        };
        (runs.is_some_and(KernelKind::is_own) && is_its && sentry.is_there()).then_some(sentry)
    }

    /// What the kernel shows about it.
    pub fn folder(&self) -> PathBuf {
        self.process.folder()
    }

    /// It has not ended: what was read of it since it was held is its own.
    pub fn is_there(&self) -> bool {
        !self.process.has_ended_by(Instant::now())
    }
}

/// A command line by words, as text in which nothing controls a terminal.
fn words(line: &[u8]) -> Vec<String> {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(char::is_control, "?");
    match line {
        b"" => Vec::new(),
        line => line.split(|byte| *byte == 0).map(word).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_taken_apart() {
        assert_eq!(
            words(b"runsc-sandbox\0boot\0\0x\0"),
            ["runsc-sandbox", "boot", "", "x"]
        );
        assert_eq!(words(b"a\x1b[2J\0\xff"), ["a?[2J", "\u{fffd}"]);
        assert_eq!(words(b""), [""; 0]);
    }
}
