//! Edits that come from a generator over the bundle itself. Each is made consistently, in
//! the evidence, in the artifact that repeats it and in the conversations, and everything
//! derived, every digest and the stamp are made again. Each is refused, or rests on the
//! venue's word and is told to (`tki_evidence::fields`, `not_proven`).

use super::controls;
use crate::common::consistent::{
    Taken, every_edit_is_refused_or_told, is_refusal, lines, on_all, relist, written,
};
use crate::common::edits::{Edit, Step, at, edits, generic};
use crate::common::read_json;
use crate::common::sweep::stride;
use std::collections::BTreeSet;
use tki_attest::verify::Decision;
use tki_evidence::evidence::{Evidence, OutsideFacts};
use tki_evidence::matrix::Matrix;
use tki_evidence::observation::State;
use tki_evidence::request::control_nonce;
use tki_evidence::{derive, facts, fields, remembered};

#[test]
fn every_consistent_edit_is_refused_or_rests_on_a_word_that_is_told() {
    every_edit_is_refused_or_told(controls::real());
}

/// What every prober of a run is told alike.
const SHARED: &[&str] = &[
    "protocol",
    "phases",
    "probe_deadline_ms",
    "env_canary",
    "host_canary",
    "limits",
];

impl Taken {
    /// Verifies with an edited greeting, challenge or end in the run's conversation, and
    /// in those of the controls where they say the same.
    fn said(&self, number: usize, edit: &Edit) -> Result<(), String> {
        let mut evidence = self.opened.evidence.clone().unwrap();
        let mut artifacts = self.artifacts.clone();
        let nonce = matches!(edit.path.last(), Some(Step::Key(key)) if key == "nonce");
        let shared = match edit.path.as_slice() {
            [Step::Key(message), Step::Key(key), ..] => {
                message == "hello" || SHARED.contains(&key.as_str())
            }
            _ => false,
        };
        for (path, bytes) in &mut artifacts {
            let name = path.rsplit('/').next().unwrap().to_owned();
            let control = name
                .strip_prefix("control-")
                .and_then(|n| n.strip_suffix(".ndjson"));
            if name != "transcript.ndjson" && (control.is_none() || !(shared || nonce)) {
                continue;
            }
            let mut all = lines(bytes);
            if nonce {
                let new = edit.value.as_str().unwrap_or_default();
                let new = control.map_or(new.to_owned(), |name| control_nonce(new, name));
                all[1]["challenge"]["nonce"] = new.clone().into();
                all.last_mut().unwrap()["done"]["nonce"] = new.into();
            } else {
                let number = number.min(all.len() - 1);
                *at(&mut all[number], &edit.path) = edit.value.clone();
            }
            *bytes = written(&all);
        }
        relist(&mut evidence, &artifacts);
        self.verified(&evidence, artifacts)
    }
}

#[test]
fn every_edit_of_greeting_challenge_and_end_is_refused_or_rests_on_a_word_that_is_told() {
    let taken = Taken::new(controls::real());
    let mut transcripts = taken.artifacts.iter();
    let (_, bytes) = transcripts
        .find(|(path, _)| path.ends_with("/transcript.ndjson"))
        .unwrap();
    let all = lines(bytes);
    let made = [
        (0, &all[0]),
        (1, &all[1]),
        (usize::MAX, all.last().unwrap()),
    ];
    let made = made
        .into_iter()
        .flat_map(|(number, line)| edits(line).into_iter().map(move |edit| (number, edit)));
    let made: Vec<(usize, Edit)> = made.collect();
    assert!(made.len() > 80, "{}", made.len());
    let made: Vec<(usize, Edit)> = made.into_iter().step_by(stride()).collect();
    let outcomes = on_all(&made, |(number, edit)| taken.said(*number, edit));
    let accepted = made
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.is_ok());
    let accepted = accepted.filter_map(|((_, edit), _)| {
        let name = generic(&edit.path);
        let told = fields::rests_on_word_in_conversation(&name);
        (!told).then(|| format!("{name} {}: {}", edit.kind, edit.value))
    });
    let accepted: BTreeSet<String> = accepted.collect();
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

/// A lie, made consistently in the whole bundle by a forger who knows how.
type Lie = fn(&mut Evidence);

/// Lies that no single field gives away, and the step that refuses each.
const LIES: &[(&str, &str, Lie)] = &[
    ("namespaces of the host", "EV-TEXTS", |evidence| {
        evidence.raw.namespaces = evidence.raw.host_namespaces.clone();
        evidence.raw.outside.namespaces = evidence.raw.host_namespaces.clone();
    }),
    ("57 threads, everywhere", "EV-TEXTS", |evidence| {
        each_status(evidence, |text| {
            text.replace("Threads:\t1\n", "Threads:\t57\n")
        });
    }),
    (
        "root and all capabilities after the lock",
        "EV-TEXTS",
        |evidence| {
            let text = &mut evidence.raw.proc_self_status_locked;
            *text = text.replace("58713", "0");
            *text = text.replace("CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff");
        },
    ),
    (
        "a kernel that does not count its filters",
        "EV-TEXTS",
        |evidence| {
            each_status(evidence, |text| {
                let lines = text
                    .lines()
                    .filter(|line| !line.starts_with("Seccomp_filters"));
                lines.map(|line| format!("{line}\n")).collect()
            });
        },
    ),
    ("WSL2, and nobody says so", "EV-VENUE", |evidence| {
        let version = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc) #1 SMP\n";
        evidence.raw.proc_version = version.into();
    }),
    ("a kernel 99, in all descriptions", "EV-TEXTS", |evidence| {
        evidence.runtime.kernel = "99.0.0".into();
        evidence.venue_facts.kernel = "99.0.0".into();
    }),
    ("another engine", "EV-TEXTS", |evidence| {
        evidence.runtime.engine = "embedded".into();
        let version = &evidence.runtime.engine_version;
        evidence.venue_facts.engine = format!("embedded {version}");
    }),
    ("an image that was removed", "EV-INVENTORY", |evidence| {
        let image = format!("sha256:{}", "f".repeat(64));
        evidence.inventory.before.images.push(image.clone());
        evidence.inventory.own_images.push(image);
    }),
    (
        "a removed image, and nothing about it",
        "EV-INVENTORY",
        |evidence| {
            let image = format!("sha256:{}", "f".repeat(64));
            evidence.inventory.before.images.push(image);
        },
    ),
    (
        "a view from outside without a fact",
        "EV-OUTSIDE",
        |evidence| {
            evidence.raw.outside = OutsideFacts {
                descriptors: evidence.raw.outside.descriptors.clone(),
                ..OutsideFacts::default()
            };
        },
    ),
    ("root on the host, by a map", "EV-OUTSIDE", |evidence| {
        let outside = &mut evidence.raw.outside;
        outside.status = outside.status.replace("58713", "0");
        outside.uid_map = "     58713          0          1\n".into();
        outside.gid_map = outside.uid_map.clone();
    }),
    ("/etc/shadow open", "EV-OUTSIDE", |evidence| {
        evidence.raw.outside.descriptors += ",3=/etc/shadow";
    }),
    ("the process of sshd", "EV-OUTSIDE", |evidence| {
        let status = &mut evidence.raw.outside.status;
        *status = status.replace("tki-prober", "sshd");
    }),
    (
        "/in and /out from the root of a disk",
        "EV-TEXTS",
        |evidence| {
            each_mountinfo(evidence, |line| {
                let fields: Vec<&str> = line.split(' ').collect();
                match fields[4] {
                    "/in" | "/out" => {
                        let own = format!("{} {} 254:0 / {}", fields[0], fields[1], fields[4]);
                        Some(format!("{own} {} - ext4 /dev/vda rw", fields[5]))
                    }
                    _ => Some(line.into()),
                }
            });
        },
    ),
    ("/in from another volume", "EV-TEXTS", |evidence| {
        let own = format!("/tki-attest-{}/_data", evidence.run_id);
        let raw = &mut evidence.raw;
        for table in [&mut raw.mountinfo, &mut raw.outside.mountinfo] {
            assert!(table.contains(&own), "{table}");
            *table = table.replace(&own, "/production/_data");
        }
    }),
    ("/out that this tool has made", "EV-TEXTS", |evidence| {
        evidence.sandbox.out_backing.maker = "launcher".into();
    }),
    ("a sweep that denies write", "EV-VERDICT", |evidence| {
        let mut probes = evidence.probes.iter_mut();
        let sweep = probes
            .find(|probe| probe.probe_id == derive::SWEEP)
            .unwrap();
        let value = sweep.observations[0].value.as_mut().unwrap();
        *value = value.replacen(" 1=EBADF ", " 1=EPERM ", 1);
    }),
    ("a mount table without /proc", "EV-TEXTS", |evidence| {
        each_mountinfo(evidence, |line| {
            (!line.contains(" /proc")).then(|| line.into())
        });
    }),
    (
        "a tmpfs behind /out of another size",
        "EV-TEXTS",
        |evidence| {
            evidence.sandbox.out_backing.reason = "noexec,nosuid,nodev,size=4096".into();
        },
    ),
    ("a gate that was not tried", "EV-TEXTS", |evidence| {
        evidence.sandbox.gate.reason = "not tried".into();
    }),
    (
        "a gate that was refused after the run",
        "EV-TEXTS",
        |evidence| {
            let reason = remembered::reason("listenerPath is not set", 4_102_444_799);
            evidence.sandbox.gate.reason = reason;
        },
    ),
    ("a gate that refused nothing", "EV-TEXTS", |evidence| {
        let gate = &mut evidence.sandbox.gate;
        (gate.active, gate.allowed, gate.refused) = (true, 1, 0);
        gate.reason = "a filter of the keeper's own asks it".into();
        let exec = evidence
            .probes
            .iter_mut()
            .find(|probe| probe.probe_id == "PR-EXEC-1");
        for seen in &mut exec.unwrap().observations {
            seen.state = State::Denied;
            seen.returned = Some(-1);
            seen.errno = Some("EPERM".into());
        }
    }),
];

fn each_status(evidence: &mut Evidence, change: impl Fn(&str) -> String) {
    let raw = &mut evidence.raw;
    for text in [
        &mut raw.proc_self_status,
        &mut raw.proc_self_status_locked,
        &mut raw.outside.status,
    ] {
        *text = change(text);
    }
}

/// Changes or drops lines of both mount tables, and what the probes read of them.
fn each_mountinfo(evidence: &mut Evidence, change: impl Fn(&str) -> Option<String>) {
    let raw = &mut evidence.raw;
    for text in [&mut raw.mountinfo, &mut raw.outside.mountinfo] {
        let lines = text.lines().filter_map(&change);
        *text = lines.map(|line| format!("{line}\n")).collect();
    }
    let mounts = facts::mounts(&raw.mountinfo).unwrap();
    let (table, flags) = (facts::mount_summary(&mounts), facts::flags_summary(&mounts));
    let probes = evidence.probes.iter_mut();
    for seen in probes.flat_map(|probe| &mut probe.observations) {
        match seen.operation.as_str() {
            "mount-table" => seen.value = Some(table.clone()),
            "mount-flags" => seen.value = Some(flags.clone()),
            _ => {}
        }
    }
}

#[test]
fn lies_in_many_fields_are_refused_by_the_step_that_reads_them() {
    let taken = Taken::new(controls::real());
    for (name, step, lie) in LIES {
        let mut evidence = taken.opened.evidence.clone().unwrap();
        lie(&mut evidence);
        derive::derive(&mut evidence, &Matrix::rev4());
        let artifacts = taken.consistent(&mut evidence);
        let found = taken.found(&evidence, artifacts).unwrap();
        assert_ne!(found.decision, Decision::B4PrimeAccepted, "{name}");
        let mut steps = found.steps.iter();
        let refuses = steps.any(|own| own.code.name() == *step && is_refusal(own.outcome));
        assert!(refuses, "{name}: {:#?}", found.steps);
    }
}

/// Probes that are named again and again, beside a mount table without end: what is held
/// against each other is looked through once.
#[test]
fn a_bundle_of_any_size_is_held_against_itself() {
    let mut evidence: Evidence = serde_json::from_value(read_json(controls::real())).unwrap();
    let mut probes = evidence.probes.iter();
    let masked = probes.find(|probe| probe.probe_id == "XP-FS-MASKED");
    evidence.probes = vec![masked.unwrap().clone(); 20_000];
    let table = "1 2 0:1 / /x rw - ext4 /dev/vda rw\n".repeat(100_000);
    evidence.raw.outside.mountinfo.clone_from(&table);
    evidence.raw.mountinfo = table;
    assert!(!tki_evidence::coherent::texts(&evidence).is_empty());
    tki_evidence::coherent::outside(&evidence);
}
