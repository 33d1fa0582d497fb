//! The host's view of the same process, as it looked while the prober waited: a
//! fixed minimum, and nothing that the prober's own texts contradict.

use super::maps::Map;
use super::namespaces::of_kind;
use super::status::{self, Fields, is_counter, value};
use super::{Contradiction, Found, network, number, own, reading, shown};
use crate::evidence::{Evidence, OutsideFacts, SentryFacts};
use crate::facts;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The first user namespace: its root is the host's.
const FIRST_USER: &str = "user:[4026531837]";

/// Where a view from outside comes from.
const SOURCE: &str = "the host, from /proc of the container's first process";

/// Limits of a control group, in the order in which they are read.
const LIMITS: [&str; 4] = ["pids", "memory", "cpu_quota_us", "cpu_period_us"];

/// What a user other than root may have no right to read. A user who cannot read the links to
/// a process's namespaces cannot read those to its descriptors either.
const ABSENT: [&[&str]; 3] = [
    &[],
    &[OutsideFacts::DESCRIPTORS],
    &[OutsideFacts::NAMESPACES, OutsideFacts::DESCRIPTORS],
];

/// Everything that cannot be true of the view from outside.
pub fn outside(evidence: &Evidence) -> Vec<Contradiction> {
    let mut found = Found::default();
    let (view, texts) = (&evidence.witnesses.outside, &evidence.raw.outside);
    let is_sentry = evidence.raw.sentry != SentryFacts::default();
    let nothing = *texts == OutsideFacts::default() && !is_sentry;
    match (view.available, nothing) {
        (true, false) if is_sentry => own::sentry(&mut found, evidence),
        (true, false) => check(&mut found, evidence),
        (true, true) => found.must(false, "raw.outside", || {
            "it is said to be there, and is empty".into()
        }),
        (false, true) => found.must(
            !view.source.is_empty() && view.source != SOURCE,
            "witnesses.outside.source",
            || "nothing says why it is missing".into(),
        ),
        (false, false) => found.must(false, "raw.outside", || {
            "it is said to be missing, and is there".into()
        }),
    }
    found.0
}

fn check(found: &mut Found, evidence: &Evidence) {
    let (raw, texts) = (&evidence.raw, &evidence.raw.outside);
    found.same(
        &evidence.witnesses.outside.source,
        SOURCE,
        "witnesses.outside.source",
    );
    let inside = status::parse(&mut Found::default(), &raw.proc_self_status, "");
    let outside = status::parse(found, &texts.status, "raw.outside.status");
    if let (Some(inside), Some(outside)) = (inside, outside) {
        process(found, &inside, &outside);
        identity(found, evidence, &inside, &outside);
    }
    mount_tables(found, &raw.mountinfo, &texts.mountinfo);
    network::devices(found, &texts.net_dev, "raw.outside.net_dev");
    found.must(
        facts::interfaces(&texts.net_dev) == facts::interfaces(&raw.proc_net_dev),
        "raw.outside.net_dev, raw.proc_net_dev",
        || "not the same interfaces".into(),
    );
    found.must(
        texts.limits == raw.proc_self_limits,
        "raw.outside.limits, raw.proc_self_limits",
        || "not the same limits".into(),
    );
    // The host may have had no right to read it.
    found.must(
        texts.lsm_label.is_empty() || texts.lsm_label == raw.lsm_label,
        "raw.outside.lsm_label, raw.lsm_label",
        || "not the same label".into(),
    );
    absences(found, texts);
    found.must(
        texts.lacks(OutsideFacts::NAMESPACES) || texts.namespaces == raw.namespaces,
        "raw.outside.namespaces, raw.namespaces",
        || "not the same namespaces".into(),
    );
    if !texts.lacks(OutsideFacts::DESCRIPTORS) {
        descriptors(found, evidence);
    }
    groups(found, evidence);
}

/// What is absent is something that a user can lack, and is not there all the same.
fn absences(found: &mut Found, texts: &OutsideFacts) {
    found.must(
        ABSENT.iter().any(|absent| *absent == texts.absent),
        "raw.outside.absent",
        || shown(&texts.absent.join(",")),
    );
    let filled = [
        (
            OutsideFacts::NAMESPACES,
            texts.namespaces.is_empty(),
            "raw.outside.absent, raw.outside.namespaces",
        ),
        (
            OutsideFacts::DESCRIPTORS,
            texts.descriptors.is_empty(),
            "raw.outside.absent, raw.outside.descriptors",
        ),
    ];
    for (name, is_empty, fields) in filled {
        found.must(is_empty || !texts.lacks(name), fields, || {
            "it is said to be absent, and is there".into()
        });
    }
}

/// The same process, a moment before.
fn process(found: &mut Found, inside: &Fields, outside: &Fields) {
    const BOTH: &str = "raw.outside.status, raw.proc_self_status";
    found.must(inside.len() == outside.len(), BOTH, || {
        "not the same fields".into()
    });
    for ((name, own), (other, seen)) in inside.iter().zip(outside) {
        found.must(name == other, BOTH, || format!("{name} and {other}"));
        let good = match *name {
            // Inside nobody sees who of the host traces the process.
            "TracerPid" => number(seen).is_some(),
            "Tgid" | "Pid" | "PPid" | "Uid" | "Gid" | "Groups" => true,
            // From the reader's namespace to the container's own.
            _ if name.starts_with("NS") => seen.split_whitespace().next_back() == Some(own),
            _ if name.ends_with("ctxt_switches") => number(seen) <= number(own),
            _ => is_counter(name) || own == seen,
        };
        found.must(good, BOTH, || {
            format!("{name} is {} and {}", shown(own), shown(seen))
        });
    }
    let (pid, numbers) = (value(outside, "Pid"), value(outside, "NSpid"));
    let first = numbers.and_then(|numbers| numbers.split_whitespace().next());
    let nested = numbers.is_some_and(|numbers| numbers.split_whitespace().count() > 1);
    let same = pid == first && pid == value(outside, "Tgid");
    found.must(same, "raw.outside.status", || {
        "not the first of a process's numbers".into()
    });
    // It is in another namespace than the host's tool, unless that one is lost too.
    found.must(nested || value(inside, "Pid") != Some("1"), BOTH, || {
        "its number is the same inside and outside".into()
    });
    let parent = value(outside, "PPid").and_then(number);
    found.must(parent.is_some(), "raw.outside.status", || {
        "no parent".into()
    });
}

/// The ids of the host are those of the container by its maps, and none is the host's
/// root.
fn identity(found: &mut Found, evidence: &Evidence, inside: &Fields, outside: &Fields) {
    let texts = &evidence.raw.outside;
    let maps = [
        ("uid_map", &texts.uid_map, "raw.outside.uid_map"),
        ("gid_map", &texts.gid_map, "raw.outside.gid_map"),
    ];
    let [uids, gids] = maps.map(|(name, text, fields)| {
        let map = Map::parse(text).filter(|_| text.ends_with('\n'));
        found.must(map.is_some(), fields, || shown(text));
        let told = evidence.information.iter().find(|one| one.name == name);
        // Information is cut where it is long.
        let told = told.filter(|told| told.value.chars().count() < 200);
        let told = told.and_then(|told| Map::parse(&told.value));
        let same = told
            .zip(map.as_ref())
            .is_none_or(|(told, map)| map.has_same_ids(&told));
        found.must(same, fields, || "the prober read other ids".into());
        map
    });
    let (Some(uids), Some(gids)) = (uids, gids) else {
        return;
    };
    let own = of_kind(&evidence.raw.namespaces, "user");
    let host = of_kind(&evidence.raw.host_namespaces, "user");
    let is_shared = own == host;
    let rootless = evidence.runtime.rootless;
    found.must(
        !(rootless && uids.is_identity()),
        "raw.outside.uid_map, runtime.rootless",
        || "a user who is not root gives no container all ids".into(),
    );
    for (name, map) in [("Uid", &uids), ("Gid", &gids), ("Groups", &gids)] {
        let ids = |fields: &Fields| -> Vec<u64> {
            let words = value(fields, name).unwrap_or_default().split_whitespace();
            let mut ids: Vec<u64> = words.filter_map(number).collect();
            ids.sort_unstable();
            ids
        };
        let (ours, theirs) = (ids(inside), ids(outside));
        let good = if is_shared {
            ours == theirs
        } else {
            // Groups that the container has no number for are all the same to it.
            let mut mapped: Vec<u64> = theirs.iter().filter_map(|id| map.inner(*id)).collect();
            mapped.sort_unstable();
            let known: Vec<u64> = ours
                .iter()
                .copied()
                .filter(|id| map.has_inner(*id))
                .collect();
            mapped == known && ours.len() == theirs.len() && (name == "Groups" || !known.is_empty())
        };
        let fields = "raw.outside.status, raw.outside.uid_map, raw.outside.gid_map";
        found.must(good, fields, || {
            format!("{name} is {ours:?} inside and {theirs:?} outside")
        });
        // A user's own tool is root in a namespace of its own.
        let is_roots = theirs.contains(&0) && !ours.contains(&0);
        let own_root = rootless && host.is_some_and(|host| host != FIRST_USER);
        found.must(!is_roots || own_root, fields, || {
            format!("{name} is root's on the host")
        });
    }
}

/// The same mounts. Where a control group's file system begins depends on who reads,
/// and so may the names of ids.
fn mount_tables(found: &mut Found, inside: &str, outside: &str) {
    const BOTH: &str = "raw.outside.mountinfo, raw.mountinfo";
    let lines = inside.lines().count();
    found.must(
        lines == outside.lines().count() && outside.ends_with('\n'),
        BOTH,
        || "not as many mounts".into(),
    );
    for (own, seen) in inside
        .lines()
        .zip(outside.lines())
        .filter(|(own, seen)| own != seen)
    {
        found.must(is_same_mount(own, seen), BOTH, || {
            format!("{} and {}", shown(own), shown(seen))
        });
    }
}

fn is_same_mount(own: &str, seen: &str) -> bool {
    let (Ok(own), Ok(seen)) = (facts::mounts(own), facts::mounts(seen)) else {
        return false;
    };
    let ([own], [seen]) = (own.as_slice(), seen.as_slice()) else {
        return false;
    };
    let options = |text: &str| -> Vec<String> {
        let named = |option: &&str| !option.starts_with("uid=") && !option.starts_with("gid=");
        facts::parts(text, b',')
            .filter(named)
            .map(str::to_owned)
            .collect()
    };
    (own.id, own.parent, own.device, own.source) == (seen.id, seen.parent, seen.device, seen.source)
        && (own.fs_type, own.options, own.shared) == (seen.fs_type, seen.options, seen.shared)
        && own.mount_point == seen.mount_point
        && (own.root == seen.root || own.fs_type.starts_with("cgroup"))
        && options(own.super_options) == options(seen.super_options)
}

/// What the host saw open is what the prober found open.
fn descriptors(found: &mut Found, evidence: &Evidence) {
    let seen = facts::parts(&evidence.raw.outside.descriptors, b',').map(|entry| {
        match entry.split_once('=') {
            Some((number, path)) if path.ends_with("/null") => format!("{number}=null"),
            _ => entry.to_owned(),
        }
    });
    let seen: Vec<String> = seen.collect();
    let read = reading(evidence, "XP-FD", "descriptors").unwrap_or_default();
    found.must(
        seen.join(",") == read,
        "raw.outside.descriptors, XP-FD",
        || {
            format!(
                "{} and {}",
                shown(&evidence.raw.outside.descriptors),
                shown(read)
            )
        },
    );
}

/// The limits of its control group, each once, in order: all that were set, or none
/// where the host could not look.
fn groups(found: &mut Found, evidence: &Evidence) {
    let (set, seen) = (&evidence.sandbox.configured, &evidence.raw.outside.cgroup);
    let configured = [
        set.pids_limit,
        set.memory_bytes,
        set.cpu_quota_us,
        set.cpu_period_us,
    ];
    let places = places(seen);
    let good = places.is_some_and(|places| {
        let is_there = |place: usize| configured[place] == 0 || places.contains(&place);
        places.windows(2).all(|pair| pair[0] < pair[1])
            && (places.is_empty() || (0..LIMITS.len()).all(is_there))
    });
    found.must(good, "raw.outside.cgroup, sandbox.configured", || {
        shown(&seen.join(","))
    });
}

/// Which of [`LIMITS`] these are, as `name=value`; `None` if one of them is none.
pub(super) fn places(limits: &[String]) -> Option<Vec<usize>> {
    let place = |entry: &String| {
        let (name, value) = entry.split_once('=')?;
        let good = value == "max" || value.parse::<i64>().is_ok();
        let place = LIMITS.iter().position(|known| *known == name);
        place.filter(|_| good)
    };
    limits.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields that contradict each other where these are said to be absent.
    fn found(absent: &[&str], namespaces: &[&str], descriptors: &str) -> Vec<&'static str> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let texts = OutsideFacts {
            namespaces: owned(namespaces),
            descriptors: descriptors.into(),
            absent: owned(absent),
            ..OutsideFacts::default()
        };
        let mut found = Found::default();
        absences(&mut found, &texts);
        found.0.iter().map(|one| one.fields).collect()
    }

    #[test]
    fn what_a_user_can_lack_may_be_absent() {
        let none: [&str; 0] = [];
        assert_eq!(found(&[], &["net:[1]"], "0=pipe"), none);
        assert_eq!(found(&["descriptors"], &["net:[1]"], ""), none);
        assert_eq!(found(&["namespaces", "descriptors"], &[], ""), none);
    }

    #[test]
    fn nothing_else_may_be_absent() {
        for absent in [
            &["namespaces"][..],
            &["descriptors", "namespaces"],
            &["descriptors", "descriptors"],
            &["namespaces", "descriptors", "descriptors"],
            &["namespaces", "descriptors", "status"],
            &["status"],
            &["mountinfo"],
            &["cgroup"],
            &[""],
            &["Namespaces", "descriptors"],
        ] {
            assert_eq!(found(absent, &[], ""), ["raw.outside.absent"], "{absent:?}");
        }
    }

    #[test]
    fn what_is_absent_is_not_filled_in() {
        let both = ["namespaces", "descriptors"];
        let namespaces = "raw.outside.absent, raw.outside.namespaces";
        let descriptors = "raw.outside.absent, raw.outside.descriptors";
        assert_eq!(found(&both, &["net:[1]"], ""), [namespaces]);
        assert_eq!(found(&both, &[""], ""), [namespaces]);
        assert_eq!(found(&both, &[], "0=pipe"), [descriptors]);
        assert_eq!(
            found(&both, &["net:[1]"], "0=pipe"),
            [namespaces, descriptors]
        );
        assert_eq!(found(&both[1..], &["net:[1]"], " "), [descriptors]);
    }
}
