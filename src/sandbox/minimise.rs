//! The smallest allow-list under which the prober still proves everything:
//! found by leaving one call out at a time and running it.

use crate::sandbox::error::SandboxError;
use crate::sandbox::seccomp::Seccomp;
use serde::Serialize;
use serde_json::{Value, json};
use tki_evidence::seccomp::Rules;

/// Rules whose reason begins like this are kept: what they allow is needed now
/// and then, or by other versions of the runtime, which one run does not show.
const MARGIN: &str = "Start, margin";

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Minimal {
    /// Calls without which something no longer passes.
    pub needed: Vec<String>,
    /// Calls that are allowed as a margin.
    pub margin: Vec<String>,
    /// Calls that the profile could do without.
    pub superfluous: Vec<String>,
}

/// Leaves out one call after the other; `passes` says whether everything still
/// passes under a profile.
pub fn minimise<E: From<SandboxError>>(
    text: &str,
    mut passes: impl FnMut(&Seccomp) -> Result<bool, E>,
    mut tell: impl FnMut(&str, bool),
) -> Result<Minimal, E> {
    let (mut profile, rules) = parse(text)?;
    if rules.default_action.lets_through() {
        return Err(SandboxError::NotAnAllowList.into());
    }
    let mut minimal = Minimal {
        needed: Vec::new(),
        margin: Vec::new(),
        superfluous: Vec::new(),
    };
    for rule in &rules.syscalls {
        if rule
            .comment
            .as_deref()
            .is_some_and(|reason| reason.starts_with(MARGIN))
        {
            minimal.margin.extend(rule.names.iter().cloned());
        }
    }
    let whole = Seccomp::from_text("candidate", text)?;
    if !passes(&whole)? {
        return Err(SandboxError::DoesNotPass.into());
    }
    let names: Vec<String> = rules
        .syscalls
        .iter()
        .flat_map(|rule| rule.names.clone())
        .collect();
    for name in names {
        // Without execve nothing starts; that needs no container to see.
        if minimal.margin.contains(&name) || name == "execve" {
            if name == "execve" {
                minimal.needed.push(name);
            }
            continue;
        }
        let without = leave_out(&profile, &name);
        let candidate = Seccomp::from_text("candidate", &without.to_string())?;
        let superfluous = passes(&candidate)?;
        tell(&name, superfluous);
        if superfluous {
            profile = without;
            minimal.superfluous.push(name);
        } else {
            minimal.needed.push(name);
        }
    }
    for list in [
        &mut minimal.needed,
        &mut minimal.margin,
        &mut minimal.superfluous,
    ] {
        list.sort();
    }
    Ok(minimal)
}

fn parse(text: &str) -> Result<(Value, Rules), SandboxError> {
    let value = serde_json::from_str(text).map_err(SandboxError::NoJson)?;
    let rules = Rules::parse(text.as_bytes()).map_err(SandboxError::MalformedCandidate)?;
    Ok((value, rules))
}

fn leave_out(profile: &Value, name: &str) -> Value {
    let mut profile = profile.clone();
    if let Some(rules) = profile["syscalls"].as_array_mut() {
        for rule in rules.iter_mut() {
            if let Some(names) = rule["names"].as_array_mut() {
                names.retain(|named| named != name);
            }
        }
        rules.retain(|rule| rule["names"] != json!([]));
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_and_the_rest_is_named() {
        let text = r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
            {"names":["execve","read","getuid"],"action":"SCMP_ACT_ALLOW"},
            {"comment":"Start, margin: x","names":["futex"],"action":"SCMP_ACT_ALLOW"}]}"#;
        let passes = |profile: &Seccomp| Ok::<_, SandboxError>(profile.text.contains("\"read\""));
        let minimal = minimise(text, passes, |_, _| {}).unwrap();
        assert_eq!(minimal.needed, ["execve", "read"]);
        assert_eq!(minimal.margin, ["futex"]);
        assert_eq!(minimal.superfluous, ["getuid"]);
    }

    #[test]
    fn a_profile_that_does_not_pass_as_a_whole_is_refused() {
        let text = r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
            {"names":["execve"],"action":"SCMP_ACT_ALLOW"}]}"#;
        let refusal = |text, passes| minimise(text, |_| Ok(passes), |_, _| {}).unwrap_err();
        assert!(matches!(refusal(text, false), SandboxError::DoesNotPass));
        let all = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;
        assert!(matches!(refusal(all, true), SandboxError::NotAnAllowList));
    }
}
