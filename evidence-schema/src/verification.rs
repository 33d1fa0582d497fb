//! A verification: what every check came to, and what all of them come to.
//! The document that `verify --format json` prints and `--verification` writes.

use crate::evidence::MatrixRow;
use crate::step_code::StepCode;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/verification/v1";

/// How a check ended. "False" and "could not be checked" are never merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Checked, and as it should be.
    Ok,
    /// Not checked, because nobody gave what it needs. Named all the same.
    NotChecked,
    /// Not proven, and a policy with `--allow-weaker` lets it pass.
    Waived,
    /// Not proven.
    Blocked,
    /// Disproved.
    False,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct Step {
    /// Its stable code.
    #[cfg_attr(feature = "std", schemars(with = "&'static str"))]
    pub code: StepCode,
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
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
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
}

/// How far evidence can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Assurance {
    /// Consistent, but a party that can write the file could have made it.
    SelfReported,
    /// Signed by as many listed, currently valid keys as are demanded.
    Signed,
    /// Signed, and it answers the verifier's own request in time.
    SignedFresh,
}

impl Assurance {
    /// The name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Assurance::SelfReported => "self-reported",
            Assurance::Signed => "signed",
            Assurance::SignedFresh => "signed-fresh",
        }
    }
}

/// A key whose signature was found good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct Signer {
    /// The key's fingerprint, `SHA256:…`.
    pub key: String,
    /// Who it is, according to the verifier's allowed signers.
    pub principals: String,
}

/// What the verifier brought along, by SHA-256 (hex) of its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct Brought {
    /// The request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The acceptance matrix, given or built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// The allowed signers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_signers: Option<String>,
}

/// The moment that the checks refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct Moment {
    /// RFC 3339, UTC.
    pub time: String,
    /// It was given with `--verify-time` and is not the verifier's clock.
    pub given: bool,
}

/// A decision with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct Verification {
    /// Always `tki-attest/verification/v1`.
    pub schema: &'static str,
    /// The evidence file, as it was named.
    pub bundle: String,
    /// SHA-256 (hex) of the evidence file's bytes.
    pub evidence_file_sha256: String,
    /// The run's id; empty if the evidence was not read.
    pub run_id: String,
    /// The image's manifest digest; empty if the evidence was not read.
    pub image_digest: String,
    /// The decision.
    pub decision: Decision,
    /// How much the evidence can be relied on.
    pub assurance: Assurance,
    /// Keys whose signatures are good.
    pub signers: Vec<Signer>,
    /// The moment that the checks refer to.
    pub verified: Moment,
    /// What the verifier brought along.
    pub inputs: Brought,
    /// Every check, done or not, in its order.
    pub steps: Vec<Step>,
    /// The acceptance tests bound to probes.
    pub matrix: Vec<MatrixRow>,
    /// What a policy let pass that the built-in bar does not.
    pub weaker: Vec<String>,
    /// The artifacts were not there to be compared, and `--evidence-only` settled for
    /// that.
    pub evidence_only: bool,
    /// What even an accepted bundle does not prove.
    pub not_proven: Vec<String>,
}

/// Steps without which nothing is accepted: each was done and found good, or a policy let
/// it pass.
pub const NEEDED: &[StepCode] = &[
    StepCode::Form,
    StepCode::Version,
    StepCode::Stamp,
    StepCode::Time,
    StepCode::Age,
    StepCode::Image,
    StepCode::Seccomp,
    StepCode::Sandbox,
    StepCode::Texts,
    StepCode::Witnesses,
    StepCode::Inventory,
    StepCode::Probes,
    StepCode::Derived,
    StepCode::Verdict,
    StepCode::Status,
    StepCode::Matrix,
    StepCode::Venue,
    StepCode::Assurance,
];

/// Steps that may stay `not checked`; docs/trust.md says why each may.
pub const MAY_STAY: &[StepCode] = &[
    StepCode::Clock,
    StepCode::Envelope,
    StepCode::Signature,
    StepCode::Types,
    StepCode::Subjects,
    StepCode::Bytes,
    StepCode::Artifacts,
    StepCode::Transcript,
    StepCode::Request,
    StepCode::Container,
    StepCode::Outside,
    StepCode::Statement,
    StepCode::Controls,
    StepCode::Policy,
];

/// The worst outcome decides, and nothing is accepted that was not checked.
pub fn decide(steps: &[Step]) -> Decision {
    let done = |code: &StepCode| {
        let mut own = steps.iter().filter(|step| step.code == *code).peekable();
        let good = |step: &Step| matches!(step.outcome, Outcome::Ok | Outcome::Waived);
        own.peek().is_some() && own.all(good)
    };
    match steps.iter().map(|step| step.outcome).max() {
        Some(Outcome::False) => Decision::B4PrimeRejected,
        Some(Outcome::Ok | Outcome::NotChecked | Outcome::Waived) if NEEDED.iter().all(done) => {
            Decision::B4PrimeAccepted
        }
        _ => Decision::B4PrimeBlocked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    fn step(code: StepCode, outcome: Outcome) -> Step {
        Step {
            code,
            outcome,
            expected: String::new(),
            got: String::new(),
            place: String::new(),
            next: String::new(),
        }
    }

    fn good() -> Vec<Step> {
        NEEDED.iter().map(|code| step(*code, Outcome::Ok)).collect()
    }

    #[test]
    fn the_worst_outcome_decides() {
        assert_eq!(decide(&good()), Decision::B4PrimeAccepted);
        for (outcome, wanted) in [
            (Outcome::NotChecked, Decision::B4PrimeAccepted),
            (Outcome::Waived, Decision::B4PrimeAccepted),
            (Outcome::Blocked, Decision::B4PrimeBlocked),
            (Outcome::False, Decision::B4PrimeRejected),
        ] {
            let steps = [good(), vec![step(StepCode::Policy, outcome)]].concat();
            assert_eq!(decide(&steps), wanted, "{outcome:?}");
        }
    }

    /// One step that was not done, or that is not there, is enough.
    #[test]
    fn what_was_not_checked_is_not_accepted() {
        assert_eq!(decide(&[]), Decision::B4PrimeBlocked);
        for place in 0..NEEDED.len() {
            let mut skipped = good();
            skipped[place].outcome = Outcome::NotChecked;
            assert_eq!(decide(&skipped), Decision::B4PrimeBlocked, "{place}");
            let mut gone = good();
            gone.remove(place);
            assert_eq!(decide(&gone), Decision::B4PrimeBlocked, "{place}");
        }
    }

    #[test]
    fn what_may_stay_unchecked_has_its_reason() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/trust.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, text) = text.split_once("### What may stay unchecked").unwrap();
        let (table, _) = text.split_once("\n### ").unwrap();
        let rows = || table.lines().filter(|line| line.starts_with("| `EV-"));
        for code in MAY_STAY {
            let named = format!("`{code}`");
            assert!(rows().any(|row| row.contains(&named)), "{code}");
        }
    }
}
