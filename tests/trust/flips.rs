//! Every byte of a signed bundle flipped: none of these bundles is accepted.
//! In this process, on the library, because there are more than a million.

use crate::common::bundle::default_inputs;
use crate::common::signed::Base;
use crate::common::sweep::is_tried;
use crate::golden::{full, plain};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use tki_attest::verify::artifacts::{Source, compare};
use tki_attest::verify::{Assurance, Bundle, Decision, Inputs, pipeline, verify};
use tki_evidence::request::Request;
use tki_verify::signers::AllowedSigners;

/// A bundle in memory, and what a verifier who demands everything brings.
fn load(base: &Base) -> (Bundle, BTreeMap<String, Vec<u8>>, Inputs) {
    let stem = base.path.file_stem().unwrap().to_str().unwrap();
    let below = base.path.with_extension("");
    let artifacts: BTreeMap<String, Vec<u8>> = crate::common::names_in(&below)
        .into_iter()
        .map(|name| {
            let bytes = fs::read(below.join(&name)).unwrap();
            (format!("{stem}/{name}"), bytes)
        })
        .collect();
    let list = fs::read(base.signers()).unwrap();
    let inputs = Inputs {
        allowed_signers: Some((AllowedSigners::parse(&list).unwrap(), String::new())),
        request: Some(Request::parse(&fs::read(base.request()).unwrap()).unwrap()),
        require_assurance: Some(Assurance::SignedFresh),
        evidence_only: false,
        ..default_inputs()
    };
    let bundle = Bundle {
        name: "flipped".into(),
        evidence: fs::read(&base.path).unwrap(),
        envelope: Some(fs::read(base.path.with_extension("intoto.jsonl")).unwrap()),
        artifacts: Source::Memory(artifacts.clone()),
    };
    let found = verify(&bundle, &inputs).unwrap();
    assert_eq!(found.decision, Decision::B4PrimeAccepted, "{found:?}");
    (bundle, artifacts, inputs)
}

/// Calls `check` for every number below `count`, on every processor.
fn everywhere(count: usize, check: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(64, Ordering::Relaxed);
                    if from >= count {
                        break;
                    }
                    let own = from..count.min(from + 64);
                    own.filter(|number| is_tried(*number)).for_each(&check);
                }
            });
        }
    });
}

fn accepted(bundle: &Bundle, inputs: &Inputs) -> bool {
    verify(bundle, inputs).is_ok_and(|found| found.decision == Decision::B4PrimeAccepted)
}

/// Every bit of it, alone.
#[test]
fn no_flipped_bit_of_the_envelope_is_accepted() {
    let (bundle, _, inputs) = load(plain());
    let envelope = bundle.envelope.clone().unwrap();
    everywhere(envelope.len() * 8, |number| {
        let mut flipped = bundle.clone();
        let mut bytes = envelope.clone();
        bytes[number / 8] ^= 1 << (number % 8);
        flipped.envelope = Some(bytes);
        assert!(!accepted(&flipped, &inputs), "bit {number}");
    });
}

/// Every byte to every other value that it could have, in the places where one
/// byte could matter least: the frame around payload and signature.
#[test]
fn no_other_byte_in_the_envelopes_frame_is_accepted() {
    let (bundle, _, inputs) = load(plain());
    let envelope = bundle.envelope.clone().unwrap();
    let text = String::from_utf8(envelope.clone()).unwrap();
    let payload = text.find("\",\"payloadType\"").unwrap();
    let frame: Vec<usize> = (0..14).chain(payload - 4..envelope.len()).collect();
    everywhere(frame.len() * 255, |number| {
        let mut flipped = bundle.clone();
        let mut bytes = envelope.clone();
        bytes[frame[number / 255]] ^= u8::try_from(number % 255 + 1).unwrap();
        flipped.envelope = Some(bytes);
        assert!(!accepted(&flipped, &inputs), "{number}");
    });
}

#[test]
fn no_flipped_byte_of_the_evidence_is_accepted() {
    let (bundle, _, inputs) = load(plain());
    everywhere(bundle.evidence.len(), |at| {
        let mut flipped = bundle.clone();
        // Another bit at every place; the low one would never make a digit a
        // letter.
        flipped.evidence[at] ^= 1 << (at % 8);
        assert!(!accepted(&flipped, &inputs), "byte {at}");
    });
}

/// Every byte of every artifact, against everything from the artifacts to the
/// decision. What comes before reads no artifact and is done once.
#[test]
fn no_flipped_byte_of_an_artifact_is_accepted() {
    let (bundle, files, inputs) = load(plain());
    let opened = pipeline::open(&bundle, &inputs).unwrap();
    let places: Vec<(&String, usize)> = files
        .iter()
        .flat_map(|(path, bytes)| (0..bytes.len()).map(move |at| (path, at)))
        .collect();
    assert!(places.len() > 50_000, "{}", places.len());
    everywhere(places.len(), |number| {
        let (path, at) = places[number];
        let mut files = files.clone();
        files.get_mut(path).unwrap()[at] ^= 1 << (number % 8);
        let found = pipeline::conclude(&opened, &Source::Memory(files), &inputs);
        assert_eq!(found.decision, Decision::B4PrimeRejected, "{path} {at}");
    });
}

/// With controls there are more than a million bytes: each is held against the
/// one comparison that all of them go through, and one byte of every artifact
/// against everything.
#[test]
fn no_flipped_byte_of_a_controls_conversation_is_accepted() {
    let (bundle, artifacts, inputs) = load(full());
    let opened = pipeline::open(&bundle, &inputs).unwrap();
    let evidence = opened.evidence.as_ref().unwrap();
    for (path, bytes) in &artifacts {
        let mut files = artifacts.clone();
        files.get_mut(path).unwrap()[bytes.len() / 2] ^= 1;
        let found = pipeline::conclude(&opened, &Source::Memory(files), &inputs);
        assert_eq!(found.decision, Decision::B4PrimeRejected, "{path}");
        let artifact = evidence.artifacts.iter().find(|a| a.path == *path).unwrap();
        compare(evidence, artifact, bytes).unwrap();
        everywhere(bytes.len(), |at| {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(
                compare(evidence, artifact, &flipped).is_err(),
                "{path} {at}"
            );
        });
    }
}

/// A byte fewer, a byte more, and everything cut short.
#[test]
fn no_shorter_and_no_longer_file_is_accepted() {
    let (bundle, _, inputs) = load(plain());
    let envelope = bundle.envelope.clone().unwrap();
    everywhere(envelope.len(), |length| {
        let mut cut = bundle.clone();
        cut.envelope = Some(envelope[..length].to_vec());
        // Only the line's end may be missing.
        assert_eq!(
            accepted(&cut, &inputs),
            length + 1 == envelope.len(),
            "{length}"
        );
    });
    for length in [0, 1, bundle.evidence.len() / 2, bundle.evidence.len() - 1] {
        let mut cut = bundle.clone();
        cut.evidence.truncate(length);
        assert!(!accepted(&cut, &inputs), "{length}");
    }
    let mut longer = bundle.clone();
    longer.evidence.push(b'\n');
    assert!(!accepted(&longer, &inputs));
}
