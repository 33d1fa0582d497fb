//! Tools that know nothing of ours must agree with us, on what is good and on
//! what is not: jq (the stamp), openssl and securesystemslib (the signature),
//! in-toto's own library (the statement), check-jsonschema (the schemas).

use super::bases::{full, plain};
use crate::common::signed::{Copy, keys};
use crate::common::{Said, need, python_tool, root, run, said, tool};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tki_verify::dsse::Envelope;
use tki_verify::signers::AllowedSigners;

fn envelope(copy: &Copy) -> Envelope {
    Envelope::parse(&fs::read(copy.envelope()).unwrap()).unwrap()
}

/// The documented command prints the stamp; after an edit it prints another.
#[test]
fn jq_and_sha256sum_agree_on_the_stamp_of_a_signed_answer() {
    let copy = full().copy();
    let stamp = || {
        let script = "jq -cjS 'del(.evidence_sha256)' \"$1\" | sha256sum | cut -d' ' -f1";
        let mut sh = Command::new("sh");
        let said = need("jq", sh.args(["-c", script, "sh"]).arg(&copy.path));
        said.stdout.trim().to_owned()
    };
    assert_eq!(stamp(), full().value["evidence_sha256"]);
    let text = fs::read_to_string(&copy.path).unwrap();
    fs::write(&copy.path, text.replace("\"EROFS\"", "\"EPERM\"")).unwrap();
    assert_ne!(stamp(), full().value["evidence_sha256"]);
}

/// A key as openssl reads it: the fixed head of an Ed25519 public key, then its
/// 32 bytes.
fn pem(name: &str) -> String {
    use base64::Engine as _;
    let list = AllowedSigners::parse(keys().list(&format!("x {{{name}}}\n")).as_bytes());
    let key = list.unwrap().entries[0].key.to_bytes();
    let head = [
        0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
    ];
    let body = base64::engine::general_purpose::STANDARD.encode([&head[..], &key].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
}

#[test]
fn openssl_agrees_on_the_signature() {
    let copy = plain().copy();
    let place = |name: &str| copy.folder.path().join(name);
    let check = |key: &str, message: &[u8], sig: &[u8]| {
        fs::write(place("key.pem"), pem(key)).unwrap();
        fs::write(place("message"), message).unwrap();
        fs::write(place("sig"), sig).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args(["pkeyutl", "-verify", "-pubin", "-rawin", "-inkey"]);
        openssl
            .arg(place("key.pem"))
            .arg("-in")
            .arg(place("message"));
        need("openssl", openssl.arg("-sigfile").arg(place("sig"))).status == 0
    };
    let envelope = envelope(&copy);
    let (message, sig) = (envelope.signed_bytes(), envelope.signatures[0].sig.clone());
    assert!(check("operator", &message, &sig));
    assert!(!check("stranger", &message, &sig));
    let mut other = message.clone();
    *other.last_mut().unwrap() ^= 1;
    assert!(!check("operator", &other, &sig));
    // Not even the payload alone was signed, but the encoding of both.
    assert!(!check("operator", &envelope.payload, &sig));
}

const SECURESYSTEMSLIB: &str = r#"
import json, sys
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
envelope, threshold = sys.argv[1], int(sys.argv[2])
keys = []
for pair in sys.argv[3:]:
    keyid, line = pair.split("=", 1)
    keys.append(SSlibKey.from_crypto(load_ssh_public_key(line.encode()), keyid=keyid))
Envelope.from_dict(json.load(open(envelope))).verify(keys, threshold)
print("verified")
"#;

fn securesystemslib(copy: &Copy, threshold: &str, signers: &[&str]) -> Said {
    let mut python = python_tool("python");
    python
        .args(["-c", SECURESYSTEMSLIB])
        .arg(copy.envelope())
        .arg(threshold);
    for name in signers {
        let list = keys().list(&format!("x {{{name}}}\n"));
        let list = AllowedSigners::parse(list.as_bytes()).unwrap();
        let keyid = &list.entries[0].fingerprint;
        python.arg(format!("{keyid}={}", keys().public(name)));
    }
    said(python.output().unwrap())
}

#[test]
fn securesystemslib_agrees_on_signatures_and_thresholds() {
    let copy = plain().copy();
    let verified = |said: Said| said.stdout.trim() == "verified" && said.status == 0;
    assert!(verified(securesystemslib(&copy, "1", &["operator"])));
    assert!(!verified(securesystemslib(&copy, "1", &["stranger"])));
    assert!(!verified(securesystemslib(
        &copy,
        "2",
        &["operator", "second"]
    )));
    copy.sign("second").succeeded();
    assert!(verified(securesystemslib(
        &copy,
        "2",
        &["operator", "second"]
    )));
    let list = keys().list("a {operator}\nb {second}\n");
    fs::write(&copy.signers, list).unwrap();
    copy.verify(&["--threshold", "2"]).succeeded();
    // One bit of the payload: neither of us accepts it any more.
    let mut changed = envelope(&copy);
    changed.payload[20] ^= 1;
    fs::write(copy.envelope(), changed.to_line()).unwrap();
    assert!(!verified(securesystemslib(
        &copy,
        "1",
        &["operator", "second"]
    )));
    assert_eq!(copy.verify(&[]).status, 1);
}

/// What securesystemslib signs with the same key, we accept.
#[test]
fn a_signature_that_securesystemslib_made_is_accepted() {
    let copy = plain().copy();
    let script = r#"
import json, sys
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey
key = load_ssh_private_key(open(sys.argv[2], "rb").read(), None)
public = SSlibKey.from_crypto(key.public_key(), keyid=sys.argv[3])
envelope = Envelope.from_dict(json.load(open(sys.argv[1])))
envelope.signatures = {}
envelope.sign(CryptoSigner(key, public))
print(json.dumps(envelope.to_dict()))
"#;
    let keyid = envelope(&copy).signatures[0].keyid.clone();
    let mut python = python_tool("python");
    python.args(["-c", script]).arg(copy.envelope());
    python.arg(keys().private("operator")).arg(keyid);
    let made = said(python.output().unwrap());
    assert_eq!(made.status, 0, "{made:?}");
    fs::write(copy.envelope(), made.stdout).unwrap();
    copy.verify(&[]).succeeded();
}

const IN_TOTO: &str = r#"
import json, sys
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
text = open(sys.argv[1]).read()
statement = Statement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement()))
statement.validate()
if sys.argv[2] == "test-result":
    json_format.ParseDict(json.loads(text)["predicate"], test_result_pb2.TestResult())
print("valid")
"#;

#[test]
fn in_toto_agrees_on_the_statement() {
    let copy = plain().copy();
    let file = copy.folder.path().join("statement.json");
    let check = |payload: &[u8], kind: &str| {
        fs::write(&file, payload).unwrap();
        let mut python = python_tool("python");
        python.args(["-c", IN_TOTO]).arg(&file).arg(kind);
        let said = said(python.output().unwrap());
        (said.stdout.trim() == "valid", said)
    };
    let payload = envelope(&copy).payload;
    let (valid, said) = check(&payload, "test-result");
    assert!(valid, "{said:?}");
    let mut value: Value = serde_json::from_slice(&payload).unwrap();
    value["_type"] = "https://in-toto.io/Statement/v0.1".into();
    assert!(!check(value.to_string().as_bytes(), "test-result").0);
    let mut value: Value = serde_json::from_slice(&payload).unwrap();
    value["subject"] = Value::Array(Vec::new());
    assert!(!check(value.to_string().as_bytes(), "test-result").0);
    let mut value: Value = serde_json::from_slice(&payload).unwrap();
    value["predicate"]["unknown"] = 1.into();
    assert!(!check(value.to_string().as_bytes(), "test-result").0);
    // The verifier's own statement is one too.
    let out = copy.folder.path().join("v.json");
    let key = keys().private("second");
    let flags = [
        "--verification",
        out.to_str().unwrap(),
        "--attest",
        key.to_str().unwrap(),
    ];
    copy.verify(&flags).succeeded();
    let line = fs::read(copy.folder.path().join("v.intoto.jsonl")).unwrap();
    let (valid, said) = check(&Envelope::parse(&line).unwrap().payload, "svr");
    assert!(valid, "{said:?}");
}

#[test]
fn check_jsonschema_agrees_on_every_published_schema() {
    let copy = full().copy();
    let place = |name: &str| copy.folder.path().join(name);
    let (verification, binding) = (place("v.json"), place("b"));
    copy.verify(&[
        "--verification",
        verification.to_str().unwrap(),
        "--binding",
        binding.to_str().unwrap(),
    ])
    .succeeded();
    let statement = place("statement.json");
    fs::write(&statement, envelope(&copy).payload).unwrap();
    let policy = place("policy.toml");
    let text = "schema = \"tki-attest/policy/v1\"\nmax_age = \"24h\"\nassurance = \"signed\"\n";
    fs::write(&policy, text).unwrap();
    let request = place("request.json");
    fs::copy(&copy.request, &request).unwrap();
    let schemas = root().join("evidence-schema");
    let check = |schema: &str, document: &PathBuf| {
        let mut tool = python_tool("check-jsonschema");
        tool.arg("--schemafile")
            .arg(schemas.join(format!("{schema}.v1.schema.json")));
        said(tool.arg(document).output().unwrap())
    };
    for (schema, document) in [
        ("evidence", &copy.path),
        ("request", &request),
        ("policy", &policy),
        ("matrix", &schemas.join("matrix-rev4.json")),
        ("verification", &verification),
        ("binding", &binding.with_extension("json")),
        ("statement", &statement),
    ] {
        let good = check(schema, document);
        assert_eq!(good.status, 0, "{schema}: {good:?}");
        // The same with a field taken away is refused.
        let text = fs::read_to_string(document).unwrap();
        let name = if schema == "statement" {
            "_type"
        } else {
            "schema"
        };
        let broken = place(if schema == "policy" {
            "broken.toml"
        } else {
            "broken.json"
        });
        fs::write(&broken, text.replacen(name, "unknown", 1)).unwrap();
        let bad = check(schema, &broken);
        assert_eq!(bad.status, 1, "{schema}: {bad:?}");
    }
}

#[test]
fn check_jsonschema_agrees_on_packets() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let facts = place("facts");
    fs::create_dir(&facts).unwrap();
    fs::write(facts.join("list.json"), "{\"names\":[\"web\"]}").unwrap();
    fs::write(facts.join("note.md"), "one container\n").unwrap();
    fs::write(facts.join("steps.jsonl"), "{\"step\":1,\"exit\":0}\n").unwrap();
    let pack = |arguments: &[&str]| run(tool().arg("pack").arg(&facts).args(arguments));
    pack(&["--init"]).succeeded();
    let claims = facts.join("claims.toml");
    let text = fs::read_to_string(&claims).unwrap();
    let text = text.replace("# captured_by = ", "captured_by = ");
    let steps = "path = \"steps.jsonl\" # application/jsonl\ndocument_type = \"";
    let text = text.replace(&format!("{steps}other"), &format!("{steps}transcript"));
    let claim = "[[claim]]\nid = \"C\"\nkind = \"is\"\ntext = \"so\"\nevidence = [\n\
                 { item = \"note.md\", quote = \"one container\" },\n\
                 { item = \"list.json\", json = \"/names\", count = 1 },\n\
                 { item = \"steps.jsonl\", step = 1, exit = 0 },\n]\n";
    fs::write(&claims, format!("{text}\n{claim}")).unwrap();
    pack(&["--as-of", "now"]).succeeded();
    let packet = place("facts-packet").join("packet.json");
    let check = |document: &PathBuf| {
        let mut checker = python_tool("check-jsonschema");
        checker
            .arg("--schemafile")
            .arg(root().join("inspector/schema/packet.v1.schema.json"));
        run(checker.arg(document))
    };
    check(&packet).succeeded();
    let text = fs::read_to_string(&packet).unwrap();
    for (from, to) in [
        ("\"schema\"", "\"unknown\""),
        ("\"exit\": 0", "\"exit\": \"0\""),
        ("\"transcript\"", "\"truth\""),
        ("\"kind\": \"is\"", "\"kind\": \"feels\""),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let broken = place("broken.json");
        fs::write(&broken, text.replacen(from, to, 1)).unwrap();
        assert_eq!(check(&broken).status, 1, "{from}");
    }
}
