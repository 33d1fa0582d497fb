//! What was found so far, one step per check.

use crate::{Outcome, Step};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::policy::Policy;
use tki_evidence::step_code::StepCode;
use tki_text::printable;

/// The checks so far.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Steps, done or not.
    pub steps: Vec<Step>,
    /// What was let pass.
    pub weaker: Vec<String>,
    /// The artifacts were not there, and need not be.
    pub evidence_only: bool,
    waived_steps: Vec<StepCode>,
    waived_probes: Vec<String>,
}

impl Checks {
    /// No check was made yet. What a policy lets pass is applied as the steps
    /// are added, and repeated with the decision.
    pub fn new(policy: Option<&Policy>) -> Self {
        let weaker = policy.map(|policy| policy.weaker.clone());
        let weaker = weaker.unwrap_or_default();
        let steps = weaker.steps.iter().filter_map(|code| StepCode::find(code));
        Self {
            steps: Vec::new(),
            weaker: Vec::new(),
            evidence_only: false,
            waived_steps: steps.collect(),
            waived_probes: weaker.probes,
        }
    }

    /// Adds what a check came to.
    pub fn add(
        &mut self,
        code: StepCode,
        outcome: Outcome,
        expected: impl Into<String>,
        got: impl AsRef<str>,
        place: &str,
        next: &str,
    ) {
        let got = printable(got.as_ref(), 400);
        let place = printable(place, 80);
        let waived = self.waived_steps.contains(&code)
            || code == StepCode::Verdict && self.waived_probes.contains(&place);
        // Only what is not proven is ever let pass, never what is disproved.
        let outcome = if outcome == Outcome::Blocked && waived {
            Outcome::Waived
        } else {
            outcome
        };
        if outcome == Outcome::Waived {
            self.weaker.push(format!("{code} {place}: {got}"));
        }
        self.steps.push(Step {
            code,
            outcome,
            expected: expected.into(),
            got,
            place,
            next: if outcome == Outcome::Ok { "" } else { next }.into(),
        });
    }

    /// A step that could not be done, and why.
    pub fn skip(&mut self, code: StepCode, why: &str) {
        self.add(
            code,
            Outcome::NotChecked,
            "",
            why,
            "",
            "see the steps before it",
        );
    }

    /// Everything after this step could not be done.
    pub fn skip_after(&mut self, code: StepCode, why: &str) {
        for code in StepCode::ALL.into_iter().filter(|later| *later > code) {
            self.skip(code, why);
        }
    }

    /// All of these steps were done and found good.
    pub fn all_ok(&self, codes: &[StepCode]) -> bool {
        codes.iter().all(|code| {
            let mut found = self
                .steps
                .iter()
                .filter(|step| step.code == *code)
                .peekable();
            found.peek().is_some() && found.all(|step| step.outcome == Outcome::Ok)
        })
    }
}

/// `Ok` if it holds, else `False`.
pub fn truth(holds: bool) -> Outcome {
    if holds { Outcome::Ok } else { Outcome::False }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use tki_evidence::verification::{MAY_STAY, NEEDED};

    /// Every step is either needed for an acceptance or may stay undone, with a reason.
    #[test]
    fn each_step_is_needed_or_may_stay() {
        let named: BTreeSet<StepCode> = NEEDED.iter().chain(MAY_STAY).copied().collect();
        assert_eq!(named, BTreeSet::from(StepCode::ALL));
        assert_eq!(named.len(), NEEDED.len() + MAY_STAY.len());
    }
}
