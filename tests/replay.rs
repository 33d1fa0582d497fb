//! Runs over an engine that plays a recording: what `attest` makes of conversations, good
//! and bad, without root and without an engine. Beside the tests with real engines in the
//! binary `integration`, never instead of them: nothing here was run now, and evidence made
//! here says so where it names the engine's place.

/// An engine that plays what was recorded.
mod engine;

use crate::common::{need, root, run, tool};
use crate::golden;
use engine::{AT, Recording, Replay, Twist};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tki_attest::attest::bundle::Draft;
use tki_attest::attest::error::AttestError;
use tki_attest::attest::memory::Memory;
use tki_attest::attest::run::{Plan, attest};
use tki_attest::engine::Engine;
use tki_attest::engine::gate::GateChoice;
use tki_attest::exit::Exit;
use tki_attest::failure::Failure;
use tki_attest::host::janitor::Janitor;
use tki_attest::host::venue::Proofs;
use tki_attest::image::built_in;
use tki_attest::report::evidence as report;
use tki_attest::report::progress::Progress;
use tki_attest::report::table::{ColorChoice, Paint};
use tki_attest::sandbox::profile::{Limits, Profile};
use tki_attest::sandbox::seccomp::Seccomp;
use tki_evidence::evidence::{ControlResult, Evidence, Status};

/// A run over the recording, with this twist.
fn played(recording: &Arc<Recording>, controls: bool) -> Result<Draft, AttestError> {
    let image = built_in::image().unwrap();
    let profile = Profile {
        seccomp: Seccomp::resolve("deny-by-default").unwrap(),
        limits: Limits::default(),
    };
    // It executes this program with an argument that selects no test, and has nothing to do.
    let janitor = Janitor::start(&[]).unwrap();
    let rules = tki_attest::host::venue::rules(None).unwrap();
    let proofs = Proofs::default();
    let plan = Plan {
        venue: "dev",
        venue_rules: &rules,
        proofs: &proofs,
        profile: &profile,
        chosen: &[],
        image: &image,
        deadline: Instant::now() + Duration::from_secs(60),
        controls,
        limits: controls,
        runtime: None,
        gate: GateChoice::Off,
        memory: Memory::None,
        janitor: &janitor,
        request: None,
    };
    let mut progress = Progress::new(true, Paint::stderr(ColorChoice::Never));
    let connect = || Ok(Box::new(Replay(Arc::clone(recording))) as Box<dyn Engine>);
    let bundle = attest(connect()?, &connect, &plan, &mut progress);
    janitor.done();
    bundle
}

fn refused(twist: Twist) -> (Failure, Arc<Recording>) {
    let recording = Recording::with(twist);
    match played(&recording, true) {
        Err(error) => (error.into(), recording),
        Ok(bundle) => panic!("it went through: {:?}", bundle.evidence().status),
    }
}

fn verdicts(evidence: &Value) -> Vec<(&str, &str)> {
    let probes = evidence["probes"].as_array().unwrap().iter();
    probes
        .map(|probe| (&probe["probe_id"], &probe["verdict"]))
        .map(|(id, verdict)| (id.as_str().unwrap(), verdict.as_str().unwrap()))
        .collect()
}

#[test]
fn a_recorded_run_comes_to_what_it_came_to() {
    let recording = Recording::plain(Twist::default());
    let bundle = played(&recording, false).unwrap();
    let found = bundle.evidence();
    let paint = Paint::stdout(ColorChoice::Never);
    let shown = report::conclusion(found, Path::new("played"), paint);
    assert_eq!(found.status, Status::SandboxAttested, "{shown}");
    let value = serde_json::to_value(found).unwrap();
    assert_eq!(verdicts(&value), verdicts(&golden::plain().value));
    // The run, and the neighbour that namespaces are held against.
    assert_eq!(recording.launched.load(Ordering::Relaxed), 2);
    assert_eq!(recording.finished.load(Ordering::Relaxed), 2);
}

/// Elsewhere, namespaces are held against the neighbour's. The recorded one was gone before
/// its last controls, which the kernel gave the numbers of its namespaces again.
#[test]
fn recorded_controls_flip_what_they_flipped() {
    let recording = Recording::with(Twist::default());
    let bundle = played(&recording, true).unwrap();
    let found = bundle.evidence();
    let recorded: Evidence = serde_json::from_value(golden::full().value.clone()).unwrap();
    assert_eq!(found.controls.len(), recorded.controls.len());
    let flips = |result: &ControlResult| -> Vec<String> {
        let own = result.flipped.iter().filter(|id| *id != "XP-NS-FRESH");
        own.cloned().collect()
    };
    for (own, theirs) in found.controls.iter().zip(&recorded.controls) {
        assert_eq!(own.control, theirs.control);
        assert_eq!(flips(own), flips(theirs), "{}", own.control);
        assert_eq!(own.changed, theirs.changed, "{}", own.control);
    }
    // The run, its controls, and their neighbour.
    let launched = recording.launched.load(Ordering::Relaxed);
    assert_eq!(launched, found.controls.len() + 2);
    assert_eq!(recording.finished.load(Ordering::Relaxed), launched);
}

/// Whatever is made of a recording says what it is.
#[test]
fn what_is_made_of_a_recording_says_so() {
    let bundle = played(&Recording::plain(Twist::default()), false).unwrap();
    let value = serde_json::to_value(bundle.evidence()).unwrap();
    assert_eq!(value["venue_facts"]["engine_at"], AT);
    assert_eq!(value["venue"], "dev");
}

/// The tool that is shipped has no such engine, and none can be selected.
#[test]
fn no_program_that_is_shipped_plays_recordings() {
    let holds = |word: &str| {
        let mut grep = Command::new("grep");
        grep.args(["-aFq", word])
            .arg(env!("CARGO_BIN_EXE_tki-attest"));
        need("grep", &mut grep).status == 0
    };
    assert!(holds("tki-attest/evidence/v1"), "it is not looked at");
    for word in ["recording.invalid", "tests/golden", ".tar.gz"] {
        assert!(!holds(word), "{word}");
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--engine", "replay"][..],
        &["--engine", "recording"],
        &["--replay", "tests/golden/full.tar.gz"],
    ] {
        let mut command = tool();
        command
            .args(["run", "--venue", "dev", "--out"])
            .arg(folder.path());
        let said = run(command.args(arguments).current_dir(root()));
        assert_eq!(said.status, 2, "{arguments:?}: {said:?}");
    }
}

/// A container that is gone in the middle is no pass, whatever it said before, and what it
/// wrote is told.
#[test]
fn a_container_that_ends_early_is_told_with_its_words() {
    for (lines, when) in [
        (0, "before it said anything"),
        (1, "before it had answered"),
        (90, "before it had answered"),
    ] {
        let (failure, _) = refused(Twist {
            lines: Some(lines),
            status: 139,
            complaint: "no \u{1b}[31mroom",
            ..Twist::default()
        });
        assert_eq!(
            (failure.code, failure.exit),
            ("container.ended-early", Exit::Blocked)
        );
        for wanted in [when, "status 139", "it wrote: no "] {
            assert!(failure.message.contains(wanted), "{wanted}: {failure:?}");
        }
        assert!(!failure.message.contains('\u{1b}'), "{failure:?}");
    }
}

#[test]
fn what_is_not_the_probers_word_is_garbled() {
    for (at, line) in [
        (0, "hello"),
        (
            0,
            "{\"hello\":{\"protocol\":9,\"version\":\"0\",\"missing\":[]}}",
        ),
        (2, "{\"observation\":{}}"),
        (
            3,
            "{\"raw\":{\"name\":\"mountinfo\",\"text\":\"\",\"text\":\"\"}}",
        ),
        (2, ""),
    ] {
        let (failure, _) = refused(Twist {
            instead: Some((at, line)),
            ..Twist::default()
        });
        assert_eq!(
            (failure.code, failure.exit),
            ("inspector.garbled", Exit::Blocked),
            "{line}: {failure:?}"
        );
    }
    let (failure, _) = refused(Twist {
        more: Some("{\"info\":{\"name\":\"x\",\"text\":\"y\"}}"),
        ..Twist::default()
    });
    assert_eq!(failure.code, "inspector.garbled", "{failure:?}");
}

#[test]
fn an_prober_that_ends_badly_or_refuses_proves_nothing() {
    let (failure, _) = refused(Twist {
        status: 1,
        ..Twist::default()
    });
    assert_eq!(
        (failure.code, failure.exit),
        ("container.ended-badly", Exit::Blocked)
    );
    let (failure, _) = refused(Twist {
        instead: Some((0, "{\"refused\":{\"reason\":\"in a \\u001b[2Jcage\"}}")),
        ..Twist::default()
    });
    assert_eq!(
        (failure.code, failure.exit),
        ("inspector.refused", Exit::Blocked)
    );
    assert!(!failure.message.contains('\u{1b}'), "{failure:?}");
}

/// A control that cannot be run is named, and the others are not begun any more.
#[test]
fn the_control_that_failed_is_named() {
    let (failure, recording) = refused(Twist {
        lines: Some(3),
        status: 137,
        of: "hostname",
        ..Twist::default()
    });
    assert_eq!(
        (failure.code, failure.exit),
        ("container.ended-early", Exit::Blocked)
    );
    assert!(
        failure.message.starts_with("control hostname: "),
        "{failure:?}"
    );
    assert!(recording.launched.load(Ordering::Relaxed) >= 2);
}

#[test]
fn the_neighbour_that_failed_is_named() {
    let (failure, _) = refused(Twist {
        lines: Some(1),
        status: 1,
        of: "neighbour",
        ..Twist::default()
    });
    assert_eq!(failure.code, "container.ended-early", "{failure:?}");
    let named = "the neighbour of the controls: ";
    assert!(failure.message.starts_with(named), "{failure:?}");
}

#[test]
fn what_the_engine_refuses_is_told_in_its_words() {
    let (failure, _) = refused(Twist {
        no_image: true,
        ..Twist::default()
    });
    assert_eq!(
        (failure.code, failure.exit),
        ("image.not-held", Exit::Blocked)
    );
    let words = "no such thing as a sandbox";
    let (failure, _) = refused(Twist {
        refuses: Some(words),
        ..Twist::default()
    });
    assert_eq!(
        (failure.code, failure.exit),
        ("engine.refused", Exit::Blocked)
    );
    assert!(failure.message.contains(words), "{failure:?}");
}

/// What the engine holds afterwards and did not before is no secret.
#[test]
fn a_newcomer_on_the_engine_keeps_the_run_from_being_attested() {
    let recording = Recording::plain(Twist {
        newcomer: true,
        ..Twist::default()
    });
    let bundle = played(&recording, false).unwrap();
    let found = bundle.evidence();
    assert!(!found.inventory.unchanged);
    assert_eq!(found.status, Status::SandboxAttestationPartial);
}

/// What was played is written as a real run is, and read as what it is: of a venue that is
/// not approved, on an engine that is a recording.
#[test]
fn what_was_played_is_written_and_verified() {
    let bundle = played(&Recording::plain(Twist::default()), false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = tki_attest::attest::bundle::prepare_folder(folder.path()).unwrap();
    let checked = std::cell::Cell::new(false);
    let written = bundle.write(&out, None, |bytes, beside: &Path| {
        checked.set(!bytes.is_empty() && beside.is_dir());
        Ok::<_, Failure>(())
    });
    let written = written.unwrap();
    assert!(checked.get());
    let said = crate::common::verify(&written.path, &[]);
    let lines = said.stdout.lines();
    let wrong: Vec<&str> = lines.filter(|line| line.starts_with("FALSE ")).collect();
    assert_eq!((said.status, wrong), (3, Vec::new()), "{said:?}");
    let blocked: Vec<&str> = said
        .stdout
        .lines()
        .filter(|line| line.starts_with("BLOCKED "))
        .collect();
    assert!(
        blocked.len() == 1 && blocked[0].contains("EV-VENUE"),
        "{said:?}"
    );
}
