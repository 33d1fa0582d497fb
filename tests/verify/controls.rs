//! Controls that are not what they say they are. Every forgery here comes with
//! the digests, the derived fields and the stamp that go with it, so only what
//! the conversations and the settings themselves say can give it away.

use crate::common::bundle::write_restamped;
use crate::common::forgery::Forgery;
use crate::common::{applicable, read_json, verify};
use crate::golden::full;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Evidence of a real run with controls.
pub fn real() -> &'static Path {
    &full().path
}

/// A copy of that evidence.
pub fn forgery() -> Forgery {
    Forgery::of(real())
}

#[test]
fn an_untouched_copy_is_accepted() {
    let mut untouched = forgery();
    let before = untouched.value.clone();
    untouched.derive();
    assert_eq!(untouched.value, before);
    let lines = untouched.lines("control-lock.ndjson");
    untouched.write("control-lock.ndjson", &lines);
    write_restamped(&untouched.path, untouched.value.clone());
    verify(&untouched.path, &["--require-artifacts"]).succeeded();
}

#[test]
fn a_lock_that_was_not_as_the_control_says_is_noticed() {
    for (name, lock) in [("lock", true), ("hostname", false)] {
        let file = format!("control-{name}.ndjson");
        let mut forged = forgery();
        let mut lines = forged.lines(&file);
        assert_eq!(lines[1]["challenge"]["lock"], !lock);
        lines[1]["challenge"]["lock"] = lock.into();
        forged.write(&file, &lines);
        forged.refused(1, &format!("{name}: the lock was not as it says"));
    }
}

#[test]
fn no_two_conversations_share_a_nonce() {
    for other in ["transcript.ndjson", "control-device.ndjson"] {
        let mut forged = forgery();
        let nonce = forged.lines(other)[1]["challenge"]["nonce"].clone();
        let mut lines = forged.lines("control-lock.ndjson");
        Forgery::set_nonce(&mut lines, &nonce);
        forged.write("control-lock.ndjson", &lines);
        forged.refused(1, "lock: it belongs to another run or to another control");
    }
}

/// Another control's words under a nonce of their own.
#[test]
fn a_conversation_is_not_used_twice() {
    let mut forged = forgery();
    let own = forged.lines("control-hostname.ndjson");
    let nonce = own[1]["challenge"]["nonce"].clone();
    let mut lines = forged.lines("control-suid-file.ndjson");
    Forgery::set_nonce(&mut lines, &nonce);
    forged.write("control-hostname.ndjson", &lines);
    forged.refused(1, "hostname: its conversation is another one");

    // The file itself, listed once and used by both.
    let mut forged = forgery();
    let path = forged.control("suid-file")["artifact_path"].clone();
    forged.control("hostname")["artifact_path"] = path;
    forged.refused_by("EV-ARTIFACTS", 1, "is not among the artifacts");
}

/// The run's own words, cut down to what the control was asked.
#[test]
fn the_runs_own_conversation_is_no_control() {
    let mut forged = forgery();
    let nonce = forged.lines("control-hostname.ndjson")[1]["challenge"]["nonce"].clone();
    let heavy = |id: &Value| id.as_str().unwrap().starts_with("XP-LIM-");
    let mut lines = forged.lines("transcript.ndjson");
    lines.retain(|line| {
        !line["observation"]["probe"].is_string() || !heavy(&line["observation"]["probe"])
    });
    let asked = lines[1]["challenge"]["probes"].as_array_mut().unwrap();
    asked.retain(|id| !heavy(id));
    let observations = lines
        .iter()
        .filter(|l| l["observation"].is_object())
        .count();
    lines.last_mut().unwrap()["done"]["observations"] = observations.into();
    Forgery::set_nonce(&mut lines, &nonce);
    forged.write("control-hostname.ndjson", &lines);
    forged.refused(1, "hostname: something else flipped");

    // Without any pretence.
    let mut forged = forgery();
    let path = forged.value["probes"][0]["artifact_path"].clone();
    forged.control("cpu")["artifact_path"] = path;
    forged.refused_by("EV-ARTIFACTS", 1, "is not among the artifacts");
    let mut forged = forgery();
    let lines = forged.lines("transcript.ndjson");
    forged.write("control-cpu.ndjson", &lines);
    forged.refused(1, "cpu: the prober was asked something else");
}

#[test]
fn a_control_cannot_be_left_out_or_renamed() {
    let mut forged = forgery();
    let gone = forged.value["controls"].as_array_mut().unwrap().remove(3);
    let name = gone["control"].as_str().unwrap();
    forged.unlist(&format!("control-{name}.ndjson"));
    forged.refused(3, "not exactly the known controls");
    let mut forged = forgery();
    let path = forged.control("memory")["artifact_path"].clone();
    forged.control("cpu")["artifact_path"] = path;
    forged.control("cpu")["control"] = "memory".into();
    forged.unlist("control-cpu.ndjson");
    forged.refused(3, "not exactly the known controls");
}

/// A control that relaxes more than it says shows less than it says.
#[test]
fn a_control_with_another_changed_setting_does_not_hold() {
    let mut forged = forgery();
    forged.control("hostname")["changed"]
        .as_array_mut()
        .unwrap()
        .push(json!({"setting": "privileged", "run": "false", "control": "true"}));
    forged.refused(3, "hostname: privileged was changed from false to true");

    // The right setting, to another value than it should have.
    let mut forged = forgery();
    forged.control("pids")["changed"][0]["control"] = "0".into();
    forged.refused(3, "pids: pids_limit was changed from 32 to 0");

    let mut forged = forgery();
    let binds = &mut forged.control("extra-bind")["changed"][0]["control"];
    let mut list: Vec<Value> = serde_json::from_str(binds.as_str().unwrap()).unwrap();
    list.push(json!({"read_only": false, "source": "/", "target": "/root"}));
    *binds = Value::from(list).to_string().into();
    forged.refused(3, "extra-bind: binds was changed from");

    let mut forged = forgery();
    forged.control("capability")["changed"] = json!([]);
    forged.refused(3, "capability: cap_add was not changed from [] to");
}

/// What could not be tried is not what failed.
#[test]
fn what_is_unproven_does_not_pass_for_a_flip() {
    let mut forged = forgery();
    let output = forged.control("output");
    assert_eq!(output["flipped"], json!(["PR-FS-OUT-OK", "PR-MOUNT-1"]));
    let blind = output["unproven"].clone();
    // Under this profile no link can be made anywhere, which is proven there as well.
    let mut blinds = output["blinds"].as_array().unwrap().clone();
    blinds.retain(|probe| probe != "XP-FS-SPECIAL");
    assert_eq!(blind, Value::from(blinds));
    output["flipped"] = json!(["PR-EXEC-1", "PR-FS-OUT-OK", "PR-MOUNT-1"]);
    forged.refused(
        3,
        "output: flipped PR-EXEC-1 PR-FS-OUT-OK PR-MOUNT-1 instead",
    );

    let mut forged = forgery();
    let output = forged.control("output");
    output["unproven"] = json!([]);
    forged.refused(1, "output: something else flipped");

    let mut forged = forgery();
    let network = forged.control("network");
    network["flipped"] = json!([]);
    network["unproven"] = json!(["PR-NET-2"]);
    forged.refused(
        3,
        "network: flipped nothing instead of PR-NET-2, unproven PR-NET-2",
    );
}

/// The sweep with marks, changed in the evidence and in the conversation.
fn with_marks(change: impl Fn(&str) -> String) -> Forgery {
    let mut forged = forgery();
    let mut lines = forged.lines("control-marks.ndjson");
    let place = lines
        .iter()
        .position(|line| line["observation"].is_object());
    let seen = &mut lines[place.unwrap()]["observation"]["seen"]["value"];
    *seen = change(seen.as_str().unwrap()).into();
    forged.value["raw"]["marked_sweep"] = seen.clone();
    forged.write("control-marks.ndjson", &lines);
    forged
}

fn verified(mut forged: Forgery) -> crate::common::Said {
    forged.derive();
    write_restamped(&forged.path, forged.value);
    verify(&forged.path, &[])
}

/// What the profile allows and a filter stops, or what the prober could not have told
/// without: another filter stands there than the one that is named.
#[test]
fn a_filter_that_is_not_the_profile_is_seen_by_its_marks() {
    let number = |name: &str| tki_evidence::syscalls::number(name).unwrap();
    let answers = |name: &str, answer: &str| {
        let entry = format!(" {}=", number(name));
        with_marks(|sweep| {
            let sweep = format!(" {sweep} ");
            let at = sweep.find(&entry).unwrap() + entry.len();
            let end = at + sweep[at..].find(' ').unwrap();
            format!("{}{answer}{}", &sweep[..at], &sweep[end..])
                .trim()
                .to_owned()
        })
    };
    for (name, answer) in [
        ("futex", "ERRNO_1009"),
        ("futex", "SIGSYS"),
        ("write", "ERRNO_1009"),
        ("socket", "EINVAL"),
    ] {
        let said = verified(answers(name, answer));
        assert_eq!(said.status, 1, "{name}: {said:?}");
        let sweep = said
            .stdout
            .lines()
            .find(|line| line.contains("XP-ABI-SWEEP"));
        let sweep = sweep.unwrap();
        assert!(
            sweep.starts_with("FALSE") && sweep.contains(name),
            "{sweep}"
        );
    }
    // EPERM alone is no filter's: the kernel gives it, too.
    verified(answers("futex", "EPERM")).succeeded();
}

/// An engine that hands no errno on shows nothing, and reading decides.
#[test]
fn without_marks_it_is_said_that_nothing_was_shown() {
    let mut silent = with_marks(|sweep| sweep.replace("ERRNO_1009", "EPERM"));
    silent.control("marks")["unproven"] = json!(["XP-ABI-SWEEP"]);
    silent.derive();
    assert_eq!(silent.control("marks")["holds"], false);
    write_restamped(&silent.path, silent.value.clone());
    let said = verify(&silent.path, &[]);
    said.succeeded();
    assert!(said.stdout.contains("no mark came back"), "{said:?}");
    let others = applicable("docker", &silent.value).len() - 1;
    let shown = format!("{others} controls, each flips its set; marks shows nothing");
    assert!(said.stdout.contains(&shown), "{said:?}");
    // Who relies on it demands it.
    let policy = silent.path.with_extension("toml");
    let text = "schema = \"tki-attest/policy/v1\"\nrequired_controls = [\"marks\"]\n";
    fs::write(&policy, text).unwrap();
    let said = verify(&silent.path, &["--policy", policy.to_str().unwrap()]);
    assert_eq!(said.status, 3, "{said:?}");
    verify(real(), &["--policy", policy.to_str().unwrap()]).succeeded();
    // A sweep that is none is no silence.
    let mut cut = with_marks(|sweep| sweep.split(' ').take(300).collect::<Vec<_>>().join(" "));
    cut.control("marks")["unproven"] = json!(["XP-ABI-SWEEP"]);
    assert_eq!(verified(cut).status, 1);
    // What the evidence says must be what the conversation says.
    let mut forged = forgery();
    let sweep = forged.value["raw"]["marked_sweep"].as_str().unwrap();
    forged.value["raw"]["marked_sweep"] = sweep.replace("ERRNO_1009", "SIGSYS").into();
    forged.refused(1, "marks: its sweep is not that of the evidence");
}

/// One deadline for the run and all its controls: a control that is asked later has
/// less time, and the label says when it is over.
#[test]
fn controls_get_what_is_left_of_the_runs_time() {
    let evidence = forgery();
    let limit = |name: &str| {
        let challenge = &evidence.lines(name)[1]["challenge"];
        challenge["overall_deadline_ms"].as_u64().unwrap()
    };
    let run = limit("transcript.ndjson");
    assert!(run < 60_000, "{run}");
    for control in applicable("docker", &evidence.value) {
        let left = limit(&format!("control-{}.ndjson", control.name));
        assert!(left < run, "{}: {left} of {run}", control.name);
    }
    let container = read_json(&evidence.file("container.json"));
    let label = &container["Config"]["Labels"]["dev.tki.attest.deadline"];
    let label: u64 = label.as_str().unwrap().parse().unwrap();
    let started = evidence.value["started"].as_str().unwrap();
    let started = tki_attest::clock::parse_rfc3339(started).unwrap();
    assert!(
        (started..=started + 61).contains(&label),
        "{started} {label}"
    );
}

/// A host that could not look says so, and nobody fills its view in.
#[test]
fn a_view_from_outside_is_there_or_is_said_to_be_missing() {
    let step = |forged: Forgery| {
        let mut forged = forged;
        forged.derive();
        write_restamped(&forged.path, forged.value);
        let said = verify(&forged.path, &[]);
        let line = said.stdout.lines().find(|l| l.contains("EV-OUTSIDE"));
        (said.status, line.unwrap().to_owned())
    };
    let (status, line) = step(forgery());
    assert!(status == 0 && line.starts_with("ok "), "{line}");

    let mut said_missing = forgery();
    said_missing.value["witnesses"]["outside"]["available"] = false.into();
    let (status, line) = step(said_missing);
    assert!(status == 1 && line.starts_with("FALSE "), "{line}");

    let mut emptied = forgery();
    let nothing = tki_evidence::evidence::OutsideFacts::default();
    emptied.value["raw"]["outside"] = serde_json::to_value(nothing).unwrap();
    let (status, line) = step(emptied);
    assert!(status == 1 && line.starts_with("FALSE "), "{line}");
}

/// What the host had no right to see does not spoil evidence that says so, unless a policy
/// demands it. A lie about it does.
#[test]
fn a_view_from_outside_may_lack_what_the_user_has_no_right_to() {
    let both = json!(["namespaces", "descriptors"]);
    let without_right = |absent: &Value| {
        let mut forged = forgery();
        let outside = &mut forged.value["raw"]["outside"];
        outside["namespaces"] = json!([]);
        outside["descriptors"] = "".into();
        outside["absent"] = absent.clone();
        forged
    };
    let mut honest = without_right(&both);
    honest.derive();
    let not_proven = honest.value["not_proven"].to_string();
    assert!(not_proven.contains("absent, no right"), "{not_proven}");
    assert_eq!(honest.value["status"], "SANDBOX_ATTESTED");
    write_restamped(&honest.path, honest.value);
    let said = verify(&honest.path, &[]);
    said.succeeded();
    let step = said.stdout.lines().find(|l| l.contains("EV-OUTSIDE"));
    let step = step.unwrap();
    let absent = "absent, no right: namespaces, descriptors";
    assert!(step.starts_with("ok ") && step.contains(absent), "{step}");
    assert!(
        said.stdout.contains("sudo tki-attest run --venue vps"),
        "{said:?}"
    );

    let policy = honest.path.with_extension("toml");
    let text = "schema = \"tki-attest/policy/v1\"\nrequire_outside = true\n";
    fs::write(&policy, text).unwrap();
    let flags = ["--policy", policy.to_str().unwrap()];
    let said = verify(&honest.path, &flags);
    assert_eq!(said.status, 3, "{said:?}");
    let step = said.stdout.lines().find(|l| l.contains("EV-POLICY"));
    let step = step.unwrap();
    assert!(
        step.starts_with("BLOCKED ") && step.contains(absent),
        "{step}"
    );
    verify(real(), &flags).succeeded();

    for absent in [
        json!([]),
        json!(["descriptors"]),
        json!(["namespaces"]),
        json!(["namespaces", "descriptors", "status"]),
    ] {
        without_right(&absent).refused_by("EV-OUTSIDE", 1, "raw.outside");
    }
    let mut filled = forgery();
    filled.value["raw"]["outside"]["absent"] = both;
    filled.refused_by("EV-OUTSIDE", 1, "it is said to be absent, and is there");
}
