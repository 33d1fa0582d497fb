//! A verification: what every check came to, and what all of them come to.
//! The document that `verify --format json` prints and `--verification` writes.

use crate::evidence::MatrixRow;
use schemars::JsonSchema;
use serde::Serialize;

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/verification/v1";

/// How a check ended. "False" and "could not be checked" are never merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Assurance {
    /// Consistent, but whoever can write the file could have made it.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Signer {
    /// The key's fingerprint, `SHA256:…`.
    pub key: String,
    /// Who it is, according to the verifier's allowed signers.
    pub principals: String,
}

/// What the verifier brought along, by SHA-256 (hex) of its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moment {
    /// RFC 3339, UTC.
    pub time: String,
    /// It was given with `--verify-time` and is not the verifier's clock.
    pub given: bool,
}

/// A decision with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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

/// The worst outcome decides. A decision without a single check is none.
pub fn decide(steps: &[Step]) -> Decision {
    let done = steps.iter().any(|step| step.outcome == Outcome::Ok);
    match steps.iter().map(|step| step.outcome).max() {
        Some(Outcome::False) => Decision::B4PrimeRejected,
        Some(Outcome::Ok | Outcome::NotChecked | Outcome::Waived) if done => {
            Decision::B4PrimeAccepted
        }
        _ => Decision::B4PrimeBlocked,
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
        assert_eq!(
            decide(&[step(Outcome::NotChecked)]),
            Decision::B4PrimeBlocked
        );
        let all = [
            Outcome::Ok,
            Outcome::NotChecked,
            Outcome::Waived,
            Outcome::Blocked,
            Outcome::False,
        ];
        for (count, wanted) in [
            (1, Decision::B4PrimeAccepted),
            (2, Decision::B4PrimeAccepted),
            (3, Decision::B4PrimeAccepted),
            (4, Decision::B4PrimeBlocked),
            (5, Decision::B4PrimeRejected),
        ] {
            let steps: Vec<Step> = all[..count].iter().map(|o| step(*o)).collect();
            assert_eq!(decide(&steps), wanted);
        }
    }
}
