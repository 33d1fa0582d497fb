//! Bundles of real runs, recorded by `make golden` in `tests/golden/`, so that what needs
//! only a bundle needs no engine. They are used as long as this build accepts them; a
//! stale one is named. The binary `integration` does the same with bundles of now.

use crate::common::bundle::default_inputs;
use crate::common::signed::{Base, SIGNERS, keys};
use crate::common::{evidence_in, root, run, tool};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use tki_attest::image::built_in;
use tki_attest::verify::artifacts::Source;
use tki_attest::verify::{Bundle, Decision, Inputs, Outcome, verify};

/// Without controls.
pub fn plain() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| load("plain"))
}

/// Another run without controls, which answers another request.
pub fn other() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| load("other"))
}

/// With controls.
pub fn full() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| load("full"))
}

/// A recording as it lies there, in a directory of its own.
pub fn unpacked(name: &str) -> tempfile::TempDir {
    let path = root().join("tests/golden").join(format!("{name}.tar.gz"));
    let packed = fs::read(&path);
    let packed = packed.unwrap_or_else(|error| panic!("{}: {error}: {ANEW}", path.display()));
    let folder = tempfile::tempdir().unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(&*packed));
    archive.unpack(folder.path()).unwrap();
    folder
}

/// What makes every recording anew.
pub const ANEW: &str = "`make golden` records it anew";

/// A recording that this build accepts, signed anew: nobody has the key that signed it.
fn load(name: &str) -> Base {
    let folder = unpacked(name);
    if let Err(why) = is_current(&evidence_in(&folder.path().join("out"))) {
        panic!("tests/golden/{name}.tar.gz is stale: {why}: {ANEW}");
    }
    fs::write(folder.path().join("signers"), keys().list(SIGNERS)).unwrap();
    let base = Base::new(folder);
    fs::remove_file(base.path.with_extension("intoto.jsonl")).unwrap();
    let mut sign = tool();
    sign.arg("sign").arg(&base.path);
    run(sign.arg("--key").arg(keys().private("operator"))).succeeded();
    base
}

/// Whether this build accepts a recording for what it is; why not, if it does not.
pub fn is_current(path: &Path) -> Result<(), String> {
    let bytes = fs::read(path).unwrap();
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let same = |what: &str, theirs: &Value, ours: &str| match theirs == ours {
        true => Ok(()),
        false => Err(format!(
            "its {what} is {theirs}, and this build's is {ours:?}"
        )),
    };
    let image = built_in::image().unwrap();
    same("schema", &value["schema"], tki_evidence::evidence::SCHEMA)?;
    same(
        "version",
        &value["tool"]["version"],
        env!("CARGO_PKG_VERSION"),
    )?;
    same("image", &value["image_digest"], &image.manifest_digest)?;
    let bundle = Bundle {
        name: "recorded".into(),
        evidence: bytes,
        envelope: None,
        artifacts: Source::Folder(path.parent().unwrap().to_owned()),
    };
    let inputs = Inputs {
        evidence_only: false,
        ..default_inputs()
    };
    let found = verify(&bundle, &inputs).map_err(|error| error.to_string())?;
    if found.decision == Decision::B4PrimeAccepted {
        return Ok(());
    }
    let bad = |outcome| matches!(outcome, Outcome::False | Outcome::Blocked);
    let steps = found.steps.iter().filter(|step| bad(step.outcome));
    let steps: Vec<String> = steps.map(|s| format!("{}: {}", s.code, s.got)).collect();
    Err(steps.join("; "))
}
