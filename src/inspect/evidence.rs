//! The evidence before an inspection: verified here and now by the verifier of `tki-attest verify`.

use crate::inspect::error::{InspectError, NotAttested};
use crate::verify::{Assurance, Bundle, Decision, Inputs, Outcome, Step, StepCode, Verification};
use crate::verify::{brought, pipeline};
use std::path::Path;
use tki_evidence::derive;
use tki_evidence::evidence::Evidence;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::verification;

/// What is demanded of evidence.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The venue that is claimed now.
    pub venue: &'a str,
    /// It need not be accepted, if it is not false.
    pub dev: bool,
    /// How old it may be, in seconds.
    pub max_age: u64,
    /// SHA-256 (hex) of the seccomp profile that the launch will have.
    pub seccomp: &'a str,
}

/// Evidence that was verified.
#[derive(Debug)]
pub struct Attested {
    /// Its file's name.
    pub name: String,
    /// SHA-256 (hex) of the file.
    pub sha256: String,
    /// What it says.
    pub says: Evidence,
    /// The verifier's decision.
    pub decision: Decision,
    /// How far it can be relied on.
    pub assurance: Assurance,
}

impl Attested {
    /// Reads a bundle, verifies it, and refuses what is not enough for an inspection.
    pub fn read(path: &Path, demand: Demand) -> Result<Self, InspectError> {
        let bundle = Bundle::read(path)?;
        let mut inputs = Inputs {
            max_age: Some(demand.max_age),
            clock: brought::now(),
            known: brought::known()?,
            ..Inputs::default()
        };
        let opened = pipeline::open(&bundle, &inputs)?;
        // Who launches under a profile of their own knows it, and has named it.
        let chosen = opened.evidence.as_ref().and_then(derive::chosen_profile);
        let is_named = chosen.as_deref() == Some(demand.seccomp);
        inputs.seccomp_sha256 = chosen.filter(|_| is_named);
        let verification = pipeline::conclude(&opened, &bundle.artifacts, &inputs);
        judge(path, &verification, demand.dev)?;
        let says = opened
            .evidence
            .ok_or_else(|| NotAttested::Unread(path.to_owned()))?;
        if says.venue != demand.venue {
            return Err(NotAttested::Venue {
                attested: says.venue,
                claimed: demand.venue.to_owned(),
            }
            .into());
        }
        if !is_named {
            return Err(NotAttested::Profile {
                attested: says.seccomp_profile,
            }
            .into());
        }
        let name = path.file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            sha256: sha256_hex(&bundle.evidence),
            says,
            decision: verification.decision,
            assurance: verification.assurance,
        })
    }

    /// The decision lets anybody proceed.
    pub fn is_accepted(&self) -> bool {
        self.decision == Decision::B4PrimeAccepted
    }
}

/// What is false is refused always; what is only not proven, unless this is for development, and
/// then what is too old all the same.
fn judge(path: &Path, verification: &Verification, dev: bool) -> Result<(), NotAttested> {
    let first = |holds: &dyn Fn(&Step) -> bool| {
        let found = verification.steps.iter().find(|step| holds(step));
        found.map(|step| Box::new(step.clone()))
    };
    let bundle = path.to_owned();
    if let Some(step) = first(&|step| step.outcome == Outcome::False) {
        return Err(NotAttested::False { bundle, step });
    }
    let open = if dev {
        match first(&|step| step.code == StepCode::Age) {
            Some(step) if step.outcome == Outcome::Ok => return Ok(()),
            age => age,
        }
    } else if verification.decision == Decision::B4PrimeAccepted {
        return Ok(());
    } else {
        let unchecked = |step: &Step| {
            step.outcome == Outcome::NotChecked && verification::NEEDED.contains(&step.code)
        };
        first(&|step| step.outcome == Outcome::Blocked).or_else(|| first(&unchecked))
    };
    Err(match open {
        Some(step) => NotAttested::Blocked { bundle, step },
        None => NotAttested::Unread(bundle),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_evidence::verification::{Brought, Moment};

    /// Everything that is needed is in order, but for these.
    fn verification(but: &[(StepCode, Outcome)]) -> Verification {
        let usual = verification::NEEDED.iter().map(|code| {
            let own = but.iter().find(|(other, _)| other == code);
            own.copied().unwrap_or((*code, Outcome::Ok))
        });
        let others = but.iter().copied();
        let others = others.filter(|(code, _)| !verification::NEEDED.contains(code));
        let step = |(code, outcome): (StepCode, Outcome)| Step {
            code,
            outcome,
            expected: String::new(),
            got: String::new(),
            place: String::new(),
            next: String::new(),
        };
        let steps: Vec<Step> = usual.chain(others).map(step).collect();
        Verification {
            schema: verification::SCHEMA,
            bundle: String::new(),
            evidence_file_sha256: String::new(),
            run_id: String::new(),
            image_digest: String::new(),
            decision: verification::decide(&steps),
            assurance: Assurance::SelfReported,
            signers: Vec::new(),
            verified: Moment {
                time: String::new(),
                given: false,
            },
            inputs: Brought::default(),
            steps,
            matrix: Vec::new(),
            weaker: Vec::new(),
            evidence_only: false,
            not_proven: Vec::new(),
        }
    }

    #[test]
    fn not_proven_is_enough_for_development_and_false_or_stale_never_is() {
        use Outcome::{Blocked, False, NotChecked};
        use StepCode::{Age, Artifacts, Controls, Stamp, Venue, Verdict};
        for (but, in_earnest, for_dev) in [
            (&[][..], true, true),
            (&[(Venue, Blocked)], false, true),
            (&[(Controls, Blocked), (Artifacts, Blocked)], false, true),
            (&[(Verdict, NotChecked)], false, true),
            (&[(Age, Blocked)], false, false),
            (&[(Age, NotChecked)], false, false),
            (&[(Stamp, False)], false, false),
            (&[(Venue, Blocked), (Stamp, False)], false, false),
        ] {
            let verification = verification(but);
            let judge = |dev| judge(Path::new("x"), &verification, dev).is_ok();
            let [earnest, dev] = [false, true].map(judge);
            assert_eq!((earnest, dev), (in_earnest, for_dev), "{but:?}");
        }
    }
}
