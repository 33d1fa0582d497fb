//! What the command line names → what a verifier has in hand, and what a sandbox is made of.

use crate::cli::{AssuranceLevel, Controls, SandboxArgs, Venue, VerifyFlags};
use crate::failure::Failure;
use crate::sandbox::limit::Limit;
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
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
        require_assurance: flags.require_assurance.map(assurance),
        max_age: flags.max_age,
        evidence_only: flags.evidence_only,
        clock: as_of.map_or_else(brought::now, |now| Clock { now, given: true }),
        known: brought::known()?,
    })
}

/// A level by its name.
pub fn assurance(level: AssuranceLevel) -> Assurance {
    match level {
        AssuranceLevel::SelfReported => Assurance::SelfReported,
        AssuranceLevel::Signed => Assurance::Signed,
        AssuranceLevel::SignedFresh => Assurance::SignedFresh,
    }
}

/// The sandbox's profile, and the limits in it that somebody chose.
pub fn sandbox(args: &SandboxArgs) -> Result<(Profile, Vec<Limit>), Failure> {
    let seccomp = Seccomp::resolve(&args.seccomp)?;
    let (limits, chosen) = match &args.profile {
        Some(file) => Limits::read_chosen(file)?,
        None => (Limits::default(), Vec::new()),
    };
    Ok((Profile { seccomp, limits }, chosen))
}

/// The control runs of a venue, if nobody chooses.
pub fn usual_controls(venue: Venue) -> Controls {
    match venue {
        Venue::Vps | Venue::Ci => Controls::Safe,
        Venue::Dev => Controls::None,
    }
}
