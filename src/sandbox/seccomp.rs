//! The seccomp profile: the exact bytes that go to the engine, and what can be
//! said about them beforehand.

use crate::failure::Failure;
use serde::Deserialize;
use std::path::Path;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::strict::{self, StrictError};

const TARGETED_DENY: &[u8] = include_bytes!("../../seccomp/targeted-deny.json");
const DENY_BY_DEFAULT: &[u8] = include_bytes!("../../seccomp/deny-by-default.json");

/// The most bytes of a profile file.
const MAX_PROFILE: u64 = 1024 * 1024;

/// A seccomp profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seccomp {
    /// Its name: one of the built-in two, or the file's.
    pub name: String,
    /// The text as it is handed to the engine.
    pub text: String,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
}

impl Seccomp {
    /// A built-in profile by name, or a file by path.
    pub fn resolve(given: &str) -> Result<Self, Failure> {
        match given {
            "targeted-deny" => Self::from_bytes(given, TARGETED_DENY),
            "deny-by-default" => Self::from_bytes(given, DENY_BY_DEFAULT),
            path => {
                let path = Path::new(path);
                let bytes = crate::files::read_bounded(path, MAX_PROFILE).map_err(|error| {
                    Failure::usage(
                        "seccomp.unreadable",
                        format!("{}: {error}", path.display()),
                        "give targeted-deny, deny-by-default or the path of a profile in \
                             Docker's JSON form",
                    )
                })?;
                let name = path.file_name().unwrap_or(path.as_os_str());
                Self::from_bytes(&name.to_string_lossy(), &bytes)
            }
        }
    }

    fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, Failure> {
        let malformed = |why: String| {
            Failure::usage(
                "seccomp.malformed",
                format!("seccomp profile {name}: {why}"),
                "correct the profile; seccomp/README.md explains the form",
            )
        };
        let rules = Rules::parse(bytes).map_err(|error| malformed(error.to_string()))?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| malformed("not UTF-8".into()))?;
        if let Some(why) = rules.why_it_cannot_start() {
            return Err(Failure::usage(
                "seccomp.denies-execve",
                format!(
                    "seccomp profile {name} {why}, so no container could start: engines load the \
                     filter before the last exec of the container's start. A container that \
                     fails to start is no proof of anything."
                ),
                "allow execve in the profile; the inspector denies execve and execveat itself, \
                 by a filter of its own, before phase locked",
            ));
        }
        Ok(Self {
            name: name.into(),
            sha256: sha256_hex(bytes),
            text,
        })
    }
}

/// A profile's rules, in Docker's JSON form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rules {
    /// What happens to a call that no rule names.
    pub default_action: Action,
    /// The errno of the default action.
    #[serde(default)]
    pub default_errno_ret: Option<u32>,
    /// Architectures whose calls are filtered by the rules.
    #[serde(default)]
    pub architectures: Vec<String>,
    /// The same with sub-architectures.
    #[serde(default)]
    pub arch_map: Vec<ArchMap>,
    /// Flags of the filter.
    #[serde(default)]
    pub flags: Vec<String>,
    /// The rules.
    #[serde(default)]
    pub syscalls: Vec<Rule>,
}

/// An architecture and those that run on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ArchMap {
    /// The native one.
    pub architecture: String,
    /// The others.
    #[serde(default)]
    pub sub_architectures: Vec<String>,
}

/// A rule for some calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rule {
    /// The calls, by name.
    pub names: Vec<String>,
    /// What happens to them.
    pub action: Action,
    /// The errno of the action.
    #[serde(default)]
    pub errno_ret: Option<u32>,
    /// Conditions on arguments.
    #[serde(default)]
    pub args: Vec<Argument>,
    /// Why.
    #[serde(default)]
    pub comment: Option<String>,
    /// Conditions under which an engine takes the rule in.
    #[serde(default)]
    pub includes: Option<Condition>,
    /// Conditions under which an engine leaves the rule out.
    #[serde(default)]
    pub excludes: Option<Condition>,
}

/// A condition on an argument.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Argument {
    /// Which argument, from 0.
    pub index: u32,
    /// Compared with.
    pub value: u64,
    /// Compared with, for masks.
    #[serde(default)]
    pub value_two: u64,
    /// How.
    pub op: String,
}

/// A condition on the engine's side.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Condition {
    /// Capabilities.
    #[serde(default)]
    pub caps: Vec<String>,
    /// Architectures.
    #[serde(default)]
    pub arches: Vec<String>,
    /// Least kernel version.
    #[serde(default)]
    pub min_kernel: Option<String>,
}

/// What a filter does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
}

impl Rules {
    /// Reads a profile.
    pub fn parse(bytes: &[u8]) -> Result<Self, StrictError> {
        Ok(strict::parse_as(bytes)?.0)
    }

    /// Why no container can start under this profile, if none can.
    fn why_it_cannot_start(&self) -> Option<&'static str> {
        let about_execve = || {
            self.syscalls
                .iter()
                .filter(|rule| rule.names.iter().any(|name| name == "execve"))
        };
        let denied = about_execve().any(|rule| !rule.action.lets_through() && rule.args.is_empty());
        let allowed = about_execve().any(|rule| rule.action.lets_through());
        if denied {
            Some("denies execve")
        } else if !allowed && !self.default_action.lets_through() {
            Some("denies by default and does not allow execve")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Failure {
        Seccomp::from_bytes("t.json", text.as_bytes()).unwrap_err()
    }

    #[test]
    fn both_profiles_are_sound_and_every_rule_has_its_reason() {
        for name in ["targeted-deny", "deny-by-default"] {
            let profile = Seccomp::resolve(name).unwrap();
            let rules = Rules::parse(profile.text.as_bytes()).unwrap();
            assert_eq!(rules.architectures, ["SCMP_ARCH_X86_64"], "{name}");
            for rule in &rules.syscalls {
                let reason = rule.comment.as_deref().unwrap_or_default();
                assert!(reason.len() > 20, "{name}: {:?}", rule.names);
                assert_ne!(rule.action, rules.default_action, "{name}: {reason}");
            }
        }
    }

    #[test]
    fn a_profile_that_denies_execve_is_recognised() {
        for text in [
            r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#,
            r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["execve"],"action":"SCMP_ACT_ERRNO"}]}"#,
            r#"{"defaultAction":"SCMP_ACT_KILL","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}"#,
        ] {
            assert_eq!(refusal(text).code, "seccomp.denies-execve", "{text}");
        }
        assert!(Seccomp::from_bytes("t", br#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).is_ok());
    }

    #[test]
    fn what_is_not_a_profile_is_refused_with_its_place() {
        for text in [
            "",
            "{",
            "[]",
            r#"{"defaultAction":"ALLOW"}"#,
            r#"{"defaultAction":"SCMP_ACT_ALLOW","sycalls":[]}"#,
            r#"{"defaultAction":"SCMP_ACT_ALLOW","defaultAction":"SCMP_ACT_ERRNO"}"#,
        ] {
            let failure = refusal(text);
            assert_eq!(failure.code, "seccomp.malformed", "{text}");
            assert!(failure.message.contains("line 1, column"), "{failure:?}");
        }
    }
}
