//! The matrix binding: each acceptance test, the probes that it is bound to,
//! the facts that they rest on, and the result.

use crate::evidence::{Evidence, ProbeResult, Verdict};
use crate::matrix::Matrix;
use crate::verification::Decision;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/binding/v1";

/// A binding file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct Binding {
    /// Always `tki-attest/binding/v1`.
    pub schema: &'static str,
    /// The matrix's revision.
    pub revision: String,
    /// SHA-256 (hex) of the matrix file.
    pub matrix_sha256: String,
    /// The run that it is about.
    pub run_id: String,
    /// SHA-256 (hex) of the evidence file's bytes.
    pub evidence_file_sha256: String,
    /// What the verification came to.
    pub decision: Decision,
    /// B4′ is asserted: every L1 test is bound and passes, and the evidence as
    /// a whole was accepted.
    pub b4_prime: bool,
    /// One row per test, in the matrix's order.
    pub tests: Vec<BoundTest>,
}

/// One test of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct BoundTest {
    /// Its number.
    pub test: u32,
    /// What it tests.
    pub title: String,
    /// The layer that it belongs to.
    pub layer: String,
    /// Requirements that it covers.
    pub requirements: Vec<String>,
    /// Where the attempt is stopped.
    pub block_point: String,
    /// What proves it, according to the matrix.
    pub proof: String,
    /// The probes that it is bound to; empty if none.
    pub probes: Vec<BoundProbe>,
    /// The worst verdict among them; UNPROVEN if there is none.
    pub result: Verdict,
}

/// One probe of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
pub struct BoundProbe {
    /// Its id.
    pub probe_id: String,
    /// Its verdict; UNPROVEN if it was not run.
    pub verdict: Verdict,
    /// Errnos and signals in the required phases, or `0`; empty if not run.
    pub errno_or_exit: String,
    /// What came back; empty if not run.
    pub facts: String,
    /// Layers without which it fails, found by the controls.
    pub denied_by: Vec<String>,
    /// The conversation in which it was observed; empty if not run.
    pub artifact_path: String,
}

/// Every L1 test is bound to a probe, and all of them pass.
pub fn l1_holds(matrix: &Matrix, probes: &[ProbeResult]) -> bool {
    let rows = matrix.bind(probes);
    let mut l1 = rows.iter().filter(|row| row.layer == "L1").peekable();
    l1.peek().is_some() && l1.all(|row| !row.probes.is_empty() && row.result == Verdict::Pass)
}

/// Binds a matrix to evidence that was decided about.
pub fn bind(
    matrix: &Matrix,
    matrix_sha256: &str,
    evidence: &Evidence,
    evidence_file_sha256: &str,
    decision: Decision,
) -> Binding {
    let tests = matrix.tests.iter().zip(matrix.bind(&evidence.probes));
    Binding {
        schema: SCHEMA,
        revision: matrix.revision.clone(),
        matrix_sha256: matrix_sha256.into(),
        run_id: evidence.run_id.clone(),
        evidence_file_sha256: evidence_file_sha256.into(),
        decision,
        b4_prime: decision == Decision::B4PrimeAccepted && l1_holds(matrix, &evidence.probes),
        tests: tests
            .map(|(test, row)| BoundTest {
                test: test.test,
                title: test.title.clone(),
                layer: test.layer.clone(),
                requirements: test.requirements.clone(),
                block_point: test.block_point.clone(),
                proof: test.proof.clone(),
                probes: test.probes.iter().map(|id| bound(id, evidence)).collect(),
                result: row.result,
            })
            .collect(),
    }
}

fn bound(id: &str, evidence: &Evidence) -> BoundProbe {
    let run = evidence.probes.iter().find(|probe| probe.probe_id == id);
    match run {
        None => BoundProbe {
            probe_id: id.into(),
            verdict: Verdict::Unproven,
            errno_or_exit: String::new(),
            facts: String::new(),
            denied_by: Vec::new(),
            artifact_path: String::new(),
        },
        Some(probe) => BoundProbe {
            probe_id: id.into(),
            verdict: probe.verdict,
            errno_or_exit: probe.errno_or_exit.clone(),
            facts: probe.actual_stderr_or_value.clone(),
            denied_by: probe.denied_by.clone(),
            artifact_path: probe.artifact_path.clone(),
        },
    }
}
