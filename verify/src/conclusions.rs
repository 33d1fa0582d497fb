//! Controls, matrix, venue.

use crate::artifacts::Loaded;
use crate::checks::Checks;
use crate::transcripts::Run;
use crate::{Inputs, Outcome, transcripts};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tki_evidence::calibrate::{self, Comparable};
use tki_evidence::derive;
use tki_evidence::evidence::{ControlResult, Evidence, MatrixRow, Verdict};
use tki_evidence::policy::Policy;
use tki_evidence::step_code::StepCode;
use tki_evidence::venue::{self, VenueRules};

/// What must flip is this tool's to say; what did flip follows from the
/// controls' own conversations.
pub fn controls(checks: &mut Checks, evidence: &Evidence, conversations: Option<(&Loaded, Run)>) {
    let settings = derive::without_gate(evidence);
    let kernel = evidence.runtime.kernel_kind;
    let run = Comparable::of(&settings).on(kernel, &evidence.probes);
    // That a control holds was derived again before; said otherwise, it is looked at.
    let derived = checks.all_ok(&[StepCode::Derived]);
    let doubtful = |control: &&ControlResult| !(derived && control.holds);
    let broken: Vec<String> = evidence
        .controls
        .iter()
        .filter(doubtful)
        .filter(|control| !calibrate::only_shows_nothing(control, &run))
        .filter_map(|control| {
            let why = calibrate::control_problems(control, &run);
            (!why.is_empty()).then(|| format!("{}: {}", control.control, why.join(", ")))
        })
        .collect();
    let names = evidence
        .controls
        .iter()
        .map(|control| control.control.as_str());
    let applicable = calibrate::applicable(evidence.runtime.kind(), &settings, kernel);
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
        let compare = |(loaded, run)| transcripts::compare_controls(evidence, loaded, run);
        match conversations.map(compare) {
            None => (
                Outcome::NotChecked,
                "no artifacts to recompute them from".to_owned(),
            ),
            Some(Ok(())) => (Outcome::Ok, shown(&evidence.controls)),
            Some(Err(why)) => (Outcome::False, why.to_string()),
        }
    };
    checks.add(
        StepCode::Controls,
        outcome,
        "every control changes its settings and flips its probes, no more and no fewer",
        got,
        "controls",
        "run with --controls safe, and keep the artifact directory beside the evidence",
    );
}

/// What good controls show, in a line.
fn shown(controls: &[ControlResult]) -> String {
    let silent = controls.iter().filter(|control| !control.holds);
    let silent: Vec<&str> = silent.map(|control| control.control.as_str()).collect();
    let holding = controls.len() - silent.len();
    let mut shown = format!("{holding} controls, each flips its set");
    if !silent.is_empty() {
        shown += &format!("; {} shows nothing", silent.join(", "));
    }
    shown
}

/// Every L1 test is bound to a probe and passes; gives the rows.
pub fn matrix(checks: &mut Checks, evidence: &Evidence, inputs: &Inputs) -> Vec<MatrixRow> {
    let matrix = inputs.matrix();
    let rows = matrix.bind(&evidence.probes);
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
    checks.add(
        StepCode::Matrix,
        outcome,
        format!("every L1 test of {} bound and PASS", matrix.revision),
        got,
        "matrix",
        "a test without a passing probe keeps B4′ open",
    );
    rows
}

/// The claimed venue is approved, and nothing contradicts it.
pub fn venue(checks: &mut Checks, evidence: &Evidence, inputs: &Inputs) {
    let claimed = evidence.venue.as_str();
    let rules = inputs.policy().map(Policy::venue_rules);
    let rules = rules.as_ref().unwrap_or(VenueRules::built_in());
    let signs = venue::signs_by(evidence, rules);
    let accepted = inputs.policy().map_or(&[][..], |policy| &policy.venues);
    let (outcome, got) = if claimed == "dev" {
        let outcome = if accepted.iter().any(|venue| venue == "dev") {
            Outcome::Waived
        } else {
            Outcome::Blocked
        };
        (outcome, "a developer's machine".to_owned())
    } else if !venue::APPROVED.contains(&claimed) {
        (Outcome::False, format!("{claimed:?} is no venue"))
    } else if !signs.is_empty() {
        (
            Outcome::Blocked,
            format!("{claimed}, but {}", signs.join("; ")),
        )
    } else if !venue::is_here(&evidence.venue_facts) {
        let at = &evidence.venue_facts.engine_at;
        (
            Outcome::Ok,
            format!("{claimed}, by the engine's own word alone: it is at {at}"),
        )
    } else {
        (Outcome::Ok, claimed.to_owned())
    };
    checks.add(
        StepCode::Venue,
        outcome,
        venue::APPROVED.join(" or "),
        got,
        "venue, venue_facts, runtime",
        "run on the VPS (--venue vps) or on the approved CI runner (--venue ci)",
    );
}
