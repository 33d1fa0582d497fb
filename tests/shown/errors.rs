use super::{snapshot, transcript};
use crate::common::{root, run, tool};
use crate::golden::plain;
use crate::masks::masked;
use std::fs;

/// A name, and the arguments; `{folder}` is a directory with the files below, `{bundle}` a
/// good bundle.
const CASES: &[(&str, &str)] = &[
    ("no-command", ""),
    ("unknown-command", "atest"),
    ("unknown-flag", "verify --offline {bundle}"),
    ("no-venue", "run"),
    (
        "unknown-venue",
        "request --venue moon --out {folder}/r.json",
    ),
    ("verify-nothing", "verify {folder}/no.json"),
    ("verify-directory-of-nothing", "verify {folder}/empty"),
    ("verify-malformed", "verify {folder}/malformed.json"),
    ("verify-text", "verify {folder}/text.txt"),
    (
        "verify-policy-missing",
        "verify {bundle} --policy {folder}/no.toml",
    ),
    (
        "verify-policy-malformed",
        "verify {bundle} --policy {folder}/policy.toml",
    ),
    (
        "verify-request-malformed",
        "verify {bundle} --request {folder}/malformed.json",
    ),
    (
        "verify-signers-malformed",
        "verify {bundle} --allowed-signers {folder}/text.txt",
    ),
    (
        "verify-matrix-malformed",
        "verify {bundle} --matrix {folder}/malformed.json",
    ),
    (
        "verify-seccomp-missing",
        "verify {bundle} --seccomp {folder}/no.json",
    ),
    ("gate-no-command", "gate {bundle} -- {folder}/no"),
    (
        "gate-verify-time",
        "gate {bundle} --verify-time 2020-01-01T00:00:00Z -- true",
    ),
    ("diff-nothing", "diff {bundle} {folder}/no.json"),
    ("sign-no-key", "sign {bundle} --key {folder}/no"),
    (
        "keygen-exists",
        "keygen --no-passphrase --out {folder}/text.txt",
    ),
    ("seccomp-missing", "seccomp lint {folder}/no.json"),
    (
        "seccomp-malformed",
        "seccomp explain {folder}/malformed.json",
    ),
    (
        "build-unsupported",
        "build --file {folder}/Dockerfile --context {folder}",
    ),
    (
        "build-base-missing",
        "build --file {folder}/Dockerfile.base --context {folder}",
    ),
    ("packet-audience", "packet --for nobody --out {folder}/p"),
    (
        "packet-unwritable",
        "packet --for operator --out {folder}/text.txt/p.md",
    ),
    ("pack-missing", "pack {folder}/empty"),
    ("pack-field", "pack {folder}/facts"),
    (
        "pack-place",
        "pack {folder}/facts --claims {folder}/place.toml",
    ),
    ("pack-check", "pack --check {folder}/empty"),
    ("survey-routes-missing", "survey --routes {folder}/no.toml"),
    (
        "run-profile-missing",
        "run --venue dev --profile {folder}/no.toml",
    ),
    ("run-address", "run --venue dev --host gopher://engine"),
    (
        "run-unreachable",
        "run --venue dev --host unix://{folder}/no.sock",
    ),
];

#[test]
fn what_goes_wrong_is_said_with_the_next_action() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("malformed.json", "{\n  \"schema\": [}");
    put("text.txt", "neither JSON nor a key\n");
    put(
        "policy.toml",
        "schema = \"tki-attest/policy/v1\"\nrequired_probe = []\n",
    );
    put("Dockerfile", "FROM scratch\nRUN true\n");
    put("Dockerfile.base", "FROM debian\n");
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::create_dir(folder.path().join("facts")).unwrap();
    let head = "schema = \"tki-attest/claims/v1\"\nid = \"p\"\nas_of = 2026-06-10T12:00:00Z\n";
    put("facts/note.md", "B4 is BLOCKED\n");
    let item = "[[item]]\nid = \"note\"\npath = \"note.md\"\ndocument_type = \"report\"\n";
    put("facts/claims.toml", &format!("{head}{item}"));
    let all = "extent = \"complete\"\nauthority = \"LOCAL\"\n\
               captured_at = 2026-06-10T11:00:00Z\ncaptured_by = \"operator\"\n";
    let claim = "[[claim]]\nid = \"C-01\"\nkind = \"says\"\ntext = \"B4 is accepted\"\n\
                 evidence = [{ item = \"note\", quote = \"B4 is ACCEPTED\" }]\n";
    put("place.toml", &format!("{head}{item}{all}{claim}"));
    let copy = plain().copy();
    for (name, line) in CASES {
        let mut command = tool();
        command.env_remove("COLUMNS").current_dir(folder.path());
        for word in line.split_whitespace() {
            let word = word.replace("{folder}", folder.path().to_str().unwrap());
            command.arg(word.replace("{bundle}", copy.path.to_str().unwrap()));
        }
        let said = run(&mut command);
        assert_ne!(said.status, 0, "{name}: {said:?}");
        assert_ne!(said.status, 4, "{name}: {said:?}");
        let folders = [folder.path(), copy.folder.path(), root()];
        let text = masked(&transcript(&said), &folders, Some(plain()));
        snapshot(&format!("error-{name}"), &text);
    }
}

/// What a person reads on standard error, a program reads on standard output.
#[test]
fn a_failure_is_told_to_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no.json").display().to_string();
    for arguments in [
        &["seccomp", "lint", &missing][..],
        &["request", "--venue", "vps", "--image", &missing],
        &["diff", &missing, &missing],
        &["run", "--venue", "dev", "--profile", &missing],
    ] {
        let plain = run(tool().args(arguments));
        assert_eq!((plain.status, plain.stdout.as_str()), (2, ""), "{plain:?}");
        let said = run(tool().args(arguments).args(["--format", "json"]));
        assert_eq!(said.status, 2, "{said:?}");
        assert_eq!(said.stderr, plain.stderr);
        let read: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        let failure = &read["failure"];
        assert_eq!(failure["exit"], 2, "{said:?}");
        let code = failure["code"].as_str().unwrap();
        assert!(plain.stderr.contains(&format!("[{code}]")), "{said:?}");
        let next = failure["next"].as_str().unwrap();
        assert!(!next.is_empty() && plain.stderr.contains(next), "{said:?}");
    }
}
