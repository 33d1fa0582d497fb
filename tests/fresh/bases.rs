//! Signed answers to requests, made once by the engine of this machine.

use crate::common::signed::{Base, SIGNERS, ask, keys};
use crate::common::{attest, shared_engine};
use std::fs;
use std::sync::OnceLock;

/// Without controls.
pub fn plain() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| make("none"))
}

/// With controls.
pub fn full() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| make("safe"))
}

/// Another user may be using the machine just now, which is then seen in the
/// inventory or in the limits; a few attempts find a quiet moment.
fn make(controls: &str) -> Base {
    let _engine = shared_engine();
    let mut last = None;
    for _ in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let request = folder.path().join("request.json");
        ask(&request, &["--venue", "vps"]).succeeded();
        let out = folder.path().join("out");
        let key = keys().private("operator");
        let said = last.insert(attest(
            &out,
            &[
                "--venue",
                "vps",
                "--controls",
                controls,
                "--request",
                request.to_str().unwrap(),
                "--sign",
                key.to_str().unwrap(),
            ],
        ));
        if said.status == 0 {
            fs::write(folder.path().join("signers"), keys().list(SIGNERS)).unwrap();
            return Base::new(folder);
        }
    }
    panic!("no run is accepted: {last:?}");
}
