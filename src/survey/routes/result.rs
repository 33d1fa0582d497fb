//! What a route came to.

use super::kinds::{Ability, About};
use crate::survey::call::{Call, MOST};
use crate::survey::redact::Redactor;
use crate::survey::surface::Answer;
use crate::survey::told::Told;
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

/// The most characters of what stands in a route's way.
const MOST_BLOCK: usize = 300;

/// What a probe found out, with the words of others as they came: secrets may be in
/// them. It cannot be printed; [`Finding::redacted`] makes a result of it.
#[derive(Clone, Debug)]
pub struct Finding {
    route: String,
    tool: &'static str,
    calls: Vec<(String, Told)>,
    /// It worked, it was denied, or nobody asked.
    pub answer: Answer,
    /// What it was seen to be able to do.
    pub abilities: Vec<Ability>,
    denied: Vec<Ability>,
    proves: String,
    block: Told,
    governed: bool,
    /// Apart from production: the file's claim, or seen.
    pub isolated: bool,
    scope: String,
    /// What a probe made and could not take away again.
    pub left: Option<String>,
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

impl Finding {
    /// A route that nobody has asked yet.
    pub fn new(about: About) -> Self {
        Self {
            route: about.name.to_owned(),
            tool: about.kind,
            calls: Vec::new(),
            answer: Answer::NotTried,
            abilities: Vec::new(),
            denied: Vec::new(),
            proves: String::new(),
            block: Told::default(),
            governed: about.governed,
            isolated: about.isolated,
            scope: about.scope.unwrap_or("-").to_owned(),
            left: None,
        }
    }

    /// Keeps a call and what came of it.
    pub fn call(&mut self, call: impl Into<String>, result: impl Into<Told>) {
        self.calls.push((call.into(), result.into()));
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
        block: impl Into<Told>,
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
        self.block = format!("not permitted: --allow-writes {}", self.route).into();
        self
    }

    /// The result, in which every text but the file's own went through the route's
    /// redactor.
    pub fn redacted(self, redactor: &Redactor) -> RouteResult {
        let clean = |text: String| redactor.clean(&text, MOST);
        let calls = self.calls.into_iter().map(|(call, result)| Call {
            call: clean(call),
            result: redactor.told(&result, MOST),
        });
        RouteResult {
            id: String::new(),
            route: self.route,
            tool: self.tool,
            calls: calls.collect(),
            answer: self.answer,
            abilities: self.abilities,
            denied: self.denied,
            proves: clean(self.proves),
            block: redactor.told(&self.block, MOST_BLOCK),
            governed: self.governed,
            isolated: self.isolated,
            scope: self.scope,
            left: self.left.map(clean),
        }
    }
}
