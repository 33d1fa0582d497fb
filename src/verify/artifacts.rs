//! The files beside the evidence. Paths come from the evidence and are hostile:
//! only plain names one level down are opened, and never through a symlink.

use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use tki_evidence::evidence::{Artifact, Evidence};
use tki_evidence::stamp::sha256_hex;

/// The largest artifact that is read.
const MAX_ARTIFACT: u64 = 16 * 1024 * 1024;

/// What the artifacts come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// All there and all as the evidence says.
    Good(usize),
    /// None of them is there.
    Absent,
    /// One of them is not as the evidence says.
    Bad(String),
}

/// Checks every artifact of the evidence against the files below `folder`.
pub fn check(evidence: &Evidence, folder: &Path) -> Checked {
    if evidence.artifacts.is_empty() {
        return Checked::Bad("the evidence lists no artifacts".into());
    }
    let mut missing = Vec::new();
    for artifact in &evidence.artifacts {
        match read(folder, artifact) {
            Ok(None) => missing.push(artifact.path.clone()),
            Ok(Some(bytes)) => {
                if let Err(why) = compare(evidence, artifact, &bytes) {
                    return Checked::Bad(format!("{}: {why}", artifact.path));
                }
            }
            Err(why) => return Checked::Bad(format!("{}: {why}", artifact.path)),
        }
    }
    for path in named(evidence) {
        if evidence
            .artifacts
            .iter()
            .filter(|artifact| artifact.path == *path)
            .count()
            != 1
        {
            return Checked::Bad(format!("{path} is not among the artifacts"));
        }
    }
    match missing.len() {
        0 => Checked::Good(evidence.artifacts.len()),
        count if count == evidence.artifacts.len() => Checked::Absent,
        _ => Checked::Bad(format!("{} is missing", missing[0])),
    }
}

/// Artifacts that probes and controls point to.
fn named(evidence: &Evidence) -> impl Iterator<Item = &String> {
    let probes = evidence.probes.iter().map(|probe| &probe.artifact_path);
    let controls = evidence
        .controls
        .iter()
        .map(|control| &control.artifact_path);
    probes.chain(controls)
}

/// The bytes of the artifact at a path, once [`check`] has found it good.
pub fn read_checked(evidence: &Evidence, folder: &Path, path: &str) -> Option<Vec<u8>> {
    let artifact = evidence
        .artifacts
        .iter()
        .find(|artifact| artifact.path == path)?;
    read(folder, artifact).ok()?
}

/// The bytes of an artifact, `None` if there is no such file.
fn read(folder: &Path, artifact: &Artifact) -> Result<Option<Vec<u8>>, String> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let (directory, name) = artifact
        .path
        .split_once('/')
        .filter(|(directory, name)| plain(directory) && plain(name))
        .ok_or("not a plain path one level down")?;
    let open = |at: &OwnedFd, name: &str, flags: OFlags| {
        openat(
            at,
            name,
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
            Mode::empty(),
        )
    };
    let absent = |error: rustix::io::Errno| error == rustix::io::Errno::NOENT;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let base: OwnedFd = File::open(folder)
        .map_err(|error| error.to_string())?
        .into();
    let below = match open(&base, directory, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(below) => below,
        Err(error) if absent(error) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let file: File = match open(&below, name, OFlags::RDONLY) {
        Ok(file) => file.into(),
        Err(error) if absent(error) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("not a regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_ARTIFACT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(Some(bytes))
}

fn compare(evidence: &Evidence, artifact: &Artifact, bytes: &[u8]) -> Result<(), String> {
    if bytes.len() as u64 != artifact.bytes {
        return Err(format!("{} bytes, not {}", bytes.len(), artifact.bytes));
    }
    let digest = sha256_hex(bytes);
    if digest != artifact.sha256 {
        return Err(format!("its SHA-256 is {digest}"));
    }
    let name = artifact.path.rsplit('/').next().unwrap_or_default();
    let raw = &evidence.raw;
    // An artifact that repeats what the evidence says must repeat it exactly.
    let same = match name {
        "mountinfo.txt" => bytes == raw.mountinfo.as_bytes(),
        "env_keyset.txt" => bytes == raw.env_keyset.join("\n").as_bytes(),
        "proc_net_dev.txt" => bytes == raw.proc_net_dev.as_bytes(),
        "proc_self_status.txt" => bytes == raw.proc_self_status.as_bytes(),
        "proc_self_status_locked.txt" => bytes == raw.proc_self_status_locked.as_bytes(),
        "seccomp.json" => digest == evidence.seccomp_sha256,
        _ => true,
    };
    if same {
        Ok(())
    } else {
        Err("it says something else than the evidence".into())
    }
}
