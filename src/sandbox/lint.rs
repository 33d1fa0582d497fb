//! What is wrong with a seccomp profile, found by reading it.

use serde::Serialize;
use tki_evidence::catalogue::floor;
use tki_evidence::seccomp::{About, Action, Rules};
use tki_evidence::syscalls;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Warning,
    /// A way past the profile, or a profile that cannot work.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its stable code.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub next: &'static str,
}

/// Calls that do the same: a rule for one that does not name the other is
/// walked around.
const TWINS: &[&[&str]] = &[
    &["execve", "execveat"],
    &["clone", "clone3"],
    &["open", "openat", "openat2"],
    &["accept", "accept4"],
    &["chmod", "fchmodat", "fchmodat2"],
    &["mknod", "mknodat"],
    &["umount2", "move_mount", "mount_setattr"],
    &["mount", "fsopen", "fsmount", "open_tree"],
    &["ptrace", "process_vm_readv", "process_vm_writev"],
    &["init_module", "finit_module"],
    &["kexec_load", "kexec_file_load"],
    &["quotactl", "quotactl_fd"],
    &["sendmsg", "sendmmsg"],
];

/// Arguments that the kernel reads as 32 bits, and a filter as 64.
const NARROW: &[(&str, u32)] = &[
    ("ioctl", 1),
    ("personality", 0),
    ("prctl", 0),
    ("ptrace", 0),
    ("socket", 0),
    ("socket", 1),
];

const NAMESPACE_FLAGS: u64 = 0x7e02_0000;
const TIOCSTI: u64 = 0x5412;

/// Everything that is wrong with a profile, errors first.
pub fn lint(rules: &Rules) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(start(rules));
    findings.extend(io_uring(rules));
    findings.extend(below_floor(rules));
    findings.extend(namespaces(rules));
    findings.extend(terminal(rules));
    findings.extend(narrow_arguments(rules));
    findings.extend(architectures(rules));
    findings.extend(twins(rules));
    findings.extend(idle_rules(rules));
    findings.extend(unknown_names(rules));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn error(code: &'static str, what: String, next: &'static str) -> Finding {
    Finding {
        code,
        severity: Severity::Error,
        what,
        next,
    }
}

fn warning(code: &'static str, what: String, next: &'static str) -> Finding {
    Finding {
        severity: Severity::Warning,
        ..error(code, what, next)
    }
}

fn denied(rules: &Rules, name: &str) -> bool {
    rules.about(name) == About::Denied
}

fn start(rules: &Rules) -> Option<Finding> {
    denied(rules, "execve").then(|| {
        error(
            "SL-EXECVE",
            "execve is denied: no container can start under this profile".into(),
            "allow execve; the filter is loaded before the last exec of the start",
        )
    })
}

fn io_uring(rules: &Rules) -> Option<Finding> {
    let open: Vec<&str> = ["io_uring_setup", "io_uring_enter", "io_uring_register"]
        .into_iter()
        .filter(|name| !denied(rules, name))
        .collect();
    (!open.is_empty()).then(|| {
        error(
            "SL-IO-URING",
            format!(
                "{}: operations in a ring pass the filter unseen",
                open.join(", ")
            ),
            "deny all three",
        )
    })
}

fn below_floor(rules: &Rules) -> Option<Finding> {
    let open: Vec<&str> = floor::DENIED
        .iter()
        .copied()
        .filter(|name| !name.starts_with("io_uring") && !denied(rules, name))
        .collect();
    (!open.is_empty()).then(|| {
        error(
            "SL-FLOOR",
            format!("not denied: {}", open.join(", ")),
            "deny them; `tki-attest probes` says which probe each of them fails",
        )
    })
}

/// Whether some rule decides about these bits of an argument, under a mask.
fn masks(rules: &Rules, name: &str, index: u32, bits: u64, denying: bool) -> bool {
    rules
        .syscalls
        .iter()
        .filter(|rule| rule.names.iter().any(|named| named == name))
        .filter(|rule| rule.action.lets_through() != denying)
        .flat_map(|rule| &rule.args)
        .any(|arg| {
            arg.index == index
                && arg.op == "SCMP_CMP_MASKED_EQ"
                && if denying {
                    arg.value & bits == arg.value_two & bits && arg.value & bits != 0
                } else {
                    arg.value & bits == bits && arg.value_two & bits == 0
                }
        })
}

fn namespaces(rules: &Rules) -> Option<Finding> {
    let finding = |what: String| {
        error(
            "SL-CLONE",
            what,
            "compare the first argument under the mask 0x7e020000",
        )
    };
    match rules.about("clone") {
        About::Denied => None,
        About::Allowed => Some(finding("clone may make namespaces of every kind".into())),
        About::Depends if rules.default_action.lets_through() => {
            let open: Vec<String> = (0..32)
                .map(|bit| 1u64 << bit)
                .filter(|flag| NAMESPACE_FLAGS & flag != 0)
                .filter(|flag| !masks(rules, "clone", 0, *flag, true))
                .map(|flag| format!("{flag:#x}"))
                .collect();
            (!open.is_empty())
                .then(|| finding(format!("clone may carry the flags {}", open.join(", "))))
        }
        About::Depends => (!masks(rules, "clone", 0, NAMESPACE_FLAGS, false))
            .then(|| finding("clone is allowed under a condition that leaves flags out".into())),
    }
}

fn terminal(rules: &Rules) -> Option<Finding> {
    let open = match rules.about("ioctl") {
        About::Denied => false,
        About::Allowed => true,
        About::Depends => {
            rules.default_action.lets_through() && !masks(rules, "ioctl", 1, TIOCSTI, true)
        }
    };
    open.then(|| {
        error(
            "SL-TIOCSTI",
            "ioctl may type into the caller's terminal".into(),
            "deny ioctl with TIOCSTI under the mask 0xffffffff",
        )
    })
}

/// A denying rule that compares 64 bits where the kernel looks at 32.
fn narrow_arguments(rules: &Rules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules
        .syscalls
        .iter()
        .filter(|rule| !rule.action.lets_through())
    {
        for name in &rule.names {
            for arg in &rule.args {
                let narrow = NARROW.contains(&(name.as_str(), arg.index));
                let wide_mask = arg.op == "SCMP_CMP_MASKED_EQ" && arg.value > u64::from(u32::MAX);
                if narrow && (arg.op == "SCMP_CMP_EQ" || wide_mask) {
                    findings.push(error(
                        "SL-64-BIT",
                        format!(
                            "{name}, argument {}: a value with high bits slips past",
                            arg.index
                        ),
                        "use SCMP_CMP_MASKED_EQ with the mask 0xffffffff",
                    ));
                }
            }
        }
    }
    findings
}

fn architectures(rules: &Rules) -> Vec<Finding> {
    let mut foreign: Vec<&str> = rules
        .architectures
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "SCMP_ARCH_X86_64")
        .collect();
    let subs = rules
        .arch_map
        .iter()
        .filter(|map| map.architecture == "SCMP_ARCH_X86_64");
    foreign.extend(subs.flat_map(|map| map.sub_architectures.iter().map(String::as_str)));
    let mut findings: Vec<Finding> = foreign
        .iter()
        .map(|name| {
            let code = if *name == "SCMP_ARCH_X32" {
                "SL-X32"
            } else {
                "SL-ARCH"
            };
            error(
                code,
                format!("{name} is let in: its table has other numbers"),
                "list the native architecture only, so that others are killed",
            )
        })
        .collect();
    if rules.architectures.is_empty() && rules.arch_map.is_empty() {
        findings.push(warning(
            "SL-NO-ARCH",
            "no architecture is named".into(),
            "name SCMP_ARCH_X86_64",
        ));
    }
    findings
}

fn twins(rules: &Rules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for group in TWINS {
        let open: Vec<&str> = group
            .iter()
            .copied()
            .filter(|n| !denied(rules, n))
            .collect();
        let closed: Vec<&str> = group.iter().copied().filter(|n| denied(rules, n)).collect();
        // A default that denies closes what nobody named, which is no mistake.
        let meant = closed.iter().any(|name| {
            let named = rules
                .syscalls
                .iter()
                .any(|r| r.names.iter().any(|n| n == name));
            named || rules.default_action.lets_through()
        });
        if meant && !open.is_empty() {
            findings.push(warning(
                "SL-TWIN",
                format!(
                    "{} is denied but {} is not",
                    closed.join(", "),
                    open.join(", ")
                ),
                "treat calls that do the same alike",
            ));
        }
    }
    findings
}

fn idle_rules(rules: &Rules) -> Vec<Finding> {
    let same = |action: Action, errno: Option<u32>| {
        action == rules.default_action
            && (action != Action::ScmpActErrno
                || errno.unwrap_or(1) == rules.default_errno_ret.unwrap_or(1))
    };
    rules
        .syscalls
        .iter()
        .filter(|rule| same(rule.action, rule.errno_ret))
        .map(|rule| {
            warning(
                "SL-IDLE",
                format!(
                    "the rule for {} does what the default does",
                    rule.names.join(", ")
                ),
                "remove it: runtimes skip such rules",
            )
        })
        .collect()
}

fn unknown_names(rules: &Rules) -> Vec<Finding> {
    let mut unknown: Vec<&str> = rules
        .syscalls
        .iter()
        .flat_map(|rule| rule.names.iter().map(String::as_str))
        .filter(|name| syscalls::number(name).is_none())
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    if unknown.is_empty() {
        return Vec::new();
    }
    vec![warning(
        "SL-UNKNOWN",
        format!("no call of x86-64 is called {}", unknown.join(", ")),
        "runtimes skip names that they do not know: correct or remove them",
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<&'static str> {
        let rules = Rules::parse(text.as_bytes()).unwrap();
        let mut codes: Vec<&str> = lint(&rules).iter().map(|finding| finding.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    #[test]
    fn both_shipped_profiles_are_clean() {
        assert_eq!(codes(tki_evidence::TARGETED_DENY), ["SL-TWIN"]);
        assert!(codes(tki_evidence::DENY_BY_DEFAULT).is_empty());
    }

    /// What execve and its twin are in a profile that cannot deny the first:
    /// the one finding that stays, and why.
    #[test]
    fn the_one_finding_about_targeted_deny_is_the_clone_pair() {
        let rules = Rules::parse(tki_evidence::TARGETED_DENY.as_bytes()).unwrap();
        let findings = lint(&rules);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].what, "clone3 is denied but clone is not");
    }

    #[test]
    fn each_mistake_has_its_code() {
        let allow = |rules: &str| {
            let text = tki_evidence::TARGETED_DENY;
            let at = text.rfind(']').unwrap();
            format!("{},{rules}{}", &text[..at], &text[at..])
        };
        let cases = [
            (
                r#"{"names":["execve"],"action":"SCMP_ACT_ERRNO"}"#,
                "SL-EXECVE",
            ),
            (
                r#"{"names":["sockett"],"action":"SCMP_ACT_ERRNO"}"#,
                "SL-UNKNOWN",
            ),
            (r#"{"names":["read"],"action":"SCMP_ACT_ALLOW"}"#, "SL-IDLE"),
            (
                r#"{"names":["ioctl"],"action":"SCMP_ACT_ERRNO","args":[{"index":1,"value":21522,"op":"SCMP_CMP_EQ"}]}"#,
                "SL-64-BIT",
            ),
        ];
        for (rule, code) in cases {
            let found = codes(&allow(rule));
            assert!(found.contains(&code), "{code}: {found:?}");
        }
        let open = codes(
            r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_X86","SCMP_ARCH_X32"]}"#,
        );
        for code in [
            "SL-IO-URING",
            "SL-FLOOR",
            "SL-CLONE",
            "SL-TIOCSTI",
            "SL-ARCH",
            "SL-X32",
        ] {
            assert!(open.contains(&code), "{code}: {open:?}");
        }
        assert!(codes(r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).contains(&"SL-NO-ARCH"));
    }

    /// Dropping any one deny rule of 4a is found by reading alone.
    #[test]
    fn every_rule_of_targeted_deny_is_missed_when_it_is_gone() {
        let whole: serde_json::Value = serde_json::from_str(tki_evidence::TARGETED_DENY).unwrap();
        let count = whole["syscalls"].as_array().unwrap().len();
        for index in 0..count {
            let mut weaker = whole.clone();
            let gone = weaker["syscalls"].as_array_mut().unwrap().remove(index);
            let rules = Rules::parse(weaker.to_string().as_bytes()).unwrap();
            let errors = lint(&rules)
                .into_iter()
                .any(|f| f.severity == Severity::Error);
            // The two ioctl requests stand for one finding.
            let linux = gone["args"][0]["valueTwo"] == 0x541c;
            assert!(errors || linux, "{gone}");
        }
    }
}
