//! Venue rules: what a claimed venue needs, and what contradicts it. The rules
//! are data (`venues.toml`), which a verifying party may replace.

use crate::coherent;
use crate::evidence::{Evidence, Runtime, VenueFacts};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use once_cell::race::OnceBox;
use serde::{Deserialize, Serialize};

/// Venues that B4′ evidence may come from.
pub const APPROVED: &[&str] = &["vps", "ci"];

/// The form of the rules.
pub const SCHEMA: &str = "tki-attest/venues/v1";

/// The rules that are built in.
pub const BUILT_IN: &str = include_str!("venues.toml");

/// The most rules of a file, and the most values of a rule.
const MOST: usize = 256;

/// A set of rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VenueRules {
    /// `tki-attest/venues/v1`
    pub schema: String,
    /// Each may contradict a claim.
    #[serde(rename = "rule", default)]
    pub rules: Vec<VenueRule>,
}

/// What contradicts a claim, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VenueRule {
    /// Its name.
    pub id: String,
    /// Claims that it contradicts.
    pub claims: Vec<String>,
    /// Facts that it looks at; one suffices.
    pub facts: Vec<FactName>,
    /// It holds if a fact has one of these, as whole words in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// It holds if a fact is one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equals: Vec<String>,
    /// It holds if a fact is empty.
    #[serde(default)]
    pub empty: bool,
    /// Why that contradicts the claim.
    pub reason: String,
}

/// Facts that a rule can look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FactName {
    /// The engine's operating system, as it names it.
    OperatingSystem,
    /// The engine host's name.
    HostName,
    /// The engine's kernel.
    Kernel,
    /// The kernel under this tool.
    HostKernel,
    /// The engine and its version.
    Engine,
    /// Where the engine is.
    EngineAt,
    /// What this host is virtualised by.
    Virtualisation,
    /// The container that this tool runs in.
    Container,
    /// The host's chassis.
    Chassis,
    /// Names of CI variables.
    CiVariables,
}

impl FactName {
    fn name(self) -> &'static str {
        match self {
            FactName::OperatingSystem => "operating system",
            FactName::HostName => "host name",
            FactName::Kernel => "kernel",
            FactName::HostKernel => "kernel of the host",
            FactName::Engine => "engine",
            FactName::EngineAt => "place of the engine",
            FactName::Virtualisation => "virtualisation",
            FactName::Container => "container",
            FactName::Chassis => "chassis",
            FactName::CiVariables => "CI variables",
        }
    }

    fn of(self, facts: &VenueFacts, kernel: &str) -> String {
        match self {
            FactName::OperatingSystem => facts.operating_system.clone(),
            FactName::HostName => facts.host_name.clone(),
            FactName::Kernel => kernel.to_owned(),
            FactName::HostKernel => facts.kernel.clone(),
            FactName::Engine => facts.engine.clone(),
            FactName::EngineAt => facts.engine_at.clone(),
            FactName::Virtualisation => facts.virtualisation.clone(),
            FactName::Container => facts.container.clone(),
            FactName::Chassis => facts.chassis.clone(),
            FactName::CiVariables => facts.ci_variables.join(" "),
        }
    }
}

/// Why a file of rules is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VenueError {
    /// Not TOML of this form.
    #[error("line {line}, column {column}: {message}")]
    Form {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// Rules that mean nothing.
    #[error(transparent)]
    Meaning(#[from] RulesError),
}

/// Why rules mean nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// Another form.
    #[error("schema is {0:?}, not {SCHEMA:?}")]
    Schema(String),
    /// More than are read.
    #[error("more than {MOST} rules")]
    TooMany,
    /// Two rules of one name.
    #[error("rule {0:?} stands twice")]
    Twice(String),
    /// It could never apply.
    #[error("rule {0:?} is about no claim or no fact")]
    Nothing(String),
    /// It is about a claim that nobody makes.
    #[error("rule {rule:?}: {claim:?} is no claim; give vps or ci")]
    Claim {
        /// The rule.
        rule: String,
        /// What it names.
        claim: String,
    },
    /// It would always hold.
    #[error("rule {0:?} has no condition")]
    NoCondition(String),
    /// A value that every text has.
    #[error("rule {0:?} has an empty value")]
    EmptyValue(String),
    /// More values than are read.
    #[error("rule {0:?} has more than {MOST} values")]
    TooManyValues(String),
}

impl VenueRules {
    /// The rules that are built in.
    pub fn built_in() -> &'static Self {
        static RULES: OnceBox<VenueRules> = OnceBox::new();
        RULES.get_or_init(|| {
            // A test reads them, so this cannot happen; without rules nothing
            // would be implausible, so a rule that always holds stands in.
            let rules = Self::parse(BUILT_IN).unwrap_or_else(|error| Self {
                schema: SCHEMA.into(),
                rules: vec![VenueRule {
                    id: "unreadable".into(),
                    claims: APPROVED.iter().map(|claim| (*claim).into()).collect(),
                    facts: vec![FactName::CiVariables],
                    words: Vec::new(),
                    equals: Vec::new(),
                    empty: true,
                    reason: format!("the built-in rules cannot be read: {error}"),
                }],
            });
            Box::new(rules)
        })
    }

    /// Reads rules.
    pub fn parse(text: &str) -> Result<Self, VenueError> {
        let rules: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            VenueError::Form {
                line: before.matches('\n').count() + 1,
                column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
                message: error.message().to_owned(),
            }
        })?;
        rules.check()?;
        Ok(rules)
    }

    /// Rules that mean nothing would silently demand nothing.
    pub fn check(&self) -> Result<(), RulesError> {
        if self.schema != SCHEMA {
            return Err(RulesError::Schema(self.schema.clone()));
        }
        if self.rules.len() > MOST {
            return Err(RulesError::TooMany);
        }
        for (place, rule) in self.rules.iter().enumerate() {
            let id = &rule.id;
            if self.rules[..place].iter().any(|other| other.id == *id) {
                return Err(RulesError::Twice(id.clone()));
            }
            if rule.claims.is_empty() || rule.facts.is_empty() {
                return Err(RulesError::Nothing(id.clone()));
            }
            if let Some(claim) = rule.claims.iter().find(|c| !APPROVED.contains(&c.as_str())) {
                let (rule, claim) = (id.clone(), claim.clone());
                return Err(RulesError::Claim { rule, claim });
            }
            if rule.words.is_empty() && rule.equals.is_empty() && !rule.empty {
                return Err(RulesError::NoCondition(id.clone()));
            }
            let blank = |text: &&String| words(text).is_empty();
            if rule.words.iter().chain(&rule.equals).any(|t| blank(&t)) {
                return Err(RulesError::EmptyValue(id.clone()));
            }
            if rule.words.len() + rule.equals.len() > MOST {
                return Err(RulesError::TooManyValues(id.clone()));
            }
        }
        Ok(())
    }

    /// Why a claim is implausible, one line per rule and fact. `kernel` is the
    /// engine's.
    pub fn against(&self, claim: &str, facts: &VenueFacts, kernel: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for rule in &self.rules {
            if !rule.claims.iter().any(|other| other == claim) {
                continue;
            }
            // One fact suffices; the others would only repeat it.
            let found = rule.facts.iter().find_map(|name| {
                let value = name.of(facts, kernel);
                rule.holds(&value).then_some((name, value))
            });
            if let Some((name, value)) = found {
                lines.push(match value.as_str() {
                    "" if !is_here(facts) => format!(
                        "{} ({}: not known of an engine at {})",
                        rule.reason,
                        name.name(),
                        facts.engine_at
                    ),
                    "" => format!("{} ({})", rule.reason, name.name()),
                    _ => format!("{} ({} {value:?})", rule.reason, name.name()),
                });
            }
        }
        lines
    }
}

impl VenueRule {
    fn holds(&self, value: &str) -> bool {
        let own = words(value);
        let has = |phrase: &String| {
            let phrase = words(phrase);
            own.windows(phrase.len()).any(|window| window == phrase)
        };
        (self.empty && value.is_empty())
            || self.equals.iter().any(|wanted| wanted == value)
            || self.words.iter().any(has)
    }
}

/// Words are compared whole: a host called `climate` is not `lima`.
fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The engine is on the host that the tool runs on.
pub const THIS_HOST: &str = "this host";

/// The engine answers at a unix socket of this host, and says that it runs on another one.
pub const ANOTHER_MACHINE: &str = "another machine, through a unix socket";

/// The engine is on the host whose facts these are.
pub fn is_here(facts: &VenueFacts) -> bool {
    facts.engine_at == THIS_HOST
}

/// Where an engine can be, in the words of a run.
pub fn is_place(text: &str) -> bool {
    let is_plain = |rest: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-:@/[]".contains(c);
        !rest.is_empty() && !rest.starts_with('-') && rest.chars().all(plain)
    };
    let tcp = text.strip_prefix("tcp://");
    let tcp = tcp.map(|rest| rest.strip_suffix(" (TLS)").unwrap_or(rest));
    let far = tcp.or_else(|| text.strip_prefix("ssh://"));
    far.is_some_and(is_plain) || matches!(text, THIS_HOST | ANOTHER_MACHINE)
}

/// No statement of that tier was given.
pub const ABSENT: &str = "absent";

/// The artifact that holds what the platform signed about the venue.
pub const PLATFORM_PROOF: &str = "venue-proof-platform";

/// The artifact that holds what the hardware signed.
pub const HARDWARE_PROOF: &str = "venue-proof-hardware";

/// Statements about the venue that were given along, and the artifact each is
/// kept as.
pub fn proofs(facts: &VenueFacts) -> [(&'static str, &'static str, &str); 2] {
    [
        ("platform_signed", PLATFORM_PROOF, &facts.platform_signed),
        ("hardware", HARDWARE_PROOF, &facts.hardware),
    ]
}

/// Why the venue that evidence claims is implausible, by these rules.
pub fn signs_by(evidence: &Evidence, rules: &VenueRules) -> Vec<String> {
    let (facts, Runtime { kernel, .. }) = (&evidence.venue_facts, &evidence.runtime);
    let mut lines = rules.against(&evidence.venue, facts, kernel);
    // What the sandbox itself ran on counts, whatever the engine calls it.
    let release = coherent::release(&evidence.raw.proc_version);
    if let Some(release) = release.filter(|release| release != kernel) {
        let found = rules.against(&evidence.venue, facts, release);
        lines.extend(
            found
                .into_iter()
                .filter(|line| !lines.contains(line))
                .collect::<Vec<_>>(),
        );
    }
    // The facts themselves are this tool's own word, whatever came along.
    if facts.tier != "self-reported" {
        lines.push(format!("tier is {:?}, and nothing shows it", facts.tier));
    }
    // A statement that was given is an artifact by that digest; nobody here has
    // checked it, and `not_proven` says so.
    for (name, artifact, said) in proofs(facts) {
        let kept = |digest: &str| {
            evidence
                .artifacts
                .iter()
                .any(|kept| kept.sha256 == digest && kept.path.rsplit('/').next() == Some(artifact))
        };
        if said != ABSENT && !said.strip_prefix("sha256:").is_some_and(kept) {
            lines.push(format!("{name} is {said:?}, and nothing shows it"));
        }
    }
    lines
}

/// The same by the built-in rules.
pub fn signs(evidence: &Evidence) -> Vec<String> {
    signs_by(evidence, VenueRules::built_in())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn facts() -> VenueFacts {
        VenueFacts {
            tier: "self-reported".into(),
            operating_system: "Debian GNU/Linux 12".into(),
            host_name: "climate-1".into(),
            ci_variables: vec!["CI".into()],
            machine_id_hmac: String::new(),
            boot_id: String::new(),
            kernel: "6.1.0-18-amd64".into(),
            engine: "docker 20.10".into(),
            engine_at: THIS_HOST.into(),
            virtualisation: "kvm".into(),
            container: "none".into(),
            chassis: "other".into(),
            platform_signed: "absent".into(),
            hardware: "absent".into(),
        }
    }

    #[test]
    fn the_built_in_rules_are_well_formed_and_a_server_passes() {
        let rules = VenueRules::parse(BUILT_IN).unwrap();
        assert_eq!(&rules, VenueRules::built_in());
        for claim in APPROVED {
            assert_eq!(rules.against(claim, &facts(), "6.1.0"), [""; 0]);
        }
    }

    #[test]
    fn developers_machines_are_recognised() {
        let rules = VenueRules::built_in();
        type Change = fn(&mut VenueFacts);
        let cases: [(&str, Change); 10] = [
            ("docker-desktop", |f| {
                f.operating_system = "Docker Desktop".into()
            }),
            ("docker-desktop", |f| f.host_name = "docker-desktop".into()),
            ("linuxkit", |f| f.kernel = "6.6.12-linuxkit".into()),
            ("colima", |f| f.host_name = "colima".into()),
            ("lima", |f| f.host_name = "lima-default".into()),
            ("orbstack", |f| f.operating_system = "OrbStack".into()),
            ("apple", |f| f.virtualisation = "apple".into()),
            ("wsl", |f| {
                f.kernel = "5.15.153.1-microsoft-standard-WSL2".into()
            }),
            ("wsl-virtualisation", |f| f.virtualisation = "wsl".into()),
            ("laptop", |f| f.chassis = "laptop".into()),
        ];
        for (id, change) in cases {
            let mut facts = facts();
            change(&mut facts);
            let rule = rules.rules.iter().find(|rule| rule.id == id).unwrap();
            let said = rules.against("vps", &facts, "6.1.0");
            assert_eq!(said.len(), 1, "{id}: {said:?}");
            assert!(said[0].starts_with(&rule.reason), "{id}: {said:?}");
            assert_eq!(rules.against("dev", &facts, "6.1.0"), [""; 0]);
        }
        // A runner in a rack may be anything but a VPS.
        let mut facts = facts();
        facts.ci_variables.clear();
        assert_eq!(rules.against("vps", &facts, "6.1.0"), [""; 0]);
        assert_eq!(rules.against("ci", &facts, "6.1.0").len(), 1);
        assert_eq!(rules.against("vps", &facts, "6.6.12-linuxkit").len(), 1);
    }

    #[test]
    fn an_engine_elsewhere_gets_nothing_from_the_tools_host() {
        let mut facts = facts();
        facts.engine_at = "ssh://op@vps".into();
        facts.ci_variables.clear();
        let said = VenueRules::built_in().against("ci", &facts, "6.1.0");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("not known of an engine at ssh://op@vps"));
        let own = "schema = \"tki-attest/venues/v1\"\n[[rule]]\nid = \"far\"\nreason = \"r\"\n\
                   claims = [\"vps\"]\nfacts = [\"engine_at\"]\nwords = [\"tcp\", \"ssh\"]\n";
        let own = VenueRules::parse(own).unwrap();
        assert_eq!(own.against("vps", &facts, "6.1.0").len(), 1);
        facts.engine_at = THIS_HOST.into();
        assert_eq!(own.against("vps", &facts, "6.1.0"), [""; 0]);
    }

    #[test]
    fn places_have_a_form() {
        for good in [
            THIS_HOST,
            ANOTHER_MACHINE,
            "tcp://192.0.2.1:2376",
            "tcp://[2001:db8::1]:2376 (TLS)",
            "ssh://op@vps:22/run/docker.sock",
        ] {
            assert!(is_place(good), "{good}");
        }
        for bad in [
            "",
            "here",
            "tcp://",
            "ssh://-x",
            "tcp://a b",
            "ssh://a (TLS)",
            "x://y",
        ] {
            assert!(!is_place(bad), "{bad}");
        }
    }

    #[test]
    fn rules_that_mean_nothing_are_refused() {
        let head = "schema = \"tki-attest/venues/v1\"\n";
        let rule = |rest: &str| format!("{head}[[rule]]\nid = \"x\"\nreason = \"r\"\n{rest}");
        for (text, why) in [
            ("schema = \"x\"\n".to_owned(), "schema"),
            (
                rule("claims = [\"vps\"]\nfacts = [\"kernel\"]\n"),
                "condition",
            ),
            (
                rule("claims = [\"dev\"]\nfacts = [\"kernel\"]\nempty = true\n"),
                "no claim",
            ),
            (
                rule("claims = []\nfacts = [\"kernel\"]\nempty = true\n"),
                "about no",
            ),
            (
                rule("claims = [\"vps\"]\nfacts = [\"moon\"]\nempty = true\n"),
                "line 6",
            ),
            (
                rule("claims = [\"vps\"]\nfacts = [\"kernel\"]\nwords = [\" \"]\n"),
                "empty value",
            ),
            (rule("colour = 1\n"), "line 5, column 1"),
        ] {
            let error = VenueRules::parse(&text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
