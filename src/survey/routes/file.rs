//! A directory: a probe file is written, read back and removed.

use super::kinds::{Ability, FileRoute};
use super::result::Finding;
use crate::deadline::{Deadline, Stopped};
use crate::files::read_bounded;
use crate::random::random_hex;
use rustix::fs::{Access, access};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;

/// The most bytes that are read back.
const MOST: u64 = 4096;

/// Probes the directory; writes only if that is permitted. Calls to a file server
/// that is gone do not return, and cannot be given a deadline: they are made in a
/// thread that is left behind when the time is up. It ends with the tool.
pub fn probe(
    route: &FileRoute,
    mut finding: Finding,
    permitted: bool,
    deadline: &Deadline,
) -> Finding {
    let random = match random_hex::<16>() {
        Ok(random) => random,
        Err(error) => return finding.denied(Ability::Documents, "nothing", error.to_string()),
    };
    let path = route.folder.join(format!(".tki-attest-survey-{random}"));
    let (answer, answered) = channel();
    let (asked, file, unanswered) = (route.folder.clone(), path.clone(), finding.clone());
    let thread = Builder::new().spawn(move || {
        let finding = ask(&asked, unanswered, permitted, &file, &random);
        // Nobody waits any more if the time was up.
        let _ = answer.send(finding);
    });
    let heard = thread.map_err(Unanswered::from);
    let why = match heard.and_then(|_| wait(&answered, deadline)) {
        Ok(finding) => return finding,
        Err(why) => why.to_string(),
    };
    let call = format!("stat, access(W_OK) {}", route.folder.display());
    finding.call(call, why.as_str());
    if permitted {
        finding.left = Some(format!("{}, if it was made", path.display()));
    }
    finding.denied(Ability::Documents, "the directory does not answer", why)
}

/// Why a directory gave no answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    /// No thread could be started to ask.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// The time was up.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The thread that asked is gone.
    #[error("the probe panicked")]
    Panicked,
}

fn wait(answered: &Receiver<Finding>, deadline: &Deadline) -> Result<Finding, Unanswered> {
    loop {
        match answered.recv_timeout(deadline.tick()?) {
            Ok(finding) => return Ok(finding),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Unanswered::Panicked),
        }
    }
}

/// Every call, one after the other.
fn ask(folder: &Path, mut finding: Finding, permitted: bool, path: &Path, random: &str) -> Finding {
    let looked = look(folder);
    finding.call(
        format!("stat, access(W_OK) {}", folder.display()),
        match &looked {
            Ok(()) => "a directory, writable by its permissions".to_owned(),
            Err(error) => error.to_string(),
        },
    );
    if !permitted {
        return match looked {
            Ok(()) => finding.not_permitted("writing a file"),
            Err(error) => finding.denied(
                Ability::Documents,
                "cannot write documents there",
                error.to_string(),
            ),
        };
    }
    let call = format!("write, read back and remove a file in {}", folder.display());
    match write_and_remove(path, random) {
        Ok(bytes) => {
            let said = format!("SUCCESS: {bytes} bytes written, read back, removed");
            finding.call(call, said);
            let proves = "documents can be written there; nothing executes or registers them";
            finding.works(Ability::Documents, proves)
        }
        Err(error) => {
            finding.call(call, error.to_string());
            if path.symlink_metadata().is_ok() {
                finding.left = Some(path.display().to_string());
            }
            finding.denied(
                Ability::Documents,
                "cannot write documents there",
                error.to_string(),
            )
        }
    }
}

fn look(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(io::Error::other("not a directory"));
    }
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

fn write_and_remove(path: &Path, random: &str) -> io::Result<usize> {
    let text = format!("tki-attest survey probe {random}; it may be removed\n");
    // A name that nobody can have prepared, and never through a link.
    let mut file = File::options().write(true).create_new(true).open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| read_bounded(path, MOST));
    // It goes, whatever came of it.
    let removed = fs::remove_file(path);
    if written? != text.as_bytes() {
        return Err(io::Error::other("what was read back differs"));
    }
    removed?;
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(text.len()),
        _ => Err(io::Error::other("the probe file is still there")),
    }
}
