//! What launcher and inspector say to each other: one JSON value per line. The launcher lets the
//! inspector begin once it has compared the container's settings; the inspector says how far it
//! is, what it has written below `/out`, and then reads that back to the launcher.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The version of this conversation.
pub const PROTOCOL: u32 = 1;

/// Where the packet is, inside.
pub const PACKET_FOLDER: &str = "/in/packet";

/// Where the launcher's own files are, inside: what is expected comes from there and never from
/// the packet.
pub const LAUNCHER_FOLDER: &str = "/in/launcher";

/// Their names.
pub const EXPECTED: &str = "expected.json";
/// The list of allowed signers.
pub const SIGNERS: &str = "signers";
/// The request that bundles must answer.
pub const REQUEST: &str = "request.json";
/// The policy that they must meet.
pub const POLICY: &str = "policy.toml";

/// Where reports go.
pub const OUT: &str = "/out";
/// The report.
pub const REPORT: &str = "inspection.json";
/// The same for people.
pub const MARKDOWN: &str = "inspection.md";
/// What of the acceptance matrix this run shows.
pub const BINDING: &str = "binding.json";
/// Every action that was taken, one per line.
pub const ACTIONS: &str = "actions.ndjson";
/// All files that are written, in this order.
pub const FILES: [&str; 4] = [REPORT, MARKDOWN, BINDING, ACTIONS];

/// The most bytes of one piece of a file.
pub const MAX_PIECE: usize = 48 * 1024;

/// The most bytes of the launcher's line.
pub const MAX_GO: usize = 4096;

/// Exit status: triage written, every claim adequate.
pub const TRIAGE: i32 = 10;
/// Exit status: triage written, and at least one claim is not adequate.
pub const INADEQUATE: i32 = 11;
/// Exit status: the packet is not one.
pub const MALFORMED: i32 = 2;
/// Exit status: this is not its sandbox, or the launcher is gone.
pub const BLOCKED: i32 = 3;

/// `expected.json`: what the launcher expects of bundles in a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The image that must have been attested, if one is demanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ExpectedImage>,
    /// The image that the tool vouches for.
    pub known_image: ExpectedImage,
    /// SHA-256 (hex) of the seccomp profile that must have been used; empty if any known one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seccomp_sha256: String,
    /// The least assurance: `self-reported`, `signed` or `signed-fresh`; empty if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub assurance: String,
}

/// An image by its digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedImage {
    /// `sha256:…`
    pub manifest_digest: String,
    /// `sha256:…`
    pub config_digest: String,
    /// `sha256:…`, each.
    pub diff_ids: Vec<String>,
}

/// A line of the launcher's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LauncherMessage {
    /// Begin.
    Go(Go),
}

/// Within which limits to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Go {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The sandbox's memory, in bytes.
    pub memory_bytes: u64,
    /// The size of `/out`, in bytes.
    pub out_bytes: u64,
    /// When to give up, in milliseconds from now.
    pub deadline_ms: u32,
}

/// A line of the inspector's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InspectorMessage {
    /// It is in its sandbox, and nothing below /in or /out was opened.
    Hello(Hello),
    /// How many items were read.
    Progress(Progress),
    /// What was written below /out.
    Written(Written),
    /// A piece of a file that was written, in order.
    Piece(Piece),
    /// Everything was said.
    Done(Done),
    /// Why it stops here.
    Refused(Refused),
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The inspector's version.
    pub version: String,
    /// How long its self-check took, in microseconds.
    pub selfcheck_us: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Items that were read.
    pub items: u64,
    /// All items.
    pub of: u64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Every file of [`FILES`].
    pub files: Vec<WrittenFile>,
    /// How many claims were judged.
    pub claims: u64,
    /// How many of them are not adequate.
    pub inadequate: u64,
}

/// A file that was written and is on its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Of which.
    pub name: String,
    /// It, as it was read back from /out.
    pub text: String,
}

/// The end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The exit status that follows: [`TRIAGE`] or [`INADEQUATE`].
    pub status: i32,
    /// How long it took from the launcher's go until all reports were written, in microseconds.
    pub judged_us: u64,
}

/// Why it stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The exit status that follows.
    pub status: i32,
    /// A stable code.
    pub code: String,
    /// What is wrong, and where.
    pub reason: String,
}
