//! Seccomp profiles in Docker's JSON form, and what they say about a call.

use crate::strict::{self, StrictError};
use serde::Deserialize;
use std::collections::HashMap;

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
    /// The socket of the supervisor that SCMP_ACT_NOTIFY asks.
    #[serde(default)]
    pub listener_path: Option<String>,
    /// What that supervisor is told besides.
    #[serde(default)]
    pub listener_metadata: Option<String>,
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
        strict::parse_as(bytes)
    }

    /// What happens to a call, as far as its arguments do not matter.
    pub fn about(&self, name: &str) -> About {
        self.named().get(name).copied().unwrap_or(self.otherwise())
    }

    /// What happens to every call that a rule names: the first rule without a
    /// condition decides.
    pub fn named(&self) -> HashMap<&str, About> {
        let mut about = HashMap::new();
        for rule in &self.syscalls {
            let plain = rule.args.is_empty() && rule.includes.is_none() && rule.excludes.is_none();
            for name in &rule.names {
                let known = about.entry(name.as_str()).or_insert(About::Depends);
                if plain && *known == About::Depends {
                    *known = About::of(rule.action);
                }
            }
        }
        about
    }

    /// What happens to a call that no rule names.
    pub fn otherwise(&self) -> About {
        About::of(self.default_action)
    }
}

/// The calls that an exec gate is asked about.
pub const GATED: [&str; 2] = ["execve", "execveat"];

/// A profile with an exec gate: the same, but both exec calls go to the
/// supervisor behind the socket. `None` if it is not a profile. Anybody can do
/// this again with the profile and the socket's path, and so check it.
pub fn gated(profile: &str, socket: &str) -> Option<String> {
    let mut value: serde_json::Value = serde_json::from_str(profile).ok()?;
    // A profile without rules may leave the key out, as everybody who reads one allows.
    let rules = value.as_object_mut()?.entry("syscalls");
    let rules = rules.or_insert_with(|| serde_json::json!([]));
    let rules = rules.as_array_mut()?;
    for rule in rules.iter_mut() {
        let names = rule.get_mut("names")?.as_array_mut()?;
        names.retain(|name| name.as_str().is_none_or(|name| !GATED.contains(&name)));
    }
    rules.retain(|rule| {
        let names = rule.get("names").and_then(|names| names.as_array());
        names.is_some_and(|names| !names.is_empty())
    });
    rules.push(serde_json::json!({
        "comment": "The exec gate: a supervisor lets the first exec through and no other",
        "names": GATED,
        "action": "SCMP_ACT_NOTIFY",
    }));
    value
        .as_object_mut()?
        .insert("listenerPath".into(), socket.into());
    serde_json::to_string_pretty(&value).ok()
}

/// The profile `text` is `plain` with an exec gate.
pub fn is_gated(text: &str, plain: &str) -> bool {
    let rules = Rules::parse(text.as_bytes()).ok();
    let socket = rules.and_then(|rules| rules.listener_path);
    socket.is_some_and(|socket| gated(plain, &socket).is_some_and(|again| again == text))
}

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
    fn of(action: Action) -> Self {
        if action.lets_through() {
            About::Allowed
        } else {
            About::Denied
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gated_profile_is_known_by_doing_it_again() {
        for plain in [crate::TARGETED_DENY, crate::DENY_BY_DEFAULT] {
            let text = gated(plain, "/run/x/gate.sock").unwrap();
            let rules = Rules::parse(text.as_bytes()).unwrap();
            assert_eq!(rules.listener_path.as_deref(), Some("/run/x/gate.sock"));
            for name in GATED {
                let of: Vec<Action> = rules
                    .syscalls
                    .iter()
                    .filter(|rule| rule.names.iter().any(|named| named == name))
                    .map(|rule| rule.action)
                    .collect();
                assert_eq!(of, [Action::ScmpActNotify], "{name}");
            }
            assert!(is_gated(&text, plain));
            assert!(!is_gated(plain, plain));
            // One more call that is allowed, or another profile, is not it.
            let more = text.replacen("\"execveat\"", "\"execveat\", \"bpf\"", 1);
            assert_ne!(more, text);
            assert!(!is_gated(&more, plain));
        }
        assert!(!is_gated(
            &gated(crate::TARGETED_DENY, "/x").unwrap(),
            crate::DENY_BY_DEFAULT
        ));
        assert_eq!(gated("[]", "/x"), None);
    }

    #[test]
    fn a_profile_without_the_key_is_one_without_rules() {
        let without = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;
        let empty = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[]}"#;
        let text = gated(without, "/run/x/gate.sock").unwrap();
        assert_eq!(gated(empty, "/run/x/gate.sock").as_ref(), Some(&text));
        assert!(is_gated(&text, without) && is_gated(&text, empty));
        let rules = Rules::parse(text.as_bytes()).unwrap();
        assert_eq!(rules.syscalls.len(), 1);
        assert_eq!(rules.syscalls[0].names, GATED);
    }
}
