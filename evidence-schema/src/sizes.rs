//! A bundle may have 16 MiB, and its lists any length that fits. What it takes to read one
//! must grow with its length and not with its square. Each of these would have taken
//! minutes or hours; the bound on time is there to end, not to measure.

use crate::catalogue;
use crate::derive::{probe_result, results, unchanged};
use crate::evidence::{
    Holdings, ImageIdentity, Inventory, NamedFact, ProbeResult, RawFacts, Verdict, Witness,
};
use crate::judge::{Sweeps, Texts, actual, errno_or_exit};
use crate::matrix::Matrix;
use crate::observation::{Observation, Phase, State};
use crate::witness::agreement;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use std::sync::mpsc::channel;
use std::time::Duration;

/// As many short entries as fit.
pub const MANY: usize = 400_000;

/// Runs something that must come to an end. The bound is there to end, not to measure.
#[track_caller]
pub fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    std::thread::spawn(move || drop(done.send(work())));
    let generous = Duration::from_secs(60);
    result.recv_timeout(generous).expect("it takes for ever")
}

/// So many names, all different.
pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:x}")).collect()
}

#[test]
fn facts_of_witnesses() {
    let rows = ends(|| {
        let witness = |value: &str| Witness {
            available: true,
            source: String::new(),
            facts: (0..MANY)
                .map(|number| NamedFact {
                    name: format!("namespace.{number:x}"),
                    value: value.into(),
                })
                .collect(),
        };
        agreement(&witness("a"), &witness("a"), &witness("b"))
    });
    assert_eq!(rows.len(), MANY);
    assert!(rows.iter().all(|row| !row.agree));
}

/// The order and the meaning: the first value of a name counts, and names come in the
/// order in which they are first heard.
#[test]
fn facts_of_witnesses_keep_their_order() {
    let witness = |facts: &[(&str, &str)]| Witness {
        available: true,
        source: String::new(),
        facts: facts
            .iter()
            .map(|(name, value)| NamedFact {
                name: (*name).into(),
                value: (*value).into(),
            })
            .collect(),
    };
    let inside = witness(&[("z", "1"), ("a", "1"), ("z", "2"), ("alone", "1")]);
    let outside = witness(&[("b", "3"), ("a", "1")]);
    let configured = witness(&[("b", "3"), ("z", "2"), ("a", "1")]);
    let rows = agreement(&inside, &outside, &configured);
    let short: Vec<(&str, bool)> = rows.iter().map(|r| (&*r.fact, r.agree)).collect();
    assert_eq!(short, [("z", false), ("a", true), ("b", true)]);
    assert_eq!(rows[0].inside.as_deref(), Some("1"));
    assert_eq!(rows[0].outside, None);
    assert_eq!(rows[0].configured.as_deref(), Some("2"));
}

#[test]
fn images_of_an_inventory() {
    let same = ends(|| {
        let held = |images| Holdings {
            images,
            ..Holdings::default()
        };
        let (own, others) = (names(MANY), vec!["x".to_owned(); MANY]);
        let image = ImageIdentity {
            manifest_digest: String::new(),
            config_digest: String::new(),
            diff_ids: Vec::new(),
            engine_reported_id: own[0].clone(),
        };
        let inventory = Inventory {
            before: held([others.clone(), own.clone()].concat()),
            after: held([others, own.clone()].concat()),
            own_images: own,
            unchanged: true,
        };
        unchanged(&inventory, &image)
    });
    assert!(same);
}

fn observations(count: usize) -> Vec<Observation> {
    let all = (0..count).map(|number| Observation {
        errno: Some(format!("E{number}")),
        ..Observation::new(Phase::Engine, "x", State::Denied)
    });
    all.collect()
}

#[test]
fn observations_of_a_probe() {
    let (shown, errnos) = ends(|| {
        let seen = observations(MANY);
        let all = catalogue::required(false);
        let mut engine = all.filter(|probe| probe.required_phases.contains(&Phase::Engine));
        let probe = engine.next().unwrap();
        (actual(&seen), errno_or_exit(probe, &seen))
    });
    assert!(
        shown.starts_with("[engine] x -> E0; x -> E1; "),
        "{}",
        &shown[..80]
    );
    assert_eq!(errnos.split(',').count(), MANY);
}

#[test]
fn observations_with_one_proof_stay_together() {
    let seen = |operation, errno: &str| Observation {
        errno: Some(errno.into()),
        ..Observation::new(Phase::Engine, operation, State::Denied)
    };
    let seen = [seen("b", "EPERM"), seen("a", "EACCES"), seen("c", "EPERM")];
    assert_eq!(actual(&seen), "[engine] b, c -> EPERM; a -> EACCES");
}

/// A probe that is named again and again, and a mount table that each has to agree with.
#[test]
fn probes_that_are_named_again() {
    let found = ends(|| {
        let raw = RawFacts {
            mountinfo: "1 2 0:1 / /x rw - ext4 /dev/vda rw\n".repeat(100_000),
            ..RawFacts::default()
        };
        let (sweeps, matrix) = (Sweeps::default(), Matrix::built_in());
        let texts = Texts::of_run(&raw, &sweeps);
        let spec = catalogue::required(false)
            .find(|probe| probe.operations.iter().any(|op| op.id == "mount-table"))
            .unwrap();
        let phases = spec.phases.iter();
        let seen = phases.flat_map(|phase| {
            let fact = |id| Observation {
                value: Some("x".into()),
                ..Observation::new(*phase, id, State::Allowed)
            };
            spec.operations.iter().map(move |op| fact(op.id))
        });
        let one = probe_result(spec, seen.collect(), &texts, matrix, String::new());
        let one = ProbeResult {
            reasons: Vec::new(),
            actual_stderr_or_value: String::new(),
            ..one
        };
        let reasons = results(&vec![one; 10_000], &texts, matrix, false);
        reasons
            .iter()
            .map(|one| (one.verdict, one.reasons.len()))
            .collect::<Vec<_>>()
    });
    assert_eq!(found[0], found[1]);
    assert!(found[0].1 > 1000, "{:?}", found[0]);
    assert!(found[2..].iter().all(|one| *one == (Verdict::Unproven, 1)));
}
