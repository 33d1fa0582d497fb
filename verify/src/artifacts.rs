//! The files beside the evidence. Paths come from the evidence and are hostile:
//! only plain names one level down are looked for.
//! Each file is read once: what was hashed is what is used afterwards.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::evidence::{Artifact, Evidence};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::venue;

/// The most bytes of all artifacts together.
const MAX_TOTAL: usize = 64 * 1024 * 1024;

/// The most artifacts.
const MAX_COUNT: usize = 256;

/// Where artifacts are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// Below this directory.
    #[cfg(feature = "std")]
    Folder(std::path::PathBuf),
    /// In memory, by path.
    Memory(BTreeMap<String, Vec<u8>>),
}

/// Why artifacts are not as the evidence says.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactsError {
    /// A run always has some.
    #[error("the evidence lists no artifacts")]
    NoneListed,
    /// More are listed than are read.
    #[error("{0} artifacts; at most {MAX_COUNT} are read")]
    TooMany(usize),
    /// Together they are larger than what is read.
    #[error("more than {MAX_TOTAL} bytes altogether")]
    TooLarge,
    /// One is not there, and others are.
    #[error("{0} is missing")]
    Missing(String),
    /// One is listed that lies in another directory than the run's.
    #[error("{0} is not in the run's directory")]
    Elsewhere(String),
    /// One that a run writes is not listed.
    #[error("{folder}/{name} is not among the artifacts")]
    Unlisted {
        /// The run's directory.
        folder: String,
        /// The file's name.
        name: String,
    },
    /// One is listed that no run writes.
    #[error("{folder}/{name} is a file that no run writes")]
    Unknown {
        /// The run's directory.
        folder: String,
        /// The file's name.
        name: String,
    },
    /// The list has one twice, or another order.
    #[error("one is listed twice, or they are not in order")]
    Order,
    /// A probe or a control names another file than its own.
    #[error("{0} is not among the artifacts that it should name")]
    Misnamed(String),
    /// One is not as the evidence says.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// How it differs.
        source: ArtifactError,
    },
}

/// Why one artifact is not as the evidence says.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// Its path could lead anywhere.
    #[error("not a plain path one level down")]
    Path,
    /// It has another length.
    #[error("{found} bytes, not {listed}")]
    Length {
        /// Its length.
        found: usize,
        /// The length that the evidence gives.
        listed: u64,
    },
    /// It has another digest.
    #[error("its SHA-256 is {0}")]
    Digest(String),
    /// It does not repeat what the evidence says.
    #[error("it says something else than the evidence")]
    Content,
    /// It is a directory, a device, a pipe.
    #[cfg(feature = "std")]
    #[error("not a regular file")]
    Irregular,
    /// It cannot be read.
    #[cfg(feature = "std")]
    #[error(transparent)]
    Unreadable(#[from] std::io::Error),
}

impl ArtifactError {
    /// The same, of the artifact at this path.
    fn of(self, path: &str) -> ArtifactsError {
        ArtifactsError::File {
            path: path.to_owned(),
            source: self,
        }
    }
}

/// Reads artifacts one after the other.
enum Reader<'a> {
    #[cfg(feature = "std")]
    Folder(crate::folder::Reader<'a>),
    Memory(&'a BTreeMap<String, Vec<u8>>),
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source) -> Self {
        match source {
            #[cfg(feature = "std")]
            Source::Folder(folder) => Self::Folder(crate::folder::Reader::new(folder)),
            Source::Memory(files) => Self::Memory(files),
        }
    }

    /// The bytes of an artifact, `None` if there is no such file.
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, ArtifactError> {
        match self {
            #[cfg(feature = "std")]
            Self::Folder(reader) => {
                let (directory, name) = split(path)?;
                reader.read(directory, name)
            }
            Self::Memory(files) => {
                split(path)?;
                Ok(files.get(path).cloned())
            }
        }
    }
}

/// Artifacts that were found good, by path.
pub type Loaded = BTreeMap<String, Vec<u8>>;

/// What the artifacts come to.
#[derive(Debug)]
pub enum Checked {
    /// All there and all as the evidence says.
    Good(Loaded),
    /// None of them is there.
    Absent,
    /// One of them is not as the evidence says.
    Bad(ArtifactsError),
}

/// Checks every artifact of the evidence against the files that are there.
pub fn check(evidence: &Evidence, source: &Source) -> Checked {
    match load(evidence, source) {
        Ok(loaded) if loaded.is_empty() => Checked::Absent,
        Ok(loaded) => Checked::Good(loaded),
        Err(why) => Checked::Bad(why),
    }
}

fn load(evidence: &Evidence, source: &Source) -> Result<Loaded, ArtifactsError> {
    let listed = &evidence.artifacts;
    if listed.is_empty() {
        return Err(ArtifactsError::NoneListed);
    }
    if listed.len() > MAX_COUNT {
        return Err(ArtifactsError::TooMany(listed.len()));
    }
    exact(evidence)?;
    let mut reader = Reader::new(source);
    let (mut loaded, mut missing, mut total) = (Loaded::new(), None, 0);
    for artifact in listed {
        let path = &artifact.path;
        match reader.read(path).map_err(|error| error.of(path))? {
            None => missing = missing.or(Some(path)),
            Some(bytes) => {
                compare(evidence, artifact, &bytes).map_err(|error| error.of(path))?;
                total += bytes.len();
                if total > MAX_TOTAL {
                    return Err(ArtifactsError::TooLarge);
                }
                loaded.insert(path.clone(), bytes);
            }
        }
    }
    match missing {
        // All or none: what was left out on purpose is not to be guessed.
        Some(path) if !loaded.is_empty() => Err(ArtifactsError::Missing(path.clone())),
        _ => Ok(loaded),
    }
}

/// The list is exactly that of the files which a run writes for such evidence: each
/// once, in one directory, in order.
fn exact(evidence: &Evidence) -> Result<(), ArtifactsError> {
    let mut folder = None;
    let mut found = Vec::with_capacity(evidence.artifacts.len());
    for Artifact { path, .. } in &evidence.artifacts {
        let (own, name) = split(path).map_err(|error| error.of(path))?;
        if !is_folder(own, evidence) || *folder.get_or_insert(own) != own {
            return Err(ArtifactsError::Elsewhere(path.clone()));
        }
        found.push(name);
    }
    let folder = folder.unwrap_or_default();
    let wanted = names(evidence, &found);
    let known: BTreeSet<&str> = found.iter().copied().collect();
    if let Some(name) = wanted.iter().find(|name| !known.contains(name.as_str())) {
        let (folder, name) = (folder.to_owned(), name.clone());
        return Err(ArtifactsError::Unlisted { folder, name });
    }
    if let Some(name) = found.iter().find(|name| !wanted.contains(**name)) {
        let (folder, name) = (folder.to_owned(), (*name).to_owned());
        return Err(ArtifactsError::Unknown { folder, name });
    }
    if !found.iter().copied().eq(wanted.iter().map(String::as_str)) {
        return Err(ArtifactsError::Order);
    }
    let probes = evidence.probes.iter();
    let probes = probes.map(|probe| (&probe.artifact_path, TRANSCRIPT.to_owned()));
    let controls = evidence.controls.iter();
    let controls = controls.map(|c| (&c.artifact_path, conversation_of(&c.control)));
    for (path, name) in probes.chain(controls) {
        if path.strip_prefix(folder) != Some(&format!("/{name}")) {
            return Err(ArtifactsError::Misnamed(path.clone()));
        }
    }
    Ok(())
}

/// The run's conversation.
pub const TRANSCRIPT: &str = "transcript.ndjson";

/// What the run's neighbour said.
pub const NEIGHBOUR: &str = "neighbour.ndjson";

/// What the file with a control's conversation is called.
fn conversation_of(control: &str) -> String {
    format!("control-{control}.ndjson")
}

/// The files that a run writes for such evidence. What others signed about the venue
/// comes along if it was given, and never if there is said to be none.
fn names(evidence: &Evidence, found: &[&str]) -> BTreeSet<String> {
    let always = [
        "container.json",
        "env_keyset.txt",
        "mountinfo.txt",
        "proc_net_dev.txt",
        "proc_self_status.txt",
        "proc_self_status_locked.txt",
        "seccomp.json",
        TRANSCRIPT,
    ];
    let proofs = venue::proofs(&evidence.venue_facts);
    let proofs = proofs.into_iter();
    let proofs = proofs.filter(|(_, name, said)| *said != "absent" && found.contains(name));
    let controls = evidence.controls.iter();
    let neighbour = !evidence.raw.neighbour_namespaces.is_empty();
    always
        .map(str::to_owned)
        .into_iter()
        .chain(proofs.map(|(_, name, _)| name.to_owned()))
        .chain(controls.map(|control| conversation_of(&control.control)))
        .chain(neighbour.then(|| NEIGHBOUR.to_owned()))
        .collect()
}

/// The directory is called as a run of this venue and day calls it.
fn is_folder(folder: &str, evidence: &Evidence) -> bool {
    let day = evidence.started.get(..10).unwrap_or_default();
    let stem = format!("sandbox-attestation-evidence-{}-{day}", evidence.venue);
    let is_number =
        |text: &str| (1..6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    match folder.strip_prefix(&stem) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('-').is_some_and(is_number),
        None => false,
    }
}

/// A plain name one level down, in its two parts.
fn split(path: &str) -> Result<(&str, &str), ArtifactError> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let parts = path.split_once('/');
    let parts = parts.filter(|(directory, name)| plain(directory) && plain(name));
    parts.ok_or(ArtifactError::Path)
}

/// Compares one artifact with what the evidence says of it.
pub fn compare(
    evidence: &Evidence,
    artifact: &Artifact,
    bytes: &[u8],
) -> Result<(), ArtifactError> {
    let (found, listed) = (bytes.len(), artifact.bytes);
    if found as u64 != listed {
        return Err(ArtifactError::Length { found, listed });
    }
    let digest = sha256_hex(bytes);
    if digest != artifact.sha256 {
        return Err(ArtifactError::Digest(digest));
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
        name => {
            let mut proofs = venue::proofs(&evidence.venue_facts).into_iter();
            let proof = proofs.find(|(_, proof, _)| *proof == name);
            proof.is_none_or(|(_, _, said)| said.strip_prefix("sha256:") == Some(&digest))
        }
    };
    if same {
        Ok(())
    } else {
        Err(ArtifactError::Content)
    }
}
