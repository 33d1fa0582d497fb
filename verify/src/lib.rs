//! Evidence → decision, offline: has a container sandbox that denies by default been
//! attested? No engine, no network, no write, no clock but the one that is handed in. What the
//! evidence concludes is derived again from what it records, with the functions of
//! [`tki_evidence`] that wrote it, and compared; whom to trust comes from [`Inputs`] and never
//! from the bundle.
//!
//! [`pipeline`] is the order of the checks, one file per stage does them: [`seal`] (envelope,
//! signature, types, subjects, bytes), [`version`] (who wrote it), [`artifacts`],
//! [`transcripts`] with their [`terms`] and [`container`] (the files beside the evidence),
//! [`answer`] (request, times), [`origin`] (image, profile, settings),
//! [`texts`] (kernel texts), [`facts`] (witnesses, verdicts), [`conclusions`] (controls, matrix,
//! venue) and [`demands`] (policy, assurance). [`bundle`] is what is verified,
//! [`inputs`] what the verifier brings along with [`signers`], [`checks`] what was found so far.
//! [`dsse`] is the envelope.
//!
//! With the feature `std`, which is on by default, bundles are read from [`disk`], and [`many`]
//! at once. Without it the crate is bytes in, decision out.
//!
//! # Example
//!
//! ```
//! use std::collections::BTreeMap;
//! use tki_verify::artifacts::Source;
//! use tki_verify::inputs::Clock;
//! use tki_verify::{Bundle, Decision, Inputs, Outcome, StepCode, verify};
//!
//! let bundle = Bundle {
//!     name: "evidence.json".into(),
//!     // All of an evidence file; this one is from a version whose evidence is not relied on.
//!     evidence: br#"{
//!         "schema": "tki-attest/evidence/v1",
//!         "tool": { "name": "tki-attest", "version": "0.1.0" }
//!     }"#.to_vec(),
//!     // The bytes of the .intoto.jsonl file, if there is one.
//!     envelope: None,
//!     // The files beside the evidence, by path.
//!     artifacts: Source::Memory(BTreeMap::new()),
//! };
//! let inputs = Inputs {
//!     // Seconds since 1970: the caller says what time it is. Whom to trust would be here too:
//!     // the expected image, the request that was sent, a list of allowed signers.
//!     clock: Clock { now: 1_800_000_000, given: false },
//!     ..Inputs::default()
//! };
//! let verification = verify(&bundle, &inputs)?;
//! assert_eq!(verification.decision, Decision::B4PrimeBlocked);
//! let open = |step: &&tki_verify::Step| step.outcome == Outcome::Blocked;
//! let step = verification.steps.iter().find(open).expect("a reason");
//! assert_eq!(step.code, StepCode::Version);
//! println!("{}: {}; next: {}", step.code, step.got, step.next);
//! # Ok::<(), tki_verify::VerifyError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod answer;
pub mod artifacts;
pub mod bundle;
pub mod checks;
pub mod conclusions;
pub mod container;
pub mod demands;
#[cfg(feature = "std")]
pub mod disk;
pub mod dsse;
pub mod error;
pub mod facts;
#[cfg(feature = "std")]
mod folder;
pub mod inputs;
#[cfg(feature = "std")]
pub mod many;
pub mod origin;
pub mod pipeline;
pub mod seal;
pub mod signers;
pub mod terms;
pub mod texts;
pub mod transcripts;
pub mod version;

pub use bundle::Bundle;
pub use error::VerifyError;
pub use inputs::{ImageDigests, Inputs, Known};
pub use pipeline::verify;
pub use tki_evidence::step_code::StepCode;
pub use tki_evidence::verification::{Assurance, Decision, Outcome, Step, Verification};

/// The namespace that an allowed signer must be listed for, if its line names
/// any.
pub const NAMESPACE: &str = "tki-attest";
