//! Verifications as JUnit XML: a suite per bundle, a case per step. What is
//! disproved is a failure, what is not proven an error, what was not checked
//! skipped: a CI system shows all three apart.

use crate::failure::Failure;
use crate::verify::{Outcome, StepCode, Verification};
use std::fmt::Write as _;
use tki_text::printable;

/// Before the first suite.
pub const BEGIN: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tki-attest verify\">\n";
/// After the last suite.
pub const END: &str = "</testsuites>\n";

/// Text as an attribute's value. XML has no way to write most control
/// characters, so they are shown, and not escaped.
fn attribute(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text, 1000).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// One verification as a suite.
pub fn suite(found: &Verification) -> String {
    let count = |outcomes: &[Outcome]| {
        let matching = found
            .steps
            .iter()
            .filter(|step| outcomes.contains(&step.outcome));
        matching.count()
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" timestamp=\"{}\">\n    \
         <properties>\n      <property name=\"decision\" value=\"{}\"/>\n      <property name=\"assurance\" value=\"{}\"/>",
        attribute(&found.bundle),
        found.steps.len(),
        count(&[Outcome::False]),
        count(&[Outcome::Blocked]),
        count(&[Outcome::NotChecked, Outcome::Waived]),
        found.verified.time.trim_end_matches('Z'),
        found.decision.name(),
        found.assurance.name()
    );
    if found.evidence_only {
        let property = "      <property name=\"evidence only\" value=\"--evidence-only\"/>";
        let _ = writeln!(out, "{property}");
    }
    let notes = found
        .weaker
        .iter()
        .map(|line| ("weaker than the built-in bar", line))
        .chain(found.not_proven.iter().map(|line| ("not proven", line)));
    for (name, line) in notes {
        let value = attribute(line);
        let _ = writeln!(out, "      <property name=\"{name}\" value=\"{value}\"/>");
    }
    out += "    </properties>\n";
    for step in &found.steps {
        let name = match step.code {
            StepCode::Verdict | StepCode::Policy => format!("{} {}", step.code, step.place),
            code => code.to_string(),
        };
        let _ = write!(
            out,
            "    <testcase classname=\"tki-attest.verify\" name=\"{}\"",
            attribute(&name)
        );
        let element = match step.outcome {
            Outcome::Ok => {
                out += "/>\n";
                continue;
            }
            Outcome::NotChecked | Outcome::Waived => "skipped",
            Outcome::Blocked => "error",
            Outcome::False => "failure",
        };
        let message = attribute(&format!(
            "expected {}; got {}; next: {}",
            step.expected, step.got, step.next
        ));
        let kind = match step.outcome {
            Outcome::Blocked => " type=\"BLOCKED\"",
            Outcome::False => " type=\"FALSE\"",
            _ => "",
        };
        let _ = writeln!(out, "><{element} message=\"{message}\"{kind}/></testcase>");
    }
    out + "  </testsuite>\n"
}

/// A bundle that is none, as a suite.
pub fn unreadable(name: &str, failure: &Failure) -> String {
    format!(
        "  <testsuite name=\"{}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n    \
         <testcase classname=\"tki-attest.verify\" name=\"EV-FORM\"><error message=\"{}\" \
         type=\"{}\"/></testcase>\n  </testsuite>\n",
        attribute(name),
        attribute(&failure.message),
        failure.code
    )
}
