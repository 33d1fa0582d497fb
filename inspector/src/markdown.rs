//! The report for people. Whatever a packet says is inert: no markup of it counts, and nothing
//! of it leaves its line.

use crate::report::{AuditLine, ClaimResult, Report};
use crate::words::Adequacy;
use alloc::format;
use alloc::string::String;
use tki_text::printable;

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = String::new();
    out += &format!(
        "# Inspection of the packet {}\n\n",
        inert(&report.packet.id, 64)
    );
    out += "Triage was written. This report is:\n\n";
    for line in &report.is_not {
        out += &format!("- {line}\n");
    }
    out += &format!(
        "\n| | |\n|---|---|\n| packet | `{}` |\n| judged at | {} |\n| items | {} |\n| claims | {} |\n| rules | `{}` |\n",
        report.packet.sha256,
        report.packet.as_of,
        report.packet.items,
        report.packet.claims,
        report.rules_sha256
    );
    for brought in &report.brought {
        out += &format!("| brought: {} | `{}` |\n", brought.name, brought.sha256);
    }
    out += "\n| verdict | claims |\n|---|---|\n";
    for total in &report.totals {
        out += &format!("| {} | {} |\n", total.verdict.name(), total.claims);
    }
    out += &format!("\n**Next:** {}\n", inert(&report.next_action, 400));
    out += "\n## Claims\n\n| claim | verdict | rule | it says |\n|---|---|---|---|\n";
    for claim in &report.claims {
        out += &format!(
            "| {} | {} | {} | {} |\n",
            inert(&claim.id, 64),
            claim.verdict.name(),
            claim.rule.name(),
            inert(&claim.text, 300)
        );
    }
    for claim in &report.claims {
        out += &detail(claim);
    }
    out += "\n## Items\n\n| item | stands | origin | bytes | findings |\n|---|---|---|---|---|\n";
    for item in &report.items {
        let mut findings = String::new();
        for finding in &item.findings {
            findings += &format!("{}: {}. ", finding.code, inert(&finding.text, 200));
        }
        out += &format!(
            "| {} | {} | {} | {} | {} |\n",
            inert(&item.id, 64),
            if item.usable { "yes" } else { "no" },
            inert(&item.origin, 200),
            item.bytes,
            findings.trim_end()
        );
    }
    if !report.contradictions.is_empty() {
        out += "\n## Contradictions\n\n";
    }
    for one in &report.contradictions {
        let between = one.between.iter();
        let between = between.map(|said| format!("{} says {}", inert(&said.item, 64), said.says));
        let between: alloc::vec::Vec<String> = between.collect();
        let stands = match one.stands.as_str() {
            "" => "none stands".into(),
            stands => format!("{} stands", inert(stands, 64)),
        };
        out += &format!(
            "- {}: {}; {stands}: {}\n",
            inert(&one.subject, 200),
            between.join(", "),
            one.because
        );
    }
    if !report.bundles.is_empty() {
        out += "\n## Evidence bundles, verified again\n\n";
    }
    for bundle in &report.bundles {
        out += &format!(
            "- {}: {}\n",
            inert(&bundle.item, 64),
            inert(&bundle.decision, 64)
        );
        for step in &bundle.open {
            out += &format!(
                "  - {} {}: {}\n",
                inert(&step.code, 40),
                step.outcome,
                inert(&step.got, 300)
            );
        }
    }
    out += &audit("Article 13: where facts come from", &report.article_13);
    out += &audit("Article 14: what facts show", &report.article_14);
    out += "\n## What was not done\n\n";
    for line in &report.not_done {
        out += &format!("- {line}\n");
    }
    if !report.blockers.is_empty() {
        out += "\n## Blockers\n\n| blocker | class | owner | what to do |\n|---|---|---|---|\n";
    }
    for blocker in &report.blockers {
        out += &format!(
            "| {} | {} | {} | {} |\n",
            inert(&blocker.id, 80),
            blocker.class,
            blocker.owner,
            inert(&blocker.action, 300)
        );
    }
    out += &format!(
        "\n{} actions were taken; actions.ndjson lists each.\n",
        report.actions.len()
    );
    out
}

fn detail(claim: &ClaimResult) -> String {
    if claim.verdict == Adequacy::Adequate && claim.places.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n### {}: {}\n\n{}\n\n{}: {}\n\n",
        inert(&claim.id, 64),
        claim.verdict.name(),
        inert(&claim.text, 4096),
        claim.rule.name(),
        inert(&claim.reason, 600)
    );
    for place in &claim.places {
        out += &format!(
            "- {} {}: {}\n",
            inert(&place.place.item, 64),
            if place.holds {
                "holds"
            } else {
                "does not hold"
            },
            inert(&place.found, 300)
        );
    }
    out
}

fn audit(title: &str, lines: &[AuditLine]) -> String {
    let mut out = format!("\n## {title}\n\n| line | | shown by |\n|---|---|---|\n");
    for line in lines {
        out += &format!(
            "| {} | {} | {} |\n",
            line.line,
            line.held.name(),
            inert(&line.shown_by, 300)
        );
    }
    out
}

/// Text of somebody else's that acts neither on a terminal nor as markup, in one line.
pub fn inert(text: &str, most: usize) -> String {
    let mut out = String::new();
    for character in printable(text, most).chars() {
        match character {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            // What makes markup in the middle of a line; the rest stays readable.
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '#' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    // Addresses become links by themselves in some readers.
    out.replace("://", "&#58;//").replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_escapes_are_shown_and_not_obeyed() {
        for (text, shown) in [
            ("a | b", "a \\| b"),
            ("<script>", "&lt;script&gt;"),
            ("[x](javascript:y)", "\\[x\\](javascript:y)"),
            ("![i](http://x)", "\\!\\[i\\](http&#58;//x)"),
            ("a\nb", "a\\\\nb"),
            ("\u{1b}[2J", "\\\\u{1b}\\[2J"),
            ("`x` **y** _z_", "\\`x\\` \\*\\*y\\*\\* \\_z\\_"),
            ("# no", "\\# no"),
        ] {
            assert_eq!(inert(text, 80), shown);
        }
    }
}
