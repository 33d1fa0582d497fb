//! The checks, in their order. Nothing in the file is believed that can be
//! computed again: what the evidence derives is derived again from what it
//! records, with the functions that `run` used, and compared.

use crate::clock;
use crate::failure::Failure;
use crate::image::Identity;
use crate::report::text::printable;
use crate::verify::artifacts::{self, Checked};
use crate::verify::step::{Finding, Outcome, Step, decide};
use crate::verify::transcripts;
use std::path::Path;
use tki_evidence::calibrate;
use tki_evidence::catalogue;
use tki_evidence::derive;
use tki_evidence::evidence::{Evidence, OutsideFacts, SCHEMA, Status, Verdict};
use tki_evidence::matrix::Matrix;
use tki_evidence::settings;
use tki_evidence::stamp;
use tki_evidence::strict::{self, Value};
use tki_evidence::venue::{self, VenueRules};

/// What a verifier has in hand besides the bundle.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The image that should have been used.
    pub image: Option<Identity>,
    /// SHA-256 (hex) of the profile that should have been used.
    pub seccomp_sha256: Option<String>,
    /// Another matrix than the compiled-in one.
    pub matrix: Option<Matrix>,
    /// A bundle without its artifacts is not enough.
    pub require_artifacts: bool,
    /// Other rules on venues than the built-in ones.
    pub venue_rules: Option<VenueRules>,
    /// Digests that this tool itself vouches for.
    pub known: Known,
}

/// Digests that this tool itself vouches for.
#[derive(Debug, Default)]
pub struct Known {
    /// Its own image.
    pub image: Option<Identity>,
    /// SHA-256 (hex) and name of its own seccomp profiles.
    pub seccomp: Vec<(String, &'static str)>,
}

/// Verifies a bundle: its bytes, and the folder that its artifacts lie in.
/// The error is for what is not evidence at all.
pub fn verify(
    name: &str,
    bytes: &[u8],
    folder: &Path,
    inputs: &Inputs,
) -> Result<Finding, Failure> {
    let malformed = |why: String| {
        Failure::usage(
            "evidence.malformed",
            format!("{}: {why}", printable(name, 200)),
            "ask for the file again, as `tki-attest run` wrote it",
        )
    };
    let value =
        strict::parse(bytes).map_err(|error| malformed(printable(&error.to_string(), 300)))?;
    check_version(&value).map_err(malformed)?;
    let (evidence, _): (Evidence, _) =
        strict::parse_as(bytes).map_err(|error| malformed(printable(&error.to_string(), 300)))?;
    let mut checks = Checks {
        evidence: &evidence,
        steps: Vec::new(),
    };
    checks.form(&value);
    let there = checks.artifacts(folder, inputs.require_artifacts);
    checks.transcript(there.then_some(folder));
    checks.times();
    checks.image(inputs);
    checks.seccomp(inputs);
    checks.probe_set();
    checks.derived();
    checks.sandbox();
    checks.witnesses();
    checks.outside();
    checks.inventory();
    checks.verdicts();
    checks.controls(there.then_some(folder));
    checks.matrix(inputs);
    checks.venue(inputs);
    let steps = checks.steps;
    Ok(Finding {
        bundle: name.to_owned(),
        run_id: evidence.run_id.clone(),
        decision: decide(&steps),
        assurance: "self-reported",
        steps,
        not_proven: derive::not_proven(&evidence),
    })
}

/// A later version may mean other things by the same names.
fn check_version(value: &Value) -> Result<(), String> {
    let Value::Object(map) = value else {
        return Err("line 1, column 1: not a JSON object".into());
    };
    match map.get("schema") {
        Some(Value::String(schema)) if schema == SCHEMA => Ok(()),
        Some(Value::String(schema)) => Err(format!(
            "schema is {:?}; this tki-attest reads {SCHEMA:?}",
            printable(schema, 60)
        )),
        _ => Err("there is no `schema`: this is not evidence".into()),
    }
}

struct Checks<'a> {
    evidence: &'a Evidence,
    steps: Vec<Step>,
}

impl Checks<'_> {
    fn add(
        &mut self,
        code: &'static str,
        outcome: Outcome,
        expected: impl Into<String>,
        got: impl AsRef<str>,
        place: &str,
        next: &str,
    ) {
        self.steps.push(Step {
            code,
            outcome,
            expected: expected.into(),
            got: printable(got.as_ref(), 400),
            place: place.into(),
            next: if outcome == Outcome::Ok { "" } else { next }.into(),
        });
    }

    fn form(&mut self, value: &Value) {
        self.add(
            "EV-FORM",
            Outcome::Ok,
            "strict JSON of evidence v1",
            SCHEMA,
            "schema",
            "",
        );
        let found = stamp::stamp(value);
        let said = self.evidence.evidence_sha256.clone();
        self.add(
            "EV-STAMP",
            truth(found == said),
            found,
            said,
            "evidence_sha256",
            "the file was changed after it was written: ask for the original",
        );
    }

    /// True if every artifact is there and good.
    fn artifacts(&mut self, folder: &Path, required: bool) -> bool {
        let (outcome, got) = match artifacts::check(self.evidence, folder) {
            Checked::Good(count) => (Outcome::Ok, format!("{count} files")),
            Checked::Absent if required => (Outcome::Blocked, "none is there".into()),
            Checked::Absent => (Outcome::NotChecked, "none is there".into()),
            Checked::Bad(why) => (Outcome::False, why),
        };
        self.add(
            "EV-ARTIFACTS",
            outcome,
            "every listed file, byte for byte",
            got,
            "artifacts",
            "put the artifact directory beside the evidence",
        );
        outcome == Outcome::Ok
    }

    /// The conversation itself must say what the evidence says that it said.
    fn transcript(&mut self, folder: Option<&Path>) {
        let (outcome, got) = match folder {
            None => (Outcome::NotChecked, "no artifacts".to_owned()),
            Some(folder) => match transcripts::compare_run(self.evidence, folder) {
                Ok(lines) => (Outcome::Ok, format!("{lines} observations")),
                Err(why) => (Outcome::False, why),
            },
        };
        self.add(
            "EV-TRANSCRIPT",
            outcome,
            "the same observations and kernel texts as in the recorded conversation",
            got,
            "probes, raw",
            "put the artifact directory beside the evidence",
        );
    }

    /// What must flip is this tool's to say; what did flip follows from the
    /// controls' own conversations.
    fn controls(&mut self, folder: Option<&Path>) {
        let evidence = self.evidence;
        let run = derive::without_gate(evidence);
        let broken: Vec<String> = evidence
            .controls
            .iter()
            .filter_map(|control| {
                let why = calibrate::control_problems(control, &run);
                (!why.is_empty()).then(|| format!("{}: {}", control.control, why.join(", ")))
            })
            .collect();
        let names = evidence
            .controls
            .iter()
            .map(|control| control.control.as_str());
        let engine = &evidence.runtime.engine;
        let applicable = calibrate::applicable(engine, &evidence.sandbox.configured);
        let complete = names.eq(applicable.iter().map(|control| control.name));
        let (outcome, got) = if evidence.controls.is_empty() {
            (Outcome::NotChecked, "no controls were run".to_owned())
        } else if !complete {
            (
                Outcome::Blocked,
                "not exactly the known controls".to_owned(),
            )
        } else if !broken.is_empty() {
            (Outcome::Blocked, broken.join("; "))
        } else {
            match folder.map(|folder| transcripts::compare_controls(evidence, folder)) {
                None => (
                    Outcome::NotChecked,
                    "no artifacts to recompute them from".to_owned(),
                ),
                Some(Ok(())) => (
                    Outcome::Ok,
                    format!("{} controls, each flips its set", evidence.controls.len()),
                ),
                Some(Err(why)) => (Outcome::False, why),
            }
        };
        self.add(
            "EV-CONTROLS",
            outcome,
            "every control changes its settings and flips its probes, no more and no fewer",
            got,
            "controls",
            "run with --controls safe, and keep the artifact directory beside the evidence",
        );
    }

    fn times(&mut self) {
        let (started, finished) = (&self.evidence.started, &self.evidence.finished);
        let order = clock::parse_rfc3339(started)
            .zip(clock::parse_rfc3339(finished))
            .is_some_and(|(started, finished)| started <= finished);
        self.add(
            "EV-TIME",
            truth(order),
            "two RFC 3339 times in order",
            format!("{started} to {finished}"),
            "started, finished",
            "the times contradict each other: ask for a new run",
        );
    }

    fn image(&mut self, inputs: &Inputs) {
        let evidence = self.evidence;
        let image = &evidence.image;
        let consistent = evidence.image_digest == image.manifest_digest
            && [&image.manifest_digest, &image.config_digest]
                .into_iter()
                .chain(&image.diff_ids)
                .all(|digest| is_digest(digest))
            && !image.diff_ids.is_empty();
        let used =
            [&image.manifest_digest, &image.config_digest].contains(&&image.engine_reported_id);
        let is_same = |wanted: &Identity| {
            wanted.manifest_digest == image.manifest_digest
                && wanted.config_digest == image.config_digest
                && wanted.diff_ids == image.diff_ids
        };
        let known = inputs.known.image.as_ref();
        let known = known.filter(|own| own.manifest_digest == image.manifest_digest);
        let (outcome, expected) = if !consistent {
            (Outcome::False, "digests that agree".into())
        } else if !used {
            (Outcome::False, "a container made from this image".into())
        } else if let Some(wanted) = &inputs.image {
            (truth(is_same(wanted)), wanted.manifest_digest.clone())
        } else if let Some(own) = known {
            // The manifest's digest settles the others.
            (truth(is_same(own)), "this tool's own image".into())
        } else {
            // Another image holds another inspector, which could say anything.
            (Outcome::Blocked, "a known image".into())
        };
        self.add(
            "EV-IMAGE",
            outcome,
            expected,
            &image.manifest_digest,
            "image",
            "give the image that you expect with --image LAYOUT",
        );
    }

    fn seccomp(&mut self, inputs: &Inputs) {
        let evidence = self.evidence;
        let digest = &evidence.seccomp_sha256;
        // An exec gate may have extended the profile; what it was before counts.
        let chosen = derive::chosen_profile(evidence).unwrap_or_default();
        let known = inputs
            .known
            .seccomp
            .iter()
            .find(|(known, _)| *known == chosen);
        let text = stamp::sha256_hex(evidence.raw.seccomp_profile.as_bytes());
        let (outcome, expected) = if text != *digest {
            (Outcome::False, text)
        } else if chosen.is_empty() {
            let expected = "the chosen profile, extended by the exec gate alone";
            (Outcome::False, expected.to_owned())
        } else if evidence.sandbox.configured.seccomp != *digest {
            (Outcome::False, evidence.sandbox.configured.seccomp.clone())
        } else if let Some(wanted) = &inputs.seccomp_sha256 {
            (truth(*wanted == chosen), wanted.clone())
        } else if let Some((_, name)) = known {
            (
                truth(*name == evidence.seccomp_profile),
                format!("the built-in profile {}", evidence.seccomp_profile),
            )
        } else {
            (Outcome::NotChecked, "a known profile".into())
        };
        self.add(
            "EV-SECCOMP",
            outcome,
            expected,
            digest,
            "seccomp_sha256",
            "give the profile that you expect with --seccomp FILE",
        );
    }

    fn probe_set(&mut self) {
        let required = catalogue::required(!self.evidence.controls.is_empty());
        let wanted: Vec<&str> = required.map(|probe| probe.id).collect();
        let found: Vec<&str> = self
            .evidence
            .probes
            .iter()
            .map(|probe| probe.probe_id.as_str())
            .collect();
        self.add(
            "EV-PROBES",
            if wanted == found {
                Outcome::Ok
            } else {
                Outcome::Blocked
            },
            wanted.join(" "),
            found.join(" "),
            "probes",
            "exactly the required probes, once each and in order, must be there: ask for a new run",
        );
    }

    /// Derives everything again. A verdict that does not follow from the facts
    /// is a false statement, whoever made it.
    fn derived(&mut self) {
        let mut again = self.evidence.clone();
        derive::derive(&mut again, &Matrix::rev4());
        let difference = first_difference(self.evidence, &again);
        let (outcome, got) = match difference {
            None => (Outcome::Ok, "the same".to_owned()),
            Some(difference) => (Outcome::False, difference),
        };
        self.add(
            "EV-DERIVED",
            outcome,
            "verdicts, witnesses, matrix, summary and status that follow from the recorded facts",
            got,
            "the whole bundle",
            "what the bundle concludes does not follow from what it records: reject it",
        );
    }

    fn sandbox(&mut self) {
        let evidence = self.evidence;
        let short = settings::shortfalls(&evidence.sandbox.configured);
        let deviations: Vec<String> = derive::deviations(evidence)
            .into_iter()
            .map(|d| format!("{}: {} became {}", d.setting, d.declared, d.configured))
            .collect();
        // A limit that the host cannot set is not proven; all else is not so.
        let absent = |what: &String| what.ends_with(" limit");
        let outcome = match (short.iter().all(absent), deviations.is_empty()) {
            (true, true) if short.is_empty() => Outcome::Ok,
            (true, true) => Outcome::Blocked,
            _ => Outcome::False,
        };
        let problems = [short, deviations].concat();
        self.add(
            "EV-SANDBOX",
            outcome,
            "the deny-by-default sandbox, set as it was asked for",
            if problems.is_empty() {
                "it is".into()
            } else {
                problems.join("; ")
            },
            "sandbox",
            "the engine did not set what was asked for: use one that does",
        );
    }

    fn witnesses(&mut self) {
        let rows = &self.evidence.witnesses.agreement;
        let disagreement: Vec<String> = rows
            .iter()
            .filter(|row| !row.agree)
            .map(|row| {
                let said = |what: &Option<String>| what.clone().unwrap_or_else(|| "-".into());
                format!(
                    "{}: inside {}, outside {}, configured {}",
                    row.fact,
                    said(&row.inside),
                    said(&row.outside),
                    said(&row.configured)
                )
            })
            .collect();
        let outcome = if !disagreement.is_empty() {
            Outcome::False
        } else if rows.is_empty() {
            Outcome::Blocked
        } else {
            Outcome::Ok
        };
        let got = if disagreement.is_empty() {
            format!("{} shared facts", rows.len())
        } else {
            disagreement.join("; ")
        };
        self.add(
            "EV-WITNESSES",
            outcome,
            "agreement on every fact that two witnesses share",
            got,
            "witnesses",
            "two views of the same container contradict each other: reject it",
        );
    }

    /// The host's view is there or it is not; what is not there is never filled
    /// in by somebody else's.
    fn outside(&mut self) {
        let view = &self.evidence.witnesses.outside;
        let texts = &self.evidence.raw.outside;
        let nothing = *texts == OutsideFacts::default();
        let (outcome, got) = match (view.available, nothing) {
            (true, false) => (Outcome::Ok, format!("{} facts", view.facts.len())),
            (true, true) => (
                Outcome::False,
                "it is said to be there, and is empty".into(),
            ),
            (false, true) => (Outcome::NotChecked, view.source.clone()),
            (false, false) => (
                Outcome::False,
                "it is said to be missing, and is there".into(),
            ),
        };
        self.add(
            "EV-OUTSIDE",
            outcome,
            "the container as its host saw it",
            got,
            "witnesses.outside",
            "run as root on the engine's own host if you need the host as a witness",
        );
    }

    fn inventory(&mut self) {
        let unchanged = derive::unchanged(&self.evidence.inventory);
        let (outcome, got) = if unchanged {
            (Outcome::Ok, "unchanged")
        } else {
            (Outcome::Blocked, "changed")
        };
        self.add(
            "EV-INVENTORY",
            outcome,
            "nothing but our own image changed on the engine",
            got,
            "inventory",
            "something else changed on the engine at the same time: run again when it is quiet",
        );
    }

    fn verdicts(&mut self) {
        for probe in &self.evidence.probes {
            let outcome = match probe.verdict {
                Verdict::Pass => Outcome::Ok,
                Verdict::Unproven => Outcome::Blocked,
                Verdict::Fail => Outcome::False,
            };
            let got = match outcome {
                Outcome::Ok => probe.errno_or_exit.clone(),
                _ => format!("{}: {}", probe.verdict.name(), probe.reasons.join("; ")),
            };
            self.steps.push(Step {
                code: "EV-VERDICT",
                outcome,
                expected: probe.expected.clone(),
                got: printable(&got, 400),
                place: printable(&probe.probe_id, 40),
                next: match outcome {
                    Outcome::Ok => String::new(),
                    Outcome::False => "this boundary leaks: do not use the sandbox".into(),
                    _ => "find out why it could not be proven, then run again".into(),
                },
            });
        }
        let status = self.evidence.status;
        let outcome = match status {
            Status::SandboxAttested => Outcome::Ok,
            Status::SandboxAttestationPartial => Outcome::Blocked,
            Status::SandboxAttestationFailed => Outcome::False,
        };
        self.add(
            "EV-STATUS",
            outcome,
            Status::SandboxAttested.name(),
            status.name(),
            "status",
            "the run itself did not come to an attestation",
        );
    }

    fn matrix(&mut self, inputs: &Inputs) {
        let built_in = Matrix::rev4();
        let matrix = inputs.matrix.as_ref().unwrap_or(&built_in);
        let rows = matrix.bind(&self.evidence.probes);
        let l1 = || rows.iter().filter(|row| row.layer == "L1");
        let worst = l1()
            .map(|row| row.result)
            .max()
            .unwrap_or(Verdict::Unproven);
        let open: Vec<String> = l1()
            .filter(|row| row.result != Verdict::Pass)
            .map(|row| format!("#{} {}", row.test, row.result.name()))
            .collect();
        let outcome = match worst {
            Verdict::Pass => Outcome::Ok,
            Verdict::Unproven => Outcome::Blocked,
            Verdict::Fail => Outcome::False,
        };
        let got = if open.is_empty() {
            format!("{} tests bound, all PASS", l1().count())
        } else {
            open.join(", ")
        };
        self.add(
            "EV-MATRIX",
            outcome,
            format!("every L1 test of {} bound and PASS", matrix.revision),
            got,
            "matrix",
            "a test without a passing probe keeps B4′ open",
        );
    }

    fn venue(&mut self, inputs: &Inputs) {
        let claimed = self.evidence.venue.as_str();
        let built_in = VenueRules::built_in();
        let rules = inputs.venue_rules.as_ref().unwrap_or(built_in);
        let signs = venue::signs_by(self.evidence, rules);
        let (outcome, got) = if claimed == "dev" {
            (Outcome::Blocked, "a developer's machine".to_owned())
        } else if !venue::APPROVED.contains(&claimed) {
            (Outcome::False, format!("{claimed:?} is no venue"))
        } else if !signs.is_empty() {
            (
                Outcome::Blocked,
                format!("{claimed}, but {}", signs.join("; ")),
            )
        } else {
            (Outcome::Ok, claimed.to_owned())
        };
        self.add(
            "EV-VENUE",
            outcome,
            venue::APPROVED.join(" or "),
            got,
            "venue, venue_facts, runtime",
            "run on the VPS (--venue vps) or on the approved CI runner (--venue ci)",
        );
    }
}

fn truth(holds: bool) -> Outcome {
    if holds { Outcome::Ok } else { Outcome::False }
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Where two evidences differ first, for a person.
fn first_difference(said: &Evidence, derived: &Evidence) -> Option<String> {
    for (said, derived) in said.probes.iter().zip(&derived.probes) {
        if said != derived {
            return Some(format!(
                "{} says {} but {} follows{}",
                said.probe_id,
                said.verdict.name(),
                derived.verdict.name(),
                if said.verdict == derived.verdict {
                    " (another field of it differs)"
                } else {
                    ""
                }
            ));
        }
    }
    let parts = [
        ("controls", said.controls == derived.controls),
        ("witnesses", said.witnesses == derived.witnesses),
        ("inventory", said.inventory == derived.inventory),
        ("matrix", said.matrix == derived.matrix),
        ("summary", said.summary == derived.summary),
        ("status", said.status == derived.status),
        ("not_proven", said.not_proven == derived.not_proven),
    ];
    parts
        .iter()
        .find(|(_, same)| !same)
        .map(|(name, _)| format!("{name} does not follow"))
}
