//! What each witness says, in a common vocabulary, and whether they agree.
//!
//! A configuration that nobody looked at from inside is a claim; a reading that
//! the configuration contradicts is a bug or a lie. Only both together count.

use crate::evidence::{
    Agreement, NamedFact, OutsideFacts, RawFacts, SentryFacts, Witness, Witnesses,
};
use crate::facts;
use crate::judge::label_parts;
use crate::kernel::{self, KernelKind};
use crate::settings::Settings;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

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
    let label = Some(settings.lsm.as_str()).filter(|label| !label.is_empty());
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
    facts.extend(label.map(|label| fact("lsm", label)));
    for (name, value) in [
        ("pids", settings.pids_limit),
        ("memory", settings.memory_bytes),
        ("cpu_quota_us", settings.cpu_quota_us),
        ("cpu_period_us", settings.cpu_period_us),
    ] {
        // A limit that is not set is no statement about its size.
        if value != 0 {
            facts.push(fact(&format!("limit.{name}"), value.to_string()));
        }
    }
    for limit in &settings.ulimits {
        facts.push(fact(
            &format!("limit.{}", limit.name),
            format!("{}:{}", limit.soft, limit.hard),
        ));
    }
    facts
}

/// What the prober's kernel texts say.
pub fn inside(raw: &RawFacts, kind: KernelKind) -> Vec<NamedFact> {
    let mut seen = vec![fact("kernel", kind.name())];
    seen.extend(from_net_dev(&raw.proc_net_dev));
    seen.extend(from_mounts(&raw.mountinfo));
    seen.extend(from_status(&raw.proc_self_status, "", ""));
    seen.extend(from_limits(&raw.proc_self_limits));
    seen.extend(from_namespaces(&raw.namespaces));
    seen.extend(from_label(&raw.lsm_label));
    seen
}

/// What the host read of the container's process.
pub fn outside(texts: &OutsideFacts) -> Vec<NamedFact> {
    let mut seen = Vec::new();
    seen.extend(from_net_dev(&texts.net_dev));
    seen.extend(from_mounts(&texts.mountinfo));
    seen.extend(from_status(&texts.status, &texts.uid_map, &texts.gid_map));
    seen.extend(from_limits(&texts.limits));
    seen.extend(from_namespaces(&texts.namespaces));
    seen.extend(from_label(&texts.lsm_label));
    seen.extend(from_groups(&texts.cgroup));
    seen
}

/// What the host read of the process that runs a kernel of its own. Its facts are not the
/// container's, and have names of their own; but the limits of its control group are the
/// container's, too.
pub fn sentry(texts: &SentryFacts) -> Vec<NamedFact> {
    let mut seen = Vec::new();
    seen.extend(from_net_dev(&texts.net_dev));
    seen.extend(from_status(&texts.status, "", ""));
    seen.extend(from_namespaces(&texts.namespaces));
    for fact in &mut seen {
        fact.name = format!("sentry.{}", fact.name);
    }
    seen.extend(from_groups(&texts.cgroup));
    seen
}

/// The name of a label, without how it is applied.
fn from_label(text: &str) -> Option<NamedFact> {
    match label_parts(text).0 {
        "" => None,
        name => Some(fact("lsm", name)),
    }
}

fn from_groups(limits: &[String]) -> impl Iterator<Item = NamedFact> {
    let named = |entry: &String| {
        let (name, value) = entry.split_once('=')?;
        Some(fact(&format!("limit.{name}"), value))
    };
    limits.iter().filter_map(named)
}

fn from_net_dev(text: &str) -> Option<NamedFact> {
    let names = facts::interfaces(text);
    match names.as_slice() {
        [] => None,
        ["lo"] => Some(fact("network", "none")),
        names => Some(fact("network", names.join(","))),
    }
}

fn from_mounts(text: &str) -> Vec<NamedFact> {
    let Ok(mounts) = facts::mounts(text) else {
        return Vec::new();
    };
    let roots = mounts.iter().filter(|mount| mount.mount_point == "/");
    let mut seen: Vec<NamedFact> = roots
        .map(|mount| fact("rootfs", access(mount.is_read_only())))
        .collect();
    let mut binds: Vec<String> = mounts
        .iter()
        .filter(|mount| is_bind(mount))
        .map(|mount| format!("{} {}", mount.mount_point, access(mount.is_read_only())))
        .collect();
    binds.sort();
    seen.push(fact("binds", binds.join(", ")));
    seen
}

fn from_limits(text: &str) -> Vec<NamedFact> {
    [("nofile", "Max open files"), ("nproc", "Max processes")]
        .into_iter()
        .filter_map(|(name, row)| {
            let (soft, hard) = facts::limit(text, row)?;
            Some(fact(&format!("limit.{name}"), format!("{soft}:{hard}")))
        })
        .collect()
}

fn from_namespaces(links: &[String]) -> Vec<NamedFact> {
    links
        .iter()
        .filter_map(|link| {
            let (kind, _) = link.split_once(':')?;
            Some(fact(&format!("namespace.{kind}"), link))
        })
        .collect()
}

/// An id of the host as the container knows it, by its map. An empty map means
/// that the text was read inside.
fn mapped(id: &str, map: &str) -> String {
    let Ok(number) = id.parse::<u64>() else {
        return id.to_owned();
    };
    let found = map.lines().find_map(|line| {
        let mut words = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        let (inner, outer, count) = (words.next()??, words.next()??, words.next()??);
        let offset = number.checked_sub(outer)?;
        let mapped = inner.checked_add(offset)?;
        (offset < count).then(|| mapped.to_string())
    });
    found.unwrap_or_else(|| id.to_owned())
}

/// Facts of a `/proc/PID/status`, whichever process read it.
fn from_status(status: &str, uid_map: &str, gid_map: &str) -> Vec<NamedFact> {
    let mut out = Vec::new();
    let effective = |name: &str| {
        facts::status_field(status, name)
            .and_then(|ids| ids.split_whitespace().nth(1))
            .map(str::to_owned)
    };
    if let (Some(uid), Some(gid)) = (effective("Uid"), effective("Gid")) {
        let (uid, gid) = (mapped(&uid, uid_map), mapped(&gid, gid_map));
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
    let point = mount.mount_point.as_ref();
    let engine = crate::catalogue::ENGINE_FILES.contains(&point)
        || point == "/"
        || ["/proc", "/sys", "/dev", "/tmp"].iter().any(|own| {
            let below = point.strip_prefix(own);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    !engine
}

/// Every fact that at least two witnesses speak of.
pub fn agreement(inside: &Witness, outside: &Witness, configured: &Witness) -> Vec<Agreement> {
    let witnesses = [inside, outside, configured];
    // Of a fact that a witness names twice, the first counts. A bundle may name as many
    // as it likes, so nothing is looked for from the beginning.
    let said = witnesses.map(|witness| {
        let mut said: BTreeMap<&str, &str> = BTreeMap::new();
        for fact in &witness.facts {
            said.entry(&fact.name).or_insert(&fact.value);
        }
        said
    });
    let mut seen = BTreeSet::new();
    let names = witnesses.into_iter().flat_map(|witness| &witness.facts);
    names
        .map(|fact| fact.name.as_str())
        .filter(|name| seen.insert(*name))
        .filter_map(|name| {
            let [inside, outside, configured] = said.each_ref().map(|said| said.get(name).copied());
            let values: Vec<&str> = [inside, outside, configured]
                .into_iter()
                .flatten()
                .collect();
            (values.len() >= 2).then(|| Agreement {
                fact: name.into(),
                inside: inside.map(str::to_owned),
                outside: outside.map(str::to_owned),
                configured: configured.map(str::to_owned),
                agree: values.windows(2).all(|pair| pair[0] == pair[1]),
            })
        })
        .collect()
}

/// All witnesses of a run, their facts derived from what was recorded.
/// `outside` says whether the host could look, and where; `kind` whose kernel the prober
/// saw.
pub fn witnesses(
    raw: &RawFacts,
    configured_settings: &Settings,
    outside: &Witness,
    kind: KernelKind,
) -> Witnesses {
    let inside = Witness {
        available: true,
        source: "the prober, from /proc inside the container".into(),
        facts: inside(raw, kind),
    };
    let outside = Witness {
        available: outside.available,
        source: outside.source.clone(),
        facts: if outside.available {
            let kernel = kernel::by_host(raw).map(|kind| fact("kernel", kind.name()));
            let seen = match raw.sentry == SentryFacts::default() {
                true => self::outside(&raw.outside),
                false => sentry(&raw.sentry),
            };
            kernel.into_iter().chain(seen).collect()
        } else {
            Vec::new()
        },
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
