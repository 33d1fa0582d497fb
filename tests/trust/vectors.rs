//! The DSSE specification's vector and Wycheproof's Ed25519 set. They lie
//! outside the project, in `../shared/vectors`.

use crate::common::root;
use ed25519_dalek::VerifyingKey;
use serde_json::Value;
use tki_attest::trust::dsse::{Envelope, is_good, pae};

fn vectors(name: &str) -> Value {
    let path = root().join("../shared/vectors").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: the public test vectors must lie beside the project",
            path.display()
        )
    });
    serde_json::from_slice(&bytes).unwrap()
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len() / 2)
        .map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap())
        .collect()
}

#[test]
fn the_specifications_envelope_is_read_and_encoded_as_it_says() {
    let vector = vectors("dsse.json");
    let kind = vector["payloadType"].as_str().unwrap();
    let body = vector["body"].as_str().unwrap();
    let wanted = vector["pae"].as_str().unwrap();
    assert_eq!(pae(kind, body.as_bytes()), wanted.as_bytes());
    let envelope = Envelope::parse(vector["envelope"].to_string().as_bytes()).unwrap();
    assert_eq!(envelope.payload, body.as_bytes());
    assert_eq!(envelope.payload_type, kind);
    assert_eq!(envelope.signed_bytes(), wanted.as_bytes());
    assert_eq!(envelope.signatures.len(), 1);
    assert_eq!(envelope.signatures[0].sig.len(), 64);
}

#[test]
fn signatures_are_good_and_bad_as_wycheproof_says() {
    let set = vectors("wycheproof/ed25519_test.json");
    let (mut good, mut bad) = (0, 0);
    for group in set["testGroups"].as_array().unwrap() {
        let public = hex(&group["publicKey"]["pk"]);
        let key = VerifyingKey::from_bytes(&public.try_into().unwrap()).unwrap();
        for test in group["tests"].as_array().unwrap() {
            let found = is_good(&key, &hex(&test["msg"]), &hex(&test["sig"]));
            match test["result"].as_str().unwrap() {
                "valid" => {
                    good += 1;
                    assert!(found, "{test}");
                }
                "invalid" => {
                    bad += 1;
                    assert!(!found, "{test}");
                }
                // Nobody may rely on these either way.
                other => panic!("{other}: {test}"),
            }
        }
    }
    let stated = set["numberOfTests"].as_u64().unwrap();
    assert_eq!(good + bad, stated, "{good} good, {bad} bad");
    assert!(good > 50 && bad > 50, "{good} good, {bad} bad");
}
