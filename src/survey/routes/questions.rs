//! The questions about a write channel, answered from what was seen.

use super::form::Routes;
use super::kinds::Ability;
use super::result::RouteResult;
use crate::survey::surface::Answer;
use serde::Serialize;
use std::collections::BTreeSet;

/// A question, its answer, and the routes that show it.
#[derive(Clone, Debug, Serialize)]
pub struct Question {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// Ids of routes.
    pub evidence: Vec<String>,
}

/// The first route that can do everything that is needed, where it is needed,
/// that the owner has approved and that is apart from production.
pub fn usable<'a>(form: &Routes, results: &'a [RouteResult]) -> Option<&'a RouteResult> {
    results.iter().find(|route| {
        route.answer == Answer::Yes
            && route.governed
            && route.isolated
            && route.scope == form.scope
            && form.needs.iter().all(|need| route.abilities.contains(need))
    })
}

/// Answers all of them.
pub fn answer(form: &Routes, results: &[RouteResult]) -> Vec<Question> {
    let all: Vec<String> = results.iter().map(|route| route.id.clone()).collect();
    let ids = |which: &dyn Fn(&&RouteResult) -> bool| -> Vec<String> {
        let found = results.iter().filter(|r| which(r));
        found.map(|route| route.id.clone()).collect()
    };
    let or_all = |found: Vec<String>| if found.is_empty() { all.clone() } else { found };
    let can = |ability: Ability| ids(&move |route| route.abilities.contains(&ability));
    let channel = usable(form, results);
    let writable: BTreeSet<Ability> = results
        .iter()
        .flat_map(|route| route.abilities.iter().copied())
        .filter(|ability| *ability != Ability::Read)
        .collect();
    let denied: BTreeSet<Ability> = results
        .iter()
        .flat_map(|route| route.denied.iter().copied())
        .chain(form.needs.iter().copied())
        .filter(|ability| !writable.contains(ability))
        .collect();
    let scope = &form.scope;
    let works = |route: &&RouteResult| route.answer == Answer::Yes;
    let in_scope = ids(&|route| works(route) && route.scope == *scope);
    let apart = ids(&|route| works(route) && route.isolated);
    let executable: Vec<String> = [can(Ability::Containers), can(Ability::Execution)].concat();
    let documents = can(Ability::Documents);
    let blocks: Vec<String> = results
        .iter()
        .filter(|route| !route.block.is_empty())
        .map(|route| format!("{}: {}", route.id, route.block))
        .collect();
    let question = |text: String, answer: String, evidence: Vec<String>| Question {
        question: text,
        answer,
        evidence,
    };
    vec![
        question(
            "Is there a governed test/sandbox write channel?".into(),
            match channel {
                Some(route) => format!("YES: {}", route.route),
                None => format!(
                    "NO governed channel reaches {scope} with {}",
                    names(&form.needs)
                ),
            },
            channel.map_or(all.clone(), |route| vec![route.id.clone()]),
        ),
        question(
            "What can it write?".into(),
            match writable.is_empty() {
                true => "Nothing".into(),
                false => format!("Only {}", names(&writable)),
            },
            or_all(ids(&works)),
        ),
        question(
            "What can it not write?".into(),
            match denied.is_empty() {
                true => "Nothing that was asked for is missing".into(),
                false => names(&denied),
            },
            or_all(ids(&|route| !works(route))),
        ),
        question(
            format!("Is it {scope}-scoped?"),
            match in_scope.is_empty() {
                true => format!("No {scope} write target exists"),
                false => "YES".into(),
            },
            or_all(in_scope.clone()),
        ),
        question(
            "Is it production-isolated?".into(),
            match apart.is_empty() {
                true => "NO: no route that works is apart from production".into(),
                false => "YES, as the file claims or a schema shows".into(),
            },
            or_all(apart.clone()),
        ),
        question(
            "Can it create contracts?".into(),
            yes_or_no(&can(Ability::Contracts)),
            or_all(can(Ability::Contracts)),
        ),
        question(
            "Can it create harness/preflight/evidence artifacts?".into(),
            match (executable.is_empty(), documents.is_empty()) {
                (false, _) => "YES, as runtime objects".into(),
                (true, false) => "Only as non-executable documents, not as runtime objects".into(),
                (true, true) => "NO".into(),
            },
            or_all([executable, documents].concat()),
        ),
        question(
            "What blocks it?".into(),
            match blocks.is_empty() {
                true => "Nothing that was seen".into(),
                false => blocks.join("; "),
            },
            or_all(ids(&|route| !route.block.is_empty())),
        ),
        question(
            "Can the block be safely removed inside test/sandbox?".into(),
            match (channel, apart.is_empty()) {
                (Some(_), _) => "There is none".into(),
                (None, false) => "Perhaps: a route is apart from production, and lacks the rest; \
                                  its owner must grant it"
                    .into(),
                (None, true) => {
                    "NO: removing it is the owner's to do, and not this session's".into()
                }
            },
            all,
        ),
    ]
}

fn yes_or_no(routes: &[String]) -> String {
    if routes.is_empty() { "NO" } else { "YES" }.into()
}

fn names<'a>(abilities: impl IntoIterator<Item = &'a Ability>) -> String {
    let names: Vec<&str> = abilities
        .into_iter()
        .map(|ability| ability.name())
        .collect();
    names.join(", ")
}
