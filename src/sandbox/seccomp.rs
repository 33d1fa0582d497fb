//! The seccomp profile: the exact bytes that go to the engine, and what can be
//! said about them beforehand.

use crate::sandbox::error::SandboxError;
use std::path::Path;
use tki_evidence::seccomp::Rules;
use tki_evidence::stamp::sha256_hex;

/// The names of the profiles that are built in.
const BUILT_IN: [&str; 2] = ["targeted-deny", "deny-by-default"];

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
    pub fn resolve(given: &str) -> Result<Self, SandboxError> {
        let (name, bytes) = read(given)?;
        Self::from_bytes(&name, &bytes)
    }

    /// A profile from its text.
    pub fn from_text(name: &str, text: &str) -> Result<Self, SandboxError> {
        Self::from_bytes(name, text.as_bytes())
    }

    /// The rules of a profile, also of one under which nothing could start.
    pub fn read_rules(given: &str) -> Result<Rules, SandboxError> {
        let (name, bytes) = read(given)?;
        Rules::parse(&bytes).map_err(|error| SandboxError::Malformed { name, error })
    }

    fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, SandboxError> {
        let name = name.to_owned();
        let rules = match Rules::parse(bytes) {
            Ok(rules) => rules,
            Err(error) => return Err(SandboxError::Malformed { name, error }),
        };
        let Ok(text) = String::from_utf8(bytes.to_vec()) else {
            return Err(SandboxError::BinarySeccomp { name });
        };
        if let Some(why) = why_it_cannot_start(&rules) {
            return Err(SandboxError::DeniesExecve { name, why });
        }
        Ok(Self {
            name,
            sha256: sha256_hex(bytes),
            text,
        })
    }
}

/// The name and the bytes of a built-in profile or of a file.
fn read(given: &str) -> Result<(String, Vec<u8>), SandboxError> {
    match given {
        "targeted-deny" => Ok((given.into(), tki_evidence::TARGETED_DENY.into())),
        "deny-by-default" => Ok((given.into(), tki_evidence::DENY_BY_DEFAULT.into())),
        path => {
            let path = Path::new(path);
            let bytes = crate::files::read_bounded(path, MAX_PROFILE);
            let bytes = bytes.map_err(|error| SandboxError::UnreadableSeccomp {
                path: path.to_owned(),
                error,
            })?;
            let name = path.file_name().unwrap_or(path.as_os_str());
            Ok((name_of_file(&name.to_string_lossy()), bytes))
        }
    }
}

/// What a file's profile is called: never as one of ours is, whatever stands in it.
fn name_of_file(name: &str) -> String {
    match BUILT_IN.contains(&name) {
        true => format!("./{name}"),
        false => name.to_owned(),
    }
}

/// Why no container can start under this profile, if none can.
fn why_it_cannot_start(rules: &Rules) -> Option<&'static str> {
    let about_execve = || {
        rules
            .syscalls
            .iter()
            .filter(|rule| rule.names.iter().any(|name| name == "execve"))
    };
    let denied = about_execve().any(|rule| !rule.action.lets_through() && rule.args.is_empty());
    let allowed = about_execve().any(|rule| rule.action.lets_through());
    if denied {
        Some("denies execve")
    } else if !allowed && !rules.default_action.lets_through() {
        Some("denies by default and does not allow execve")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn refusal(text: &str) -> Failure {
        Seccomp::from_bytes("t.json", text.as_bytes())
            .unwrap_err()
            .into()
    }

    #[test]
    fn both_profiles_are_sound_and_every_rule_has_its_reason() {
        for name in BUILT_IN {
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
    fn a_file_is_not_called_as_a_built_in_profile_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in BUILT_IN {
            let path = folder.path().join(name);
            std::fs::write(&path, r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).unwrap();
            let profile = Seccomp::resolve(path.to_str().unwrap()).unwrap();
            assert_eq!(profile.name, format!("./{name}"));
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
