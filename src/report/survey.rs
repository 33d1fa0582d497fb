//! A survey for people: surfaces, routes, questions, verdict.

use crate::report::table::{Paint, column};
use crate::survey::inventory::Survey;
use crate::survey::routes::RouteSurvey;
use crate::survey::surface::{Answer, Can, Decision, Surface};
use std::fmt::Write as _;
use tki_text::printable;

/// Every surface with its columns, then the verdict.
pub fn surfaces(survey: &Survey, verbose: bool, paint: Paint) -> String {
    let mut out = String::new();
    for surface in &survey.surfaces {
        // What is not there matters to those who ask for everything.
        if surface.decision == Decision::Absent && !verbose {
            continue;
        }
        block(&mut out, surface, verbose, paint);
    }
    let absent: Vec<&str> = survey
        .surfaces
        .iter()
        .filter(|surface| surface.decision == Decision::Absent)
        .map(|surface| surface.surface.as_str())
        .collect();
    if !absent.is_empty() && !verbose {
        let _ = writeln!(out, "not here: {}\n", printable(&absent.join("; "), 400));
    }
    for line in &survey.not_done {
        let _ = writeln!(out, "not done: {}", printable(line, 300));
    }
    conclusion(
        &mut out,
        survey.verdict,
        survey.route.is_some(),
        &survey.next,
        paint,
    );
    out
}

fn block(out: &mut String, surface: &Surface, verbose: bool, paint: Paint) {
    let _ = writeln!(
        out,
        "{} {}  {}",
        column(&surface.id, 4),
        decision(surface.decision, paint),
        printable(&surface.surface, 200)
    );
    let can = |can: &Can| format!("{}: {}", can.answer.name(), can.why);
    let rows = [
        ("venue type", surface.venue_type.to_owned()),
        ("approved", surface.approved.clone()),
        ("can run a disposable container", can(&surface.can_run)),
        ("can write files", can(&surface.can_write_files)),
        ("can collect logs", can(&surface.can_collect_logs)),
        ("production risk", surface.production_risk.clone()),
        ("permission gap", surface.permission_gap.clone()),
        ("decision", note(surface)),
    ];
    for (name, value) in rows {
        let _ = writeln!(
            out,
            "     {} {}",
            paint.dim(&column(name, 30)),
            printable(&value, 240)
        );
    }
    let most = if verbose { 600 } else { 110 };
    for (place, call) in surface.evidence.iter().enumerate() {
        let name = if place == 0 { "evidence" } else { "" };
        let _ = writeln!(
            out,
            "     {} {} → {}",
            paint.dim(&column(name, 30)),
            printable(&call.call, most),
            printable(&call.result, most)
        );
    }
    out.push('\n');
}

fn note(surface: &Surface) -> String {
    match surface.decision_note.as_str() {
        "" => surface.decision.name().to_owned(),
        note => format!("{}: {note}", surface.decision.name()),
    }
}

fn decision(decision: Decision, paint: Paint) -> String {
    let padded = column(decision.name(), 16);
    match decision {
        Decision::Use => paint.good(&padded),
        Decision::Prepare | Decision::DevelopmentOnly => paint.doubt(&padded),
        Decision::Reject => paint.bad(&padded),
        Decision::InspectOnly | Decision::Absent => paint.dim(&padded),
    }
}

fn conclusion(out: &mut String, verdict: &str, good: bool, next: &str, paint: Paint) {
    let shown = printable(verdict, 120);
    let shown = match good {
        true => paint.good(&shown),
        false => paint.bad(&shown),
    };
    let _ = writeln!(out, "\n{shown}\n  next: {}", printable(next, 400));
}

/// The questions, every route, the verdict.
pub fn routes(survey: &RouteSurvey, paint: Paint) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", paint.dim("QUESTIONS"));
    for question in &survey.questions {
        let _ = writeln!(
            out,
            "  {}\n    {}  ({})",
            printable(&question.question, 200),
            printable(&question.answer, 300),
            printable(&question.evidence.join(", "), 120)
        );
    }
    let _ = writeln!(out, "\n{}", paint.dim("ROUTES"));
    for route in &survey.routes {
        let answer = match route.answer {
            Answer::Yes => paint.good("works"),
            Answer::No => paint.bad("denied"),
            Answer::NotTried => paint.doubt("not tried"),
        };
        let _ = writeln!(
            out,
            "  {} {} ({}): {answer}",
            column(&route.id, 4),
            printable(&route.route, 100),
            route.tool
        );
        for call in &route.calls {
            let _ = writeln!(out, "       probe   {}", printable(&call.call, 200));
            let _ = writeln!(out, "       result  {}", printable(&call.result, 600));
        }
        let _ = writeln!(out, "       proves  {}", printable(&route.proves, 300));
    }
    for line in &survey.not_done {
        let _ = writeln!(out, "not done: {}", printable(line, 300));
    }
    conclusion(
        &mut out,
        &survey.verdict,
        survey.usable.is_some(),
        &survey.next,
        paint,
    );
    out
}
