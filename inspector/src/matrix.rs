//! The acceptance matrix as a whole: 45 tests, what is deferred, the gates and the negatives
//! (`data/matrix-45.json`). The evidence of a sandbox carries only its L1 tests, #24 to #37,
//! which a table of its own binds to probes; the rows here agree with that one.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;
use serde::Deserialize;
use tki_evidence::strict::{self, StrictError};

/// The table as it is published.
pub const TEXT: &str = include_str!("../data/matrix-45.json");

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/matrix/v2";

/// How many tests are in scope.
pub const TESTS: u32 = 45;

/// The table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Always `tki-attest/matrix/v2`.
    pub schema: String,
    /// The revision that it follows.
    pub revision: String,
    /// Where its rows come from.
    pub origin: String,
    /// The tests that cannot pass without the sandbox of the operating system.
    pub depend_on_l1: Dependence,
    /// The tests in scope, by number.
    pub tests: Vec<Test>,
    /// The tests that wait for something else.
    pub deferred: Vec<Deferred>,
    /// What must hold before the inspector is used, and which tests show it.
    pub gates: Vec<Gate>,
    /// What a person must do before.
    pub manual_gates: Vec<ManualGate>,
    /// What is tried and must not succeed.
    pub negatives: Vec<Negative>,
}

/// Tests that depend on L1.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependence {
    /// Those that the original documents name.
    pub named: Vec<u32>,
    /// Those that they call siblings and do not name.
    pub siblings: Vec<u32>,
    /// What the original documents say.
    pub basis: String,
}

/// A layer of the defence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Layer {
    /// The sandbox of the operating system.
    L1,
    /// Guards of the build.
    L2,
    /// The self-check, and guards within the process.
    L3,
    /// Rules about packet, provenance and evidence.
    L4,
    /// Rules about verdict and report.
    L5,
}

impl Layer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::L4 => "L4",
            Self::L5 => "L5",
        }
    }
}

/// A test in scope.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// Its number.
    pub test: u32,
    /// The layer that it belongs to.
    pub layer: Layer,
    /// What it shows.
    pub title: String,
    /// What is tried.
    pub tried: String,
    /// Where the attempt is stopped.
    pub block_point: String,
    /// What proves it.
    pub proof: String,
    /// The requirements of the sandbox that it covers, `R1` to `R13`.
    pub requirements: Vec<String>,
    /// The original documents say nothing of it but that there is a test with this number.
    pub ours: bool,
    /// What they say, and where; empty if nothing.
    pub basis: String,
    /// The function that shows it: test binary, module, name.
    pub bound_to: String,
}

/// A test that is deferred.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deferred {
    /// `D1` to `D11`.
    pub id: String,
    /// What it would show.
    pub title: String,
    /// What must be there before.
    pub waits_for: String,
    /// The original documents do not name it.
    pub ours: bool,
    /// What they say, and where; empty if nothing.
    pub basis: String,
}

/// Something that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// `G1` to `G12`.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// When it holds.
    pub holds_when: String,
    /// The tests that show it. Each test is in one gate.
    pub tests: Vec<u32>,
    /// The original documents do not name it.
    pub ours: bool,
    /// What they say, and where; empty if nothing.
    pub basis: String,
}

/// Something that a person must do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManualGate {
    /// `M1` to `M5`.
    pub id: String,
    /// What.
    pub title: String,
    /// Who.
    pub holder: String,
    /// What shows that it was done.
    pub shown_by: String,
    /// The original documents do not name it.
    pub ours: bool,
    /// What they say, and where; empty if nothing.
    pub basis: String,
}

/// Something that is tried and must not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Negative {
    /// `N1` to `N32`.
    pub id: String,
    /// What is tried.
    pub tried: String,
    /// What must come of it.
    pub must: String,
    /// The tests that try it.
    pub tests: Vec<u32>,
    /// The original documents do not name it.
    pub ours: bool,
    /// What they say, and where; empty if nothing.
    pub basis: String,
}

impl Matrix {
    /// Reads a table.
    pub fn parse(bytes: &[u8]) -> Result<Self, StrictError> {
        strict::parse_as(bytes)
    }

    /// The table that this program carries.
    pub fn built_in() -> &'static Self {
        static TABLE: OnceBox<Matrix> = OnceBox::new();
        TABLE
            .get_or_init(|| Box::new(Self::parse(TEXT.as_bytes()).expect("a test reads the table")))
    }

    /// The test with this number.
    pub fn test(&self, number: u32) -> Option<&Test> {
        self.tests.iter().find(|test| test.test == number)
    }
}

#[cfg(test)]
#[path = "matrix_tests.rs"]
mod tests;
