//! What is signed, and by what kind of agent.

use crate::common::signed::{Copy, keys};
use crate::common::{Said, run, tool};
use crate::golden::{other, plain};
use std::fs;
use std::path::Path;

fn sign(copy: &Copy, key: &Path, more: &[&str]) -> Said {
    let mut command = tool();
    command.arg("sign").arg(&copy.path).arg("--key").arg(key);
    run(command.args(more))
}

/// An agent that answers something else than a signature of this key.
#[test]
fn an_agent_that_lies_is_not_believed() {
    use std::io::{Read, Write};
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let public = keys().private("second").with_extension("pub");
    let text = fs::read_to_string(&public).unwrap();
    let blob = ssh_key::PublicKey::from_openssh(&text)
        .unwrap()
        .to_bytes()
        .unwrap();
    let string = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let listed = [&[12, 0, 0, 0, 1][..], &string(&blob), &string(b"x")].concat();
    let signature = [string(b"ssh-ed25519"), string(&[7; 64])].concat();
    let answers = [listed, [&[14][..], &string(&signature)].concat()];
    let agent = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut asked = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut asked).unwrap();
            stream.write_all(&string(&answer)).unwrap();
        }
    });
    let copy = plain().copy();
    let before = fs::read(copy.envelope()).unwrap();
    let mut command = tool();
    command
        .env("SSH_AUTH_SOCK", &socket)
        .arg("sign")
        .arg(&copy.path);
    let said = run(command.arg("--key").arg(&public));
    agent.join().unwrap();
    said.failed(2, "key.agent");
    assert_eq!(fs::read(copy.envelope()).unwrap(), before);
}

#[test]
fn only_evidence_that_does_not_contradict_itself_is_signed() {
    let copy = plain().copy();
    sign(&copy, &keys().private("operator"), &[]).failed(2, "sign.already");
    let text = fs::read_to_string(&copy.path).unwrap();
    fs::write(
        &copy.path,
        text.replace("\"returned\": -1", "\"returned\": -2"),
    )
    .unwrap();
    fs::remove_file(copy.envelope()).unwrap();
    sign(&copy, &keys().private("operator"), &[]).failed(1, "sign.false");
    assert!(!copy.envelope().exists());
    fs::write(&copy.path, &text).unwrap();
    copy.sign("operator").succeeded();
    copy.verify(&[]).succeeded();
    let other = other().copy();
    fs::copy(other.envelope(), copy.envelope()).unwrap();
    sign(&copy, &keys().private("second"), &[]).failed(1, "sign.other");
    fs::write(&copy.path, "{}").unwrap();
    sign(&copy, &keys().private("second"), &[]).failed(2, "evidence.malformed");
}
