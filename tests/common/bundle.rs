//! Bundles that a test changes: copies, stamps, and verifying in this process.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tki_attest::image::built_in;
use tki_attest::sandbox::seccomp::Seccomp;
use tki_attest::verify::artifacts::Source;
use tki_attest::verify::inputs::Clock;
use tki_attest::verify::{Bundle, ImageDigests, Inputs, Known, Verification, verify};
use tki_evidence::stamp;

/// A copy of this evidence and its artifacts.
pub fn copy_of(real: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(real.file_name().unwrap());
    fs::copy(real, &path).unwrap();
    let (from, to) = (real.with_extension(""), path.with_extension(""));
    fs::create_dir(&to).unwrap();
    for name in crate::common::names_in(&from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
    (folder, path)
}

/// Gives an edited document the stamp that goes with it.
pub fn restamp(value: &mut Value) {
    value["evidence_sha256"] = stamp::stamp(value.to_string().as_bytes()).unwrap().into();
}

/// Writes an edited document with a new stamp.
pub fn write_restamped(path: &Path, mut value: Value) {
    restamp(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// What `tki-attest verify --evidence-only` would bring along.
pub fn default_inputs() -> Inputs {
    let profiles = ["targeted-deny", "deny-by-default"];
    let own = built_in::image().unwrap();
    Inputs {
        known: Known {
            image: Some(ImageDigests {
                manifest_digest: own.manifest_digest,
                config_digest: own.config_digest,
                diff_ids: own.diff_ids,
            }),
            seccomp: profiles
                .map(|name| (Seccomp::resolve(name).unwrap().sha256, name))
                .to_vec(),
        },
        clock: Clock {
            now: tki_attest::clock::now(),
            given: false,
        },
        evidence_only: true,
        ..Inputs::default()
    }
}

/// Verifies a document in this process, without artifacts: the party that edits the
/// evidence leaves them out. `None` if it is not evidence at all.
pub fn verify_alone(bytes: &[u8], inputs: &Inputs) -> Option<Verification> {
    static NOTHING: OnceLock<tempfile::TempDir> = OnceLock::new();
    let nothing = NOTHING.get_or_init(|| tempfile::tempdir().unwrap());
    let bundle = Bundle {
        name: "edited".into(),
        evidence: bytes.to_vec(),
        envelope: None,
        artifacts: Source::Folder(nothing.path().to_owned()),
    };
    verify(&bundle, inputs).ok()
}
