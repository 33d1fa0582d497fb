//! A policy: what a verifying party demands beyond the built-in bar. It can
//! tighten; what it loosens stands in a table of its own and counts only with
//! `--allow-weaker`.

use crate::catalogue;
use crate::controls;
use crate::request::is_hex_of_32_bytes;
use crate::step_code::StepCode;
use crate::time;
use crate::venue::{self, VenueRule, VenueRules};
use crate::verification::Assurance;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/policy/v1";

/// A policy file (TOML).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Always `tki-attest/policy/v1`.
    pub schema: String,
    /// Probes that must be there and PASS, by id.
    #[serde(default)]
    pub required_probes: Vec<String>,
    /// Controls that must have been run, hold, and follow from their
    /// conversations, by name; `["all"]` for every one.
    #[serde(default)]
    pub required_controls: Vec<String>,
    /// Engines that are accepted; empty for any.
    #[serde(default)]
    pub engines: Vec<String>,
    /// SHA-256 (hex) of seccomp profiles that are accepted beside the built-in ones.
    #[serde(default)]
    pub seccomp_sha256: Vec<String>,
    /// Who must deny a second exec.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// How many layers at least must have had to go before a probe failed.
    #[serde(default)]
    pub minimum_layers: BTreeMap<String, u32>,
    /// The least assurance.
    #[serde(default)]
    pub assurance: Option<Assurance>,
    /// How many signers at least, each with a principal of its own.
    #[serde(default)]
    pub threshold: Option<u32>,
    /// How old the run may be, such as `24h`.
    #[serde(default)]
    pub max_age: Option<String>,
    /// Kernels that are accepted.
    #[serde(default)]
    pub kernels: Kernels,
    /// Venues that are accepted; empty for every approved one.
    #[serde(default)]
    pub venues: Vec<String>,
    /// Rules on what makes a venue implausible, instead of the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue_rules: Option<Vec<VenueRule>>,
    /// A bundle without its artifacts is not enough.
    #[serde(default)]
    pub require_artifacts: bool,
    /// The host must have seen the container from outside, and all of it.
    #[serde(default)]
    pub require_outside: bool,
    /// What is let pass that the built-in bar does not. Needs `--allow-weaker`.
    #[serde(default)]
    pub weaker: Weaker,
}

/// Who must deny a second exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// The prober's own lock is enough.
    Inspector,
    /// The party that launches the container.
    Launcher,
}

impl Gate {
    /// The name used in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Gate::Inspector => "inspector",
            Gate::Launcher => "launcher",
        }
    }
}

/// Kernels that are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// The oldest, such as `6.1`.
    #[serde(default)]
    pub minimum: Option<String>,
    /// Beginnings of releases that are refused, such as `6.6.0-rc`.
    #[serde(default)]
    pub refused: Vec<String>,
}

/// What is let pass that the built-in bar does not. Nothing that was disproved
/// is ever let pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Weaker {
    /// Steps whose BLOCKED is let pass, by code: of [`WAIVABLE`].
    #[serde(default)]
    pub steps: Vec<String>,
    /// Probes whose UNPROVEN is let pass, by id.
    #[serde(default)]
    pub probes: Vec<String>,
}

/// Steps whose BLOCKED a policy can let pass.
pub const WAIVABLE: &[StepCode] = &[
    StepCode::Controls,
    StepCode::Image,
    StepCode::Inventory,
    StepCode::Matrix,
    StepCode::Status,
    StepCode::Venue,
    StepCode::Witnesses,
];

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Another schema.
    #[error("schema is {0:?}, expected {SCHEMA:?}")]
    Schema(String),
    /// A name that nobody knows: a mistake in it would demand nothing.
    #[error("{field}: there is no {name:?}")]
    Unknown {
        /// The field.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A value that is not what it should be.
    #[error("{field} is {got:?}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// What it holds.
        got: String,
        /// What it should hold.
        expected: &'static str,
    },
}

impl Policy {
    /// A name in a policy that means nothing would silently demand nothing.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.schema != SCHEMA {
            return Err(PolicyError::Schema(self.schema.clone()));
        }
        let probe = |name: &str| catalogue::find(name).is_some();
        all_known("required_probes", self.required_probes.iter(), &probe)?;
        all_known("minimum_layers", self.minimum_layers.keys(), &probe)?;
        all_known("weaker.probes", self.weaker.probes.iter(), &probe)?;
        all_known(
            "required_controls",
            self.required_controls.iter(),
            &|name| name == "all" || controls::find(name).is_some(),
        )?;
        all_known("weaker.steps", self.weaker.steps.iter(), &|name| {
            StepCode::find(name).is_some_and(|code| WAIVABLE.contains(&code))
        })?;
        all_known("venues", self.venues.iter(), &|name| {
            crate::request::VENUES.contains(&name)
        })?;
        self.venue_rules()
            .check()
            .map_err(|error| PolicyError::Value {
                field: "venue_rules",
                got: error.to_string(),
                expected: "rules as in venues.toml",
            })?;
        let value = |field, got: &str, expected| PolicyError::Value {
            field,
            got: got.into(),
            expected,
        };
        let is_digest = |text: &&String| !is_hex_of_32_bytes(text);
        if let Some(wrong) = self.seccomp_sha256.iter().find(is_digest) {
            return Err(value("seccomp_sha256", wrong, "64 hexadecimal digits each"));
        }
        if let Some(age) = &self.max_age
            && time::parse_span(age).is_none()
        {
            return Err(value("max_age", age, "a span such as 90s, 15m, 24h or 7d"));
        }
        if let Some(minimum) = &self.kernels.minimum
            && kernel_version(minimum).is_none()
        {
            return Err(value("kernels.minimum", minimum, "a version such as 6.1"));
        }
        if self.threshold == Some(0) {
            return Err(value("threshold", "0", "at least 1"));
        }
        if self.kernels.refused.iter().any(String::is_empty) {
            return Err(value("kernels.refused", "", "the beginning of a release"));
        }
        Ok(())
    }

    /// Its rules on venues.
    pub fn venue_rules(&self) -> VenueRules {
        match &self.venue_rules {
            None => VenueRules::built_in().clone(),
            Some(rules) => VenueRules {
                schema: venue::SCHEMA.into(),
                rules: rules.clone(),
            },
        }
    }

    /// What it lets pass that the built-in bar does not, one line each.
    pub fn weaknesses(&self) -> Vec<String> {
        let steps = self.weaker.steps.iter();
        let probes = self.weaker.probes.iter();
        let mut lines: Vec<String> = steps
            .map(|code| format!("{code} may be BLOCKED"))
            .chain(probes.map(|id| format!("{id} may be UNPROVEN")))
            .collect();
        if self.venues.iter().any(|venue| venue == "dev") {
            lines.push("venue dev is accepted".into());
        }
        if let Some(own) = &self.venue_rules {
            let built_in = VenueRules::built_in().rules.iter();
            let gone = built_in.filter(|rule| !own.contains(rule));
            lines.extend(gone.map(|rule| format!("the venue rule {:?} does not count", rule.id)));
        }
        lines
    }
}

fn all_known<'a>(
    field: &'static str,
    mut names: impl Iterator<Item = &'a String>,
    known: &dyn Fn(&str) -> bool,
) -> Result<(), PolicyError> {
    match names.find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => Err(PolicyError::Unknown {
            field,
            name: name.clone(),
        }),
    }
}

/// The numbers of a kernel release: `6.1.0-18-amd64` → (6, 1, 0).
pub fn kernel_version(release: &str) -> Option<(u32, u32, u32)> {
    let numeric: &str = release
        .split(|c: char| c != '.' && !c.is_ascii_digit())
        .next()?;
    let mut parts = numeric.split('.').map(|part| part.parse::<u32>().ok());
    let major = parts.next()??;
    let minor = parts.next()??;
    let patch = parts.next().flatten().unwrap_or(0);
    Some((major, minor, patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_compared_by_number() {
        assert_eq!(kernel_version("6.1.0-18-amd64"), Some((6, 1, 0)));
        assert_eq!(kernel_version("6.18.44-fc-v445"), Some((6, 18, 44)));
        assert_eq!(kernel_version("6.1"), Some((6, 1, 0)));
        assert!(kernel_version("6.9.1") < kernel_version("6.10"));
        for text in ["", "linux", "6", "6.x", "99999999999.1"] {
            assert_eq!(kernel_version(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_means_nothing_is_refused() {
        let good = Policy {
            schema: SCHEMA.into(),
            ..Policy::default()
        };
        assert_eq!(good.check(), Ok(()));
        type Change = fn(&mut Policy);
        let changes: [(&str, Change); 9] = [
            ("schema", |p| p.schema.clear()),
            ("required_probes", |p| {
                p.required_probes.push("PR-NET-9".into())
            }),
            ("required_controls", |p| {
                p.required_controls.push("none".into())
            }),
            ("minimum_layers", |p| {
                p.minimum_layers.insert("X".into(), 1);
            }),
            ("weaker.steps", |p| p.weaker.steps.push("EV-STAMP".into())),
            ("weaker.probes", |p| p.weaker.probes.push("X".into())),
            ("venues", |p| p.venues.push("mac".into())),
            ("max_age", |p| p.max_age = Some("soon".into())),
            ("threshold", |p| p.threshold = Some(0)),
        ];
        for (wanted, change) in changes {
            let mut changed = good.clone();
            change(&mut changed);
            let error = changed.check().unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
