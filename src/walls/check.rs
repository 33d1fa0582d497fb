//! The rules, held against the paths.

use super::rules::{APART, Wall};
use super::tree::{Edge, Module, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A path that is against the rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// The file, below `src`.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The path as it is written.
    pub written: String,
    /// Which rule it is against.
    pub why: String,
}

impl Breach {
    fn of(edge: &Edge, why: String) -> Self {
        Self {
            file: edge.file.clone(),
            line: edge.line,
            written: edge.written.clone(),
            why,
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            written,
            why,
        } = self;
        write!(out, "src/{file}:{line}: {written}: {why}")
    }
}

/// Every path that is against the rules.
pub fn breaches(tree: &Tree, edges: &[Edge], walls: &[Wall]) -> Vec<Breach> {
    let mut found: BTreeSet<Breach> = directions(edges, walls).into_iter().collect();
    found.extend(circles(tree, edges));
    found.into_iter().collect()
}

/// The entries of the tables that no path needs, and the modules that they do not know.
pub fn stale(tree: &Tree, walls: &[Wall]) -> Vec<String> {
    let edges = tree.edges();
    let mut found = Vec::new();
    for wall in walls {
        for (to, _) in wall.may {
            let is_needed = edges.iter().any(|edge| {
                edge.from.first().is_some_and(|from| from == wall.module) && is_in(&edge.to, to)
            });
            if !is_needed {
                found.push(format!("{} imports nothing of {to}", wall.module));
            }
        }
    }
    for apart in APART.iter().flat_map(|(from, to, _)| [from, to]) {
        if !tree.modules().any(|(module, _)| is_in(module, apart)) {
            found.push(format!("there is no {apart}"));
        }
    }
    let tops = tree
        .modules()
        .filter_map(|(module, source)| match module.as_slice() {
            [top] if !source.in_test => Some(top),
            _ => None,
        });
    let unknown = tops.filter(|top| !walls.iter().any(|wall| wall.module == *top));
    found.extend(unknown.map(|top| format!("{top} is not in the table")));
    found
}

/// Paths from one module at the root of the crate to another that its row does not allow, and
/// those between submodules that stay apart.
fn directions(edges: &[Edge], walls: &[Wall]) -> Vec<Breach> {
    let mut found = Vec::new();
    for edge in edges {
        for (from, to, why) in APART {
            if is_in(&edge.from, from) && is_in(&edge.to, to) {
                let why = format!("{from} may not import {to}: {why}");
                found.push(Breach::of(edge, why));
            }
        }
        let (Some(from), to) = (edge.from.first(), edge.to.first()) else {
            continue;
        };
        if to == Some(from) {
            continue;
        }
        let wall = walls.iter().find(|wall| wall.module == from);
        let is_allowed =
            wall.is_some_and(|wall| wall.may.iter().any(|(to, _)| is_in(&edge.to, to)));
        if !is_allowed {
            let to = match edge.to.as_slice() {
                [] => "what is not there".to_owned(),
                to => to.join("::"),
            };
            found.push(Breach::of(edge, format!("{from} may not import {to}")));
        }
    }
    found
}

/// The module is this one, or below it.
fn is_in(module: &Module, above: &str) -> bool {
    let above: Vec<&str> = above.split("::").collect();
    module.len() >= above.len() && module.iter().zip(above).all(|(one, other)| one == other)
}

/// Paths between submodules of a folder that import each other in a circle.
fn circles(tree: &Tree, edges: &[Edge]) -> Vec<Breach> {
    let folders: BTreeSet<&[String]> = tree
        .modules()
        .filter_map(|(module, _)| module.split_last())
        .map(|(_, folder)| folder)
        .collect();
    let mut found = Vec::new();
    for folder in folders {
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let inner: Vec<(&str, &str, &Edge)> = edges
            .iter()
            .filter(|edge| !(edge.in_test || edge.exports && edge.from == folder))
            .filter_map(|edge| Some((node(folder, &edge.from)?, node(folder, &edge.to)?, edge)))
            .filter(|(from, to, _)| from != to)
            .collect();
        for (from, to, _) in &inner {
            graph.entry(from).or_default().insert(to);
        }
        if !is_circular(graph.clone()) {
            continue;
        }
        for (from, to, edge) in inner {
            if let Some(way) = way(&graph, to, from) {
                let name = match folder {
                    [] => "src".to_owned(),
                    folder => folder.join("::"),
                };
                let way = way.join(" → ");
                let why = format!("a circle in {name}: {from} → {way}");
                found.push(Breach::of(edge, why));
            }
        }
    }
    found
}

/// The submodule of a folder that a module is or is in; the folder's own file is `mod`.
fn node<'a>(folder: &[String], module: &'a [String]) -> Option<&'a str> {
    let rest = module.strip_prefix(folder)?;
    match (folder, rest.first()) {
        (_, Some(first)) => Some(first),
        // The root of the crate imports nothing.
        ([], None) => None,
        (_, None) => Some("mod"),
    }
}

/// There is a circle in the graph: something is left of it when whatever imports nothing that
/// is left has been taken away, again and again.
fn is_circular(mut graph: BTreeMap<&str, BTreeSet<&str>>) -> bool {
    loop {
        let left: BTreeSet<&str> = graph.keys().copied().collect();
        graph.retain(|_, to| to.iter().any(|to| left.contains(to)));
        if graph.len() == left.len() {
            return !graph.is_empty();
        }
    }
}

/// A way through the graph, if there is one.
fn way<'a>(
    graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    from: &'a str,
    to: &'a str,
) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::from([from]);
    let mut ways = std::collections::VecDeque::from([vec![from]]);
    while let Some(way) = ways.pop_front() {
        let last = way.last()?;
        if *last == to {
            return Some(way);
        }
        for next in graph.get(last).into_iter().flatten() {
            if seen.insert(next) {
                ways.push_back(way.iter().copied().chain([*next]).collect());
            }
        }
    }
    None
}
