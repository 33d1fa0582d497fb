//! What is said of the sandbox beside a report. The report itself holds no fact about an engine:
//! the same packet gives the same bytes everywhere.

use serde::Serialize;
use tki_evidence::evidence::Tool;
use tki_evidence::verification::{Assurance, Decision};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/inspection-stamp/v1";

/// The file's name.
pub const FILE: &str = "stamp.json";

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stamp {
    /// Always `tki-attest/inspection-stamp/v1`.
    pub schema: &'static str,
    /// Whether the sandbox was accepted.
    pub sandbox: Accepted,
    /// The same for programs.
    pub accepted: bool,
    /// It was for development.
    pub dev: bool,
    /// The venue that was claimed.
    pub venue: String,
    /// This tool.
    pub tool: Tool,
    /// The engine.
    pub engine: Engine,
    /// The manifest digest of the image, `sha256:…`.
    pub image_digest: String,
    /// The evidence before the inspection.
    pub evidence: Before,
    /// When the inspection began; RFC 3339, UTC.
    pub started: String,
    /// When it had ended.
    pub finished: String,
    /// How long the inspector's self-check took, in microseconds.
    pub selfcheck_us: u64,
    /// How long reading, judging and writing took inside, in microseconds.
    pub judged_us: u64,
    /// The packet.
    pub packet: Packet,
    /// The exit status of the inspector: 10 or 11.
    pub status: i32,
    /// What the inspector has written.
    pub reports: Vec<Written>,
}

/// Whether a sandbox was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Accepted {
    /// B4′ was accepted of it.
    Accepted,
    /// It was not: the report is for development.
    NotAccepted,
}

/// The engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The OCI runtime, or what takes its place.
    pub runtime: String,
    /// Where it is.
    pub at: String,
}

/// The evidence before an inspection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Before {
    /// Its file's name.
    pub name: String,
    /// SHA-256 (hex) of the file.
    pub sha256: String,
    /// The run that it is of.
    pub run_id: String,
    /// What the verifier made of it, right before.
    pub decision: Decision,
    /// How far it can be relied on.
    pub assurance: Assurance,
}

/// The packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packet {
    /// Its name.
    pub id: String,
    /// SHA-256 (hex) of its own file.
    pub sha256: String,
}

/// A file of the inspector's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Its name.
    pub name: &'static str,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
    /// Their number.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_verify::error::INSPECTIONS;

    #[test]
    fn the_verifier_knows_what_it_refuses() {
        let own = [
            tki_inspector::report::SCHEMA,
            tki_inspector::binding::SCHEMA,
            SCHEMA,
        ];
        assert_eq!(INSPECTIONS, own);
    }
}
