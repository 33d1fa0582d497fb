//! What a profile says about a call for every argument: found by reading its rules, not
//! by trying one of them.
//!
//! A call is denied only if the default or a rule without any condition denies it, and no
//! rule lets it through under any condition, wherever it stands: engines order rules each
//! in their own way. What may be either is [`About::Depends`].

use super::{Argument, Comparison, Condition, Rule, Rules};
use crate::catalogue::floor;
use crate::policy::kernel_version;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What a profile says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// It may go on.
    Allowed,
    /// It may not.
    Denied,
    /// That depends on its arguments or on the engine.
    Depends,
}

impl About {
    /// For a reader, where a denial is expected.
    pub fn word(self) -> &'static str {
        match self {
            About::Allowed => "allowed",
            About::Denied => "denied",
            About::Depends => "depends",
        }
    }
}

/// The sandbox that a profile is read for: always one without capabilities on x86-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The kernel's version, if it is known.
    pub kernel: Option<(u32, u32)>,
}

impl Place {
    /// The place that a `/proc/version` tells of.
    pub fn of(proc_version: &str) -> Self {
        let release = proc_version.strip_prefix("Linux version ");
        Self::with_kernel(release.unwrap_or_default())
    }

    /// A place with a kernel of this release.
    pub fn with_kernel(release: &str) -> Self {
        let version = kernel_version(release);
        Self {
            kernel: version.map(|(major, minor, _)| (major, minor)),
        }
    }
}

/// Calls with an argument that has these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which argument, from 0.
    pub index: u32,
    /// The bits that matter.
    pub mask: u64,
    /// What they are.
    pub value: u64,
}

/// Whether an engine takes a rule in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    No,
    /// Engines do not agree, or it is not known where the profile is used.
    Perhaps,
}

/// A profile, read for a place.
#[derive(Debug)]
pub struct Reading<'a> {
    rules: &'a Rules,
    denies_by_default: bool,
    named: BTreeMap<&'a str, Vec<(&'a Rule, Taken)>>,
}

impl Rules {
    /// Reads the rules for a place.
    pub fn read_for(&self, place: Place) -> Reading<'_> {
        let mut named: BTreeMap<&str, Vec<(&Rule, Taken)>> = BTreeMap::new();
        for rule in &self.syscalls {
            let taken = taken(rule, place);
            if taken == Taken::No {
                continue;
            }
            for name in &rule.names {
                named.entry(name).or_default().push((rule, taken));
            }
        }
        Reading {
            rules: self,
            denies_by_default: self.denies_by_default(),
            named,
        }
    }
}

impl<'a> Reading<'a> {
    /// What happens to a call, whatever its arguments.
    pub fn about(&self, name: &str) -> About {
        self.decide(name, None)
    }

    /// What happens to a call with such an argument, whatever the others.
    pub fn about_part(&self, name: &str, part: Part) -> About {
        self.decide(name, Some(part))
    }

    /// The rules that an engine takes in for a call, as far as engines agree.
    pub fn rules_for(&self, name: &str) -> impl Iterator<Item = &'a Rule> {
        let rules = self.named.get(name).into_iter().flatten();
        rules.map(|(rule, _)| *rule)
    }

    fn decide(&self, name: &str, part: Option<Part>) -> About {
        let rules = self.named.get(name).map_or(&[][..], Vec::as_slice);
        let touching = || rules.iter().filter(|(rule, _)| !misses(rule, part));
        let through = touching().any(|(rule, _)| !rule.denies());
        let denying = touching().any(|(rule, _)| rule.denies());
        let whole = |denies: bool| {
            touching().any(|(rule, taken)| {
                *taken == Taken::Yes && rule.denies() == denies && covers(rule, part)
            })
        };
        if !through && (self.denies_by_default || whole(true)) {
            About::Denied
        } else if !denying && (!self.denies_by_default || whole(false)) {
            About::Allowed
        } else {
            About::Depends
        }
    }

    /// Everything on the floor that the profile does not deny, by name.
    pub fn open_floor(&self) -> Vec<(String, About)> {
        let mut open = Vec::new();
        let mut look = |name: String, about: About| {
            if about != About::Denied {
                open.push((name, about));
            }
        };
        for name in floor::DENIED {
            look((*name).to_owned(), self.about(name));
        }
        for (name, part, what) in floor::PARTS {
            let about = self.about_part(name, *part);
            look(format!("{name}({what})"), about);
        }
        if self.rules.foreign_architectures().next().is_some() {
            for name in floor::DENIED_ELSEWHERE {
                look((*name).to_owned(), self.about(name));
            }
        }
        open
    }
}

/// No call of the part meets the rule's conditions.
fn misses(rule: &Rule, part: Option<Part>) -> bool {
    let Some(part) = part else { return false };
    rule.args.iter().any(|argument| {
        let differs = |mask: u64, value: u64| (value ^ part.value) & mask & part.mask != 0;
        argument.index == part.index
            && match argument.op {
                Comparison::Equal => differs(u64::MAX, argument.value),
                Comparison::MaskedEqual => differs(argument.value, argument.value_two),
                _ => false,
            }
    })
}

/// Every call of the part meets the rule's conditions.
fn covers(rule: &Rule, part: Option<Part>) -> bool {
    let met = |argument: &Argument| {
        part.is_some_and(|part| {
            argument.index == part.index
                && argument.op == Comparison::MaskedEqual
                && argument.value & !part.mask == 0
                && argument.value_two == part.value & argument.value
        })
    };
    rule.args.iter().all(met)
}

/// What the native architecture is called in an engine's conditions.
const NATIVE: &str = "amd64";

/// A name that a person may take for it.
const NATIVE_TOO: &str = "x86_64";

/// Docker and Podman agree about capabilities and architectures. Podman does not know of
/// a least kernel, so a rule that Docker leaves out for that may be taken in all the same.
fn taken(rule: &Rule, place: Place) -> Taken {
    let (includes, excludes) = (&rule.includes, &rule.excludes);
    let lists = |condition: &Condition, name: &str| condition.arches.iter().any(|a| a == name);
    let reaches = |least: &Option<String>| {
        let version = least.as_deref().and_then(kernel_version);
        let least = version.map(|(major, minor, _)| (major, minor));
        place
            .kernel
            .zip(least)
            .map(|(kernel, least)| kernel >= least)
    };
    let elsewhere =
        !includes.arches.is_empty() && !lists(includes, NATIVE) && !lists(includes, NATIVE_TOO);
    if !includes.caps.is_empty() || elsewhere || lists(excludes, NATIVE) {
        return Taken::No;
    }
    let doubtful = !includes.arches.is_empty() && !lists(includes, NATIVE)
        || lists(excludes, NATIVE_TOO)
        || includes.min_kernel.is_some() && reaches(&includes.min_kernel) != Some(true)
        || excludes.min_kernel.is_some() && reaches(&excludes.min_kernel) != Some(false);
    match doubtful {
        true => Taken::Perhaps,
        false => Taken::Yes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(default: &str, rules: &str, name: &str) -> About {
        let text = format!(r#"{{"defaultAction":"SCMP_ACT_{default}","syscalls":[{rules}]}}"#);
        let rules = Rules::parse(text.as_bytes()).unwrap();
        rules
            .read_for(Place::of("Linux version 6.1.0-18 (x)"))
            .about(name)
    }

    fn rule(action: &str, more: &str) -> String {
        format!(r#"{{"names":["socket"],"action":"SCMP_ACT_{action}"{more}}}"#)
    }

    const ARGS: &str = r#","args":[{"index":1,"value":1,"op":"SCMP_CMP_EQ"}]"#;

    /// One rule that lets a call through, wherever it stands and whatever its
    /// condition, is enough.
    #[test]
    fn a_call_is_denied_only_if_nothing_lets_it_through() {
        let allow = rule("ALLOW", ARGS);
        let deny = rule("ERRNO", "");
        assert_eq!(about("ALLOW", &deny, "socket"), About::Denied);
        assert_eq!(about("ERRNO", "", "socket"), About::Denied);
        assert_eq!(about("ALLOW", "", "socket"), About::Allowed);
        assert_eq!(about("ERRNO", &rule("ALLOW", ""), "socket"), About::Allowed);
        for rules in [format!("{allow},{deny}"), format!("{deny},{allow}"), allow] {
            for default in ["ALLOW", "ERRNO"] {
                let found = about(default, &rules, "socket");
                let only = !rules.contains("ERRNO") && default == "ALLOW";
                let wanted = if only { About::Allowed } else { About::Depends };
                assert_eq!(found, wanted, "{default} {rules}");
            }
        }
        assert_eq!(
            about("ALLOW", &rule("ERRNO", ARGS), "socket"),
            About::Depends
        );
    }

    #[test]
    fn what_only_looks_like_a_denial_is_none() {
        for (action, more) in [
            ("ERRNO", r#","errnoRet":0"#),
            ("ERRNO", r#","errnoRet":65536"#),
            ("ERRNO", r#","errnoRet":1,"errno":"0""#),
            ("LOG", ""),
            ("TRACE", ""),
            ("NOTIFY", ""),
        ] {
            let found = about("ERRNO", &rule(action, more), "socket");
            assert_eq!(found, About::Allowed, "{action}{more}");
            let found = about("ALLOW", &rule(action, more), "socket");
            assert_eq!(found, About::Allowed, "{action}{more}");
        }
        for action in ["KILL", "KILL_THREAD", "KILL_PROCESS", "TRAP"] {
            assert_eq!(about("ALLOW", &rule(action, ""), "socket"), About::Denied);
        }
        for default in [
            r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":0}"#,
            r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrno":"0"}"#,
            r#"{"defaultAction":"SCMP_ACT_LOG"}"#,
        ] {
            let rules = Rules::parse(default.as_bytes()).unwrap();
            assert_eq!(rules.about("socket"), About::Allowed, "{default}");
        }
    }

    #[test]
    fn conditions_of_engines_are_those_of_this_sandbox() {
        for (condition, wanted) in [
            (r#""includes":{"caps":["CAP_SYS_ADMIN"]}"#, About::Denied),
            (r#""includes":{"arches":["arm64"]}"#, About::Denied),
            (r#""includes":{"arches":["arm64","amd64"]}"#, About::Allowed),
            (r#""includes":{"arches":["x86_64"]}"#, About::Depends),
            (r#""includes":{"minKernel":"4.8"}"#, About::Allowed),
            (r#""includes":{"minKernel":"6.2"}"#, About::Depends),
            (r#""includes":{"minKernel":"x"}"#, About::Depends),
            (r#""excludes":{"caps":["CAP_SYS_ADMIN"]}"#, About::Allowed),
            (r#""excludes":{"arches":["amd64"]}"#, About::Denied),
            (r#""excludes":{"arches":["s390"]}"#, About::Allowed),
            (r#""excludes":{"minKernel":"4.8"}"#, About::Depends),
            (r#""excludes":{"minKernel":"6.2"}"#, About::Allowed),
        ] {
            let rules = rule("ALLOW", &format!(",{condition}"));
            assert_eq!(about("ERRNO", &rules, "socket"), wanted, "{condition}");
        }
    }

    #[test]
    fn parts_of_a_call_are_read_by_their_masks() {
        let of = |text: &str| {
            let rules = Rules::parse(text.as_bytes()).unwrap();
            let open = rules.read_for(Place::default()).open_floor();
            let parts = open.into_iter().filter(|(name, _)| name.contains('('));
            parts.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(of(crate::TARGETED_DENY), none);
        assert_eq!(of(crate::DENY_BY_DEFAULT), none);
        let clone = |rule: &str| {
            of(&format!(
                r#"{{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{{"names":["clone"],
                "action":"SCMP_ACT_ALLOW","args":[{rule}]}}]}}"#
            ))
        };
        // As Docker does it, and the same without one of the flags.
        let docker = r#"{"index":0,"value":2114060288,"op":"SCMP_CMP_MASKED_EQ"}"#;
        assert_eq!(clone(docker), none);
        let weaker = r#"{"index":0,"value":1040318464,"op":"SCMP_CMP_MASKED_EQ"}"#;
        assert_eq!(clone(weaker), ["clone(CLONE_NEWNET)"]);
        assert_eq!(clone(r#"{"index":0,"value":17,"op":"SCMP_CMP_EQ"}"#), none);
        assert_eq!(clone("").len(), 7);
        assert_eq!(
            clone(r#"{"index":1,"value":0,"op":"SCMP_CMP_EQ"}"#).len(),
            7
        );
        let ioctl = |rule: &str| {
            of(&format!(
                r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
                {{"names":["clone"],"action":"SCMP_ACT_ERRNO"}},
                {{"names":["ioctl"],"action":"SCMP_ACT_ERRNO","args":[{rule}]}}]}}"#
            ))
        };
        // High bits slip past a comparison of all 64.
        let narrow = r#"{"index":1,"value":21522,"op":"SCMP_CMP_EQ"}"#;
        assert_eq!(
            ioctl(narrow),
            ["ioctl(TIOCSTI)", "ioctl(TIOCLINUX)", "ioctl(TIOCSETD)"]
        );
        let masked = r#"{"index":1,"value":4294967295,"valueTwo":21522,"op":"SCMP_CMP_MASKED_EQ"}"#;
        assert_eq!(ioctl(masked), ["ioctl(TIOCLINUX)", "ioctl(TIOCSETD)"]);
    }

    /// A second table of calls has names of its own for the same things.
    #[test]
    fn the_tables_that_are_let_in_have_a_floor_too() {
        let text = crate::TARGETED_DENY;
        let rules = Rules::parse(text.as_bytes()).unwrap();
        assert_eq!(rules.read_for(Place::default()).open_floor(), []);
        let more = text.replace(
            "\"SCMP_ARCH_X86_64\"",
            "\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\"",
        );
        let rules = Rules::parse(more.as_bytes()).unwrap();
        let open = rules.read_for(Place::default()).open_floor();
        assert!(
            open.iter().any(|(name, _)| name == "socketcall"),
            "{open:?}"
        );
    }
}
