//! #22: the self-check in sandboxes of which one thing is relaxed.

use crate::common::acceptance::proof;
use crate::common::by_hand::ByHand;
use crate::common::{attest, evidence_in, need, whole_engine};
use std::collections::BTreeSet;
use std::process::Stdio;

/// What is relaxed, and the invariants that are then missing.
const RELAXED: [(&str, &[&str]); 13] = [
    ("a variable more", &["environment"]),
    ("a mount more", &["two-binds"]),
    ("a program before it", &["pid-1"]),
    ("another file as the marker", &["sandbox-image"]),
    ("no /in", &["in-mount"]),
    ("no /out", &["out-mount"]),
    ("/in that can be written", &["in-read-only"]),
    ("a root that can be written", &["rootfs-read-only"]),
    ("/tmp that can be executed", &["mount-flags"]),
    ("root", &["non-root"]),
    ("capabilities", &["no-capabilities"]),
    ("new privileges", &["no-new-privs"]),
    (
        "no filter",
        &[
            "seccomp-filter",
            "socket-denied",
            "connect-denied",
            "ptrace-denied",
        ],
    ),
];

fn relax(what: &str, words: &mut Vec<String>) {
    let without = |words: &mut Vec<String>, part: &str| {
        let before = words.len();
        words.retain(|word| !word.contains(part));
        assert!(words.len() < before, "{part}");
    };
    match what {
        "a variable more" => words.push("--env=TOKEN=x".into()),
        "a mount more" => words.push("--tmpfs=/run:ro".into()),
        "a program before it" => {
            // The engine's own needs calls that the filter denies.
            relax("no filter", words);
            words.push("--init".into());
        }
        "another file as the marker" => words.push("--volume=/dev/null:/tki-sandbox:ro".into()),
        "no /in" => without(words, "dst=/in"),
        "no /out" => without(words, "dst=/out"),
        "/in that can be written" => words.iter_mut().for_each(|word| {
            *word = word.replace("dst=/in,readonly", "dst=/in");
        }),
        "a root that can be written" => without(words, "--read-only"),
        "/tmp that can be executed" => words.iter_mut().for_each(|word| {
            *word = word.replace("/tmp:rw,noexec,", "/tmp:rw,exec,");
        }),
        "root" => words
            .iter_mut()
            .filter(|word| word.starts_with("--user="))
            .for_each(|word| {
                *word = "--user=0:0".into();
            }),
        "capabilities" => without(words, "--cap-drop"),
        "new privileges" => {
            // With the filter and without it the engine cannot start anything.
            relax("no filter", words);
            without(words, "no-new-privileges");
        }
        "no filter" => words.iter_mut().for_each(|word| {
            *word = word.replace("seccomp=seccomp.json", "seccomp=unconfined");
        }),
        what => panic!("{what}"),
    }
}

/// A network that leads out is not made for this: what the self-check says of one is shown by a
/// file of `/proc/net` in the tests of the facts.
#[test]
fn m22_each_missing_invariant_is_named() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev", "-q"]);
    let by_hand = ByHand::new(&evidence_in(out.path()));
    let mut named = BTreeSet::new();
    for (what, missing) in RELAXED {
        let mut command = by_hand.inspector(|words| relax(what, words));
        let said = need("docker.io", command.stdin(Stdio::null()));
        assert_eq!(
            (said.status, said.stdout.as_str()),
            (3, ""),
            "{what}: {said:?}"
        );
        for name in missing {
            let line = format!("missing {name} ");
            assert!(said.stderr.contains(&line), "{what}: {name}: {said:?}");
        }
        named.extend(missing.iter().copied());
    }
    // With nothing relaxed it greets, and waits for a launcher that is not there.
    let said = need("docker.io", by_hand.inspector(|_| {}).stdin(Stdio::null()));
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stdout.starts_with("{\"hello\":"), "{said:?}");
    assert!(!said.stderr.contains("missing"), "{said:?}");
    proof(
        22,
        format!(
            "{} relaxations, {} invariants named, nothing on stdout",
            RELAXED.len(),
            named.len()
        ),
    );
}
