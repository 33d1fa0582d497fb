//! The namespaces: those of the list are those that XP-NS-FRESH read, which also
//! finds out whether they are the host's.

use super::{Found, number, reading, shown};
use crate::evidence::Evidence;
use crate::settings::BindKind;
use crate::venue;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Every kind, in the order in which prober and host list them, and whether
/// every kernel that runs containers has it.
const KINDS: &[(&str, &str, bool)] = &[
    ("cgroup", "ns-cgroup", true),
    ("ipc", "ns-ipc", true),
    ("mnt", "ns-mnt", true),
    ("net", "ns-net", true),
    ("pid", "ns-pid", true),
    ("time", "ns-time", false),
    ("user", "ns-user", false),
    ("uts", "ns-uts", true),
];

/// The namespace of one kind in a list.
pub fn of_kind<'a>(list: &'a [String], kind: &str) -> Option<&'a str> {
    let is_own = |link: &&String| link.split_once(':').is_some_and(|(own, _)| own == kind);
    list.iter().find(is_own).map(String::as_str)
}

/// Kinds of a list that is in the kernel's form and complete, each once and in
/// order.
pub fn is_complete(list: &[String]) -> bool {
    let place = |link: &String| {
        let (kind, rest) = link.split_once(":[")?;
        number(rest.strip_suffix(']')?)?;
        KINDS.iter().position(|(known, _, _)| *known == kind)
    };
    let places: Option<Vec<usize>> = list.iter().map(place).collect();
    places.is_some_and(|places| {
        let needed = KINDS
            .iter()
            .enumerate()
            .filter(|(_, (_, _, needed))| *needed);
        places.windows(2).all(|pair| pair[0] < pair[1])
            && needed.into_iter().all(|(place, _)| places.contains(&place))
    })
}

/// There is a neighbour wherever the engine makes volumes and one is needed: for controls,
/// or because the host cannot be seen.
fn neighbour(found: &mut Found, evidence: &Evidence) {
    const FIELD: &str = "raw.neighbour_namespaces";
    let list = &evidence.raw.neighbour_namespaces;
    let mut binds = evidence.sandbox.declared.binds.iter();
    let is_needed = !evidence.controls.is_empty() || !venue::is_here(&evidence.venue_facts);
    let is_there = is_needed && binds.any(|bind| bind.kind == BindKind::Volume);
    found.must(list.is_empty() != is_there, FIELD, || match is_there {
        true => "there was a neighbour, and nothing is said of it".into(),
        false => "there was no neighbour".into(),
    });
    found.must(list.is_empty() || is_complete(list), FIELD, || {
        "not one of each kind in the kernel's form".into()
    });
}

pub fn check(found: &mut Found, evidence: &Evidence) {
    let (own, host) = (&evidence.raw.namespaces, &evidence.raw.host_namespaces);
    found.must(is_complete(own), "raw.namespaces", || {
        "not one of each kind in the kernel's form".into()
    });
    found.must(
        host.is_empty() || is_complete(host),
        "raw.host_namespaces",
        || "not one of each kind in the kernel's form".into(),
    );
    neighbour(found, evidence);
    for (kind, operation, _) in KINDS {
        let listed = of_kind(own, kind);
        let read = reading(evidence, "XP-NS-FRESH", operation);
        found.must(listed == read, "raw.namespaces, XP-NS-FRESH", || {
            format!(
                "{} and {}",
                shown(listed.unwrap_or("-")),
                shown(read.unwrap_or("-"))
            )
        });
    }
}
