//! Where a passphrase comes from: what the command line names, or the terminal.

use crate::failure::Failure;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The longest passphrase, in bytes.
const MAX_PASSPHRASE: u64 = 4096;

/// Where a passphrase comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The first line of a file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The first line of a descriptor that the caller opened.
    Descriptor(i32),
}

impl std::str::FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Source::File(path.into())),
            Some(("env", name)) if !name.is_empty() => Ok(Source::Variable(name.into())),
            Some(("fd", number)) => match number.parse() {
                Ok(number @ (0 | 3..=1023)) => Ok(Source::Descriptor(number)),
                _ => Err("fd:N, where N is 0 or 3 to 1023".into()),
            },
            _ => Err("file:PATH, env:NAME or fd:N".into()),
        }
    }
}

fn failed(why: impl std::fmt::Display) -> Failure {
    Failure::usage(
        "key.passphrase",
        format!("no passphrase: {why}"),
        "give it with --passphrase file:PATH, env:NAME or fd:N, or run on a terminal",
    )
}

/// The passphrase for a key that exists.
pub fn obtain(source: Option<&Source>, key: &Path) -> Result<Zeroizing<String>, Failure> {
    match source {
        Some(source) => from_source(source),
        None => ask(&format!("Passphrase for {}: ", key.display())).map_err(failed),
    }
}

/// The passphrase for a new key: asked twice on a terminal.
pub fn choose(source: Option<&Source>) -> Result<Zeroizing<String>, Failure> {
    let passphrase = match source {
        Some(source) => from_source(source)?,
        None => {
            let first = ask("Passphrase for the new key: ").map_err(failed)?;
            if *first != *ask("The same again: ").map_err(failed)? {
                return Err(failed("the two differ"));
            }
            first
        }
    };
    if passphrase.is_empty() {
        return Err(Failure::usage(
            "key.passphrase",
            "the passphrase is empty",
            "give one, or say --no-passphrase",
        ));
    }
    Ok(passphrase)
}

fn from_source(source: &Source) -> Result<Zeroizing<String>, Failure> {
    match source {
        Source::File(path) => {
            let read = File::open(path).and_then(first_line);
            read.map_err(|error| failed(format!("{}: {error}", path.display())))
        }
        Source::Variable(name) => std::env::var(name)
            .map(Zeroizing::new)
            .map_err(|_| failed(format!("the variable {name} is not set or not text"))),
        Source::Descriptor(number) => {
            // The number is checked by opening it by name, so that no
            // descriptor of our own is taken over.
            let path = format!("/proc/self/fd/{number}");
            let read = File::open(&path).and_then(first_line);
            read.map_err(|error| failed(format!("descriptor {number}: {error}")))
        }
    }
}

fn first_line(reader: impl Read) -> io::Result<Zeroizing<String>> {
    let mut line = Zeroizing::new(String::new());
    BufReader::new(reader.take(MAX_PASSPHRASE)).read_line(&mut line)?;
    let end = line.trim_end_matches(['\n', '\r']).len();
    line.truncate(end);
    Ok(line)
}

/// Asks on the terminal, whatever standard input and output are, without echo.
fn ask(prompt: &str) -> io::Result<Zeroizing<String>> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    terminal.write_all(prompt.as_bytes())?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let line = first_line(&terminal);
    tcsetattr(&terminal, OptionalActions::Flush, &before)?;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_from_the_command_line() {
        assert_eq!("file:/a".parse(), Ok(Source::File("/a".into())));
        assert_eq!("env:A".parse(), Ok(Source::Variable("A".into())));
        assert_eq!("fd:3".parse(), Ok(Source::Descriptor(3)));
        for text in [
            "", "secret", "file:", "env:", "fd:1", "fd:2", "fd:-1", "fd:x",
        ] {
            assert!(text.parse::<Source>().is_err(), "{text}");
        }
    }
}
