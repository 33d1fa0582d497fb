//! Where a passphrase comes from: what the command line names, or the terminal.

use crate::trust::error::{NoPassphrase, TrustError};
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

/// A text that names no source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// No descriptor that a caller can have opened for this.
    #[error("fd:N, where N is 0 or 3 to 1023")]
    Descriptor,
    /// None of the forms.
    #[error("file:PATH, env:NAME or fd:N")]
    Form,
}

impl std::str::FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Source::File(path.into())),
            Some(("env", name)) if !name.is_empty() => Ok(Source::Variable(name.into())),
            Some(("fd", number)) => match number.parse() {
                Ok(number @ (0 | 3..=1023)) => Ok(Source::Descriptor(number)),
                _ => Err(SourceError::Descriptor),
            },
            _ => Err(SourceError::Form),
        }
    }
}

/// The passphrase for a key that exists.
pub fn obtain(source: Option<&Source>, key: &Path) -> Result<Zeroizing<String>, NoPassphrase> {
    match source {
        Some(source) => from_source(source),
        None => Ok(ask(&format!("Passphrase for {}: ", key.display()))?),
    }
}

/// The passphrase for a new key: asked twice on a terminal.
pub fn choose(source: Option<&Source>) -> Result<Zeroizing<String>, TrustError> {
    let passphrase = match source {
        Some(source) => from_source(source)?,
        None => twice()?,
    };
    if passphrase.is_empty() {
        return Err(TrustError::EmptyPassphrase);
    }
    Ok(passphrase)
}

fn twice() -> Result<Zeroizing<String>, NoPassphrase> {
    let first = ask("Passphrase for the new key: ")?;
    match *first == *ask("The same again: ")? {
        true => Ok(first),
        false => Err(NoPassphrase::Differ),
    }
}

fn from_source(source: &Source) -> Result<Zeroizing<String>, NoPassphrase> {
    match source {
        Source::File(path) => {
            let read = File::open(path).and_then(first_line);
            read.map_err(|error| NoPassphrase::File {
                path: path.clone(),
                error,
            })
        }
        Source::Variable(name) => std::env::var(name)
            .map(Zeroizing::new)
            .map_err(|_| NoPassphrase::Variable(name.clone())),
        Source::Descriptor(number) => {
            // The number is checked by opening it by name, so that no
            // descriptor of our own is taken over.
            let path = format!("/proc/self/fd/{number}");
            let read = File::open(&path).and_then(first_line);
            read.map_err(|error| NoPassphrase::Descriptor {
                number: *number,
                error,
            })
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
