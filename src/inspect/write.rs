//! A report on disk: a directory that is there whole or not at all.

use crate::files::{self, Folder, Stage};
use crate::inspect::error::InspectError;
use crate::inspect::stamp::{self, Stamp};
use std::io;
use std::path::PathBuf;

/// How many names are tried.
const NAMES: u32 = 10_000;

/// Writes the inspector's files and the stamp into a new directory below this one: that of the
/// packet's name, or the first of it with a number that is free. Gives its path.
pub fn write(
    out: &Folder,
    packet: &str,
    reports: &[(&'static str, Vec<u8>)],
    stamp: &Stamp,
) -> Result<PathBuf, InspectError> {
    let failed = |error| InspectError::Unwritable {
        folder: out.path().to_owned(),
        error,
    };
    let mut bytes = serde_json::to_vec_pretty(stamp).map_err(InspectError::Json)?;
    bytes.push(b'\n');
    let staging = Stage::new(out, ".tki-attest-").map_err(failed)?;
    stage(staging.folder(), reports, &bytes).map_err(failed)?;
    for number in 1..NAMES {
        let name = match number {
            1 => format!("inspection-{packet}"),
            number => format!("inspection-{packet}-{number}"),
        };
        match staging.folder().rename_new(ROOM, out, &name) {
            Ok(()) => {
                let _ = out.sync();
                return Ok(out.path().join(name));
            }
            Err(error) if is_taken(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(InspectError::Full(out.path().to_owned()))
}

/// What the directory is called until it is whole.
const ROOM: &str = "report";

/// Everything in a directory of its own, on its device.
fn stage(staging: &Folder, reports: &[(&'static str, Vec<u8>)], stamp: &[u8]) -> io::Result<()> {
    let room = staging.make(ROOM)?;
    let mut written = Vec::new();
    for (name, bytes) in reports {
        written.push(room.write(name, bytes, files::READABLE)?);
    }
    written.push(room.write(stamp::FILE, stamp, files::READABLE)?);
    files::sync_all(&written)?;
    room.set_mode(files::OPEN)?;
    room.sync()
}

/// There is something of that name. A file system that cannot rename without replacing says so of
/// a directory that is not empty, or of what is no directory.
fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    [AlreadyExists, DirectoryNotEmpty, NotADirectory].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::stamp::{Accepted, Before, Engine, Packet};
    use std::fs;
    use tki_evidence::evidence::Tool;
    use tki_evidence::verification::{Assurance, Decision};

    fn stamp() -> Stamp {
        let text = String::new;
        Stamp {
            schema: stamp::SCHEMA,
            sandbox: Accepted::NotAccepted,
            accepted: false,
            dev: true,
            venue: "dev".into(),
            tool: Tool {
                name: text(),
                version: text(),
                sha256: text(),
            },
            engine: Engine {
                name: text(),
                version: text(),
                runtime: text(),
                at: text(),
            },
            image_digest: text(),
            evidence: Before {
                name: text(),
                sha256: text(),
                run_id: text(),
                decision: Decision::B4PrimeBlocked,
                assurance: Assurance::SelfReported,
            },
            started: text(),
            finished: text(),
            selfcheck_us: 0,
            judged_us: 0,
            packet: Packet {
                id: text(),
                sha256: text(),
            },
            status: 10,
            reports: Vec::new(),
        }
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_is_left_half() {
        let folder = tempfile::tempdir().unwrap();
        let out = Folder::open(folder.path()).unwrap();
        fs::write(folder.path().join("inspection-p-2"), "somebody's").unwrap();
        let reports = [("inspection.json", b"{}\n".to_vec())];
        let mut paths = Vec::new();
        for _ in 0..3 {
            paths.push(write(&out, "p", &reports, &stamp()).unwrap());
        }
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["inspection-p", "inspection-p-3", "inspection-p-4"]);
        let text = fs::read_to_string(paths[0].join(stamp::FILE)).unwrap();
        // It says first what nobody may overlook.
        let second = text.lines().nth(2).unwrap();
        assert_eq!(second.trim(), r#""sandbox": "NOT_ACCEPTED","#);
        assert_eq!(fs::read(paths[2].join("inspection.json")).unwrap(), b"{}\n");
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        left.retain(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with('.')
        });
        assert!(left.is_empty(), "{left:?}");
    }
}
