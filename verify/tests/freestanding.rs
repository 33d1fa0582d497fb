//! The core without a standard library: built as a program that links no C library, run on
//! bytes, and compared with what the same crate says here.

use ed25519_dalek::{Signer, SigningKey};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tki_evidence::statement::{PAYLOAD_TYPE, TEST_RESULT, TYPE};
use tki_verify::dsse::{Envelope, Signature};

/// What the program prints, from the same source.
#[path = "../freestanding/src/report.rs"]
mod report;

extern crate alloc;

const NAME: &str = "tki-verify-freestanding";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program as a freestanding one. Linking fails if anything in it needs a library.
fn build() -> PathBuf {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("freestanding");
    let flags = [
        "-Cpanic=abort",
        "-Ctarget-feature=+crt-static",
        "-Crelocation-model=static",
        "-Clink-arg=-nostartfiles",
        "-Clink-arg=-nostdlib",
        "-Clink-arg=-static",
    ];
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--quiet", "--locked", "--package", NAME])
        .args(["--features", "freestanding", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    target_dir.join(TARGET).join("debug").join(NAME)
}

/// Runs the program; gives what it prints.
fn run(program: &Path, input: &[u8]) -> String {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Parts in the form that the program reads.
fn input(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts
        .iter()
        .flat_map(|(name, part)| [name.as_bytes(), part])
    {
        bytes.extend(u32::try_from(part.len()).unwrap().to_le_bytes());
        bytes.extend(part);
    }
    bytes
}

/// An envelope over some evidence, signed, and the list that names the signer.
fn signed(evidence: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let key = SigningKey::from_bytes(&[7; 32]);
    let image = "0".repeat(64);
    let statement = serde_json::json!({
        "_type": TYPE,
        "subject": [
            { "name": "image", "digest": { "sha256": image } },
            {
                "name": "evidence.json",
                "digest": { "sha256": tki_evidence::stamp::sha256_hex(evidence) },
            },
        ],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "PASSED",
            "configuration": [],
            "passedTests": [],
            "warnedTests": [],
            "failedTests": [],
        },
    });
    let mut envelope = Envelope {
        payload: statement.to_string().into_bytes(),
        payload_type: PAYLOAD_TYPE.into(),
        signatures: Vec::new(),
    };
    envelope.signatures.push(Signature {
        keyid: String::new(),
        sig: key.sign(&envelope.signed_bytes()).to_bytes().to_vec(),
    });
    let public = ssh_key::public::Ed25519PublicKey(key.verifying_key().to_bytes());
    let public = ssh_key::PublicKey::from(public).to_openssh().unwrap();
    (
        envelope.to_line(),
        format!("somebody {public}\n").into_bytes(),
    )
}

#[test]
fn it_needs_no_library_and_decides_the_same() {
    let program = build();
    let undefined = Command::new("nm").arg("-u").arg(&program).output().unwrap();
    assert!(undefined.status.success(), "nm: {undefined:?}");
    let undefined = String::from_utf8(undefined.stdout).unwrap();
    assert_eq!(undefined, "", "it needs symbols of others");

    let evidence =
        br#"{"schema":"tki-attest/evidence/v1","tool":{"name":"tki-attest","version":"0.1.0"}}"#;
    let (envelope, signers) = signed(evidence);
    let now = ("now", &b"1800000000"[..]);
    let alone = [("evidence", &evidence[..]), now];
    let sealed = [
        &alone[..],
        &[("envelope", &envelope), ("signers", &signers)],
    ]
    .concat();
    let mut forged = envelope.clone();
    let at = forged.len() / 2;
    forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
    let forged = [&alone[..], &[("envelope", &forged), ("signers", &signers)]].concat();
    for (parts, wanted) in [
        (&alone[..], "EV-VERSION Blocked"),
        (&sealed[..], "EV-SIGNATURE Ok"),
        (&forged[..], "EV-SIGNATURE Blocked"),
        (&[("evidence", &b"{}"[..])], "evidence.malformed"),
    ] {
        let input = input(parts);
        let found = run(&program, &input);
        assert!(found.contains(wanted), "{wanted}: {found}");
        assert_eq!(found, report::report(&input));
    }
}
