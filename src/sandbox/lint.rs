//! What is wrong with a seccomp profile, found by reading it.

use serde::Serialize;
use tki_evidence::seccomp::{About, Action, Comparison, Place, Reading, Rule, Rules};
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

/// Everything that is wrong with a profile, errors first.
pub fn lint(rules: &Rules) -> Vec<Finding> {
    let profile = Profile {
        rules,
        reading: rules.read_for(Place::default()),
    };
    let mut findings = Vec::new();
    findings.extend(start(&profile));
    findings.extend(io_uring(&profile));
    findings.extend(below_floor(&profile));
    findings.extend(namespaces(&profile));
    findings.extend(terminal(&profile));
    findings.extend(no_denial(&profile));
    findings.extend(narrow_arguments(rules));
    findings.extend(architectures(rules));
    findings.extend(twins(&profile));
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

/// A profile and what it comes to, wherever it is used.
struct Profile<'a> {
    rules: &'a Rules,
    reading: Reading<'a>,
}

impl Profile<'_> {
    fn denies(&self, name: &str) -> bool {
        self.reading.about(name) == About::Denied
    }

    /// What the profile does not deny of the floor, as far as this concerns a finding.
    fn open(&self, concerns: impl Fn(&str) -> bool) -> Vec<String> {
        let open = self.reading.open_floor().into_iter();
        open.filter(|(name, _)| concerns(name))
            .map(|(name, about)| match about {
                About::Depends => format!("{name} (for some arguments or engines)"),
                _ => name,
            })
            .collect()
    }
}

fn start(profile: &Profile) -> Option<Finding> {
    profile.denies("execve").then(|| {
        error(
            "SL-EXECVE",
            "execve is denied: no container can start under this profile".into(),
            "allow execve; the filter is loaded before the last exec of the start",
        )
    })
}

fn is_io_uring(name: &str) -> bool {
    name.starts_with("io_uring")
}

fn io_uring(profile: &Profile) -> Option<Finding> {
    let open = profile.open(is_io_uring);
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

fn below_floor(profile: &Profile) -> Option<Finding> {
    let open = profile.open(|name| !is_io_uring(name) && !name.contains('('));
    (!open.is_empty()).then(|| {
        error(
            "SL-FLOOR",
            format!("not denied: {}", open.join(", ")),
            "deny them whatever their arguments; `tki-attest run` comes to FAIL under such a \
             profile, and `tki-attest probes` says what each probe tries",
        )
    })
}

fn namespaces(profile: &Profile) -> Option<Finding> {
    let open = profile.open(|name| name.starts_with("clone("));
    (!open.is_empty()).then(|| {
        error(
            "SL-CLONE",
            format!("namespaces can be made: {}", open.join(", ")),
            "compare the first argument under the mask 0x7e020000",
        )
    })
}

fn terminal(profile: &Profile) -> Option<Finding> {
    let open = profile.open(|name| name.starts_with("ioctl("));
    (!open.is_empty()).then(|| {
        error(
            "SL-TIOCSTI",
            format!(
                "the caller's terminal can be typed into: {}",
                open.join(", ")
            ),
            "deny both requests of ioctl under the mask 0xffffffff",
        )
    })
}

/// An errno that tells the caller that all went well, or that no kernel gives.
fn no_denial(profile: &Profile) -> Vec<Finding> {
    let finding = |what: String| {
        error(
            "SL-NO-DENIAL",
            format!("{what} is said to fail, with an errno that is no failure"),
            "give an errnoRet between 1 and 4095, or none",
        )
    };
    let errno = |action: Action| action == Action::ScmpActErrno;
    let rules = profile.rules.syscalls.iter();
    let mut findings: Vec<Finding> = rules
        .filter(|rule| errno(rule.action) && !rule.denies())
        .map(|rule| finding(rule.names.join(", ")))
        .collect();
    if errno(profile.rules.default_action) && !profile.rules.denies_by_default() {
        findings.push(finding("what no rule names".into()));
    }
    findings
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
                let wide_mask =
                    arg.op == Comparison::MaskedEqual && arg.value > u64::from(u32::MAX);
                if narrow && (arg.op == Comparison::Equal || wide_mask) {
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
    let foreign: Vec<&str> = rules.foreign_architectures().collect();
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

fn twins(profile: &Profile) -> Vec<Finding> {
    let rules = profile.rules;
    let mut findings = Vec::new();
    for group in TWINS {
        let (closed, open): (Vec<&str>, Vec<&str>) =
            group.iter().partition(|name| profile.denies(name));
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
    let same = |rule: &Rule| {
        rule.action == rules.default_action
            && (rule.action != Action::ScmpActErrno
                || rule.errno_number() == rules.default_errno_number())
    };
    rules
        .syscalls
        .iter()
        .filter(|rule| same(rule))
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
            // Wherever a rule stands, and whatever its condition.
            (
                r#"{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":1,"op":"SCMP_CMP_EQ"}]}"#,
                "SL-FLOOR",
            ),
            (
                r#"{"names":["read"],"action":"SCMP_ACT_ERRNO","errnoRet":0}"#,
                "SL-NO-DENIAL",
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
            assert!(errors, "{gone}");
        }
    }
}
