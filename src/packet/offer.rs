//! The packet that a BLOCKED command offers.

use crate::exit::Exit;
use crate::failure::{Cause, Failure};
use crate::packet::{Audience, Facts, Why, write};
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use std::path::Path;

/// A packet that a BLOCKED command may be told to write.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Where; nowhere, and how to get it is said instead.
    pub file: Option<&'a Path>,
    /// The command's own `--seccomp`.
    pub seccomp: &'a str,
    /// The command's own `--profile`.
    pub limits: Option<&'a Path>,
}

impl Offer<'_> {
    /// Writes the operator's packet, or says how to get it. Gives the sentence for
    /// the user.
    pub fn make(self, why: &Why) -> Result<String, Failure> {
        let Some(file) = self.file else {
            return Ok(
                "another operator can run it: `tki-attest packet --for operator --out packet.md` \
                       (or --packet FILE here) writes what they need"
                    .into(),
            );
        };
        let facts = Facts::new(profile(self.seccomp, self.limits)?)?;
        let written = write::write(Audience::Operator, &facts, Some(why), file)?;
        let shown = written.packet.display();
        Ok(format!("hand over the operator's packet {shown}"))
    }

    /// The same failure; one that is BLOCKED, and not by the user, names the packet as
    /// another way to go on.
    pub fn instead_of(self, mut failure: Failure) -> Result<Failure, Failure> {
        if failure.exit == Exit::Blocked && failure.cause != Cause::Interrupted {
            let offer = self.make(&Why::from_failure(&failure))?;
            failure.next = format!("{}\n    or: {offer}", failure.next);
        }
        Ok(failure)
    }
}

/// The sandbox that a user names.
pub fn profile(seccomp: &str, limits: Option<&Path>) -> Result<Profile, Failure> {
    Ok(Profile {
        seccomp: Seccomp::resolve(seccomp)?,
        limits: limits.map_or_else(|| Ok(Limits::default()), Limits::read)?,
    })
}
