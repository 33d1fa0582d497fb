//! The files beside the evidence. Paths come from the evidence and are hostile:
//! only plain names one level down are opened, and never through a symlink.
//! Each file is read once: what was hashed is what is used afterwards.

use crate::files::read_at_most;
use rustix::fs::{Mode, OFlags, openat};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::{Artifact, Evidence};
use tki_evidence::stamp::sha256_hex;

/// The largest artifact that is read.
const MAX_ARTIFACT: u64 = 16 * 1024 * 1024;

/// The most bytes of all artifacts together.
const MAX_TOTAL: usize = 64 * 1024 * 1024;

/// The most artifacts.
const MAX_COUNT: usize = 256;

/// Where artifacts are.
#[derive(Clone, Debug)]
pub enum Source {
    /// Below this directory.
    Folder(PathBuf),
    /// In memory, by path.
    Memory(BTreeMap<String, Vec<u8>>),
}

/// Artifacts that were found good, by path.
pub type Loaded = BTreeMap<String, Vec<u8>>;

/// What the artifacts come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// All there and all as the evidence says.
    Good(Loaded),
    /// None of them is there.
    Absent,
    /// One of them is not as the evidence says.
    Bad(String),
}

/// Checks every artifact of the evidence against the files that are there.
pub fn check(evidence: &Evidence, source: &Source) -> Checked {
    match load(evidence, source) {
        Ok(loaded) if loaded.is_empty() => Checked::Absent,
        Ok(loaded) => Checked::Good(loaded),
        Err(why) => Checked::Bad(why),
    }
}

fn load(evidence: &Evidence, source: &Source) -> Result<Loaded, String> {
    let listed = &evidence.artifacts;
    if listed.is_empty() {
        return Err("the evidence lists no artifacts".into());
    }
    if listed.len() > MAX_COUNT {
        return Err(format!(
            "{} artifacts; at most {MAX_COUNT} are read",
            listed.len()
        ));
    }
    let mut reader = Reader::new(source);
    let (mut loaded, mut missing, mut total) = (Loaded::new(), None, 0);
    for artifact in listed {
        let path = &artifact.path;
        match reader.read(path).map_err(|why| format!("{path}: {why}"))? {
            None => missing = missing.or(Some(path)),
            Some(bytes) => {
                compare(evidence, artifact, &bytes).map_err(|why| format!("{path}: {why}"))?;
                total += bytes.len();
                if total > MAX_TOTAL {
                    return Err(format!("more than {MAX_TOTAL} bytes altogether"));
                }
                if loaded.insert(path.clone(), bytes).is_some() {
                    return Err(format!("{path} is listed twice"));
                }
            }
        }
    }
    for path in named(evidence) {
        if listed
            .iter()
            .filter(|artifact| artifact.path == *path)
            .count()
            != 1
        {
            return Err(format!("{path} is not among the artifacts"));
        }
    }
    match missing {
        // All or none: what was left out on purpose is not to be guessed.
        Some(path) if !loaded.is_empty() => Err(format!("{path} is missing")),
        _ => Ok(loaded),
    }
}

/// Artifacts that probes and controls point to.
fn named(evidence: &Evidence) -> impl Iterator<Item = &String> {
    let probes = evidence.probes.iter().map(|probe| &probe.artifact_path);
    let controls = evidence
        .controls
        .iter()
        .map(|control| &control.artifact_path);
    let mut paths: Vec<&String> = probes.chain(controls).collect();
    paths.dedup();
    paths.into_iter()
}

/// Reads artifacts; directories that were opened stay open.
struct Reader<'a> {
    source: &'a Source,
    base: Option<OwnedFd>,
    below: Option<(String, OwnedFd)>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source) -> Self {
        Self {
            source,
            base: None,
            below: None,
        }
    }

    /// The bytes of an artifact, `None` if there is no such file.
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let plain = |name: &str| {
            !name.is_empty()
                && !name.starts_with('.')
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let (directory, name) = path
            .split_once('/')
            .filter(|(directory, name)| plain(directory) && plain(name))
            .ok_or("not a plain path one level down")?;
        match self.source {
            Source::Memory(files) => Ok(files.get(path).cloned()),
            Source::Folder(folder) => self.read_file(folder, directory, name),
        }
    }

    fn read_file(
        &mut self,
        folder: &Path,
        directory: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, String> {
        let base = match self.base.take() {
            Some(base) => base,
            None => File::open(folder)
                .map_err(|error| error.to_string())?
                .into(),
        };
        let base = self.base.insert(base);
        let below = match self.below.take() {
            Some((known, below)) if known == directory => below,
            _ => match open(base, directory, OFlags::DIRECTORY)? {
                Some(below) => below,
                None => return Ok(None),
            },
        };
        let (_, below) = self.below.insert((directory.to_owned(), below));
        let Some(file) = open(below, name, OFlags::empty())? else {
            return Ok(None);
        };
        let file = File::from(file);
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err("not a regular file".into());
        }
        read_at_most(&file, metadata.len(), MAX_ARTIFACT)
            .map(Some)
            .map_err(|error| error.to_string())
    }
}

/// Opens for reading, never through a link and without waiting; `None` if
/// there is nothing of that name.
fn open(at: &OwnedFd, name: &str, flags: OFlags) -> Result<Option<OwnedFd>, String> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match openat(at, name, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Compares one artifact with what the evidence says of it.
pub fn compare(evidence: &Evidence, artifact: &Artifact, bytes: &[u8]) -> Result<(), String> {
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
