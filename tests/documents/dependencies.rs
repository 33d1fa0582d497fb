use crate::common::root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Deny {
    bans: Bans,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// Crates that are linked on other platforms only, which the tool is not built for.
const ELSEWHERE: &[&str] = &["wasi", "windows-sys"];

fn read<T: for<'a> Deserialize<'a>>(name: &str) -> T {
    toml::from_str(&fs::read_to_string(root().join(name)).unwrap()).unwrap()
}

/// `make deny` says more; this is what can be held against each other without it.
#[test]
fn each_crate_in_two_versions_has_a_reason_and_each_reason_a_crate() {
    let (lock, deny): (Lock, Deny) = (read("Cargo.lock"), read("deny.toml"));
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &lock.package {
        let own = versions.entry(&package.name).or_default();
        own.insert(&package.version);
    }
    versions.retain(|name, own| own.len() > 1 && !ELSEWHERE.contains(name));
    let mut wrong = Vec::new();
    let mut left = versions.clone();
    for Skip { name: skip, reason } in &deny.bans.skip {
        let (name, version) = skip.split_once('@').unwrap();
        let start = format!("{version}.");
        let own = left.get_mut(name);
        let before = own.as_ref().map_or(0, |own| own.len());
        if let Some(own) = own {
            own.retain(|there| !there.starts_with(&start));
        }
        if left.get(name).map_or(0, BTreeSet::len) + 1 != before {
            wrong.push(format!(
                "{skip}: listed, and not there beside another version"
            ));
        }
        if reason.len() < 10 {
            wrong.push(format!("{skip}: it has no reason"));
        }
    }
    for (name, own) in left {
        if own.len() != 1 {
            wrong.push(format!("{name}: {own:?} without a reason"));
        }
    }
    assert!(wrong.is_empty(), "deny.toml: {wrong:#?}");
    assert!(!versions.is_empty());
}
