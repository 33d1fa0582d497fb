//! What a route came to.

use super::form::{Ability, About};
use crate::survey::call::Call;
use crate::survey::surface::Answer;
use serde::Serialize;

/// Routes on which something may be changed.
#[derive(Clone, Copy, Debug)]
pub struct Permit<'a> {
    /// Their names.
    pub names: &'a [String],
}

impl Permit<'_> {
    /// Something may be changed on this route.
    pub fn covers(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

/// A route, its probes, and what they prove.
#[derive(Clone, Debug, Serialize)]
pub struct RouteResult {
    /// `E1`, `E2`, …
    pub id: String,
    /// Its name.
    pub route: String,
    /// Its kind.
    pub tool: &'static str,
    /// The probes and their results.
    pub calls: Vec<Call>,
    /// It worked, it was denied, or nobody asked.
    pub answer: Answer,
    /// What it was seen to be able to do.
    pub abilities: Vec<Ability>,
    /// What it was seen to be denied.
    pub denied: Vec<Ability>,
    /// What the probes prove.
    pub proves: String,
    /// What stands in its way.
    pub block: String,
    /// The owner has approved it: the file's claim.
    pub governed: bool,
    /// Apart from production: the file's claim, or seen.
    pub isolated: bool,
    /// What it writes to.
    pub scope: String,
    /// What a probe made and could not take away again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

impl RouteResult {
    /// A route that nobody has asked yet.
    pub fn new(about: About) -> Self {
        Self {
            id: String::new(),
            route: about.name.to_owned(),
            tool: about.kind,
            calls: Vec::new(),
            answer: Answer::NotTried,
            abilities: Vec::new(),
            denied: Vec::new(),
            proves: String::new(),
            block: String::new(),
            governed: about.governed,
            isolated: about.isolated,
            scope: about.scope.unwrap_or("-").to_owned(),
            left: None,
        }
    }

    /// It worked.
    pub fn works(mut self, ability: Ability, proves: impl Into<String>) -> Self {
        self.answer = Answer::Yes;
        self.abilities.push(ability);
        self.proves = proves.into();
        self
    }

    /// It was denied, or could not be asked.
    pub fn denied(
        mut self,
        ability: Ability,
        proves: impl Into<String>,
        block: impl Into<String>,
    ) -> Self {
        self.answer = Answer::No;
        self.denied.push(ability);
        self.proves = proves.into();
        self.block = block.into();
        self
    }

    /// Nobody asked, because it was not permitted.
    pub fn not_permitted(mut self, what: &str) -> Self {
        self.proves = format!("nothing about writing: {what} was not tried");
        self.block = format!("not permitted: --allow-writes {}", self.route);
        self
    }
}
