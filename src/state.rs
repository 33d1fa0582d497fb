//! What one run remembers for the next: which engines refused an exec gate, so that they
//! are not tried again each time.
//!
//! It is a hint and never a fact: it only decides whether something is tried. The file may
//! be deleted at any time. One that cannot be read, is malformed or could have been written
//! by another user is ignored. Of two runs that write at once one entry may be lost, and
//! that engine is tried once more.

use crate::clock::{parse_rfc3339, rfc3339};
use crate::files::{self, Folder};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tki_evidence::strict::{self, StrictError};
use tki_text::printable;

/// The value of `schema`.
const SCHEMA: &str = "tki-attest/state/v1";
/// The directory of ours, in the user's directory for state.
const FOLDER: &str = "tki-attest";
/// The file in it.
const FILE: &str = "gate.json";
/// Where root's is without a home of its own.
const ROOTS: &str = "/var/lib";
/// The largest file that is read, in bytes. The most that is written is below it.
const MOST_BYTES: u64 = 128 << 10;
/// The most engines that are remembered; the oldest goes first.
const MOST_ENTRIES: usize = 16;
/// The longest part of a key, in bytes. An engine that says more is not remembered.
const MOST_OF_KEY: usize = 256;
/// The most characters that are kept of what an engine said, and one for what was cut.
const MOST_SAID: usize = 240;

/// What tells an engine from every other one, and from what it was before an update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its name.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// Its address.
    pub address: String,
    /// What it calls itself by; empty if it does not.
    pub id: String,
    /// The OCI runtime.
    pub oci_runtime: String,
    /// What the engine says its runtime was built from; empty if it does not.
    pub oci_runtime_commit: String,
    /// This tool's version.
    pub tool_version: String,
}

impl Key {
    fn is_bounded(&self) -> bool {
        let parts = [
            &self.engine,
            &self.engine_version,
            &self.address,
            &self.id,
            &self.oci_runtime,
            &self.oci_runtime_commit,
            &self.tool_version,
        ];
        let is_plain = |part: &str| printable(part, MOST_OF_KEY) == part;
        parts
            .iter()
            .all(|part| part.len() <= MOST_OF_KEY && is_plain(part))
    }
}

/// An engine's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it said.
    pub said: String,
    /// When, in seconds since 1970.
    pub when: u64,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema: String,
    refused: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    by: Key,
    said: String,
    at: String,
}

impl Entry {
    fn refusal(&self) -> Option<Refusal> {
        let is_plain = printable(&self.said, MOST_SAID + 1) == self.said;
        let is_good = is_plain && !self.said.trim().is_empty() && self.by.is_bounded();
        let when = parse_rfc3339(&self.at).filter(|_| is_good)?;
        Some(Refusal {
            said: self.said.clone(),
            when,
        })
    }
}

/// Why nothing is known of runs before, or of what they have left.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file is not believed.
    #[error("{} is ignored: {why}", .path.display())]
    Ignored {
        /// The file.
        path: PathBuf,
        /// Why.
        why: Ignored,
    },
    /// The directory cannot be read.
    #[error("{}: {error}", .path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Why a file of state is ignored.
#[derive(Debug, thiserror::Error)]
pub enum Ignored {
    /// It cannot be read, or others could have written it.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It has another form.
    #[error(transparent)]
    Malformed(#[from] StrictError),
    /// Another version wrote it.
    #[error("schema is {0:?}, expected {SCHEMA:?}")]
    Schema(String),
    /// It has more than is ever written.
    #[error("it has more than {MOST_ENTRIES} entries")]
    TooMany,
    /// It says what is never written.
    #[error("an entry is not as this tool writes it")]
    Entry,
}

/// The directory for state, which need not be there.
#[derive(Clone, Debug)]
pub struct State {
    parent: PathBuf,
}

/// A file in it that a run has left.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is not ours to remove.
    pub foreign: Option<String>,
}

impl State {
    /// This user's: below `$XDG_STATE_HOME`, else `$HOME/.local/state`, else for root
    /// `/var/lib`. `None` for others without a home: nothing is remembered.
    pub fn here() -> Option<Self> {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let user = rustix::process::geteuid();
        // `HOME` stays another user's where only the user id was changed.
        let is_own = |home: &PathBuf| {
            std::fs::metadata(home).is_ok_and(|found| found.uid() == user.as_raw())
        };
        let home = path("HOME").filter(is_own);
        parent(path("XDG_STATE_HOME"), home, user.is_root()).map(Self::below)
    }

    /// The one below a directory.
    pub fn below(parent: PathBuf) -> Self {
        Self { parent }
    }

    fn path(&self) -> PathBuf {
        self.parent.join(FOLDER).join(FILE)
    }

    /// What an engine said when it refused. Whatever is later than `now` is not believed. The
    /// error says why the file is ignored.
    pub fn refusal(&self, by: &Key, now: u64) -> Result<Option<Refusal>, StateError> {
        let found = self.read()?;
        let found = found.iter().find(|entry| entry.by == *by);
        let refusal = found.and_then(Entry::refusal);
        Ok(refusal.filter(|refusal| refusal.when <= now))
    }

    /// Remembers a refusal, in the place of an earlier one.
    pub fn remember(&self, by: &Key, refusal: &Refusal) -> io::Result<()> {
        if !by.is_bounded() {
            return Err(io::Error::other("the engine's names are too long"));
        }
        // What cannot be read is replaced.
        let mut entries = self.read().unwrap_or_default();
        entries.retain(|entry| entry.by != *by);
        entries.push(Entry {
            by: by.clone(),
            said: printable(&printable(&refusal.said, usize::MAX), MOST_SAID),
            at: rfc3339(refusal.when),
        });
        let surplus = entries.len().saturating_sub(MOST_ENTRIES);
        entries.drain(..surplus);
        self.write(entries)
    }

    /// Forgets a refusal, if there is one. The file goes with the last.
    pub fn forget(&self, by: &Key) -> io::Result<()> {
        let mut entries = self.read().unwrap_or_default();
        let before = entries.len();
        entries.retain(|entry| entry.by != *by);
        match (entries.len(), before) {
            (left, before) if left == before => Ok(()),
            (0, _) => self.remove(FILE.as_ref()),
            _ => self.write(entries),
        }
    }

    /// The files here that a run has left: the one with what is remembered, and those of a
    /// run that was killed while it wrote.
    pub fn left(&self) -> Result<Vec<Left>, StateError> {
        let at = |error| StateError::Folder {
            path: self.parent.join(FOLDER),
            error,
        };
        let Some((_, folder)) = self.open().map_err(at)? else {
            return Ok(Vec::new());
        };
        let mut names = folder.names().map_err(at)?;
        names.retain(|name| name == FILE || files::is_unfinished(name));
        names.sort();
        let user = rustix::process::geteuid().as_raw();
        let in_ours = folder.stat().map_err(at)?.st_uid == user;
        let mut found = Vec::new();
        for name in names {
            let Some(stat) = folder.look(&name).map_err(at)? else {
                continue;
            };
            let foreign = match () {
                () if !in_ours => Some("the directory belongs to another user".to_owned()),
                () if !files::is_regular(&stat) => Some("it is not a regular file".into()),
                () if stat.st_uid != user => Some(format!("it belongs to user {}", stat.st_uid)),
                () => None,
            };
            let path = self.parent.join(FOLDER).join(name);
            found.push(Left { path, foreign });
        }
        Ok(found)
    }

    /// Removes a file by name, and the directory with the last one.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let Some((parent, folder)) = self.open()? else {
            return Ok(());
        };
        folder.remove_file(name)?;
        let is_ours = folder.stat()?.st_uid == rustix::process::geteuid().as_raw();
        let is_still = parent.enter(FOLDER).is_ok_and(|found| found.is(&folder));
        if is_ours && is_still {
            // The kernel refuses as long as something is in it, whose it may be.
            let _ = parent.remove_folder(FOLDER);
        }
        Ok(())
    }

    /// The directory and the one that it is in, if both are there.
    fn open(&self) -> io::Result<Option<(Folder, Folder)>> {
        let parent = match Folder::open(&self.parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        if parent.look(FOLDER)?.is_none() {
            return Ok(None);
        }
        let folder = parent.enter(FOLDER)?;
        Ok(Some((parent, folder)))
    }

    fn read(&self) -> Result<Vec<Entry>, StateError> {
        let text = self.text().map_err(Ignored::Unreadable);
        let entries = text.and_then(|text| text.map_or(Ok(Vec::new()), |text| parse(&text)));
        entries.map_err(|why| StateError::Ignored {
            path: self.path(),
            why,
        })
    }

    fn text(&self) -> io::Result<Option<Vec<u8>>> {
        let Some((_, folder)) = self.open()? else {
            return Ok(None);
        };
        must_be_guarded(&folder.stat()?, "its directory")?;
        let Some(file) = folder.open_file(FILE)? else {
            return Ok(None);
        };
        let found = rustix::fs::fstat(&file)?;
        must_be_guarded(&found, "it")?;
        let length = u64::try_from(found.st_size).unwrap_or(0);
        files::read_at_most(&file, length, MOST_BYTES).map(Some)
    }

    fn write(&self, refused: Vec<Entry>) -> io::Result<()> {
        let written = Written {
            schema: SCHEMA.into(),
            refused,
        };
        let mut text = serde_json::to_vec_pretty(&written).map_err(io::Error::other)?;
        text.push(b'\n');
        let parent = Folder::open_or_make(&self.parent)?;
        let folder = match parent.make(FOLDER) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => parent.enter(FOLDER)?,
            other => other?,
        };
        must_be_guarded(&folder.stat()?, "its directory")?;
        files::replace_private(&folder, FILE.as_ref(), &text)
    }
}

/// The directory that holds ours.
fn parent(state: Option<PathBuf>, home: Option<PathBuf>, is_root: bool) -> Option<PathBuf> {
    // A relative path is none, as the specification of these directories has it.
    let whole = |path: Option<PathBuf>| path.filter(|path| path.is_absolute());
    let home = || whole(home).map(|home| home.join(".local/state"));
    let roots = || is_root.then(|| Path::new(ROOTS).to_owned());
    whole(state).or_else(home).or_else(roots)
}

/// Nobody but root and this user can have written it.
fn must_be_guarded(found: &Stat, what: &str) -> io::Result<()> {
    if !files::is_trusted(found.st_uid) {
        let why = format!("{what} belongs to user {}", found.st_uid);
        return Err(io::Error::other(why));
    }
    if found.st_mode & 0o022 != 0 {
        return Err(io::Error::other(format!("{what} is writable by others")));
    }
    Ok(())
}

fn parse(text: &[u8]) -> Result<Vec<Entry>, Ignored> {
    let written: Written = strict::parse_as(text)?;
    if written.schema != SCHEMA {
        return Err(Ignored::Schema(printable(&written.schema, 60)));
    }
    if written.refused.len() > MOST_ENTRIES {
        return Err(Ignored::TooMany);
    }
    if written.refused.iter().any(|one| one.refusal().is_none()) {
        return Err(Ignored::Entry);
    }
    Ok(written.refused)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
