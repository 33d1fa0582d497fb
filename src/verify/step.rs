//! What a check came to, and what all of them come to.

use crate::exit::Exit;
use serde::Serialize;

/// How a check ended. "False" and "could not be checked" are never merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Checked, and as it should be.
    Ok,
    /// Not checked, because nobody gave what it needs. Named all the same.
    NotChecked,
    /// Not proven.
    Blocked,
    /// Disproved.
    False,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its stable code.
    pub code: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What it looked for.
    pub expected: String,
    /// What it found.
    pub got: String,
    /// Where.
    #[serde(rename = "where")]
    pub place: String,
    /// What to do about it; empty if nothing.
    pub next: String,
}

/// What all checks come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    /// B4′ holds.
    B4PrimeAccepted,
    /// B4′ is disproved, or the evidence is false.
    B4PrimeRejected,
    /// B4′ is not proven.
    B4PrimeBlocked,
}

impl Decision {
    /// The name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Decision::B4PrimeAccepted => "B4_PRIME_ACCEPTED",
            Decision::B4PrimeRejected => "B4_PRIME_REJECTED",
            Decision::B4PrimeBlocked => "B4_PRIME_BLOCKED",
        }
    }

    /// The exit code that goes with it.
    pub fn exit(self) -> Exit {
        match self {
            Decision::B4PrimeAccepted => Exit::Done,
            Decision::B4PrimeRejected => Exit::Disproved,
            Decision::B4PrimeBlocked => Exit::Blocked,
        }
    }
}

/// A decision with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The evidence file.
    pub bundle: String,
    /// The run's id.
    pub run_id: String,
    /// The decision.
    pub decision: Decision,
    /// How much the evidence can be relied on.
    pub assurance: &'static str,
    /// Every check, done or not.
    pub steps: Vec<Step>,
    /// What even an accepted bundle does not prove.
    pub not_proven: Vec<String>,
}

/// The worst outcome decides. A decision without a single check is none.
pub fn decide(steps: &[Step]) -> Decision {
    match steps.iter().map(|step| step.outcome).max() {
        Some(Outcome::Ok | Outcome::NotChecked) => Decision::B4PrimeAccepted,
        Some(Outcome::False) => Decision::B4PrimeRejected,
        Some(Outcome::Blocked) | None => Decision::B4PrimeBlocked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(outcome: Outcome) -> Step {
        Step {
            code: "EV-X",
            outcome,
            expected: String::new(),
            got: String::new(),
            place: String::new(),
            next: String::new(),
        }
    }

    #[test]
    fn the_worst_outcome_decides_and_nothing_is_not_accepted() {
        assert_eq!(decide(&[]), Decision::B4PrimeBlocked);
        let all = [
            Outcome::Ok,
            Outcome::NotChecked,
            Outcome::Blocked,
            Outcome::False,
        ];
        for (count, wanted) in [
            (1, Decision::B4PrimeAccepted),
            (2, Decision::B4PrimeAccepted),
            (3, Decision::B4PrimeBlocked),
            (4, Decision::B4PrimeRejected),
        ] {
            let steps: Vec<Step> = all[..count].iter().map(|o| step(*o)).collect();
            assert_eq!(decide(&steps), wanted);
        }
    }
}
