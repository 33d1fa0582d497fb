//! A profile that asks an exec gate.

use super::Rules;
use alloc::string::String;
use serde_json::Value;

/// The calls that an exec gate is asked about.
pub const GATED: [&str; 2] = ["execve", "execveat"];

/// A profile with an exec gate: the same, but both exec calls go to the
/// supervisor behind the socket. `None` if it is not a profile. Anybody can do
/// this again with the profile and the socket's path, and so check it.
pub fn gated(profile: &str, socket: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(profile).ok()?;
    // A profile without rules may leave the key out, as everybody who reads one allows.
    let rules = value.as_object_mut()?.entry("syscalls");
    let rules = rules.or_insert_with(|| serde_json::json!([]));
    if rules.is_null() {
        *rules = serde_json::json!([]);
    }
    let rules = rules.as_array_mut()?;
    let is_gated = |name: &Value| name.as_str().is_some_and(|name| GATED.contains(&name));
    for rule in rules.iter_mut() {
        let rule = rule.as_object_mut()?;
        if let Some(Value::Array(names)) = rule.get_mut("names") {
            names.retain(|name| !is_gated(name));
        }
        // The older form, which has one.
        if rule.get("name").is_some_and(is_gated) {
            rule.remove("name");
        }
    }
    rules.retain(|rule| {
        let names = rule.get("names").and_then(Value::as_array);
        names.is_some_and(|names| !names.is_empty())
            || rule.get("name").is_some_and(Value::is_string)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::Action;
    use alloc::vec::Vec;

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
        // Nulls, and the older form of a rule.
        let old = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
            {"name":"execve","names":null,"action":"SCMP_ACT_ERRNO"},
            {"name":"bpf","action":"SCMP_ACT_ERRNO"}]}"#;
        let rules = gated(old, "/x").unwrap();
        let rules = Rules::parse(rules.as_bytes()).unwrap();
        let names: Vec<_> = rules.syscalls.iter().map(|rule| &rule.names).collect();
        assert_eq!(names, [&["bpf"][..], &GATED]);
        assert!(
            gated(
                r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":null}"#,
                "/x"
            )
            .is_some()
        );
    }
}
