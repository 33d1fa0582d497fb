//! Several signatures in one envelope: added at the same time, and beside junk.

use crate::common::signed::{Copy, keygen, keys};
use crate::common::{names_in, read_json, tool};
use crate::golden::plain;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Nobody's signature.
const JUNK: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

#[test]
fn of_many_who_sign_at_once_nobody_is_lost() {
    let copy = plain().copy();
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..8).map(|n| folder.path().join(n.to_string())).collect();
    for path in &paths {
        keygen(path, &["--no-passphrase"]).succeeded();
    }
    // With the operator's signature there, and with none.
    for there in [1, 0] {
        if there == 0 {
            fs::remove_file(copy.envelope()).unwrap();
        }
        let signing: Vec<_> = paths
            .iter()
            .skip(4 * (1 - there))
            .map(|path| {
                let mut command = tool();
                command.arg("sign").arg(&copy.path).arg("--key").arg(path);
                command.stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        let count = signing.len();
        for mut child in signing {
            assert!(child.wait().unwrap().success());
        }
        let envelope = read_json(&copy.envelope());
        let signatures = envelope["signatures"].as_array().unwrap();
        assert_eq!(signatures.len(), count + there, "{envelope}");
    }
    // Nothing is left beside the bundle.
    let names = names_in(copy.folder.path());
    assert_eq!(names.len(), 5, "{names:?}");
}

fn edit(copy: &Copy, change: impl FnOnce(&mut Vec<Value>)) {
    let mut envelope = read_json(&copy.envelope());
    change(envelope["signatures"].as_array_mut().unwrap());
    fs::write(copy.envelope(), envelope.to_string()).unwrap();
}

#[test]
fn junk_in_a_signers_name_does_not_undo_the_signature() {
    for place in [0, 1] {
        let copy = plain().copy();
        edit(&copy, |all| {
            let junk = json!({ "keyid": all[0]["keyid"], "sig": JUNK });
            all.insert(place, junk);
        });
        let said = copy.verify(&[]);
        said.succeeded();
        let said = copy.verify(&["--format", "json"]);
        assert!(said.stdout.contains("is not by it"), "{said:?}");
        // It is one signer all the same.
        assert_eq!(copy.verify(&["--threshold", "2"]).status, 3);
        // A key that does not count now counts no less and no more.
        let late = "o@v valid-before=\"20200101Z\" {operator}\n";
        fs::write(&copy.signers, keys().list(late)).unwrap();
        let said = copy.verify(&[]);
        assert_eq!(said.status, 3, "{said:?}");
    }
    // Alone it is a lie about the key, and so it is beside another's signature.
    let copy = plain().copy();
    edit(&copy, |all| all[0]["sig"] = JUNK.into());
    assert_eq!(copy.verify(&[]).status, 1);
    let copy = plain().copy();
    copy.sign("second").succeeded();
    let list = keys().list("a@b {operator}\nc@d {second}\n");
    fs::write(&copy.signers, list).unwrap();
    copy.verify(&["--threshold", "2"]).succeeded();
    edit(&copy, |all| all[1]["sig"] = JUNK.into());
    assert_eq!(copy.verify(&[]).status, 1);
}

#[test]
fn junk_in_a_keys_name_does_not_keep_it_from_signing() {
    let copy = plain().copy();
    edit(&copy, |all| {
        // As many as are read.
        all[0]["sig"] = JUNK.into();
        let junk = all[0].clone();
        all.resize(16, junk);
    });
    copy.sign("operator").succeeded();
    copy.verify(&[]).succeeded();
    let envelope = read_json(&copy.envelope());
    assert_eq!(envelope["signatures"].as_array().unwrap().len(), 1);
    copy.sign("operator").failed(2, "sign.already");
    // Where strangers have filled the envelope, nothing unreadable is written.
    edit(&copy, |all| {
        let junk = json!({ "keyid": "SHA256:stranger", "sig": JUNK });
        all.resize(16, junk);
    });
    let before = fs::read(copy.envelope()).unwrap();
    copy.sign("second").failed(2, "sign.full");
    assert_eq!(fs::read(copy.envelope()).unwrap(), before);
}
