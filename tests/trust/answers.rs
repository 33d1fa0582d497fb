//! Requests: written, answered, stale, another's.

use crate::common::signed::{ask, keys};
use crate::common::{names_in, read_json};
use crate::golden::{full, plain};
use std::fs;
use tki_evidence::request::control_nonce;
use tki_evidence::transcript;

#[test]
fn a_request_has_a_nonce_of_its_own_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("request.json");
    for _ in 0..3 {
        ask(&path, &["--venue", "ci", "--valid-for", "90s"]).succeeded();
    }
    let names = names_in(folder.path());
    assert_eq!(names, ["request-2.json", "request-3.json", "request.json"]);
    let nonces: Vec<String> = names
        .iter()
        .map(|name| read_json(&folder.path().join(name))["nonce"].to_string())
        .collect();
    assert!(nonces[0] != nonces[1] && nonces[1] != nonces[2] && nonces[0] != nonces[2]);
    assert!(nonces.iter().all(|nonce| nonce.len() == 66), "{nonces:?}");
    ask(
        &path,
        &["--venue", "vps", "--not-after", "2020-01-01T00:00:00Z"],
    )
    .failed(2, "request.malformed");
    ask(&folder.path().join("no/such/folder"), &["--venue", "vps"]).failed(2, "out.unwritable");
    let said = ask(&path, &["--venue", "vps", "--valid-for", "soon"]);
    assert_eq!(said.status, 2, "{said:?}");
}

/// The nonce is in the recorded challenge, in the prober's last line, and in
/// what the controls were asked.
#[test]
fn the_nonce_goes_through_the_container_and_its_controls() {
    let base = full();
    let asked = read_json(&base.request());
    let nonce = asked["nonce"].as_str().unwrap();
    assert_eq!(base.value["request"]["nonce"], nonce);
    let folder = base.path.with_extension("");
    let read = |name: &str| {
        let bytes = fs::read(folder.join(name)).unwrap();
        let last = String::from_utf8_lossy(&bytes);
        let last = last.lines().last().unwrap().to_owned();
        (transcript::read(&bytes).unwrap().0.nonce, last)
    };
    let (challenge, last) = read("transcript.ndjson");
    assert_eq!(challenge, nonce);
    assert!(last.contains("done") && last.contains(nonce), "{last}");
    let (challenge, last) = read("control-network.ndjson");
    assert_eq!(challenge, control_nonce(nonce, "network"));
    assert!(last.contains(&challenge), "{last}");
}

#[test]
fn assurance_grows_with_what_is_shown() {
    let copy = plain().copy();
    let list = copy.signers.to_str().unwrap();
    let request = copy.request.to_str().unwrap();
    for (flags, wanted) in [
        (vec![], "self-reported"),
        (vec!["--request", request], "self-reported"),
        (vec!["--allowed-signers", list], "signed"),
        (
            vec!["--allowed-signers", list, "--request", request],
            "signed-fresh",
        ),
    ] {
        let said = crate::common::verify(&copy.path, &flags);
        said.succeeded();
        let line = format!("B4_PRIME_ACCEPTED  assurance: {wanted}\n");
        assert!(said.stdout.contains(&line), "{flags:?}: {said:?}");
        // What it does not prove stands last.
        let last = said.stdout.rsplit_once("This does not prove:\n").unwrap().1;
        assert!(last.lines().all(|line| line.starts_with("  - ")), "{last}");
    }
}

/// An audit of the past says so, loudly.
#[test]
fn another_time_than_now_is_said_loudly() {
    let copy = plain().copy();
    let finished = plain().value["finished"].as_str().unwrap();
    let list = copy.signers.to_str().unwrap();
    let flags = ["--allowed-signers", list, "--verify-time", finished];
    let said = crate::common::verify(&copy.path, &flags);
    said.succeeded();
    let loud = format!("VERIFIED AS OF {finished}, NOT OF NOW");
    assert!(said.stdout.contains(&loud), "{said:?}");
    assert!(said.stdout.contains("EV-CLOCK"), "{said:?}");
    assert!(
        said.stdout.contains("That any of this holds now"),
        "{said:?}"
    );
    // A key that has run out meanwhile was valid then.
    let day = finished[..10].replace('-', "");
    let next = format!("{}Z", day.parse::<u32>().unwrap() + 10_000);
    let template = format!("o@v valid-before=\"{next}\" {{operator}}\n");
    fs::write(&copy.signers, keys().list(&template)).unwrap();
    crate::common::verify(&copy.path, &flags).succeeded();
}
