//! The checks of a verification, by their codes.

use core::fmt;
use serde::Serialize;

/// A check. Written as its code, which is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum StepCode {
    /// The time that was given fits the clock.
    Clock,
    /// The envelope is one.
    Envelope,
    /// As many listed keys as are demanded have signed.
    Signature,
    /// What was signed is a statement about such evidence.
    Types,
    /// It is about exactly the files of the bundle.
    Subjects,
    /// It is about these bytes.
    Bytes,
    /// Strict JSON of the schema.
    Form,
    /// The version of the tool that wrote it.
    Version,
    /// The digest in the evidence is its own.
    Stamp,
    /// Exactly the files that the run wrote.
    Artifacts,
    /// The recorded conversation says the same.
    Transcript,
    /// It answers the verifier's own request.
    Request,
    /// Its times fit each other and the clock.
    Time,
    /// It is young enough.
    Age,
    /// The image is a known one.
    Image,
    /// The seccomp profile is a known one.
    Seccomp,
    /// The engine's description says the same.
    Container,
    /// The settings are those of the sandbox.
    Sandbox,
    /// The kernel's texts fit each other.
    Texts,
    /// The witnesses agree.
    Witnesses,
    /// The host has looked at the container.
    Outside,
    /// The engine holds what it held before.
    Inventory,
    /// Exactly the probes that are required.
    Probes,
    /// Whatever follows from what was recorded is what is said.
    Derived,
    /// One probe's verdict.
    Verdict,
    /// The run's own conclusion.
    Status,
    /// The signed statement says what the evidence does.
    Statement,
    /// The controls show that the probes can fail.
    Controls,
    /// The acceptance tests that are bound to probes.
    Matrix,
    /// The venue is one that counts.
    Venue,
    /// One demand of a policy.
    Policy,
    /// As much assurance as is demanded.
    Assurance,
}

impl StepCode {
    /// Every check, in its order. [`Self::Clock`] is there only if a time was given,
    /// [`Self::Verdict`] once per probe, [`Self::Policy`] once per demand.
    pub const ALL: [Self; 32] = [
        Self::Clock,
        Self::Envelope,
        Self::Signature,
        Self::Types,
        Self::Subjects,
        Self::Bytes,
        Self::Form,
        Self::Version,
        Self::Stamp,
        Self::Artifacts,
        Self::Transcript,
        Self::Request,
        Self::Time,
        Self::Age,
        Self::Image,
        Self::Seccomp,
        Self::Container,
        Self::Sandbox,
        Self::Texts,
        Self::Witnesses,
        Self::Outside,
        Self::Inventory,
        Self::Probes,
        Self::Derived,
        Self::Verdict,
        Self::Status,
        Self::Statement,
        Self::Controls,
        Self::Matrix,
        Self::Venue,
        Self::Policy,
        Self::Assurance,
    ];

    /// The check with this code.
    pub fn find(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == code)
    }

    /// Its code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "EV-CLOCK",
            Self::Envelope => "EV-ENVELOPE",
            Self::Signature => "EV-SIGNATURE",
            Self::Types => "EV-TYPES",
            Self::Subjects => "EV-SUBJECTS",
            Self::Bytes => "EV-BYTES",
            Self::Form => "EV-FORM",
            Self::Version => "EV-VERSION",
            Self::Stamp => "EV-STAMP",
            Self::Artifacts => "EV-ARTIFACTS",
            Self::Transcript => "EV-TRANSCRIPT",
            Self::Request => "EV-REQUEST",
            Self::Time => "EV-TIME",
            Self::Age => "EV-AGE",
            Self::Image => "EV-IMAGE",
            Self::Seccomp => "EV-SECCOMP",
            Self::Container => "EV-CONTAINER",
            Self::Sandbox => "EV-SANDBOX",
            Self::Texts => "EV-TEXTS",
            Self::Witnesses => "EV-WITNESSES",
            Self::Outside => "EV-OUTSIDE",
            Self::Inventory => "EV-INVENTORY",
            Self::Probes => "EV-PROBES",
            Self::Derived => "EV-DERIVED",
            Self::Verdict => "EV-VERDICT",
            Self::Status => "EV-STATUS",
            Self::Statement => "EV-STATEMENT",
            Self::Controls => "EV-CONTROLS",
            Self::Matrix => "EV-MATRIX",
            Self::Venue => "EV-VENUE",
            Self::Policy => "EV-POLICY",
            Self::Assurance => "EV-ASSURANCE",
        }
    }
}

impl From<StepCode> for &'static str {
    fn from(code: StepCode) -> Self {
        code.name()
    }
}

impl fmt::Display for StepCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_one_checks() {
        assert!(StepCode::ALL.is_sorted());
        for code in StepCode::ALL {
            assert_eq!(StepCode::find(code.name()), Some(code));
        }
        assert_eq!(StepCode::find("EV-NONE"), None);
    }
}
