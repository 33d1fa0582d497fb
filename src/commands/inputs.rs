//! What the command line names → what a verifier has in hand.

use crate::cli::{AssuranceLevel, VerifyFlags};
use crate::failure::Failure;
use crate::verify::inputs::Clock;
use crate::verify::{Assurance, Inputs, brought};

/// Reads everything that the flags name. The clock is this host's unless an audit
/// gives another time.
pub fn inputs(flags: &VerifyFlags, as_of: Option<u64>) -> Result<Inputs, Failure> {
    let seccomp = flags.seccomp.as_deref().map(brought::seccomp_sha256);
    let seccomp_sha256 = seccomp.transpose()?;
    let policy = |path| brought::policy(path, flags.allow_weaker);
    let signers = flags.allowed_signers.as_deref().map(brought::signers);
    Ok(Inputs {
        image: flags.image.as_deref().map(brought::image).transpose()?,
        seccomp_sha256,
        matrix: flags.matrix.as_deref().map(brought::matrix).transpose()?,
        request: flags.request.as_deref().map(brought::request).transpose()?,
        allowed_signers: signers.transpose()?,
        principal: flags.principal.clone(),
        threshold: flags.threshold.unwrap_or(1),
        policy: flags.policy.as_deref().map(policy).transpose()?,
        require_assurance: flags.require_assurance.map(|level| match level {
            AssuranceLevel::SelfReported => Assurance::SelfReported,
            AssuranceLevel::Signed => Assurance::Signed,
            AssuranceLevel::SignedFresh => Assurance::SignedFresh,
        }),
        max_age: flags.max_age,
        evidence_only: flags.evidence_only,
        clock: as_of.map_or_else(brought::now, |now| Clock { now, given: true }),
        known: brought::known()?,
    })
}
