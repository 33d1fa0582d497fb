//! What an inspection came to, for a person and for a program. It speaks of single claims.

use crate::inspect::stage::Inspected;
use crate::inspect::stamp::{Accepted, Stamp};
use crate::report::table::{Paint, column};
use serde::Serialize;
use std::fmt::Write as _;
use tki_inspector::packet::{ClaimKind, Locator, Place};
use tki_inspector::report::{ClaimResult, Report, Total};
use tki_inspector::rules::Rule;
use tki_inspector::words::Adequacy;
use tki_text::printable;

/// The result for a program.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    sandbox: Accepted,
    accepted: bool,
    path: String,
    totals: &'a [Total],
    claims: Vec<Claim<'a>>,
    next_action: &'a str,
    stamp: &'a Stamp,
}

#[derive(Debug, Serialize)]
struct Claim<'a> {
    id: &'a str,
    text: &'a str,
    kind: ClaimKind,
    verdict: Adequacy,
    rule: Rule,
    reason: &'a str,
}

/// The result for a program.
pub fn summary(inspected: &Inspected) -> Summary<'_> {
    let Report {
        totals,
        claims,
        next_action,
        ..
    } = &inspected.report;
    Summary {
        sandbox: inspected.stamp.sandbox,
        accepted: inspected.stamp.accepted,
        path: inspected.path.to_string_lossy().into_owned(),
        totals,
        claims: claims
            .iter()
            .map(|claim| Claim {
                id: &claim.id,
                text: &claim.text,
                kind: claim.kind,
                verdict: claim.verdict,
                rule: claim.rule,
                reason: &claim.reason,
            })
            .collect(),
        next_action,
        stamp: &inspected.stamp,
    }
}

/// The result for a person: the sandbox, a line per claim, what to do next.
pub fn text(inspected: &Inspected, verbose: bool, paint: Paint) -> String {
    let (report, stamp) = (&inspected.report, &inspected.stamp);
    let mut out = head(stamp, paint);
    let packet = &report.packet;
    let _ = writeln!(
        out,
        "{} {} as of {}: {} claims, {} items, sha256:{}",
        paint.dim(&column("packet", 8)),
        printable(&packet.id, 64),
        printable(&packet.as_of, 30),
        packet.claims,
        packet.items,
        printable(&packet.sha256, 64)
    );
    let names = report
        .claims
        .iter()
        .map(|claim| printable(&claim.id, 32).chars().count());
    let width = names.max().unwrap_or(0).max(5);
    let heading = format!(
        "\n{} {} {} SAYS",
        column("CLAIM", width),
        column("VERDICT", VERDICT),
        column("RULE", RULE)
    );
    let _ = writeln!(out, "{}", paint.dim(&heading));
    for claim in &report.claims {
        let _ = writeln!(
            out,
            "{} {} {} {}",
            column(&printable(&claim.id, 32), width),
            verdict(claim.verdict, VERDICT, paint),
            column(&claim.rule.name(), RULE),
            printable(&claim.text, 80)
        );
        if verbose {
            out += &details(claim, paint);
        }
    }
    let totals = report.totals.iter().filter(|total| total.claims > 0);
    let totals: Vec<String> = totals
        .map(|total| {
            let name = verdict(total.verdict, 0, paint);
            format!("{} {name}", total.claims)
        })
        .collect();
    let _ = writeln!(
        out,
        "\n{} {}",
        paint.dim(&column("totals", 8)),
        totals.join(", ")
    );
    let _ = writeln!(
        out,
        "{} {}",
        paint.dim(&column("next", 8)),
        printable(&report.next_action, 400)
    );
    let _ = writeln!(
        out,
        "{} {}",
        paint.dim(&column("report", 8)),
        printable(&inspected.path.to_string_lossy(), 400)
    );
    let note = "triage of single claims: not a gate, not a proof of a run, not an authorization";
    let _ = writeln!(out, "{}", paint.dim(note));
    out
}

/// The widths of two columns.
const VERDICT: usize = 12;
const RULE: usize = 22;

/// What nobody may overlook comes first.
fn head(stamp: &Stamp, paint: Paint) -> String {
    let mut out = String::new();
    if stamp.sandbox == Accepted::NotAccepted {
        let said = format!(
            "NOT ACCEPTED: venue {}, {}: for development alone",
            stamp.venue,
            stamp.evidence.decision.name()
        );
        let _ = writeln!(out, "{}", paint.bad(&said));
    }
    let engine = &stamp.engine;
    let _ = writeln!(
        out,
        "{} {} {} ({}), venue {}: {}, {}, evidence {}",
        paint.dim(&column("sandbox", 8)),
        printable(&engine.name, 20),
        printable(&engine.version, 40),
        printable(&engine.runtime, 40),
        stamp.venue,
        stamp.evidence.decision.name(),
        stamp.evidence.assurance.name(),
        printable(&stamp.evidence.name, 200)
    );
    out
}

fn verdict(verdict: Adequacy, width: usize, paint: Paint) -> String {
    let name = column(verdict.name(), width);
    match verdict {
        Adequacy::Adequate => paint.good(&name),
        Adequacy::Contradicted => paint.bad(&name),
        _ => paint.doubt(&name),
    }
}

/// Why, and what was found where.
fn details(claim: &ClaimResult, paint: Paint) -> String {
    let mut out = String::new();
    if !claim.asserts.is_empty() {
        let _ = writeln!(out, "    asserts {}", printable(&claim.asserts, 200));
    }
    let _ = writeln!(out, "    {}", printable(&claim.reason, 400));
    for place in &claim.places {
        let holds = match place.holds {
            true => paint.good("holds"),
            false => paint.doubt("does not"),
        };
        let _ = writeln!(
            out,
            "    {holds}: {}: {}",
            printable(&whereabouts(&place.place), 200),
            printable(&place.found, 300)
        );
    }
    out
}

/// A place, in a few words.
fn whereabouts(place: &Place) -> String {
    let item = &place.item;
    match &place.at {
        None => item.clone(),
        Some(Locator::Json(pointer)) if pointer.is_empty() => format!("{item}, all of it"),
        Some(Locator::Json(pointer)) => format!("{item}, {pointer}"),
        Some(Locator::Lines(lines)) if lines.first == lines.last => {
            format!("{item}, line {}", lines.first)
        }
        Some(Locator::Lines(lines)) => format!("{item}, lines {} to {}", lines.first, lines.last),
        Some(Locator::Step(step)) => format!("{item}, step {step}"),
    }
}
