//! Verifications as Markdown. Everything from elsewhere is made harmless: it
//! cannot end a cell, open a tag or make a link.

use crate::report::decision::mark;
use crate::verify::{Verification, Verified};
use std::fmt::Write as _;
use tki_text::printable;

/// Above a table with a row per bundle.
pub const HEAD: &str = "| bundle | decision | assurance | run |\n|---|---|---|---|\n";

/// Text that Markdown takes as text.
pub fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in printable(text, most).chars() {
        if "\\`*_{}[]()<>#+!|~&$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A row for one bundle of many.
pub fn row(name: &str, result: &Verified) -> String {
    match result {
        Ok(found) => format!(
            "| {} | {} | {} | {} |\n",
            plain(name, 200),
            plain(found.decision.name(), 40),
            found.assurance.name(),
            plain(&found.run_id, 60)
        ),
        Err(failure) => format!(
            "| {} | unreadable: {} | | |\n",
            plain(name, 200),
            failure.code
        ),
    }
}

/// One verification as a page.
pub fn render(found: &Verification) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "# {}\n\n- bundle: {}\n- run: {}\n- image: {}\n- evidence file: sha256:{}\n- assurance: {}\n- verified: {}{}",
        plain(found.decision.name(), 40),
        plain(&found.bundle, 300),
        plain(&found.run_id, 60),
        plain(&found.image_digest, 80),
        found.evidence_file_sha256,
        found.assurance.name(),
        found.verified.time,
        if found.verified.given {
            " **(given with --verify-time, not now)**"
        } else {
            ""
        }
    );
    for signer in &found.signers {
        let (who, key) = (plain(&signer.principals, 100), plain(&signer.key, 80));
        let _ = writeln!(out, "- signed by: {who}, {key}");
    }
    if found.evidence_only {
        out += "\n**Evidence only: its artifacts were not there (--evidence-only).**\n";
    }
    if !found.weaker.is_empty() {
        out += "\n**Weaker than the built-in bar:**\n\n";
        for line in &found.weaker {
            let _ = writeln!(out, "- {}", plain(line, 300));
        }
    }
    out += "\n| outcome | step | where | expected | got | next |\n|---|---|---|---|---|---|\n";
    for step in &found.steps {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            mark(step.outcome),
            step.code,
            plain(&step.place, 80),
            plain(&step.expected, 200),
            plain(&step.got, 200),
            plain(&step.next, 200)
        );
    }
    out += "\n## Matrix\n\n| test | title | probes | result |\n|---|---|---|---|\n";
    for row in &found.matrix {
        let _ = writeln!(
            out,
            "| \\#{} | {} | {} | {} |",
            row.test,
            plain(&row.title, 120),
            plain(&row.probes.join(", "), 300),
            row.result.name()
        );
    }
    out += "\n## This does not prove\n\n";
    for line in &found.not_proven {
        let _ = writeln!(out, "- {}", plain(line, 400));
    }
    out
}
