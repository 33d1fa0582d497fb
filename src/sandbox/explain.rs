//! What a seccomp profile allows, in groups that a person can take in.

use serde::Serialize;
use std::collections::BTreeMap;
use tki_evidence::seccomp::{About, Rules};
use tki_evidence::syscalls;

/// Calls of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The kind.
    pub kind: &'static str,
    /// Allowed whatever their arguments.
    pub allowed: Vec<&'static str>,
    /// Allowed or denied by their arguments or by the engine's conditions.
    pub depends: Vec<&'static str>,
    /// Denied.
    pub denied: Vec<&'static str>,
}

/// A profile, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What happens to a call that no rule names.
    pub default: &'static str,
    /// The groups.
    pub groups: Vec<Group>,
    /// The rules' own reasons, with the calls that they are given for.
    pub reasons: Vec<(String, Vec<String>)>,
}

/// Kinds, by words in a call's name; the first that fits.
const KINDS: &[(&str, &[&str])] = &[
    (
        "network",
        &[
            "socket", "connect", "bind", "listen", "accept", "send", "recv", "shutdown", "sockopt",
            "sockname", "peername",
        ],
    ),
    (
        "io_uring and aio",
        &[
            "io_uring",
            "io_setup",
            "io_submit",
            "io_get",
            "io_pget",
            "io_destroy",
            "io_cancel",
        ],
    ),
    ("programs", &["exec", "memfd"]),
    (
        "namespaces and mounts",
        &[
            "mount",
            "unshare",
            "setns",
            "pivot_root",
            "chroot",
            "fsopen",
            "fsconfig",
            "fspick",
            "open_tree",
        ],
    ),
    (
        "other processes",
        &["ptrace", "process_", "pidfd", "kcmp", "kill"],
    ),
    (
        "kernel administration",
        &[
            "module",
            "kexec",
            "reboot",
            "swap",
            "quota",
            "acct",
            "iopl",
            "ioperm",
            "syslog",
            "settime",
            "adjtime",
            "hostname",
            "domainname",
            "bpf",
            "perf_event",
            "userfault",
            "key",
            "lookup_dcookie",
            "vhangup",
        ],
    ),
    (
        "processes and threads",
        &[
            "clone",
            "fork",
            "wait",
            "exit",
            "futex",
            "sched_",
            "prctl",
            "arch_prctl",
            "seccomp",
            "landlock",
            "rseq",
            "robust_list",
            "tid",
        ],
    ),
    ("identity", &["uid", "gid", "groups", "cap", "personality"]),
    (
        "memory",
        &[
            "mmap",
            "munmap",
            "mprotect",
            "mremap",
            "madvise",
            "brk",
            "mlock",
            "munlock",
            "mincore",
            "mbind",
            "mempolicy",
            "pages",
            "pkey",
            "shm",
            "mseal",
            "shadow_stack",
        ],
    ),
    (
        "signals and time",
        &[
            "sig",
            "time",
            "clock_",
            "nanosleep",
            "alarm",
            "itimer",
            "pause",
        ],
    ),
    ("message queues", &["mq_", "msg", "sem"]),
];

fn kind(name: &str) -> &'static str {
    let found = KINDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| name.contains(word)));
    found.map_or("files and the rest", |(kind, _)| *kind)
}

/// Explains a profile.
pub fn explain(rules: &Rules) -> Explanation {
    let mut groups: BTreeMap<&'static str, Group> = BTreeMap::new();
    for number in 0..syscalls::BEYOND {
        let Some(name) = syscalls::name(number) else {
            continue;
        };
        let kind = kind(name);
        let group = groups.entry(kind).or_insert_with(|| Group {
            kind,
            allowed: Vec::new(),
            depends: Vec::new(),
            denied: Vec::new(),
        });
        match rules.about(name) {
            About::Allowed => group.allowed.push(name),
            About::Depends => group.depends.push(name),
            About::Denied => group.denied.push(name),
        }
    }
    Explanation {
        default: if rules.default_action.lets_through() {
            "allowed"
        } else {
            "denied"
        },
        groups: groups.into_values().collect(),
        reasons: rules
            .syscalls
            .iter()
            .map(|rule| {
                let reason = rule.comment.clone();
                (
                    reason.unwrap_or_else(|| "no reason given".into()),
                    rule.names.clone(),
                )
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_in_exactly_one_group() {
        let rules = Rules::parse(tki_evidence::DENY_BY_DEFAULT.as_bytes()).unwrap();
        let explanation = explain(&rules);
        let all = explanation.groups.iter();
        let count: usize = all
            .map(|group| group.allowed.len() + group.depends.len() + group.denied.len())
            .sum();
        let known = (0..syscalls::BEYOND)
            .filter(|n| syscalls::name(*n).is_some())
            .count();
        assert_eq!(count, known);
        assert_eq!(explanation.default, "denied");
        let network = explanation
            .groups
            .iter()
            .find(|g| g.kind == "network")
            .unwrap();
        assert!(network.allowed.is_empty() && network.depends.is_empty());
    }
}
