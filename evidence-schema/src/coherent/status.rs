//! `/proc/self/status` before and after the lock: one process, and what the probes
//! read of it.

use super::{Found, kernel, number, reading, shown};
use crate::evidence::Evidence;
use crate::facts::{self, CAPABILITY_SETS};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

/// Fields that every kernel with containers writes.
const NEEDED: &[&str] = &[
    "Name",
    "Umask",
    "State",
    "Tgid",
    "Pid",
    "PPid",
    "TracerPid",
    "Uid",
    "Gid",
    "FDSize",
    "Groups",
    "NSpid",
    "Threads",
    "SigQ",
    "SigBlk",
    "SigIgn",
    "SigCgt",
    "NoNewPrivs",
    "Seccomp",
];

/// Fields that may be others a moment later, besides those of memory.
const COUNTERS: &[&str] = &[
    "State",
    "Ngid",
    "FDSize",
    "HugetlbPages",
    "SigQ",
    "SigPnd",
    "ShdPnd",
    "Speculation_Store_Bypass",
    "SpeculationIndirectBranch",
    "Cpus_allowed",
    "Cpus_allowed_list",
    "Mems_allowed",
    "Mems_allowed_list",
    "voluntary_ctxt_switches",
    "nonvoluntary_ctxt_switches",
];

/// Whether a field of a status may be another a moment later.
pub fn is_counter(field: &str) -> bool {
    field.starts_with("Vm") || field.starts_with("Rss") || COUNTERS.contains(&field)
}

/// The fields of a status, in its order.
pub type Fields<'a> = [(&'a str, &'a str)];

/// The value of a field.
pub fn value<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// The fields of a text that is in the kernel's form: one a line, none twice, all
/// that are needed.
pub fn parse<'a>(
    found: &mut Found,
    text: &'a str,
    fields: &'static str,
) -> Option<Vec<(&'a str, &'a str)>> {
    let needed: Vec<&str> = NEEDED.iter().chain(CAPABILITY_SETS).copied().collect();
    parse_with(found, text, fields, &needed)
}

/// The same with other fields that are needed.
pub fn parse_with<'a>(
    found: &mut Found,
    text: &'a str,
    fields: &'static str,
    needed: &[&str],
) -> Option<Vec<(&'a str, &'a str)>> {
    let all = facts::status_fields(text);
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    let missing: Vec<&str> = needed
        .iter()
        .copied()
        .filter(|name| !names.contains(name))
        .collect();
    let whole = text.ends_with('\n') && text.lines().count() == all.len();
    let (twice, good) = (names.len() != all.len(), missing.is_empty());
    found.must(whole && !twice, fields, || {
        "not a status of the kernel's".into()
    });
    found.must(good, fields, || format!("without {}", missing.join(", ")));
    (whole && !twice && good).then_some(all)
}

pub fn check(found: &mut Found, evidence: &Evidence) {
    const BEFORE: &str = "raw.proc_self_status";
    const AFTER: &str = "raw.proc_self_status_locked";
    let raw = &evidence.raw;
    let before = parse(found, &raw.proc_self_status, BEFORE);
    let after = parse(found, &raw.proc_self_status_locked, AFTER);
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
    for (fields, place) in [(&before, BEFORE), (&after, AFTER)] {
        forms(found, fields, place);
        counts_filters(found, evidence, fields, place);
        pending_signals(found, &raw.proc_self_limits, fields, place);
    }
    readings(found, evidence, &before);
    one_process(found, &before, &after);
}

/// What the probes read of the process is what its status says.
pub fn readings(found: &mut Found, evidence: &Evidence, fields: &Fields) {
    for (name, probe, operation, place) in [
        (
            "Threads",
            "XP-ID-THREADS",
            "threads",
            "raw.proc_self_status (Threads), XP-ID-THREADS",
        ),
        (
            "Pid",
            "XP-NS-PID",
            "pid-1",
            "raw.proc_self_status (Pid), XP-NS-PID",
        ),
        (
            "Name",
            "XP-NS-PID",
            "processes",
            "raw.proc_self_status (Name), XP-NS-PID",
        ),
    ] {
        if let Some(read) = reading(evidence, probe, operation) {
            found.same(value(fields, name).unwrap_or_default(), read, place);
        }
    }
    // A first process has no parent that it could see, and no other number.
    for name in ["Tgid", "NSpid", "NStgid"] {
        if let Some(own) = value(fields, name) {
            found.same(
                own,
                value(fields, "Pid").unwrap_or_default(),
                "raw.proc_self_status (Pid)",
            );
        }
    }
    if value(fields, "Pid") == Some("1") {
        found.same(
            value(fields, "PPid").unwrap_or_default(),
            "0",
            "raw.proc_self_status (PPid)",
        );
    }
}

/// Numbers where the kernel writes numbers, which add up.
pub fn forms(found: &mut Found, fields: &Fields, place: &'static str) {
    numbers(found, fields, place);
    memory(found, fields, place);
}

/// Numbers where a kernel writes numbers.
pub fn numbers(found: &mut Found, fields: &Fields, place: &'static str) {
    for (name, value) in fields {
        let hex = |digits: usize| {
            value.len() == digits && value.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let good = match *name {
            "Tgid" | "Pid" | "PPid" | "FDSize" | "Threads" | "Seccomp" | "Seccomp_filters" => {
                number(value).is_some()
            }
            // A tracer could speak in its place.
            "TracerPid" => *value == "0",
            "Uid" | "Gid" => value.split_whitespace().filter_map(number).count() == 4,
            "SigBlk" | "SigIgn" | "SigCgt" | "SigPnd" | "ShdPnd" => hex(16),
            _ if name.starts_with("Cap") => hex(16),
            _ if name.starts_with("Vm") || name.starts_with("Rss") => {
                value.strip_suffix(" kB").and_then(number).is_some()
            }
            _ if name.ends_with("ctxt_switches") => number(value).is_some(),
            _ => !value.contains(|c: char| c.is_control() && c != '\t'),
        };
        found.must(good, place, || format!("{name} is {}", shown(value)));
    }
}

/// The kernel adds these up itself.
fn memory(found: &mut Found, fields: &Fields, place: &'static str) {
    let size = |name: &str| value(fields, name)?.strip_suffix(" kB").and_then(number);
    let parts = [size("RssAnon"), size("RssFile"), size("RssShmem")];
    if let (Some(whole), [Some(anonymous), Some(file), Some(shared)]) = (size("VmRSS"), parts) {
        let sum = anonymous.saturating_add(file).saturating_add(shared);
        found.must(whole == sum, place, || {
            format!("VmRSS is {whole}, its parts {sum}")
        });
    }
    for (most, now) in [("VmPeak", "VmSize"), ("VmHWM", "VmRSS")] {
        found.must(size(most) >= size(now), place, || {
            format!("{most} is below {now}")
        });
    }
}

/// Kernels since 5.9 count filters.
fn counts_filters(found: &mut Found, evidence: &Evidence, fields: &Fields, place: &'static str) {
    let counting = kernel::release(&evidence.raw.proc_version).and_then(kernel::version);
    if counting >= Some((5, 9)) {
        found.must(value(fields, "Seccomp_filters").is_some(), place, || {
            "this kernel counts filters, and there is no Seccomp_filters".into()
        });
    }
}

/// The most signals that may wait are told twice.
fn pending_signals(found: &mut Found, limits: &str, fields: &Fields, place: &'static str) {
    let queue = value(fields, "SigQ").and_then(|queue| queue.split_once('/'));
    let most = facts::limit(limits, "Max pending signals").map(|(soft, _)| soft);
    let good = queue.is_some_and(|(now, limit)| number(now).is_some() && Some(limit) == most);
    found.must(good, place, || {
        "SigQ is not as raw.proc_self_limits says".into()
    });
}

/// Both texts are of one process, and the second is the later one.
fn one_process(found: &mut Found, before: &Fields, after: &Fields) {
    const BOTH: &str = "raw.proc_self_status, raw.proc_self_status_locked";
    let names = |fields: &Fields| fields.iter().map(|(name, _)| name.len()).sum::<usize>();
    let same = before.len() == after.len() && names(before) == names(after);
    found.must(same, BOTH, || "not the same fields".into());
    for ((name, was), (other, is)) in before.iter().zip(after) {
        found.must(name == other, BOTH, || format!("{name} and {other}"));
        let good = match *name {
            "Seccomp_filters" => number(was).and_then(|was| was.checked_add(1)) == number(is),
            _ if name.ends_with("ctxt_switches") => number(was) <= number(is),
            _ => is_counter(name) || was == is,
        };
        found.must(good, BOTH, || {
            format!("{name} is {} and then {}", shown(was), shown(is))
        });
    }
}
