//! The report: what was read, what each claim's evidence comes to and why, and what was not
//! done. It speaks of single claims and never of the packet as a whole, and nothing consumes it.

use crate::packet::{ClaimKind, Place};
use crate::rules::Rule;
use crate::words::{Adequacy, Held};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use tki_evidence::verification::{Assurance, Outcome};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/inspection/v1";

/// What the report is not, in its own words.
pub const IS_NOT: [&str; 4] = [
    "not a gate: no program of this tool takes it as an input",
    "not a proof of a run: what was run is shown by the bundles and transcripts that it names",
    "not an authorization: it lets nobody begin anything",
    "not a verdict on the packet: it speaks of each claim by itself",
];

/// The report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Always `tki-attest/inspection/v1`.
    pub schema: String,
    /// Always `TRIAGE_WRITTEN`.
    pub triage: Triage,
    /// What it is not.
    pub is_not: Vec<String>,
    /// What was judged.
    pub packet: PacketFacts,
    /// SHA-256 (hex) of the rules that were applied.
    pub rules_sha256: String,
    /// SHA-256 (hex) of the table of status words.
    pub statuses_sha256: String,
    /// What the launcher brought, by name and digest.
    pub brought: Vec<Brought>,
    /// How many claims came to what.
    pub totals: Vec<Total>,
    /// Each claim, in the packet's order.
    pub claims: Vec<ClaimResult>,
    /// Each item, in the packet's order.
    pub items: Vec<ItemResult>,
    /// Items that contradict each other.
    pub contradictions: Vec<Contradiction>,
    /// Bundles that the verifier inside has judged.
    pub bundles: Vec<BundleResult>,
    /// Article 13, about where facts come from: this report held against it.
    pub article_13: Vec<AuditLine>,
    /// Article 14, about what facts show: this report held against it.
    pub article_14: Vec<AuditLine>,
    /// What was not done.
    pub not_done: Vec<String>,
    /// What stands in the way of each claim that is not adequate.
    pub blockers: Vec<Blocker>,
    /// The one thing to do next.
    pub next_action: String,
    /// Everything that was done, in order.
    pub actions: Vec<Action>,
}

/// The only thing that a report says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Triage {
    /// The claims were looked at one by one.
    TriageWritten,
}

/// What was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PacketFacts {
    /// The packet's name.
    pub id: String,
    /// SHA-256 (hex) of `packet.json`.
    pub sha256: String,
    /// The moment that it was judged at.
    pub as_of: String,
    /// The number of its items.
    pub items: u64,
    /// The number of its claims.
    pub claims: u64,
}

/// A file of the launcher's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Brought {
    /// Its name.
    pub name: String,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
}

/// How many claims came to this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Total {
    /// To what.
    pub verdict: Adequacy,
    /// How many.
    pub claims: u64,
}

/// What a claim's evidence comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClaimResult {
    /// The claim.
    pub id: String,
    /// What it says: the packer's words.
    pub text: String,
    /// Its kind.
    pub kind: ClaimKind,
    /// The status that it asserts, as `WORD of SUBJECT`; empty if none.
    pub asserts: String,
    /// What its evidence comes to.
    pub verdict: Adequacy,
    /// The rule that decided.
    pub rule: Rule,
    /// That rule's reason, with what it was applied to.
    pub reason: String,
    /// The places that were looked at.
    pub places: Vec<PlaceResult>,
}

/// What was found at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlaceResult {
    /// Where it was looked.
    pub place: Place,
    /// Whether it is there, and as expected.
    pub holds: bool,
    /// What was found, or why nothing was.
    pub found: String,
}

/// What is known of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ItemResult {
    /// The item.
    pub id: String,
    /// Its path.
    pub path: String,
    /// SHA-256 (hex) of what was read; empty if nothing was.
    pub sha256: String,
    /// How many bytes were read.
    pub bytes: u64,
    /// It is what the packet says, and its origin can be followed.
    pub usable: bool,
    /// `declared`, or who signed it according to the launcher's list.
    pub origin: String,
    /// What is to be said of where it is from: code and text of each finding.
    pub findings: Vec<Finding>,
}

/// Something about where an item is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// A stable code such as `PV-DIGEST`.
    pub code: String,
    /// What was found.
    pub text: String,
}

/// Items that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Contradiction {
    /// About what.
    pub subject: String,
    /// The items, with what each says.
    pub between: Vec<Said>,
    /// The item that stands; empty if none does.
    pub stands: String,
    /// Why that one.
    pub because: String,
}

/// What an item says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The item.
    pub item: String,
    /// What it says.
    pub says: String,
}

/// What the verifier inside came to about a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BundleResult {
    /// The item.
    pub item: String,
    /// The decision's name, such as `B4_PRIME_BLOCKED`, or `UNREADABLE`.
    pub decision: String,
    /// How far it can be relied on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "std", schemars(with = "String"))]
    pub assurance: Option<Assurance>,
    /// The venue that it claims.
    pub venue: String,
    /// The steps that are not as they should be.
    pub open: Vec<BundleStep>,
}

/// A step of that verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BundleStep {
    /// Its code.
    pub code: String,
    /// How it ended: `blocked` or `false`.
    pub outcome: String,
    /// What was found.
    pub got: String,
}

impl BundleStep {
    /// The name of an outcome in the report.
    pub fn outcome_name(outcome: Outcome) -> &'static str {
        match outcome {
            Outcome::Ok => "ok",
            Outcome::NotChecked => "not checked",
            Outcome::Waived => "waived",
            Outcome::Blocked => "blocked",
            Outcome::False => "false",
        }
    }
}

/// A line of a self-audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AuditLine {
    /// What must hold.
    pub line: String,
    /// Whether it does, in this report.
    pub held: Held,
    /// What shows it.
    pub shown_by: String,
}

/// What stands in the way of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Blocker {
    /// Its name: `BLK-` and the claim's.
    pub id: String,
    /// Its class, from the rule.
    pub class: String,
    /// Who can do something about it.
    pub owner: String,
    /// The claim.
    pub claim: String,
    /// What to do.
    pub action: String,
}

/// Something that the inspector did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// From 1.
    pub number: u64,
    /// What kind of action.
    pub action: AllowedAction,
    /// On which file.
    pub path: String,
    /// How many bytes; of a report, none are said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// All that the inspector may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AllowedAction {
    /// Read a file below /in.
    ReadPacketItem,
    /// Write a file below /out.
    WriteLocalReport,
}

impl AllowedAction {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadPacketItem => "READ_PACKET_ITEM",
            Self::WriteLocalReport => "WRITE_LOCAL_REPORT",
        }
    }
}
