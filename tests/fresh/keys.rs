//! Keys: made, encrypted, in an agent, unusable.

use super::bases::plain;
use crate::common::signed::{Copy, keygen, keys};
use crate::common::{Said, isolated, need, run, tool};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn sign(copy: &Copy, key: &Path, more: &[&str]) -> Said {
    let mut command = tool();
    command.arg("sign").arg(&copy.path).arg("--key").arg(key);
    run(command.args(more))
}

#[test]
fn a_new_key_is_one_that_openssh_reads() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let words = folder.path().join("words");
    fs::write(&words, "correct horse\n").unwrap();
    let from = format!("file:{}", words.display());
    let said = keygen(&key, &["--comment", "me@here", "--passphrase", &from]);
    said.succeeded();
    let mode = fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut ssh = Command::new("ssh-keygen");
    ssh.args(["-y", "-P", "correct horse", "-f"]).arg(&key);
    let read = need("openssh-client", &mut ssh);
    assert_eq!(read.status, 0, "{read:?}");
    assert_eq!(
        read.stdout,
        fs::read_to_string(folder.path().join("key.pub")).unwrap()
    );
    let mut ssh = Command::new("ssh-keygen");
    ssh.args(["-y", "-P", "wrong", "-f"]).arg(&key);
    assert_ne!(need("openssh-client", &mut ssh).status, 0);
    let mut ssh = Command::new("ssh-keygen");
    let printed = need("openssh-client", ssh.arg("-l").arg("-f").arg(&key));
    let fingerprint = printed.stdout.split(' ').nth(1).unwrap();
    assert!(said.stdout.contains(fingerprint), "{said:?} {printed:?}");
    // What is there is never replaced.
    keygen(&key, &["--no-passphrase"]).failed(2, "out.unwritable");
}

#[test]
fn keys_that_openssh_made_sign_with_and_without_passphrase() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("theirs");
    let mut ssh = Command::new("ssh-keygen");
    ssh.args(["-q", "-t", "ed25519", "-N", "words", "-f"])
        .arg(&key);
    assert_eq!(need("openssh-client", &mut ssh).status, 0);
    let copy = plain().copy();
    sign(&copy, &key, &["--passphrase", "env:NO_SUCH"]).failed(2, "key.passphrase");
    let wrong = folder.path().join("wrong");
    fs::write(&wrong, "other words").unwrap();
    let from = format!("file:{}", wrong.display());
    sign(&copy, &key, &["--passphrase", &from]).failed(2, "key.passphrase");
    // Without a terminal nobody can be asked.
    let mut alone = isolated(Path::new("setsid"));
    alone
        .arg("--wait")
        .arg(env!("CARGO_BIN_EXE_tki-attest"))
        .arg("sign");
    alone.arg(&copy.path).arg("--key").arg(&key);
    need("util-linux", &mut alone).failed(2, "key.passphrase");
    let mut command = tool();
    command.arg("sign").arg(&copy.path).arg("--key").arg(&key);
    command
        .args(["--passphrase", "env:WORDS"])
        .env("WORDS", "words");
    run(&mut command).succeeded();
    let public = fs::read_to_string(folder.path().join("theirs.pub")).unwrap();
    fs::write(
        &copy.signers,
        format!("a@b {public}c@d {}\n", keys().public("operator")),
    )
    .unwrap();
    copy.verify(&["--threshold", "2"]).succeeded();
    // The same key a second time, another passphrase source.
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "exec \"$0\" sign \"$1\" --key \"$2\" --passphrase fd:7 7<<<words",
    ]);
    command
        .arg(env!("CARGO_BIN_EXE_tki-attest"))
        .arg(&copy.path)
        .arg(&key);
    need("bash", &mut command).failed(2, "sign.already");
}

#[test]
fn a_key_in_an_agent_signs_without_leaving_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = keys().private("second");
    let copy = plain().copy();
    let public = key.with_extension("pub");
    // An agent takes its socket away some time after its command has ended.
    let with_agent = |name: &str, script: &str| {
        let socket = folder.path().join(name);
        let mut command = isolated(Path::new("ssh-agent"));
        command.arg("-a").arg(&socket).args(["sh", "-c", script]);
        command.arg(env!("CARGO_BIN_EXE_tki-attest"));
        command.arg(&key).arg(&copy.path).arg(&public);
        need("openssh-client", &mut command)
    };
    let said = with_agent("without", "\"$0\" sign \"$2\" --key \"$3\"");
    said.failed(2, "key.agent");
    assert!(said.stderr.contains("does not hold"), "{said:?}");
    let said = with_agent(
        "with",
        "ssh-add -q \"$1\" && \"$0\" sign \"$2\" --key \"$3\"",
    );
    said.succeeded();
    let list = keys().list("a@b {operator}\nc@d {second}\n");
    fs::write(&copy.signers, list).unwrap();
    copy.verify(&["--threshold", "2"]).succeeded();
    let mut command = tool();
    command
        .env_remove("SSH_AUTH_SOCK")
        .arg("sign")
        .arg(&copy.path);
    run(command.arg("--key").arg(&public)).failed(2, "key.agent");
    let mut command = tool();
    command
        .env("SSH_AUTH_SOCK", "/nonexistent")
        .arg("sign")
        .arg(&copy.path);
    run(command.arg("--key").arg(&public)).failed(2, "key.agent");
}

#[test]
fn unusable_keys_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let copy = plain().copy();
    let path = |name: &str| folder.path().join(name);
    for kind in ["rsa", "ecdsa"] {
        let mut ssh = Command::new("ssh-keygen");
        ssh.args(["-q", "-t", kind, "-N", "", "-f"]).arg(path(kind));
        assert_eq!(need("openssh-client", &mut ssh).status, 0);
        sign(&copy, &path(kind), &[]).failed(2, "key.unusable");
    }
    fs::write(path("text"), "not a key").unwrap();
    sign(&copy, &path("text"), &[]).failed(2, "key.unusable");
    fs::write(path("bytes"), [0xff; 40]).unwrap();
    sign(&copy, &path("bytes"), &[]).failed(2, "key.unusable");
    sign(&copy, &path("none"), &[]).failed(2, "key.unreadable");
    sign(&copy, folder.path(), &[]).failed(2, "key.unreadable");
    fs::copy(keys().private("operator"), path("open")).unwrap();
    fs::set_permissions(path("open"), fs::Permissions::from_mode(0o644)).unwrap();
    let said = sign(&copy, &path("open"), &[]);
    said.failed(2, "key.unusable");
    assert!(said.stderr.contains("chmod 600"), "{said:?}");
}
