//! Texts of one kernel agree with each other and with what is said beside them.

use crate::Outcome;
use crate::checks::Checks;
use crate::facts::listed;
use alloc::borrow::ToOwned;
use tki_evidence::coherent;
use tki_evidence::evidence::Evidence;
use tki_evidence::step_code::StepCode;

/// What the prober, the engine and the venue say can all be true of one kernel and
/// one container.
pub fn check(checks: &mut Checks, evidence: &Evidence) {
    let found = coherent::texts(evidence);
    let (outcome, got) = if found.is_empty() {
        (Outcome::Ok, "they agree".to_owned())
    } else if coherent::is_silent(&evidence.raw) {
        // Nothing that was said can contradict anything.
        (Outcome::Blocked, "the prober gave none".to_owned())
    } else {
        (Outcome::False, listed(&found))
    };
    checks.add(
        StepCode::Texts,
        outcome,
        "kernel texts, readings and descriptions that can be of one container",
        got,
        "raw, probes, runtime",
        "no container is like that: reject it",
    );
}
