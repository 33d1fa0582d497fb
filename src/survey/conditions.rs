//! What every surface is surveyed with.

use crate::deadline::Deadline;
use crate::image::Image;
use crate::survey::engine_api::Permission;
use crate::survey::surface::{Decision, Surface, Use};
use tki_evidence::evidence::VenueFacts;
use tki_evidence::venue::{APPROVED, VenueRules};

/// What every surface is surveyed with.
#[derive(Debug)]
pub struct Conditions<'a> {
    /// The image that a container is created from.
    pub image: &'a Image,
    /// What makes a venue implausible.
    pub rules: &'a VenueRules,
    /// What can be seen of this host.
    pub host: &'a VenueFacts,
    /// When it must have ended.
    pub deadline: &'a Deadline,
    /// Containers may be created here.
    pub create: Permission,
}

/// A claim that is plausible, or why none is.
pub type Claim = Result<&'static str, Implausible>;

/// Why no claim is plausible: each contradiction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct Implausible(Vec<String>);

impl Conditions<'_> {
    /// The claim that a run could make here. A CI job claims to be one.
    pub fn claim(&self, facts: &VenueFacts, kernel: &str) -> Claim {
        let against = |claim| self.rules.against(claim, facts, kernel);
        let order = match facts.ci_variables.is_empty() {
            true => ["vps", "ci"],
            false => ["ci", "vps"],
        };
        for claim in order {
            let found = APPROVED.iter().find(|known| **known == claim);
            if let Some(claim) = found.filter(|_| against(claim).is_empty()) {
                return Ok(claim);
            }
        }
        Err(Implausible(against(order[0])))
    }

    /// Whether evidence may count, for people.
    pub fn approved(&self, claim: &Claim) -> String {
        match claim {
            Ok(claim) => format!("plausible as {claim}; the owner approves venues, not this tool"),
            Err(why) => format!("no: {why}"),
        }
    }

    /// What to do with a surface that runs the sandbox.
    pub fn decide(&self, surface: &mut Surface, usable: Use, claim: &Claim) {
        (surface.decision, surface.decision_note) = match claim {
            Ok(claim) => (Decision::Use, format!("run --venue {claim}")),
            Err(why) => (Decision::DevelopmentOnly, why.to_string()),
        };
        surface.usable_as = Some(Use {
            venue: claim.as_ref().ok().copied(),
            ..usable
        });
    }
}
