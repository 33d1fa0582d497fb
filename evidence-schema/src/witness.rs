//! What each witness says, in a common vocabulary, and whether they agree.
//!
//! A configuration that nobody looked at from inside is a claim; a reading that
//! the configuration contradicts is a bug or a lie. Only both together count.

use crate::evidence::{Agreement, NamedFact, RawFacts, Witness, Witnesses};
use crate::facts;
use crate::settings::Settings;

fn fact(name: &str, value: impl Into<String>) -> NamedFact {
    NamedFact {
        name: name.into(),
        value: value.into(),
    }
}

fn access(read_only: bool) -> &'static str {
    if read_only { "ro" } else { "rw" }
}

/// What the engine says it set.
pub fn configured(settings: &Settings) -> Vec<NamedFact> {
    let capabilities = if settings.privileged || !settings.cap_add.is_empty() {
        format!("+{}", settings.cap_add.join(",+"))
    } else if settings.cap_drop == ["ALL"] {
        "none".into()
    } else {
        "some".into()
    };
    let mut binds: Vec<String> = settings
        .binds
        .iter()
        .map(|bind| format!("{} {}", bind.target, access(bind.read_only)))
        .collect();
    binds.sort();
    let mut facts = vec![
        fact("network", &settings.network),
        fact("rootfs", access(settings.read_only_rootfs)),
        fact("user", &settings.user),
        fact(
            "no_new_privileges",
            if settings.no_new_privileges { "1" } else { "0" },
        ),
        fact(
            "seccomp",
            if settings.seccomp == "unconfined" || settings.privileged {
                "off"
            } else {
                "filter"
            },
        ),
        fact("capabilities", capabilities),
        fact("binds", binds.join(", ")),
    ];
    for limit in &settings.ulimits {
        facts.push(fact(
            &format!("limit.{}", limit.name),
            format!("{}:{}", limit.soft, limit.hard),
        ));
    }
    facts
}

/// What the inspector's kernel texts say.
pub fn inside(raw: &RawFacts) -> Vec<NamedFact> {
    let mut facts_seen = Vec::new();
    let names = facts::interfaces(&raw.proc_net_dev);
    if !names.is_empty() {
        let network = if names == ["lo"] {
            "none".into()
        } else {
            names.join(",")
        };
        facts_seen.push(fact("network", network));
    }
    if let Ok(mounts) = facts::mounts(&raw.mountinfo) {
        for mount in mounts.iter().filter(|mount| mount.mount_point == "/") {
            facts_seen.push(fact("rootfs", access(mount.is_read_only())));
        }
        let mut binds: Vec<String> = mounts
            .iter()
            .filter(|mount| is_bind(mount))
            .map(|mount| format!("{} {}", mount.mount_point, access(mount.is_read_only())))
            .collect();
        binds.sort();
        facts_seen.push(fact("binds", binds.join(", ")));
    }
    facts_seen.extend(from_status(&raw.proc_self_status));
    for (name, row) in [("nofile", "Max open files"), ("nproc", "Max processes")] {
        if let Some((soft, hard)) = facts::limit(&raw.proc_self_limits, row) {
            facts_seen.push(fact(&format!("limit.{name}"), format!("{soft}:{hard}")));
        }
    }
    facts_seen
}

/// Facts of a `/proc/PID/status`, whoever read it.
fn from_status(status: &str) -> Vec<NamedFact> {
    let mut out = Vec::new();
    let effective = |name: &str| {
        facts::status_field(status, name)
            .and_then(|ids| ids.split_whitespace().nth(1))
            .map(str::to_owned)
    };
    if let (Some(uid), Some(gid)) = (effective("Uid"), effective("Gid")) {
        out.push(fact("user", format!("{uid}:{gid}")));
    }
    if let Some(bit) = facts::status_field(status, "NoNewPrivs") {
        out.push(fact("no_new_privileges", bit));
    }
    if let Some(mode) = facts::status_field(status, "Seccomp") {
        let mode = match mode {
            "0" => "off",
            "2" => "filter",
            other => other,
        };
        out.push(fact("seccomp", mode));
    }
    let sets: Vec<Option<&str>> = facts::CAPABILITY_SETS
        .iter()
        .map(|set| facts::status_field(status, set))
        .collect();
    if sets.iter().all(Option::is_some) {
        let none = sets
            .iter()
            .flatten()
            .all(|set| set.bytes().all(|b| b == b'0'));
        out.push(fact("capabilities", if none { "none" } else { "some" }));
    }
    out
}

/// A directory or file of the host, as opposed to what an engine mounts for
/// every container.
fn is_bind(mount: &facts::Mount) -> bool {
    let point = mount.mount_point.as_str();
    let engine = crate::catalogue::ENGINE_FILES.contains(&point)
        || ["/", "/proc", "/sys", "/dev", "/tmp"]
            .iter()
            .any(|own| point == *own || (*own != "/" && point.starts_with(&format!("{own}/"))));
    !engine
}

/// Every fact that at least two witnesses speak of.
pub fn agreement(inside: &Witness, outside: &Witness, configured: &Witness) -> Vec<Agreement> {
    let mut names: Vec<&str> = Vec::new();
    for witness in [inside, outside, configured] {
        for fact in &witness.facts {
            if !names.contains(&fact.name.as_str()) {
                names.push(&fact.name);
            }
        }
    }
    let value = |witness: &Witness, name: &str| -> Option<String> {
        let mut found = witness.facts.iter().filter(|fact| fact.name == name);
        found.next().map(|fact| fact.value.clone())
    };
    names
        .into_iter()
        .filter_map(|name| {
            let row = Agreement {
                fact: name.into(),
                inside: value(inside, name),
                outside: value(outside, name),
                configured: value(configured, name),
                agree: true,
            };
            let said: Vec<&String> = [&row.inside, &row.outside, &row.configured]
                .into_iter()
                .flatten()
                .collect();
            if said.len() < 2 {
                return None;
            }
            let agree = said.windows(2).all(|pair| pair[0] == pair[1]);
            Some(Agreement { agree, ..row })
        })
        .collect()
}

/// All witnesses of a run, their facts derived from what was recorded.
pub fn witnesses(raw: &RawFacts, configured_settings: &Settings, outside: Witness) -> Witnesses {
    let inside = Witness {
        available: true,
        source: "the inspector, from /proc inside the container".into(),
        facts: inside(raw),
    };
    let configured = Witness {
        available: true,
        source: "the engine's own description of the container".into(),
        facts: configured(configured_settings),
    };
    let agreement = agreement(&inside, &outside, &configured);
    Witnesses {
        inside,
        outside,
        configured,
        agreement,
    }
}
