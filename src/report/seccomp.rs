//! What is to be said about a seccomp profile.

use crate::report::table::{Paint, column};
use crate::sandbox::explain::Explanation;
use crate::sandbox::lint::{Finding, Severity};
use crate::sandbox::minimise::Minimal;
use std::fmt::Write as _;
use tki_text::printable;

/// A line per finding.
pub fn findings(findings: &[Finding], paint: Paint) -> String {
    if findings.is_empty() {
        return format!("{}  nothing found\n", paint.good("clean"));
    }
    let mut out = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => paint.bad("error  "),
            Severity::Warning => paint.doubt("warning"),
        };
        let _ = writeln!(
            out,
            "{severity} {} {}",
            column(finding.code, 11),
            printable(&finding.what, 1000)
        );
        let _ = writeln!(out, "{}next: {}", " ".repeat(20), finding.next);
    }
    out
}

/// A profile in groups; with `verbose` also what each rule gives as its reason.
pub fn explanation(explanation: &Explanation, verbose: bool, paint: Paint) -> String {
    let mut out = format!("a call that no rule names is {}\n", explanation.default);
    for group in &explanation.groups {
        let _ = writeln!(out, "\n{}", paint.dim(group.kind));
        for (word, names) in [
            ("allowed", &group.allowed),
            ("depends", &group.depends),
            ("denied", &group.denied),
        ] {
            if !names.is_empty() {
                let _ = writeln!(out, "  {} {}", column(word, 8), names.join(" "));
            }
        }
    }
    if verbose {
        for (reason, names) in &explanation.reasons {
            let _ = writeln!(out, "\n{}", printable(reason, 400));
            let _ = writeln!(out, "  {}", printable(&names.join(" "), 2000));
        }
    }
    out
}

/// The smallest allow-list.
pub fn minimal(minimal: &Minimal) -> String {
    let mut out = String::new();
    for (word, names) in [
        ("needed", &minimal.needed),
        ("margin", &minimal.margin),
        ("superfluous", &minimal.superfluous),
    ] {
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            printable(&names.join(" "), 4000)
        };
        let _ = writeln!(out, "{} {names}", column(word, 11));
    }
    out
}
