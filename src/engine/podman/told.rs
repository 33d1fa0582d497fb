//! What Podman tells about a container: its description, and the configuration
//! that it handed to the runtime. Both are long, and are read beside everything else.

use super::libpod;
use crate::engine::api::raw::Raw;
use crate::engine::contract::LABEL_RUN;
use crate::engine::error::EngineError;
use crate::files::read_beside;
use rustix::process::{getegid, geteuid};
use serde_json::Value;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tki_evidence::described::podman::{self, Document, Profile};
use tki_evidence::described::{Described, DescribedError, MAX_DESCRIPTION};

/// The request, as errors name it.
pub const REQUEST: &str = "GET /libpod/containers/json";

/// The most that an OCI configuration may have.
const MAX_CONFIG: u64 = 4 << 20;

/// What it told.
#[derive(Debug)]
pub struct Told {
    /// What that says.
    pub described: Described,
    /// The process that watches over the container.
    pub monitor: i64,
    /// All of it as it was told, laid out to be read.
    pub verbatim: String,
}

/// Asks, and reads the answer where nobody waits for it.
pub async fn ask(raw: Raw, id: String, profile: Option<Profile>) -> Result<Told, EngineError> {
    let found = libpod::inspect(&raw, &id).await?;
    let host = raw.host.clone();
    let reading = tokio::task::spawn_blocking(move || read(&raw, &id, found, profile));
    reading.await.unwrap_or_else(|_| {
        Err(EngineError::Vanished {
            host,
            request: REQUEST.into(),
            reason: "its answer was dropped".into(),
        })
    })
}

fn read(
    raw: &Raw,
    id: &str,
    inspect: Value,
    profile: Option<Profile>,
) -> Result<Told, EngineError> {
    let unread = |error: DescribedError| EngineError::Vanished {
        host: raw.host.clone(),
        request: REQUEST.into(),
        reason: format!("its description of the container cannot be read: {error}"),
    };
    let parts = podman::description(&inspect).map_err(unread)?;
    let config = oci_config(&parts.oci_config_path, id)?;
    let document = Document {
        inspect,
        oci_config: serde_json::from_slice(&config).map_err(|error| unread(error.into()))?,
        profile,
    };
    let verbatim = serde_json::to_string_pretty(&document).unwrap_or_default();
    if verbatim.len() > MAX_DESCRIPTION {
        return Err(EngineError::Flood {
            host: raw.host.clone(),
            request: REQUEST.into(),
            what: format!("its description has more than {MAX_DESCRIPTION} bytes"),
        });
    }
    Ok(Told {
        described: podman::described_by(&document, &parts).map_err(unread)?,
        monitor: parts.state.conmon_pid,
        verbatim,
    })
}

/// What Podman handed to the runtime.
fn oci_config(path: &str, id: &str) -> Result<Vec<u8>, EngineError> {
    own_config(Path::new(path), id).map_err(|error| EngineError::Unusable {
        engine: "podman",
        reason: format!("what it set cannot be read from {path}: {error}"),
        next: "run as the user that Podman's service runs as, on the same host".into(),
    })
}

/// Reads the configuration of the container with this id, and no other file: what is
/// read becomes evidence, and it was the engine who named the path. It may be on another
/// machine and mean another file, or mean this one to be shown around.
///
/// The file has to be where Podman keeps one of that container, in directories in which
/// nobody but root and this user can put anything, and has to carry a run's annotation,
/// which no container but ours has.
fn own_config(path: &Path, id: &str) -> io::Result<Vec<u8>> {
    let refused = |why: &str| io::Error::other(why.to_owned());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(refused("it is no file"));
    };
    // Where it really is: links on the way there may be anybody's.
    let folder = folder.canonicalize()?;
    if !is_config_of(&folder.join(name), id) {
        return Err(refused("this is not where Podman keeps that container's"));
    }
    if !is_ours_alone(&folder.symlink_metadata()?) {
        return Err(refused("another user can write to its directory"));
    }
    for above in folder.ancestors().skip(1) {
        let above = above.symlink_metadata()?;
        // In a sticky directory nobody can replace what is root's or ours.
        let is_sticky = is_ours(&above) && above.mode() & 0o1000 != 0;
        if !is_sticky && !is_ours_alone(&above) {
            return Err(refused("another user can write to a directory above it"));
        }
    }
    let bytes = read_beside(&folder.join(name), MAX_CONFIG)?;
    #[derive(serde::Deserialize)]
    struct Config {
        #[serde(default)]
        annotations: std::collections::BTreeMap<String, String>,
    }
    match serde_json::from_slice::<Config>(&bytes) {
        Ok(config) if config.annotations.contains_key(LABEL_RUN) => Ok(bytes),
        _ => Err(refused("it describes a container that is not of this run")),
    }
}

/// `…/DRIVER-containers/ID/userdata/config.json`.
fn is_config_of(path: &Path, id: &str) -> bool {
    let mut parts = path.iter().rev();
    let mut next = || parts.next().and_then(|part| part.to_str());
    next() == Some("config.json")
        && next() == Some("userdata")
        && next() == Some(id)
        && next().is_some_and(|folder| folder.ends_with("-containers"))
}

/// It belongs to root or to this user.
fn is_ours(found: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&found.uid())
}

/// Nobody but root and this user can write there. Many a user has a group of their own,
/// which may.
fn is_ours_alone(found: &Metadata) -> bool {
    let group = [0, getegid().as_raw()].contains(&found.gid());
    let others = if group { 0o002 } else { 0o022 };
    is_ours(found) && found.mode() & others == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    const ID: &str = "4f8d";

    /// A file where Podman would keep it, below a directory.
    fn config(below: &Path, text: &str) -> PathBuf {
        let folder = below.join("overlay-containers").join(ID).join("userdata");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("config.json");
        fs::write(&path, text).unwrap();
        path
    }

    fn refused(path: &Path) -> String {
        own_config(path, ID).unwrap_err().to_string()
    }

    const OURS: &str = r#"{"annotations":{"dev.tki.attest.run":"x"}}"#;

    #[test]
    fn a_containers_own_configuration_is_read_through_links_above() {
        let folder = tempfile::tempdir().unwrap();
        let path = config(folder.path(), OURS);
        assert_eq!(own_config(&path, ID).unwrap(), OURS.as_bytes());
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        let path = config(&link, OURS);
        assert_eq!(own_config(&path, ID).unwrap(), OURS.as_bytes());
    }

    #[test]
    fn no_other_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = config(folder.path(), r#"{"process":{"env":["SECRET=1"]}}"#);
        assert!(refused(&path).contains("not of this run"));
        for elsewhere in ["/etc/shadow", "/", "config.json", ""] {
            let why = refused(Path::new(elsewhere));
            assert!(!why.contains("root:"), "{why}");
        }
        let secret = folder.path().join("config.json");
        fs::write(&secret, OURS).unwrap();
        assert!(refused(&secret).contains("not where"));
        assert!(own_config(&path, "4f8e").is_err());
        fs::remove_file(&path).unwrap();
        symlink(&secret, &path).unwrap();
        assert!(refused(&path).contains("symbolic link"));
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert!(refused(&path).contains("not a regular file"));
    }

    #[test]
    fn what_others_can_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = config(folder.path(), OURS);
        let userdata = path.parent().unwrap();
        let open = |folder: &Path, mode| {
            fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o757, 0o1777] {
            open(userdata, mode);
            assert!(refused(&path).contains("its directory"), "{mode:o}");
        }
        open(userdata, 0o700);
        open(folder.path(), 0o757);
        assert!(refused(&path).contains("above it"));
        open(folder.path(), 0o1777);
        assert!(own_config(&path, ID).is_ok());
        if geteuid().is_root() {
            chown(userdata, Some(48_713), None).unwrap();
            assert!(refused(&path).contains("its directory"));
        }
    }
}
