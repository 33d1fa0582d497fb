//! A signed answer to a request, with all that its verifier needs.

use super::{Said, evidence_in, names_in, read_json, run, tool};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A bundle of a real run, with all that a verifier needs.
pub struct Base {
    folder: tempfile::TempDir,
    /// The evidence file.
    pub path: PathBuf,
    /// What it says.
    pub value: Value,
}

/// Keys that every test may use.
pub struct Keys(tempfile::TempDir);

impl Keys {
    /// A private key: `operator`, `second` or `stranger`.
    pub fn private(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The public half, as a line without its comment.
    pub fn public(&self, name: &str) -> String {
        let text = fs::read_to_string(self.private(name).with_extension("pub")).unwrap();
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        words.join(" ")
    }

    /// A list of signers in which `{name}` stands for a public key.
    pub fn list(&self, template: &str) -> String {
        ["operator", "second", "stranger"]
            .iter()
            .fold(template.to_owned(), |text, name| {
                text.replace(&format!("{{{name}}}"), &self.public(name))
            })
    }
}

/// Keys that every test may use, without passphrases.
pub fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let keys = Keys(tempfile::tempdir().unwrap());
        for name in ["operator", "second", "stranger"] {
            keygen(&keys.private(name), &["--no-passphrase", "--comment", name]).succeeded();
        }
        keys
    })
}

/// `tki-attest keygen`.
pub fn keygen(out: &Path, arguments: &[&str]) -> Said {
    run(tool().arg("keygen").arg("--out").arg(out).args(arguments))
}

/// The list in which the operator may sign.
pub const SIGNERS: &str = "operator@vps namespaces=\"tki-attest\" {operator}\n";

/// `tki-attest request`.
pub fn ask(out: &Path, arguments: &[&str]) -> Said {
    run(tool().arg("request").arg("--out").arg(out).args(arguments))
}

impl Base {
    /// A directory with `request.json`, `signers` and, in `out`, the bundle.
    pub fn new(folder: tempfile::TempDir) -> Self {
        let path = evidence_in(&folder.path().join("out"));
        Self {
            value: read_json(&path),
            path,
            folder,
        }
    }

    /// The request that it answers.
    pub fn request(&self) -> PathBuf {
        self.folder.path().join("request.json")
    }

    /// The list of signers.
    pub fn signers(&self) -> PathBuf {
        self.folder.path().join("signers")
    }

    /// A copy that a test may change.
    pub fn copy(&self) -> Copy {
        let folder = tempfile::tempdir().unwrap();
        let to = |path: &Path| folder.path().join(path.file_name().unwrap());
        let path = to(&self.path);
        fs::copy(&self.path, &path).unwrap();
        let envelope = self.path.with_extension("intoto.jsonl");
        fs::copy(&envelope, to(&envelope)).unwrap();
        let artifacts = self.path.with_extension("");
        fs::create_dir(to(&artifacts)).unwrap();
        for name in names_in(&artifacts) {
            fs::copy(artifacts.join(&name), to(&artifacts).join(&name)).unwrap();
        }
        let (request, signers) = (folder.path().join("request"), folder.path().join("signers"));
        fs::copy(self.request(), &request).unwrap();
        fs::copy(self.signers(), &signers).unwrap();
        Copy {
            folder,
            path,
            request,
            signers,
        }
    }
}

/// A copy of a bundle, its request and its list of signers.
pub struct Copy {
    /// Where everything is.
    pub folder: tempfile::TempDir,
    /// The evidence file.
    pub path: PathBuf,
    /// The request.
    pub request: PathBuf,
    /// The list of signers.
    pub signers: PathBuf,
}

impl Copy {
    /// The envelope.
    pub fn envelope(&self) -> PathBuf {
        self.path.with_extension("intoto.jsonl")
    }

    /// An artifact.
    pub fn artifact(&self, name: &str) -> PathBuf {
        self.path.with_extension("").join(name)
    }

    /// The flags with which everything is demanded.
    pub fn strictly(&self) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        vec![
            "--allowed-signers".into(),
            text(&self.signers),
            "--request".into(),
            text(&self.request),
            "--require-assurance".into(),
            "signed-fresh".into(),
            "--require-artifacts".into(),
        ]
    }

    /// `tki-attest verify` with everything demanded, and more.
    pub fn verify(&self, more: &[&str]) -> Said {
        let mut command = tool();
        command.arg("verify").arg(&self.path);
        run(command.args(self.strictly()).args(more))
    }

    /// Signs again with another key.
    pub fn sign(&self, key: &str) -> Said {
        let mut command = tool();
        command.arg("sign").arg(&self.path);
        run(command.arg("--key").arg(keys().private(key)))
    }
}
