//! The whole of `verify` on bundles that are almost right: a good bundle, edited
//! along its structure. Whatever comes out, it must not panic, and nothing that
//! was changed may be accepted as signed. The bundle itself is accepted, which is
//! asserted first: otherwise nothing ever would be.
//!
//! `TKI_FUZZ_BUNDLE` names a directory that `fuzz/prepare` makes: evidence,
//! envelope, artifacts, request and signers of a real run.
#![no_main]

#[path = "../edits.rs"]
mod edits;

use arbitrary::{Arbitrary, Unstructured};
use edits::{Edit, apply};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use tki_evidence::request::Request;
use tki_evidence::stamp;
use tki_verify::artifacts::Source;
use tki_verify::inputs::Clock;
use tki_verify::signers::AllowedSigners;
use tki_verify::{Assurance, Bundle, Decision, ImageDigests, Inputs, Known, verify};

/// What is done to the bundle.
#[derive(Arbitrary, Debug)]
struct Input {
    edits: Vec<Edit>,
    statement: Vec<Edit>,
    restamp: bool,
    relist: bool,
    /// Bytes of a file are changed: which file, where, to what.
    bytes: Vec<(u8, u32, u8)>,
    envelope: Option<Vec<u8>>,
    with_signers: bool,
    with_request: bool,
    artifacts: bool,
}

struct Base {
    evidence: Value,
    bytes: Vec<u8>,
    envelope: Vec<u8>,
    artifacts: BTreeMap<String, Vec<u8>>,
    request: Vec<u8>,
    signers: Vec<u8>,
}

impl Base {
    /// What the verifier has in hand. The image is the one that was really run:
    /// without a known image nothing is accepted, and no edit could be.
    fn inputs(&self, with_signers: bool, with_request: bool) -> Inputs {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (image, finished) = (&self.evidence["image"], text(&self.evidence["finished"]));
        // An exec gate may have extended the profile; what it was before counts.
        let profile = match text(&self.evidence["sandbox"]["gate"]["plain_profile"]) {
            plain if plain.is_empty() => text(&self.evidence["seccomp_sha256"]),
            plain => stamp::sha256_hex(plain.as_bytes()),
        };
        let layers = image["diff_ids"].as_array().expect("layers").iter();
        Inputs {
            allowed_signers: with_signers.then(|| {
                let list = AllowedSigners::parse(&self.signers).expect("signers");
                (list, String::new())
            }),
            request: with_request.then(|| Request::parse(&self.request).expect("a request")),
            clock: Clock {
                now: tki_evidence::time::parse_rfc3339(&finished).expect("a time"),
                given: false,
            },
            known: Known {
                image: Some(ImageDigests {
                    manifest_digest: text(&image["manifest_digest"]),
                    config_digest: text(&image["config_digest"]),
                    diff_ids: layers.map(text).collect(),
                }),
                seccomp: Vec::new(),
            },
            seccomp_sha256: Some(profile),
            ..Inputs::default()
        }
    }

    fn bundle(
        &self,
        evidence: Vec<u8>,
        envelope: Vec<u8>,
        artifacts: BTreeMap<String, Vec<u8>>,
    ) -> Bundle {
        Bundle {
            name: "fuzzed".into(),
            evidence,
            envelope: Some(envelope),
            artifacts: Source::Memory(artifacts),
        }
    }

    /// Every way of verifying accepts the bundle as it was made.
    fn assert_accepted(&self) {
        let whole = (
            self.bytes.clone(),
            self.envelope.clone(),
            self.artifacts.clone(),
        );
        let bundle = self.bundle(whole.0, whole.1, whole.2);
        for (with_signers, with_request) in [(false, false), (true, false), (true, true)] {
            let found = verify(&bundle, &self.inputs(with_signers, with_request));
            let found = found.expect("evidence");
            assert_eq!(
                found.decision,
                Decision::B4PrimeAccepted,
                "{:?}",
                found.steps
            );
        }
    }
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let folder =
            std::env::var_os("TKI_FUZZ_BUNDLE").expect("TKI_FUZZ_BUNDLE: see fuzz/prepare");
        let folder = PathBuf::from(folder);
        let read = |name: &str| std::fs::read(folder.join(name)).expect(name);
        let bytes = read("bundle.json");
        let evidence: Value = serde_json::from_slice(&bytes).expect("evidence");
        let artifacts = evidence["artifacts"].as_array().expect("artifacts").iter();
        let base = Base {
            artifacts: artifacts
                .map(|artifact| {
                    let path = artifact["path"].as_str().expect("a path").to_owned();
                    let bytes = read(&path);
                    (path, bytes)
                })
                .collect(),
            envelope: read("bundle.intoto.jsonl"),
            request: read("request.json"),
            signers: read("signers"),
            evidence,
            bytes,
        };
        base.assert_accepted();
        base
    })
}

fn run(input: &Input) {
    let base = base();
    let mut artifacts = base.artifacts.clone();
    let mut document = base.evidence.clone();
    apply(&mut document, &input.edits);
    for (file, place, byte) in input.bytes.iter().take(8) {
        let count = artifacts.len();
        if let Some(bytes) = artifacts.values_mut().nth(usize::from(*file) % count)
            && !bytes.is_empty()
        {
            let at = *place as usize % bytes.len();
            bytes[at] = *byte;
        }
    }
    if input.relist
        && let Some(list) = document["artifacts"].as_array_mut()
    {
        for artifact in list {
            let path = artifact["path"].as_str().unwrap_or_default();
            if let Some(bytes) = artifacts.get(path) {
                artifact["bytes"] = bytes.len().into();
                artifact["sha256"] = stamp::sha256_hex(bytes).into();
            }
        }
    }
    if input.restamp
        && document.is_object()
        && let Ok(stamp) = stamp::stamp(document.to_string().as_bytes())
    {
        document["evidence_sha256"] = stamp.into();
    }
    let unchanged = document == base.evidence;
    let evidence = if unchanged {
        base.bytes.clone()
    } else {
        document.to_string().into_bytes()
    };
    let mut envelope = base.envelope.clone();
    if !input.statement.is_empty() {
        let mut value: Value = serde_json::from_slice(&envelope).expect("an envelope");
        apply(&mut value, &input.statement);
        envelope = value.to_string().into_bytes();
    }
    if let Some(bytes) = &input.envelope {
        envelope = bytes.clone();
    }
    let same_artifacts = !input.artifacts || artifacts == base.artifacts;
    let artifacts = if input.artifacts {
        artifacts
    } else {
        BTreeMap::new()
    };
    let bundle = base.bundle(evidence, envelope, artifacts);
    let inputs = base.inputs(input.with_signers, input.with_request);
    if let Ok(found) = verify(&bundle, &inputs) {
        for step in &found.steps {
            let said = [&step.got, &step.place];
            assert!(
                !said.iter().any(|text| text.contains('\u{1b}')),
                "an escape got through"
            );
        }
        // Only the bytes that were signed are ever called signed or, where a
        // signature is demanded, accepted.
        if found.assurance > Assurance::SelfReported {
            assert!(unchanged, "changed evidence was called signed");
        }
        if found.decision == Decision::B4PrimeAccepted {
            assert!(same_artifacts, "a changed artifact was accepted");
            assert!(
                unchanged || !input.with_signers,
                "changed evidence was accepted"
            );
        }
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) {
        run(&input);
    }
});
