//! The catalogue, for a person and for a program.

use crate::report::table::{Paint, column};
use serde::Serialize;
use std::fmt::Write as _;
use tki_evidence::catalogue;
use tki_evidence::controls::CONTROLS;
use tki_evidence::matrix::Matrix;

/// A probe of the catalogue.
#[derive(Debug, Serialize)]
pub struct Row {
    probe_id: &'static str,
    requirements: &'static [&'static str],
    operation: &'static str,
    expected: &'static str,
    reason: &'static str,
    required_phases: Vec<&'static str>,
    tests: Vec<u32>,
    controls: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncalibrated: Option<&'static str>,
    operations: Vec<&'static str>,
}

/// Every probe.
pub fn rows() -> Vec<Row> {
    let matrix = Matrix::rev4();
    catalogue::all()
        .map(|probe| Row {
            probe_id: probe.id,
            requirements: probe.requirements,
            operation: probe.operation,
            expected: probe.expected,
            reason: probe.reason,
            required_phases: probe.required_phases.iter().map(|p| p.name()).collect(),
            tests: matrix.tests_of(probe.id),
            controls: CONTROLS
                .iter()
                .filter(|control| control.concerns(probe.id))
                .map(|control| control.name)
                .collect(),
            uncalibrated: probe.uncalibrated,
            operations: probe.operations.iter().map(|op| op.id).collect(),
        })
        .collect()
}

/// The catalogue as text; with `verbose` also every single operation.
pub fn render(rows: &[Row], verbose: bool, paint: Paint) -> String {
    let mut out = String::new();
    for row in rows {
        let tests: Vec<String> = row.tests.iter().map(|test| format!("#{test}")).collect();
        let _ = writeln!(
            out,
            "{} {} {}",
            paint.good(&column(row.probe_id, 15)),
            column(&row.requirements.join(" "), 8),
            tests.join(" ")
        );
        let _ = writeln!(out, "    tries    {}", row.operation);
        let _ = writeln!(out, "    expects  {}", row.expected);
        let _ = writeln!(out, "    because  {}", row.reason);
        match row.uncalibrated {
            Some(why) => {
                let _ = writeln!(out, "    control  none: {why}");
            }
            None => {
                let _ = writeln!(out, "    control  {}", row.controls.join(", "));
            }
        }
        if verbose {
            let _ = writeln!(out, "    phases   {}", row.required_phases.join(", "));
            for operation in &row.operations {
                let _ = writeln!(out, "      - {operation}");
            }
        }
    }
    out
}
