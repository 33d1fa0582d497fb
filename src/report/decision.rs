//! What a verification came to, for a person.

use crate::report::table::{Paint, column};
use crate::report::text::printable;
use crate::verify::{Decision, Finding, Outcome};
use std::fmt::Write as _;

/// A line per check, the decision, its assurance, and what it does not prove.
pub fn render(finding: &Finding, verbose: bool, paint: Paint) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {}",
        paint.dim("bundle"),
        printable(&finding.bundle, 300)
    );
    for step in &finding.steps {
        let mark = match step.outcome {
            Outcome::Ok => paint.good("ok         "),
            Outcome::NotChecked => paint.dim("not checked"),
            Outcome::Blocked => paint.doubt("BLOCKED    "),
            Outcome::False => paint.bad("FALSE      "),
        };
        let _ = writeln!(
            out,
            "{mark} {} {} {}",
            column(step.code, 13),
            column(&step.place, 27),
            printable(&step.got, 120)
        );
        if verbose || !matches!(step.outcome, Outcome::Ok | Outcome::NotChecked) {
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
    let name = finding.decision.name();
    let name = match finding.decision {
        Decision::B4PrimeAccepted => paint.good(name),
        Decision::B4PrimeRejected => paint.bad(name),
        Decision::B4PrimeBlocked => paint.doubt(name),
    };
    let _ = writeln!(out, "\n{name}  assurance: {}", finding.assurance);
    let _ = writeln!(out, "{}", paint.dim("This does not prove:"));
    for line in &finding.not_proven {
        let _ = writeln!(out, "  - {}", printable(line, 300));
    }
    out
}
