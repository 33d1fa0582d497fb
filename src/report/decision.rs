//! What a verification came to, for a person.

use crate::report::table::{Paint, column};
use crate::verify::{Decision, Outcome, Verification};
use std::fmt::Write as _;
use tki_text::printable;

/// How an outcome is called in text.
pub fn mark(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::NotChecked => "not checked",
        Outcome::Waived => "WAIVED",
        Outcome::Blocked => "BLOCKED",
        Outcome::False => "FALSE",
    }
}

fn painted(outcome: Outcome, paint: Paint) -> String {
    let mark = column(mark(outcome), 11);
    match outcome {
        Outcome::Ok => paint.good(&mark),
        Outcome::NotChecked => paint.dim(&mark),
        Outcome::Waived | Outcome::Blocked => paint.doubt(&mark),
        Outcome::False => paint.bad(&mark),
    }
}

fn decision(verification: &Verification, paint: Paint) -> String {
    let name = verification.decision.name();
    match verification.decision {
        Decision::B4PrimeAccepted => paint.good(name),
        Decision::B4PrimeRejected => paint.bad(name),
        Decision::B4PrimeBlocked => paint.doubt(name),
    }
}

/// A line per check, the decision, its assurance, and what it does not prove.
pub fn render(verification: &Verification, verbose: bool, paint: Paint) -> String {
    let mut out = String::new();
    let name = printable(&verification.bundle, 300);
    let _ = writeln!(out, "{} {name}", paint.dim("bundle"));
    for step in &verification.steps {
        let _ = writeln!(
            out,
            "{} {} {} {}",
            painted(step.outcome, paint),
            column(step.code.name(), 13),
            column(&step.place, 27),
            printable(&step.got, 120)
        );
        let notable = !matches!(step.outcome, Outcome::Ok | Outcome::NotChecked);
        if (verbose || notable) && !step.expected.is_empty() {
            let _ = writeln!(
                out,
                "            expected {}",
                printable(&step.expected, 200)
            );
        }
        if step.outcome != Outcome::Ok {
            let _ = writeln!(out, "            next: {}", step.next);
        }
    }
    let _ = writeln!(
        out,
        "\n{}  assurance: {}",
        decision(verification, paint),
        verification.assurance.name()
    );
    for signer in &verification.signers {
        let _ = writeln!(
            out,
            "signed by {} {}",
            printable(&signer.principals, 100),
            signer.key
        );
    }
    out += &loud(verification, paint);
    let _ = writeln!(out, "{}", paint.dim("This does not prove:"));
    for line in &verification.not_proven {
        let _ = writeln!(out, "  - {}", printable(line, 300));
    }
    out
}

/// What nobody may overlook: another time than now, no artifacts, less than
/// the built-in bar.
fn loud(verification: &Verification, paint: Paint) -> String {
    let mut out = String::new();
    if verification.verified.given {
        let said = format!(
            "VERIFIED AS OF {}, NOT OF NOW (--verify-time)",
            verification.verified.time
        );
        let _ = writeln!(out, "{}", paint.doubt(&said));
    }
    if verification.evidence_only {
        let said = "EVIDENCE ONLY: ITS ARTIFACTS WERE NOT THERE (--evidence-only)";
        let _ = writeln!(out, "{}", paint.doubt(said));
    }
    if !verification.weaker.is_empty() {
        let said = "WEAKER THAN THE BUILT-IN BAR (--allow-weaker):";
        let _ = writeln!(out, "{}", paint.doubt(said));
        for line in &verification.weaker {
            let _ = writeln!(out, "  - {}", printable(line, 300));
        }
    }
    out
}

/// One line for one bundle of many: the decision, the assurance, and the first
/// step that stands in the way.
pub fn line(verification: &Verification, paint: Paint) -> String {
    let mut out = format!(
        "{}  {}  {}",
        decision(verification, paint),
        column(verification.assurance.name(), 13),
        printable(&verification.bundle, 300)
    );
    let worst = verification.steps.iter().map(|step| step.outcome).max();
    let first = verification.steps.iter().find(|step| {
        Some(step.outcome) == worst && matches!(step.outcome, Outcome::Blocked | Outcome::False)
    });
    if let Some(step) = first {
        let _ = write!(
            out,
            "  {} {}: {}",
            mark(step.outcome),
            step.code,
            printable(&step.got, 100)
        );
    }
    if verification.verified.given {
        let _ = write!(out, "  AS OF {}", verification.verified.time);
    }
    if verification.evidence_only {
        out += "  EVIDENCE ONLY";
    }
    if !verification.weaker.is_empty() {
        out += "  WEAKER THAN THE BUILT-IN BAR";
    }
    out.push('\n');
    out
}
