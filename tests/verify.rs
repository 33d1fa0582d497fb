//! Evidence against jq and its schema, and against whoever edits it: no single
//! edit is accepted, and what new stamps and digests can still hide is told.

/// The files beside the evidence.
mod artifacts;
/// The stamp and the canonical form against jq, the document against its schema.
mod canonical;
/// Controls that are not what they say they are.
mod controls;
/// Every field edited alone, with the old stamp.
mod edits;
/// A container, a conversation, times and names that no run has.
mod forged;
/// Edits that a generator makes, consistently in the whole bundle.
mod generated;
/// What the verifier brings along: image, profile, matrix, several bundles.
mod inputs;
/// What is not evidence at all.
mod malformed;
/// No network, no write, and nothing that a terminal would obey.
mod offline;
/// Profiles that let something of the floor through.
mod profiles;

use crate::common::{attest, evidence_in, shared_engine};
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

/// Evidence of a real run, made once for all tests.
pub struct Real {
    _folder: tempfile::TempDir,
    /// A directory with nothing in it.
    nothing: tempfile::TempDir,
    /// The evidence file; its artifacts are beside it.
    pub path: PathBuf,
    /// What it says.
    pub value: Value,
}

/// Evidence of a real run that verify accepts.
pub fn real() -> &'static Real {
    static REAL: OnceLock<Real> = OnceLock::new();
    REAL.get_or_init(|| {
        let _engine = shared_engine();
        // Somebody else may be using the engine just now, which is then seen
        // in the inventory; a few attempts find a quiet moment.
        let mut last = None;
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let said = last.insert(attest(folder.path(), &["--venue", "vps"]));
            if said.status == 0 {
                let path = evidence_in(folder.path());
                return Real {
                    value: crate::common::read_json(&path),
                    path,
                    _folder: folder,
                    nothing: tempfile::tempdir().unwrap(),
                };
            }
        }
        panic!("no run is accepted: {last:?}");
    })
}

/// A copy of the evidence and its artifacts that a test may change.
pub fn copy() -> (tempfile::TempDir, PathBuf) {
    copy_of(&real().path)
}

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

/// Verifies a document in this process, without artifacts: whoever edits the
/// evidence leaves them out. `None` if it is not evidence at all.
pub fn verify_alone(bytes: &[u8], inputs: &Inputs) -> Option<Verification> {
    let bundle = Bundle {
        name: "edited".into(),
        evidence: bytes.to_vec(),
        envelope: None,
        artifacts: Source::Folder(real().nothing.path().to_owned()),
    };
    verify(&bundle, inputs).ok()
}
