//! A packet on disk: the text, and beside it the files that it names.

use crate::files::{self, Folder, is_regular};
use crate::packet::error::PacketError;
use crate::packet::{Audience, Facts, Packet, Why, ci, kubernetes, operator};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// A packet that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// Where the text is.
    pub packet: PathBuf,
    /// Where its files are.
    pub files: Option<PathBuf>,
    /// The packet's id.
    pub id: String,
    /// Of the image's manifest.
    pub image_digest: String,
    /// Of the seccomp profile.
    pub seccomp_sha256: String,
    /// Of this tool.
    pub tool_sha256: String,
}

/// Where the files of a packet are: `packet.md` has `packet.files/`.
pub fn folder_of(out: &Path) -> PathBuf {
    let mut name = out.file_stem().map_or(OsString::new(), OsString::from);
    name.push(".files");
    out.with_file_name(name)
}

/// What a packet would take the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// It is replaced, with its files.
    EarlierPacket,
    /// It stays: a project's own pipeline, for example.
    SomethingElse,
}

/// What is there. Only a regular file can be a packet, and nothing else is opened.
fn look(place: &Folder, name: &OsStr) -> io::Result<Found> {
    const MOST: u64 = 16 << 20;
    if place.look(name)?.is_some_and(|found| !is_regular(&found)) {
        return Ok(Found::SomethingElse);
    }
    let Some(bytes) = place.read(name, MOST)? else {
        return Ok(Found::Nothing);
    };
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]);
    let heads = ["Packet packet-", "Packet `packet-"];
    match heads.iter().any(|head| start.contains(head)) {
        true => Ok(Found::EarlierPacket),
        false => Ok(Found::SomethingElse),
    }
}

/// Puts the files of a packet into a directory of their own. One that is there must be
/// this user's, and files in it are replaced only along with the packet that names them.
fn write_files(place: &Folder, name: &OsStr, packet: &Packet, found: Found) -> io::Result<()> {
    let folder = match place.look(name)? {
        None => {
            let made = place.make(name)?;
            made.set_mode(files::OPEN)?;
            made
        }
        Some(there) if there.st_uid != rustix::process::geteuid().as_raw() => {
            let why = format!("it is there, and belongs to user {}", there.st_uid);
            return Err(io::Error::other(why));
        }
        Some(_) => place.enter(name)?,
    };
    for (name, bytes) in &packet.files {
        let old = folder.read(name, bytes.len() as u64);
        let may_be_written = match &old {
            Ok(None) => true,
            Ok(Some(old)) if old == bytes => true,
            _ => found == Found::EarlierPacket,
        };
        if !may_be_written {
            let why = format!("it holds another {name}, and there is no earlier packet");
            return Err(io::Error::other(why));
        }
    }
    for (name, bytes) in &packet.files {
        files::replace_in(&folder, name.as_ref(), bytes)?;
    }
    Ok(())
}

/// Makes and writes a packet.
pub fn write(
    audience: Audience,
    facts: &Facts,
    why: Option<&Why>,
    out: &Path,
) -> Result<Written, PacketError> {
    let failed = |path: &Path, error| PacketError::Unwritable {
        path: path.to_owned(),
        error,
    };
    // The name stands in command lines and in manifests.
    let plain = |c: char| c.is_alphanumeric() || "._-+ ".contains(c);
    let name = out.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| name.chars().all(plain)) else {
        let path = out.to_owned();
        return Err(PacketError::NotPlain { path });
    };
    let place = Folder::open(files::folder_of(out)).map_err(|error| failed(out, error))?;
    let found = look(&place, name.as_ref()).map_err(|error| failed(out, error))?;
    if found == Found::SomethingElse {
        let path = out.to_owned();
        return Err(PacketError::Exists { path });
    }
    let folder = folder_of(out);
    let shown = folder.file_name().unwrap_or_default().to_string_lossy();
    let packet = match audience {
        Audience::Operator => operator::packet(facts, why, &shown)?,
        Audience::GithubActions => ci::packet(ci::GITHUB, facts, &shown)?,
        Audience::GitlabCi => ci::packet(ci::GITLAB, facts, &shown)?,
        Audience::Kubernetes => kubernetes::packet(facts, &shown)?,
    };
    let has_files = !packet.files.is_empty();
    if has_files {
        let name = folder.file_name().unwrap_or_default();
        write_files(&place, name, &packet, found).map_err(|error| failed(&folder, error))?;
    }
    // The text last: where it is, everything is.
    files::replace_in(&place, name.as_ref(), packet.text.as_bytes())
        .map_err(|error| failed(out, error))?;
    Ok(Written {
        packet: out.to_owned(),
        files: has_files.then_some(folder),
        id: facts.id.clone(),
        image_digest: facts.image.manifest_digest.clone(),
        seccomp_sha256: facts.profile.seccomp.sha256.clone(),
        tool_sha256: facts.tool.sha256.clone(),
    })
}
