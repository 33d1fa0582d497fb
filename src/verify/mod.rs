//! Evidence → decision. No engine, no network, no write, no clock but the one
//! that is handed in. [`pipeline`] is the order of the checks, one file per
//! stage does them: [`seal`] (envelope, signature, types, subjects, bytes),
//! [`version`] (who wrote it), [`artifacts`], [`transcripts`] with their [`terms`] and
//! [`container`] (the files beside the evidence),
//! [`answer`] (request, times), [`origin`] (image, profile, settings),
//! [`texts`] (kernel texts), [`facts`] (witnesses, verdicts), [`conclusions`] (controls, matrix, venue)
//! and [`demands`] (policy, assurance). [`bundle`] is what is verified,
//! [`inputs`] what the verifier brings along, [`checks`] what was found so far,
//! [`many`] many bundles at once.

pub mod answer;
pub mod artifacts;
pub mod bundle;
pub mod checks;
pub mod conclusions;
pub mod container;
pub mod demands;
pub mod facts;
pub mod inputs;
pub mod many;
pub mod origin;
pub mod pipeline;
pub mod seal;
pub mod terms;
pub mod texts;
pub mod transcripts;
pub mod version;

pub use bundle::Bundle;
pub use inputs::{Inputs, Known};
pub use pipeline::verify;
pub use tki_evidence::verification::{Assurance, Decision, Outcome, Step, Verification};

use crate::exit::Exit;

/// The exit code that goes with a decision.
pub fn exit(decision: Decision) -> Exit {
    match decision {
        Decision::B4PrimeAccepted => Exit::Done,
        Decision::B4PrimeRejected => Exit::Disproved,
        Decision::B4PrimeBlocked => Exit::Blocked,
    }
}
