//! Seccomp profiles in Docker's JSON form, as Docker, Podman and containerd ship and
//! take them: [`reading`] is what a profile says about a call, whatever its arguments,
//! [`gated`] the same profile with an exec gate, [`marks`] the same with an errno of our
//! own for every denial.

pub mod gated;
pub mod marks;
pub mod reading;

pub use gated::{GATED, gated, is_gated};
pub use marks::{MARK, marked};
pub use reading::{About, Part, Place, Reading};

use crate::errno;
use crate::strict::{self, StrictError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Deserializer};

/// A profile's rules, in Docker's JSON form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rules {
    /// What happens to a call that no rule names.
    pub default_action: Action,
    /// The errno of the default action.
    #[serde(default)]
    pub default_errno_ret: Option<u32>,
    /// The same by name, which only Podman reads.
    #[serde(default)]
    pub default_errno: Option<String>,
    /// Architectures whose calls are filtered by the rules.
    #[serde(default, deserialize_with = "or_nothing")]
    pub architectures: Vec<String>,
    /// The same with sub-architectures.
    #[serde(default, deserialize_with = "or_nothing")]
    pub arch_map: Vec<ArchMap>,
    /// Flags of the filter.
    #[serde(default, deserialize_with = "or_nothing")]
    pub flags: Vec<String>,
    /// The socket of the supervisor that SCMP_ACT_NOTIFY asks.
    #[serde(default)]
    pub listener_path: Option<String>,
    /// What that supervisor is told besides.
    #[serde(default)]
    pub listener_metadata: Option<String>,
    /// The rules.
    #[serde(default, deserialize_with = "or_nothing")]
    pub syscalls: Vec<Rule>,
}

/// An architecture and those that run on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ArchMap {
    /// The native one.
    pub architecture: String,
    /// The others.
    #[serde(default, deserialize_with = "or_nothing")]
    pub sub_architectures: Vec<String>,
}

/// A rule for some calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// The calls, by name.
    #[serde(default, deserialize_with = "or_nothing")]
    pub names: Vec<String>,
    /// One call, as older profiles have it.
    #[serde(default)]
    name: Option<String>,
    /// What happens to them.
    pub action: Action,
    /// The errno of the action.
    #[serde(default)]
    pub errno_ret: Option<u32>,
    /// The same by name, which only Podman reads.
    #[serde(default)]
    pub errno: Option<String>,
    /// Conditions on arguments.
    #[serde(default, deserialize_with = "or_nothing")]
    pub args: Vec<Argument>,
    /// Why.
    #[serde(default)]
    pub comment: Option<String>,
    /// Conditions under which an engine takes the rule in.
    #[serde(default, deserialize_with = "or_nothing")]
    pub includes: Condition,
    /// Conditions under which an engine leaves the rule out.
    #[serde(default, deserialize_with = "or_nothing")]
    pub excludes: Condition,
}

/// A condition on an argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Argument {
    /// Which argument, from 0.
    pub index: u32,
    /// Compared with; the mask, for masks.
    pub value: u64,
    /// Compared with, for masks.
    #[serde(default, deserialize_with = "or_nothing")]
    pub value_two: u64,
    /// How.
    pub op: Comparison,
}

/// How an argument is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Comparison {
    /// Equal.
    #[serde(rename = "SCMP_CMP_EQ")]
    Equal,
    /// Not equal.
    #[serde(rename = "SCMP_CMP_NE")]
    NotEqual,
    /// Less.
    #[serde(rename = "SCMP_CMP_LT")]
    Less,
    /// Less or equal.
    #[serde(rename = "SCMP_CMP_LE")]
    LessOrEqual,
    /// Greater.
    #[serde(rename = "SCMP_CMP_GT")]
    Greater,
    /// Greater or equal.
    #[serde(rename = "SCMP_CMP_GE")]
    GreaterOrEqual,
    /// Equal under a mask.
    #[serde(rename = "SCMP_CMP_MASKED_EQ")]
    MaskedEqual,
}

/// A condition on the engine's side.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Condition {
    /// Capabilities.
    #[serde(default, deserialize_with = "or_nothing")]
    pub caps: Vec<String>,
    /// Architectures.
    #[serde(default, deserialize_with = "or_nothing")]
    pub arches: Vec<String>,
    /// Least kernel version.
    #[serde(default)]
    pub min_kernel: Option<String>,
}

/// What a filter does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// Let it through.
    ScmpActAllow,
    /// Let it through and log it.
    ScmpActLog,
    /// Ask a supervisor.
    ScmpActNotify,
    /// Ask a tracer.
    ScmpActTrace,
    /// Fail it.
    ScmpActErrno,
    /// End the thread.
    ScmpActKill,
    /// End the thread.
    ScmpActKillThread,
    /// End the process.
    ScmpActKillProcess,
    /// Send SIGSYS.
    ScmpActTrap,
}

impl Action {
    /// The call may go on.
    pub fn lets_through(self) -> bool {
        matches!(
            self,
            Action::ScmpActAllow
                | Action::ScmpActLog
                | Action::ScmpActNotify
                | Action::ScmpActTrace
        )
    }

    /// The call does not happen, and its caller is told so: an errno of 0 says that
    /// all went well, and the kernel has none beyond 4095.
    fn denies(self, number: Option<u32>, name: Option<&str>) -> bool {
        let is_one = |number: u32| (1..=MAX_ERRNO).contains(&number);
        let named = name.is_none_or(|name| errno_of(name).is_some_and(is_one));
        !self.lets_through() && (self != Action::ScmpActErrno || number.is_none_or(is_one) && named)
    }
}

/// The largest errno that the kernel gives.
const MAX_ERRNO: u32 = 4095;

/// An errno by its name, or by its number in decimal.
fn errno_of(name: &str) -> Option<u32> {
    let known = errno::number(name).and_then(|number| u32::try_from(number).ok());
    known.or_else(|| name.parse().ok())
}

/// What is null where a list, a number or an object could stand is as good as left out.
fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Rule {
    /// The calls do not happen under this rule.
    pub fn denies(&self) -> bool {
        self.action.denies(self.errno_ret, self.errno.as_deref())
    }

    /// The errno that a call gets under this rule.
    pub fn errno_number(&self) -> u32 {
        number(self.errno_ret, self.errno.as_deref())
    }
}

/// The errno of an action: EPERM if there is none.
fn number(number: Option<u32>, name: Option<&str>) -> u32 {
    const EPERM: u32 = 1;
    number.or_else(|| name.and_then(errno_of)).unwrap_or(EPERM)
}

/// System calls have so many arguments.
const ARGUMENTS: u32 = 6;

impl Rules {
    /// Reads a profile.
    pub fn parse(bytes: &[u8]) -> Result<Self, StrictError> {
        let mut rules: Self = strict::parse_as(bytes)?;
        for rule in &mut rules.syscalls {
            rule.names.extend(rule.name.take());
        }
        match rules.problem() {
            None => Ok(rules),
            Some(message) => Err(StrictError::Malformed {
                line: 1,
                column: 1,
                message,
            }),
        }
    }

    /// What no engine could make sense of.
    fn problem(&self) -> Option<String> {
        let errnos = self.syscalls.iter().map(|rule| &rule.errno);
        let mut errnos = errnos.chain([&self.default_errno]).flatten();
        if let Some(name) = errnos.find(|name| errno_of(name).is_none()) {
            return Some(format!("there is no errno {name:?}"));
        }
        let mut arguments = self.syscalls.iter().flat_map(|rule| &rule.args);
        let beyond = arguments.find(|argument| argument.index >= ARGUMENTS)?;
        Some(format!("no call has an argument {}", beyond.index))
    }

    /// What happens to a call, wherever the profile is used and whatever the arguments.
    pub fn about(&self, name: &str) -> About {
        self.read_for(Place::default()).about(name)
    }

    /// A call that no rule names does not happen.
    pub fn denies_by_default(&self) -> bool {
        let name = self.default_errno.as_deref();
        self.default_action.denies(self.default_errno_ret, name)
    }

    /// The errno that a call gets that no rule names.
    pub fn default_errno_number(&self) -> u32 {
        number(self.default_errno_ret, self.default_errno.as_deref())
    }

    /// Architectures beside the native one whose calls are let in.
    pub fn foreign_architectures(&self) -> impl Iterator<Item = &str> {
        const NATIVE: &str = "SCMP_ARCH_X86_64";
        let listed = self.architectures.iter();
        let maps = self
            .arch_map
            .iter()
            .filter(|map| map.architecture == NATIVE);
        listed
            .chain(maps.flat_map(|map| &map.sub_architectures))
            .map(String::as_str)
            .filter(|name| *name != NATIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// What is in the wild: names of errnos, nulls, empty objects, one name.
    #[test]
    fn shipped_forms_are_read() {
        let text = r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,
            "defaultErrno":"ENOSYS","architectures":null,"archMap":null,"flags":null,
            "syscalls":[
            {"names":["read"],"action":"SCMP_ACT_ALLOW","args":null,"comment":"",
             "includes":{},"excludes":null,"errno":"EPERM"},
            {"names":null,"name":"bpf","action":"SCMP_ACT_ERRNO","errno":"EINVAL",
             "args":[],"includes":{"caps":null,"arches":["amd64"],"minKernel":null}}]}"#;
        let rules = Rules::parse(text.as_bytes()).unwrap();
        assert_eq!(rules.default_errno_number(), 38);
        assert_eq!(rules.syscalls[1].names, ["bpf"]);
        assert_eq!(rules.syscalls[1].errno_number(), 22);
        let none = Rules::parse(br#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":null}"#);
        assert!(none.unwrap().syscalls.is_empty());
    }

    #[test]
    fn what_no_engine_could_load_is_refused() {
        for (rule, why) in [
            (r#""errno":"EWHAT""#, "no errno"),
            (
                r#""args":[{"index":6,"value":1,"op":"SCMP_CMP_EQ"}]"#,
                "argument 6",
            ),
            (
                r#""args":[{"index":0,"value":1,"op":"SCMP_CMP_ODD"}]"#,
                "SCMP_CMP_ODD",
            ),
        ] {
            let text = format!(
                r#"{{"defaultAction":"SCMP_ACT_ALLOW",
                "syscalls":[{{"names":["bpf"],"action":"SCMP_ACT_ERRNO",{rule}}}]}}"#
            );
            let error = Rules::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
