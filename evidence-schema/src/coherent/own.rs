//! A kernel that is not the host's: what its texts must be all the same. They are fewer than
//! Linux's, and nothing of them is the host's but what comes from there.

use super::status::{self, value};
use super::{Found, mounted_at, network, number, outside, reading, shown};
use crate::evidence::{Evidence, OutsideFacts, SentryFacts};
use crate::facts::{self, Mount};
use crate::kernel::{self, KernelKind};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Fields of a status that every kernel with containers writes.
const NEEDED: &[&str] = &[
    "Name", "State", "Tgid", "Pid", "PPid", "Uid", "Gid", "Threads", "CapInh", "CapPrm", "CapEff",
    "CapBnd", "Seccomp",
];

/// Where the view of the process comes from that runs such a kernel.
const SOURCE: &str = "the host, from /proc of the process that runs the container's own kernel";

/// Everything about the texts of such a kernel.
pub fn check(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    let raw = &evidence.raw;
    let version = &raw.proc_version;
    let one_line = version.matches('\n').count() == 1 && version.ends_with('\n');
    found.must(
        one_line && !kernel::release(version).is_empty(),
        "raw.proc_version",
        || shown(version),
    );
    found.must(
        !mounts.is_empty() && mounted_at(mounts, "/proc").is_some_and(|m| m.fs_type == "proc"),
        "raw.mountinfo",
        || "there is not one /proc of type proc".into(),
    );
    for point in ["/", "/in", "/out"] {
        found.must(mounted_at(mounts, point).is_some(), "raw.mountinfo", || {
            format!("there is not one {point}")
        });
    }
    network::devices(found, &raw.proc_net_dev, "raw.proc_net_dev");
    let mut keys = raw.env_keyset.windows(2);
    found.must(keys.all(|pair| pair[0] < pair[1]), "raw.env_keyset", || {
        "not sorted, or one is there twice".into()
    });
    namespaces(found, evidence);
    statuses(found, evidence);
}

/// Each namespace once, in the kernel's form. XP-NS-FRESH found the same kinds; gVisor gives a
/// link another number each time that it is read.
fn namespaces(found: &mut Found, evidence: &Evidence) {
    const KINDS: [&str; 8] = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    let raw = &evidence.raw;
    let place = |link: &String| {
        let (kind, rest) = link.split_once(":[")?;
        number(rest.strip_suffix(']')?)?;
        KINDS.iter().position(|known| *known == kind)
    };
    for (list, field) in [
        (&raw.namespaces, "raw.namespaces"),
        (&raw.host_namespaces, "raw.host_namespaces"),
    ] {
        let places: Option<Vec<usize>> = list.iter().map(place).collect();
        let good = places.is_some_and(|places| places.windows(2).all(|pair| pair[0] < pair[1]));
        found.must(good, field, || "not in the kernel's form".into());
    }
    found.must(
        raw.neighbour_namespaces.is_empty(),
        "raw.neighbour_namespaces",
        || "a container with a kernel of its own has no neighbour".into(),
    );
    for kind in KINDS {
        let listed = super::namespaces::of_kind(&raw.namespaces, kind);
        let read = reading(evidence, "XP-NS-FRESH", &format!("ns-{kind}"));
        let good = match (listed, read) {
            (Some(_), Some(read)) => place(&read.to_owned()).is_some_and(|at| KINDS[at] == kind),
            (listed, read) => listed == read,
        };
        found.must(good, "raw.namespaces, XP-NS-FRESH", || {
            format!(
                "{} and {}",
                shown(listed.unwrap_or("-")),
                shown(read.unwrap_or("-"))
            )
        });
    }
}

/// Both texts are of one process, which is the prober.
fn statuses(found: &mut Found, evidence: &Evidence) {
    const BEFORE: &str = "raw.proc_self_status";
    const AFTER: &str = "raw.proc_self_status_locked";
    const BOTH: &str = "raw.proc_self_status, raw.proc_self_status_locked";
    let raw = &evidence.raw;
    let before = status::parse_with(found, &raw.proc_self_status, BEFORE, NEEDED);
    let after = status::parse_with(found, &raw.proc_self_status_locked, AFTER, NEEDED);
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
    status::numbers(found, &before, BEFORE);
    status::numbers(found, &after, AFTER);
    status::readings(found, evidence, &before);
    found.must(before.len() == after.len(), BOTH, || {
        "not the same fields".into()
    });
    for ((name, was), (other, is)) in before.iter().zip(&after) {
        found.must(name == other, BOTH, || format!("{name} and {other}"));
        let good = match *name {
            // The lock is a filter where there was none.
            "Seccomp" => was == is || *is == "2",
            "Seccomp_filters" => number(was).and_then(|was| was.checked_add(1)) == number(is),
            _ if name.ends_with("ctxt_switches") => number(was) <= number(is),
            _ => status::is_counter(name) || was == is,
        };
        found.must(good, BOTH, || {
            format!("{name} is {} and then {}", shown(was), shown(is))
        });
    }
}

/// The host's view of the process that runs the kernel: that process, in the container's
/// control group, and nothing of the prober's, which the host's kernel does not know.
pub fn sentry(found: &mut Found, evidence: &Evidence) {
    let (texts, source) = (&evidence.raw.sentry, &evidence.witnesses.outside.source);
    found.same(source, SOURCE, "witnesses.outside.source");
    found.must(
        evidence.raw.outside == OutsideFacts::default(),
        "raw.outside, raw.sentry",
        || "the host saw two processes as the container's first".into(),
    );
    let SentryFacts {
        executable,
        command,
        status: text,
        mountinfo,
        net_dev,
        uid_map,
        namespaces,
        cgroup,
    } = texts;
    let is_word = |word: &String| !word.contains(char::is_control);
    let good = (executable.is_empty() || executable.starts_with('/')) && is_word(executable);
    found.must(good, "raw.sentry.executable", || shown(executable));
    found.must(
        !command.is_empty() && command.iter().all(is_word),
        "raw.sentry.command",
        || shown(&command.join(" ")),
    );
    found.must(
        kernel::of_process(executable, command).is_some_and(KernelKind::is_own),
        "raw.sentry.executable, raw.sentry.command",
        || "no program that runs a kernel".into(),
    );
    if let Some(fields) = status::parse(found, text, "raw.sentry.status") {
        status::forms(found, &fields, "raw.sentry.status");
        let first = value(&fields, "NSpid").and_then(|all| all.split_whitespace().next());
        let pid = value(&fields, "Pid");
        found.must(
            pid == first && pid == value(&fields, "Tgid"),
            "raw.sentry.status",
            || "not the first of a process's numbers".into(),
        );
    }
    found.must(
        facts::mounts(mountinfo).is_ok(),
        "raw.sentry.mountinfo",
        || "not a mount table".into(),
    );
    // The host's own stack may have carried something where it is the host's.
    found.must(
        !facts::interfaces(net_dev).is_empty(),
        "raw.sentry.net_dev",
        || "not a table of interfaces".into(),
    );
    found.must(
        super::maps::Map::parse(uid_map).is_some(),
        "raw.sentry.uid_map",
        || shown(uid_map),
    );
    found.must(
        namespaces.is_empty() || super::namespaces::is_complete(namespaces),
        "raw.sentry.namespaces",
        || "not one of each kind in the kernel's form".into(),
    );
    found.must(
        executable.is_empty() == namespaces.is_empty(),
        "raw.sentry.executable, raw.sentry.namespaces",
        || "a process that may read one may read the other".into(),
    );
    let good = outside::places(cgroup)
        .is_some_and(|places| places.windows(2).all(|pair| pair[0] < pair[1]));
    found.must(good, "raw.sentry.cgroup", || shown(&cgroup.join(",")));
}
