//! The capability guard: the one way to a file. The inspector may read items of its packet and
//! the launcher's files, and write its reports, and there is no third kind of
//! [`AllowedAction`]. Every action is in the action log, whatever came of it.

use crate::packet;
use crate::path;
use crate::report::{Action, AllowedAction};
use crate::wire::{FILES, LAUNCHER_FOLDER, OUT, PACKET_FOLDER};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Which folder below /in a file is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// The packet's.
    Packet,
    /// The launcher's.
    Launcher,
}

impl Folder {
    /// Its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Packet => PACKET_FOLDER,
            Self::Launcher => LAUNCHER_FOLDER,
        }
    }
}

/// Why a file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// A link, a directory, a device or a pipe.
    #[error("it is no regular file, or a link leads to it")]
    Irregular,
    /// It has more bytes than it may.
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    /// The path is not one below its folder.
    #[error("its path is refused: {0}")]
    Path(path::PathError),
    /// A name that is no report's.
    #[error("no report is called that")]
    Name,
    /// Something else that the kernel says.
    #[error("errno {0}")]
    Errno(i32),
}

/// Files, as the system gives them. What is a path below a folder was checked before.
pub trait Files {
    /// Gives all bytes of a regular file in pieces, without following a link. Ends with an
    /// error as soon as there are more than `most`.
    fn read(
        &mut self,
        folder: Folder,
        path: &str,
        most: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, FileError>;

    /// Makes a new file in /out and waits until it is on its device.
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError>;

    /// Gives a file in /out that was written.
    fn read_back(&mut self, name: &str) -> Result<Vec<u8>, FileError>;
}

/// The one way to a file.
#[derive(Debug)]
pub struct Guard<F> {
    files: F,
    log: Vec<Action>,
}

impl<F: Files> Guard<F> {
    /// A guard before these files, whose log is empty.
    pub fn new(files: F) -> Self {
        Self {
            files,
            log: Vec::new(),
        }
    }

    /// Reads a file below /in.
    pub fn read_packet_item(
        &mut self,
        folder: Folder,
        path: &str,
        most: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, FileError> {
        path::check(path).map_err(FileError::Path)?;
        let read = self.files.read(folder, path, most, each);
        let shown = path::below(folder.path(), path);
        self.note(AllowedAction::ReadPacketItem, shown, read.clone().ok());
        read
    }

    /// The same, as a whole.
    pub fn read_whole(
        &mut self,
        folder: Folder,
        path: &str,
        most: u64,
    ) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        self.read_packet_item(folder, path, most, &mut |piece| {
            bytes.extend_from_slice(piece)
        })?;
        Ok(bytes)
    }

    /// Says in the log that all reports are written; they are the last that is done.
    pub fn announce_reports(&mut self) {
        for name in FILES {
            self.note(
                AllowedAction::WriteLocalReport,
                format!("{OUT}/{name}"),
                None,
            );
        }
    }

    /// Writes a report that was announced.
    pub fn write_local_report(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        match FILES.contains(&name) {
            true => self.files.write(name, bytes),
            false => Err(FileError::Name),
        }
    }

    /// Gives a report as it is in /out.
    pub fn read_back(&mut self, name: &str) -> Result<Vec<u8>, FileError> {
        match FILES.contains(&name) {
            true => self.files.read_back(name),
            false => Err(FileError::Name),
        }
    }

    /// Everything that was done.
    pub fn log(&self) -> &[Action] {
        &self.log
    }

    fn note(&mut self, action: AllowedAction, path: String, bytes: Option<u64>) {
        self.log.push(Action {
            number: self.log.len() as u64 + 1,
            action,
            path,
            bytes,
        });
    }
}

/// The packet's own file.
pub fn packet_file<F: Files>(guard: &mut Guard<F>) -> Result<Vec<u8>, FileError> {
    guard.read_whole(Folder::Packet, packet::FILE, packet::MAX_BYTES as u64 + 1)
}

/// A file of the launcher's, if there is one.
pub fn launcher_file<F: Files>(
    guard: &mut Guard<F>,
    name: &str,
) -> Result<Option<Vec<u8>>, FileError> {
    const MOST: u64 = 1 << 20;
    match guard.read_whole(Folder::Launcher, name, MOST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FileError::Missing) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Files in memory, for tests of everything behind the guard.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// What is below /in: folder and path.
    pub input: Vec<(Folder, String, Vec<u8>)>,
    /// What was written to /out.
    pub output: Vec<(String, Vec<u8>)>,
}

impl Files for Memory {
    fn read(
        &mut self,
        folder: Folder,
        path: &str,
        most: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, FileError> {
        let mut files = self.input.iter();
        let found = files.find(|(other, name, _)| *other == folder && name == path);
        let (_, _, bytes) = found.ok_or(FileError::Missing)?;
        if bytes.len() as u64 > most {
            return Err(FileError::TooLong(most));
        }
        each(bytes);
        Ok(bytes.len() as u64)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.output.push((name.to_owned(), bytes.to_vec()));
        Ok(())
    }

    fn read_back(&mut self, name: &str) -> Result<Vec<u8>, FileError> {
        let found = self.output.iter().find(|(other, _)| other == name);
        found
            .map(|(_, bytes)| bytes.clone())
            .ok_or(FileError::Missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard<Memory> {
        let file = (Folder::Packet, "docs/a".to_owned(), b"abc".to_vec());
        Guard::new(Memory {
            input: alloc::vec![file],
            output: Vec::new(),
        })
    }

    #[test]
    fn what_is_read_and_what_is_missing_stand_in_the_log() {
        let mut guard = guard();
        assert_eq!(
            guard.read_whole(Folder::Packet, "docs/a", 3).unwrap(),
            b"abc"
        );
        let missing = guard.read_whole(Folder::Launcher, "docs/a", 3);
        assert_eq!(missing, Err(FileError::Missing));
        let log: Vec<(u64, &str, Option<u64>)> = guard
            .log()
            .iter()
            .map(|action| (action.number, action.path.as_str(), action.bytes))
            .collect();
        assert_eq!(
            log,
            [
                (1, "/in/packet/docs/a", Some(3)),
                (2, "/in/launcher/docs/a", None)
            ]
        );
    }

    #[test]
    fn nothing_beside_the_packet_can_be_named() {
        let mut guard = guard();
        for path in ["../x", "/etc/shadow", "docs/../../x", ""] {
            let refused = guard.read_whole(Folder::Packet, path, 9);
            assert!(matches!(refused, Err(FileError::Path(_))), "{path}");
        }
        for name in ["x", "../out", "inspection.json/.."] {
            assert_eq!(guard.write_local_report(name, b""), Err(FileError::Name));
            assert_eq!(guard.read_back(name), Err(FileError::Name));
        }
        assert!(guard.log().is_empty());
    }

    #[test]
    fn a_file_that_is_too_long_is_cut_off() {
        let read = guard().read_whole(Folder::Packet, "docs/a", 2);
        assert_eq!(read, Err(FileError::TooLong(2)));
    }
}
