//! Contexts of Docker's client: which one is in use, and where its engine is.
//!
//! They say which engine gets orders as root and whose answers become evidence. What is
//! chosen and cannot be read is therefore an error, and never the usual socket in its place.

use crate::engine::api::tls::{Files, not_ours};
use crate::engine::error::EngineError;
use crate::files::{is_trusted, read_owned};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tki_evidence::stamp::sha256_hex;
use tki_text::printable;

/// The most bytes of a file, and of a name.
const MOST_BYTES: u64 = 1 << 20;
const MOST_NAME: usize = 256;

/// The name of the context that is none: the usual socket.
const DEFAULT: &str = "default";

/// A context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerContext {
    /// Its name.
    pub name: String,
    /// Its engine's address.
    pub host: String,
    /// Its certificates.
    pub tls: Files,
}

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "currentContext", default)]
    current: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Meta {
    name: String,
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<Engine>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Engine {
    #[serde(default)]
    host: String,
    #[serde(rename = "SkipTLSVerify", default)]
    skip_tls_verify: bool,
}

/// The directory of Docker's client: `DOCKER_CONFIG`, or `.docker` in the user's home.
pub fn config_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    variable("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".docker")))
}

/// The context that is in use: the one that is `wanted`, or the configuration's. `None` if
/// neither names one.
pub fn chosen(folder: &Path, wanted: Option<&str>) -> Result<Option<DockerContext>, EngineError> {
    let name = match wanted {
        Some(name) => Some(name.to_owned()),
        None => current(folder)?,
    };
    match name.as_deref() {
        None | Some("" | DEFAULT) => Ok(None),
        Some(name) => read(folder, name).map(Some),
    }
}

/// The name of the context that the configuration says is in use.
fn current(folder: &Path) -> Result<Option<String>, EngineError> {
    let path = folder.join("config.json");
    let (bytes, owner) = match read_owned(&path, MOST_BYTES) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        // A directory that this user may not even look into is another user's, and so is
        // the choice in it: `HOME` stays root's where only the user id was changed.
        Err(_) if is_closed(&path) => return Ok(None),
        other => other.map_err(|error| unusable("", &path, &error.to_string()))?,
    };
    let config: Config = object(&bytes)
        .map_err(|error| unusable("", &path, &format!("not its configuration: {error}")))?;
    match config.current.as_deref() {
        None | Some("" | DEFAULT) => Ok(None),
        Some(name) => {
            must_be_ours(name, &path, owner)?;
            Ok(config.current)
        }
    }
}

/// Whether this user may not search the directory that a file is in.
fn is_closed(path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path);
    found.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// A context by its name.
fn read(folder: &Path, name: &str) -> Result<DockerContext, EngineError> {
    let id = sha256_hex(name.as_bytes());
    let path = folder.join("contexts/meta").join(&id).join("meta.json");
    if name.len() > MOST_NAME {
        return Err(unusable(name, &path, "its name is too long"));
    }
    let (bytes, owner) =
        read_owned(&path, MOST_BYTES).map_err(|error| unusable(name, &path, &error.to_string()))?;
    must_be_ours(name, &path, owner)?;
    let meta: Meta = object(&bytes)
        .map_err(|error| unusable(name, &path, &format!("not a context: {error}")))?;
    if meta.name != name {
        return Err(unusable(name, &path, "it is another context's"));
    }
    let engine = meta.endpoints.docker.filter(|one| !one.host.is_empty());
    let engine = engine.ok_or_else(|| unusable(name, &path, "it has no engine's address"))?;
    if engine.skip_tls_verify {
        let why = "it has SkipTLSVerify, and the engine's certificate is always checked";
        return Err(unusable(name, &path, why));
    }
    Ok(DockerContext {
        name: name.to_owned(),
        host: engine.host,
        tls: Files {
            // Nobody has named them, and who chooses the authority chooses the engine.
            only_ours: true,
            ..Files::in_folder(&folder.join("contexts/tls").join(id).join("docker"))
        },
    })
}

/// Why a file holds no object of a form.
#[derive(Debug, thiserror::Error)]
enum NoObject {
    /// It is no JSON, or of another form.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    /// It is a list, or less.
    #[error("it is no object")]
    Other,
}

/// The object in a file; the library would take a list for one.
fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NoObject> {
    match bytes.trim_ascii_start().starts_with(b"{") {
        true => Ok(serde_json::from_slice(bytes)?),
        false => Err(NoObject::Other),
    }
}

/// Another user could choose an engine of their own for root, whose home may be theirs.
fn must_be_ours(name: &str, path: &Path, owner: u32) -> Result<(), EngineError> {
    match is_trusted(owner) {
        true => Ok(()),
        false => Err(unusable(name, path, &not_ours(owner))),
    }
}

fn unusable(name: &str, path: &Path, why: &str) -> EngineError {
    EngineError::Context {
        name: printable(name, 100),
        what: printable(&format!("{}: {why}", path.display()), 600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(folder: &Path, name: &str, text: &str) {
        let meta = folder
            .join("contexts/meta")
            .join(sha256_hex(name.as_bytes()));
        fs::create_dir_all(&meta).unwrap();
        fs::write(meta.join("meta.json"), text).unwrap();
    }

    #[test]
    fn the_context_in_use_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(chosen(folder, None), Ok(None));
        let config = |text: &str| fs::write(folder.join("config.json"), text).unwrap();
        for text in [
            "{}",
            r#"{"currentContext":""}"#,
            r#"{"currentContext":"default"}"#,
        ] {
            config(text);
            assert_eq!(chosen(folder, None), Ok(None), "{text}");
        }
        let meta = r#"{"Name":"far","Metadata":{},"Endpoints":{"docker":
            {"Host":"tcp://192.0.2.1:2376","SkipTLSVerify":false}}}"#;
        write(folder, "far", meta);
        config(r#"{"currentContext":"far","auths":{}}"#);
        let tls = folder
            .join("contexts/tls")
            .join(sha256_hex(b"far"))
            .join("docker");
        fs::create_dir_all(&tls).unwrap();
        fs::write(tls.join("ca.pem"), "x").unwrap();
        let found = chosen(folder, None).unwrap().unwrap();
        assert_eq!(found.host, "tcp://192.0.2.1:2376");
        assert_eq!(found.tls.ca, Some(tls.join("ca.pem")));
        assert_eq!(found.tls.cert, None);
        assert_eq!(chosen(folder, Some("default")), Ok(None));
        assert_eq!(chosen(folder, Some("far")), Ok(Some(found)));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_never_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let why = |wanted: Option<&str>| chosen(folder, wanted).unwrap_err().to_string();
        for text in ["", "[]", "{", r#"{"currentContext":1}"#] {
            fs::write(folder.join("config.json"), text).unwrap();
            assert!(why(None).contains("config.json"), "{text}");
        }
        fs::write(folder.join("config.json"), r#"{"currentContext":"x"}"#).unwrap();
        assert!(why(None).contains("meta.json"));
        assert!(why(Some("../../x")).contains("No such file"));
        assert!(why(Some(&"x".repeat(300))).contains("too long"));
        for (text, part) in [
            ("{", "not a context"),
            (r#"{"Name":"x"}"#, "not a context"),
            (
                r#"{"Name":"y","Endpoints":{"docker":{"Host":"unix:///x"}}}"#,
                "another context's",
            ),
            (r#"{"Name":"x","Endpoints":{}}"#, "no engine's address"),
            (
                r#"{"Name":"x","Endpoints":{"docker":{"Host":""}}}"#,
                "no engine's address",
            ),
            (
                r#"{"Name":"x","Name":"x","Endpoints":{"docker":{"Host":"unix:///x"}}}"#,
                "duplicate",
            ),
            (
                r#"{"Name":"x","Endpoints":{"docker":{"Host":"tcp://x","SkipTLSVerify":true}}}"#,
                "SkipTLSVerify",
            ),
        ] {
            write(folder, "x", text);
            let said = why(None);
            assert!(said.contains(part) && said.contains("meta.json"), "{said}");
        }
    }
}
