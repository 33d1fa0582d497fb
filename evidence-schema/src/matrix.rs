//! The acceptance matrix: which tests are bound to which probes.
//!
//! The table is data (`matrix-rev4.json`), ours where the published facts about
//! rev4 are silent, and replaceable.

use crate::evidence::{MatrixRow, ProbeResult, Verdict};
use crate::strict::{self, StrictError};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;
use serde::{Deserialize, Serialize};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/matrix/v1";

/// The table that is compiled in.
pub const REV4: &str = include_str!("../matrix-rev4.json");

/// A matrix file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Always `tki-attest/matrix/v1`.
    pub schema: String,
    /// The revision that it follows.
    pub revision: String,
    /// Where its rows come from.
    pub origin: String,
    /// Its rows.
    pub tests: Vec<Test>,
}

/// An acceptance test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// Its number.
    pub test: u32,
    /// What it tests.
    pub title: String,
    /// The layer that it belongs to, `L1` to `L5`.
    pub layer: String,
    /// Requirements that it covers.
    pub requirements: Vec<String>,
    /// Where the attempt is stopped.
    pub block_point: String,
    /// What proves it.
    pub proof: String,
    /// Probes that it is bound to.
    pub probes: Vec<String>,
}

/// Why a matrix cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// Not strict JSON of this form.
    #[error(transparent)]
    Malformed(#[from] StrictError),
    /// Another schema.
    #[error("schema is {0:?}, expected {SCHEMA:?}")]
    Schema(String),
    /// A test number that stands twice.
    #[error("test #{0} stands twice")]
    Twice(u32),
    /// A layer that does not exist: such a test would count for nothing.
    #[error("test #{0}: layer {1:?} is none of L1 to L5")]
    Layer(u32, String),
    /// No test at all: such a matrix would accept everything.
    #[error("no L1 test: such a matrix would accept anything")]
    Empty,
}

impl Matrix {
    /// Reads a matrix file.
    pub fn parse(bytes: &[u8]) -> Result<Self, MatrixError> {
        let matrix: Matrix = strict::parse_as(bytes)?;
        if matrix.schema != SCHEMA {
            return Err(MatrixError::Schema(matrix.schema));
        }
        let mut numbers: Vec<u32> = matrix.tests.iter().map(|test| test.test).collect();
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(MatrixError::Twice(pair[0]));
        }
        let layers = ["L1", "L2", "L3", "L4", "L5"];
        let odd = |test: &&Test| !layers.contains(&test.layer.as_str());
        if let Some(test) = matrix.tests.iter().find(odd) {
            return Err(MatrixError::Layer(test.test, test.layer.clone()));
        }
        if !matrix.tests.iter().any(|test| test.layer == "L1") {
            return Err(MatrixError::Empty);
        }
        Ok(matrix)
    }

    /// The table that is compiled in.
    pub fn rev4() -> Self {
        Self::parse(REV4.as_bytes()).expect("the compiled-in matrix is checked by a test")
    }

    /// The table that is compiled in, read once.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: OnceBox<Matrix> = OnceBox::new();
        BUILT_IN.get_or_init(|| Box::new(Self::rev4()))
    }

    /// Tests that a probe is bound to.
    pub fn tests_of(&self, probe: &str) -> Vec<u32> {
        self.tests
            .iter()
            .filter(|test| test.probes.iter().any(|bound| bound == probe))
            .map(|test| test.test)
            .collect()
    }

    /// Binds every test to its probes' verdicts. A test without a probe, or
    /// with one that was not run, is UNPROVEN.
    pub fn bind(&self, probes: &[ProbeResult]) -> Vec<MatrixRow> {
        self.tests
            .iter()
            .map(|test| MatrixRow {
                test: test.test,
                title: test.title.clone(),
                layer: test.layer.clone(),
                probes: test.probes.clone(),
                result: test
                    .probes
                    .iter()
                    .map(|id| {
                        let mut found = probes.iter().filter(|probe| probe.probe_id == *id);
                        found
                            .next()
                            .map_or(Verdict::Unproven, |probe| probe.verdict)
                    })
                    .max()
                    .unwrap_or(Verdict::Unproven),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::CANONICAL;

    #[test]
    fn the_compiled_in_matrix_covers_24_to_37_and_every_probe() {
        let matrix = Matrix::rev4();
        let numbers: Vec<u32> = matrix.tests.iter().map(|test| test.test).collect();
        assert_eq!(numbers, (24..=37).collect::<Vec<_>>());
        for test in &matrix.tests {
            assert_eq!(test.layer, "L1");
            for probe in &test.probes {
                assert!(crate::catalogue::find(probe).is_some(), "{probe}");
            }
        }
        for probe in CANONICAL {
            assert!(!matrix.tests_of(probe.id).is_empty(), "{}", probe.id);
        }
    }

    #[test]
    fn a_test_without_probes_is_unproven() {
        let mut matrix = Matrix::rev4();
        matrix.tests[0].probes.clear();
        assert_eq!(matrix.bind(&[])[0].result, Verdict::Unproven);
        assert_eq!(matrix.bind(&[])[1].result, Verdict::Unproven);
    }

    #[test]
    fn a_matrix_that_accepts_anything_is_refused() {
        let empty = br#"{"schema":"tki-attest/matrix/v1","revision":"x","origin":"x","tests":[]}"#;
        assert_eq!(Matrix::parse(empty), Err(MatrixError::Empty));
    }
}
