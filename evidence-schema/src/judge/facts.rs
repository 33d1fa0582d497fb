//! Rules about kernel texts.

use super::Texts;
use crate::catalogue::{
    ALLOWED_ENV, DEVICES, ENGINE_FILES, ENGINE_MARK, FactRule, IMAGE_FILES, IMAGE_PROGRAMS, TEXTS,
};
use crate::evidence::Verdict;
use crate::facts::{self, Mount};
use crate::observation::{Observation, State};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

/// A verdict short of PASS, and why.
pub type Problem = (Verdict, String);

/// Applies a rule to the raw fact, and the raw fact to the reading.
pub fn check(rule: FactRule, seen: &Observation, texts: &Texts) -> Vec<Problem> {
    let raw = texts.raw;
    let reading = match (seen.state, &seen.value) {
        (State::Allowed, Some(value)) => value.as_str(),
        // A kernel without IPv6 has no such table, which is as empty as can be.
        (State::Denied, None)
            if rule == FactRule::NoIpv6Route
                && seen.errno.as_deref() == Some("ENOENT")
                && raw.proc_net_ipv6_route.is_empty() =>
        {
            return Vec::new();
        }
        _ => return vec![(Verdict::Unproven, format!("not read: {}", seen.proof()))],
    };
    match rule {
        FactRule::OnlyLoopback => {
            let names = facts::interfaces(&raw.proc_net_dev);
            let mut problems = agree(reading, &names.join(","));
            match names.as_slice() {
                ["lo"] => {}
                // A network namespace without `lo` does not exist: nothing was read.
                [] => problems.push((Verdict::Unproven, "no interface table".into())),
                others => problems.push((
                    Verdict::Fail,
                    format!("interfaces other than lo: {}", others.join(",")),
                )),
            }
            problems
        }
        FactRule::NoIpv4Route => routes(
            reading,
            &facts::ipv4_routes(&raw.proc_net_route),
            |_| true,
            raw.proc_net_route.is_empty(),
        ),
        FactRule::NoIpv6Route => routes(
            reading,
            &facts::ipv6_routes(&raw.proc_net_ipv6_route),
            |device| device != "lo",
            false,
        ),
        FactRule::EnvKeys => {
            let mut problems = agree(reading, &raw.env_keyset.join(","));
            let foreign: Vec<&str> = raw
                .env_keyset
                .iter()
                .map(String::as_str)
                .filter(|key| !ALLOWED_ENV.contains(key))
                .collect();
            if !foreign.is_empty() {
                problems.push((Verdict::Fail, format!("also set: {}", foreign.join(","))));
            }
            problems
        }
        FactRule::CanaryAbsent => match reading {
            "absent" => Vec::new(),
            _ => vec![(Verdict::Fail, "the canary is visible inside".into())],
        },
        FactRule::MountTable => match texts.mounts() {
            Err(line) => vec![(Verdict::Unproven, format!("mount table, line {}", line.0))],
            Ok(mounts) => {
                let mut problems = agree(reading, &facts::mount_summary(mounts));
                problems.extend(mount_table(mounts).into_iter().map(|p| (Verdict::Fail, p)));
                problems
            }
        },
        FactRule::MountFlags => match texts.mounts() {
            Err(line) => vec![(Verdict::Unproven, format!("mount table, line {}", line.0))],
            Ok(mounts) => {
                let mut problems = agree(reading, &facts::flags_summary(mounts));
                problems.extend(mounts.iter().filter_map(flags));
                problems
            }
        },
        FactRule::Is(wanted) => one_of(reading, &[wanted]),
        FactRule::OneOf(wanted) => one_of(reading, wanted),
        FactRule::Status(name, wanted) => match texts.status(name) {
            None => vec![(Verdict::Unproven, format!("status has no {name}"))],
            Some(value) => {
                let mut problems = agree(reading, value);
                problems.extend(one_of(value, &[wanted]));
                problems
            }
        },
        FactRule::NotRoot => match facts::identity_of(|name| texts.status(name)) {
            None => vec![(Verdict::Unproven, "status has no ids".into())],
            Some(ids) => {
                let mut problems = agree(reading, &ids);
                if ids.split_whitespace().any(|word| word == "0") {
                    problems.push((Verdict::Fail, format!("root's: {ids}")));
                }
                problems
            }
        },
        FactRule::FreshNamespace => namespace(reading, texts),
        FactRule::ImageFiles => within(
            reading,
            |file| {
                IMAGE_FILES.contains(&file) || ENGINE_FILES.contains(&file) || file == ENGINE_MARK
            },
            IMAGE_PROGRAMS,
        ),
        FactRule::Devices => within(reading, |device| DEVICES.contains(&device), &["null"]),
        FactRule::DeviceNumbers => device_numbers(reading),
        FactRule::Refused(count) => refused(reading, count),
        FactRule::Descriptors => {
            let kinds: Vec<(&str, &str)> = reading
                .split(',')
                .filter_map(|entry| entry.split_once('='))
                .collect();
            let numbers: Vec<&str> = kinds.iter().map(|(number, _)| *number).collect();
            let plain = kinds
                .iter()
                .all(|(_, kind)| ["pipe", "null"].contains(kind));
            if numbers == ["0", "1", "2"] && plain {
                Vec::new()
            } else {
                vec![(Verdict::Fail, format!("open: {reading}"))]
            }
        }
        FactRule::Sweep => texts.sweep(reading),
        FactRule::CoreDumps => core_dumps(reading, &raw.proc_self_limits),
        FactRule::RealTexts => real_texts(reading),
        FactRule::Label => label(reading, texts),
        FactRule::NoSocketFile => match reading {
            "" => Vec::new(),
            found => vec![(Verdict::Fail, format!("socket files: {found}"))],
        },
    }
}

/// Whether a rule looks at more than the reading.
pub fn reads_texts(rule: FactRule) -> bool {
    match rule {
        FactRule::OnlyLoopback
        | FactRule::NoIpv4Route
        | FactRule::NoIpv6Route
        | FactRule::EnvKeys
        | FactRule::MountTable
        | FactRule::MountFlags
        | FactRule::Status(..)
        | FactRule::NotRoot
        | FactRule::FreshNamespace
        | FactRule::CoreDumps
        | FactRule::Label
        | FactRule::Sweep => true,
        FactRule::CanaryAbsent
        | FactRule::NoSocketFile
        | FactRule::Is(_)
        | FactRule::OneOf(_)
        | FactRule::ImageFiles
        | FactRule::Devices
        | FactRule::DeviceNumbers
        | FactRule::Refused(_)
        | FactRule::RealTexts
        | FactRule::Descriptors => false,
    }
}

fn agree(reading: &str, raw: &str) -> Vec<Problem> {
    if reading == raw {
        return Vec::new();
    }
    vec![(
        Verdict::Fail,
        format!("the probe read {reading:?} but the raw fact says {raw:?}"),
    )]
}

fn routes(
    reading: &str,
    devices: &[&str],
    counts: impl Fn(&str) -> bool,
    missing: bool,
) -> Vec<Problem> {
    if missing {
        return vec![(Verdict::Unproven, "no route table".into())];
    }
    let mut problems = agree(reading, &devices.join(","));
    let leading_out: Vec<&str> = devices.iter().copied().filter(|d| counts(d)).collect();
    if !leading_out.is_empty() {
        problems.push((
            Verdict::Fail,
            format!("routes through {}", leading_out.join(",")),
        ));
    }
    problems
}

/// Everything in the mount table that should not be there, or is missing.
pub fn mount_table(mounts: &[Mount]) -> Vec<String> {
    let mut problems = Vec::new();
    let at = |point: &str| -> Vec<&Mount> {
        mounts
            .iter()
            .filter(|mount| mount.mount_point == point)
            .collect()
    };
    for (point, read_only) in [("/", true), ("/in", true), ("/out", false)] {
        match at(point).as_slice() {
            [mount] if mount.is_read_only() == read_only => {}
            [_] if read_only => problems.push(format!("{point} is writable")),
            [_] => problems.push(format!("{point} is read-only")),
            [] => problems.push(format!("{point} is not a mount")),
            _ => problems.push(format!("{point} is mounted more than once")),
        }
    }
    for mount in mounts {
        if let Some(problem) = foreign(mount) {
            problems.push(problem);
        }
    }
    problems
}

/// Why a mount is none of those that the sandbox or an engine needs.
fn foreign(mount: &Mount) -> Option<String> {
    let point = mount.mount_point.as_ref();
    let below = |parent: &str| {
        point
            .strip_prefix(parent)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let expected = match mount.fs_type {
        _ if ["/", "/in", "/out"].contains(&point) => true,
        _ if ENGINE_FILES.contains(&point) => {
            if !mount.is_read_only() {
                return Some(format!("{point} is writable"));
            }
            true
        }
        // Engines mask and freeze parts of /proc and /sys with mounts of their own.
        "proc" => point == "/proc" || below("/proc"),
        "sysfs" => point == "/sys" || below("/sys"),
        "cgroup" | "cgroup2" => point == "/sys/fs/cgroup" || below("/sys/fs/cgroup"),
        "devpts" => point == "/dev/pts" || point == "/dev/console",
        "mqueue" => point == "/dev/mqueue",
        "tmpfs" => {
            ["/dev", "/dev/shm", "/tmp", "/sys/fs/cgroup"].contains(&point)
                || below("/proc")
                || (below("/sys") && mount.is_read_only())
        }
        // Without the right to make device nodes an engine binds the host's own.
        "devtmpfs" => below("/dev") || below("/proc"),
        _ => false,
    };
    (!expected).then(|| format!("unexpected mount {} ({})", point, mount.fs_type))
}

/// What PR-EXEC-1 needs besides the denials themselves: they are the lock's, so
/// it must really have been stacked. That no privilege is to be gained otherwise
/// is for the probes of identity to say.
pub fn lock_problem(texts: &Texts) -> Option<String> {
    let locked = &texts.raw.proc_self_status_locked;
    let filters = |count: Option<&str>| -> Option<u32> { count?.parse().ok() };
    // Kernels before 5.9 do not count filters; there the denials speak alone.
    match (
        filters(texts.status("Seccomp_filters")),
        filters(facts::status_field(locked, "Seccomp_filters")),
    ) {
        (Some(before), Some(after)) if before.checked_add(1) == Some(after) => None,
        (None, None) if !locked.is_empty() => None,
        (before, after) => Some(format!(
            "the lock was not stacked: filters {before:?} before, {after:?} after"
        )),
    }
}

fn one_of(reading: &str, wanted: &[&str]) -> Vec<Problem> {
    if wanted.contains(&reading) {
        return Vec::new();
    }
    vec![(
        Verdict::Fail,
        format!("{reading:?}, not {}", wanted.join(" or ")),
    )]
}

/// A list that holds nothing beyond what is known, and at least what must be.
fn within(reading: &str, is_known: impl Fn(&str) -> bool, at_least: &[&str]) -> Vec<Problem> {
    let found: Vec<&str> = reading.split(',').collect();
    let foreign: Vec<&str> = found.iter().copied().filter(|f| !is_known(f)).collect();
    if !foreign.is_empty() {
        return vec![(Verdict::Fail, format!("also there: {}", foreign.join(", ")))];
    }
    let missing = at_least.iter().filter(|name| !found.contains(name));
    missing
        .map(|name| (Verdict::Unproven, format!("{name} was not found")))
        .collect()
}

/// What the kernel's own devices are.
const NUMBERS: &[(&str, &str)] = &[
    ("full", "1:7"),
    ("null", "1:3"),
    ("random", "1:8"),
    ("tty", "5:0"),
    ("urandom", "1:9"),
    ("zero", "1:5"),
];

/// A container need not have all of them; what it has must be what it is called.
fn device_numbers(reading: &str) -> Vec<Problem> {
    let wrong = reading.split(' ').filter(|entry| {
        let (name, number) = entry.split_once('=').unwrap_or((entry, ""));
        !NUMBERS.contains(&(name, number))
    });
    let wrong: Vec<&str> = wrong.collect();
    match reading {
        "" => vec![(Verdict::Unproven, "no device was found".into())],
        _ if wrong.is_empty() => Vec::new(),
        _ => vec![(
            Verdict::Fail,
            format!("not what it is called: {}", wrong.join(" ")),
        )],
    }
}

/// How a socket is refused; the last where the filter ends the caller.
const REFUSALS: &[&str] = &["EPERM", "EACCES", "EAFNOSUPPORT", "SIGSYS"];

fn refused(reading: &str, count: usize) -> Vec<Problem> {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in reading.split_whitespace() {
        let Some((number, answer)) = entry.split_once('=') else {
            return vec![(Verdict::Unproven, "not a list of answers".into())];
        };
        if number.parse() != Ok(seen) {
            return vec![(Verdict::Unproven, format!("{seen} was not tried"))];
        }
        seen += 1;
        if !REFUSALS.contains(&answer) {
            wrong.push(entry);
        }
    }
    if !wrong.is_empty() {
        wrong.truncate(8);
        return vec![(Verdict::Fail, format!("let through: {}", wrong.join(" ")))];
    }
    match seen == count {
        true => Vec::new(),
        false => vec![(
            Verdict::Unproven,
            format!("{seen} answers instead of {count}"),
        )],
    }
}

/// Where core dumps go, and the limit of their size, as `kind soft:hard`. What can be raised
/// again counts as raised.
fn core_dumps(reading: &str, limits: &str) -> Vec<Problem> {
    let (kind, limit) = reading.split_once(' ').unwrap_or((reading, ""));
    let raw = facts::limit(limits, "Max core file size");
    let raw = raw.map_or_else(String::new, |(soft, hard)| format!("{soft}:{hard}"));
    let mut problems = agree(limit, &raw);
    match (kind, limit) {
        (_, "1:1") | ("file", "0:0" | "0:1") => {}
        ("file", _) => problems.push((Verdict::Fail, format!("a core dump may have {limit}"))),
        ("program" | "socket", _) => problems.push((
            Verdict::Fail,
            format!("a core dump goes to a {kind} of the host's at a limit of {limit}: only 1:1 stops that"),
        )),
        _ => problems.push((Verdict::Unproven, format!("not a place: {reading:?}"))),
    }
    problems
}

/// Those that every kernel has.
const EVERYWHERE: &[&str] = &[
    "self/mountinfo",
    "net/dev",
    "self/status",
    "self/limits",
    "version",
    "sys/kernel/hostname",
    "sys/kernel/core_pattern",
];

/// Texts of /proc, each opened without crossing a mount.
fn real_texts(reading: &str) -> Vec<Problem> {
    let entries: Vec<(&str, &str)> = reading
        .split(' ')
        .filter_map(|entry| entry.split_once('='))
        .collect();
    if !entries.iter().map(|(text, _)| text).eq(TEXTS) {
        return vec![(Verdict::Unproven, "not all texts were tried".into())];
    }
    let is_missing =
        |(text, answer): &&(&str, &str)| *answer == "ENOENT" && EVERYWHERE.contains(text);
    let missing: Vec<&str> = entries
        .iter()
        .filter(is_missing)
        .map(|(text, _)| *text)
        .collect();
    // One line for each answer.
    let mut by_answer: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (text, answer) in entries {
        by_answer.entry(answer).or_default().push(text);
    }
    let problem = |(answer, texts): (&str, Vec<&str>)| {
        let texts = texts.join(", ");
        match answer {
            "ok" => None,
            // A kernel need not have all of them.
            "ENOENT" if !missing.is_empty() => Some((
                Verdict::Unproven,
                format!("every kernel has these: {}", missing.join(", ")),
            )),
            "ENOENT" => None,
            "EXDEV" => Some((Verdict::Fail, format!("something lies over: {texts}"))),
            "ELOOP" => Some((Verdict::Fail, format!("links elsewhere: {texts}"))),
            "other" => Some((Verdict::Fail, format!("no files of proc's: {texts}"))),
            other => Some((Verdict::Unproven, format!("not opened ({other}): {texts}"))),
        }
    };
    by_answer.into_iter().filter_map(problem).collect()
}

/// A label as a kernel text shows it: its name, and how it is applied if that is told.
pub fn label_parts(text: &str) -> (&str, Option<&str>) {
    let text = text.trim_end_matches(['\n', '\0']);
    match text.rsplit_once(" (") {
        Some((name, mode)) if mode.ends_with(')') => (name, Some(mode.trim_end_matches(')'))),
        _ => (text, None),
    }
}

/// The label of a security module. A host without one gives none, and no engine speaks of
/// any there.
fn label(reading: &str, texts: &Texts) -> Vec<Problem> {
    let raw = match texts.raw.lsm_label.trim_end_matches(['\n', '\0']) {
        "" => "none",
        label => label,
    };
    let mut problems = agree(reading, raw);
    let (name, mode) = label_parts(reading);
    match texts.label {
        "" | "unconfined" => {}
        given if given != name => problems.push((
            Verdict::Fail,
            format!("the engine speaks of {given:?}, and the kernel of {name:?}"),
        )),
        _ if mode.is_some_and(|mode| mode != "enforce") => problems.push((
            Verdict::Fail,
            format!("{name:?} is not enforced: {}", mode.unwrap_or_default()),
        )),
        _ => {}
    }
    problems
}

/// The kernel's first namespaces have fixed numbers.
pub const FIRST: &[&str] = &[
    "cgroup:[4026531835]",
    "ipc:[4026531839]",
    "pid:[4026531836]",
    "uts:[4026531838]",
];

/// A namespace is fresh if it is not the host's. Where those of the host are not known, it
/// must not be shared with another container of the run, which would have the host's too.
fn namespace(reading: &str, texts: &Texts) -> Vec<Problem> {
    let (host, neighbour) = (texts.host_namespaces, texts.neighbour_namespaces);
    let is_in = |list: &[String]| list.iter().any(|own| own == reading);
    if FIRST.contains(&reading) || is_in(host) {
        return vec![(Verdict::Fail, format!("{reading} is the host's"))];
    }
    if is_in(neighbour) {
        return vec![(Verdict::Fail, format!("{reading} is the neighbour's, too"))];
    }
    if host.is_empty() && neighbour.is_empty() {
        return vec![(
            Verdict::Unproven,
            "neither the host's namespaces nor a neighbour's are known".into(),
        )];
    }
    Vec::new()
}

/// Which flags are missing on which mount.
pub fn mount_flags(mounts: &[Mount]) -> Vec<String> {
    let problems = mounts.iter().filter_map(flags);
    problems.map(|(_, problem)| problem).collect()
}

/// What is wrong with a mount's flags.
fn flags(mount: &Mount) -> Option<Problem> {
    let point = mount.mount_point.as_ref();
    if mount.shared {
        return Some((Verdict::Fail, format!("{point} is shared with the host")));
    }
    let pseudo = ["proc", "sysfs", "cgroup", "cgroup2", "mqueue"].contains(&mount.fs_type);
    // Runtimes bind parts of /proc onto themselves to make them read-only, and crun leaves
    // the other flags out. The kernel executes nothing on any proc file system, which
    // XP-MEM-EXEC shows, and opens no device there, whatever the flags of a mount.
    let part_of_proc = mount.fs_type == "proc" && point.starts_with("/proc/") && mount.has("ro");
    let wanted: &[&str] = match point {
        _ if part_of_proc => &[],
        "/dev" => &["nosuid"],
        "/dev/pts" | "/dev/console" => &["nosuid", "noexec"],
        "/tmp" | "/out" | "/dev/shm" => &["nosuid", "nodev", "noexec"],
        _ if pseudo => &["nosuid", "nodev", "noexec"],
        _ => &[],
    };
    let missing: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|flag| !mount.has(flag))
        .collect();
    if missing.is_empty() {
        return None;
    }
    // The flags of a bind are those of the host's file system, which an
    // unprivileged launcher cannot choose: that is not proven, not a leak.
    let verdict = match point {
        "/out" => Verdict::Unproven,
        _ => Verdict::Fail,
    };
    Some((verdict, format!("{point} lacks {}", missing.join(","))))
}
