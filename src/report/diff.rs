//! What changed between two runs, for a person.

use crate::diff::{Change, Group, lines};
use crate::report::table::Paint;
use std::fmt::Write as _;
use tki_text::printable;

/// A text longer than this is shown by its lines.
const SHORT: usize = 60;

/// Every change in its group; what names a run only if asked for.
pub fn render(changes: &[Change], verbose: bool, paint: Paint) -> String {
    let mut out = String::new();
    for (group, title) in [
        (Group::Verdicts, "verdicts"),
        (Group::Facts, "facts"),
        (Group::Environment, "environment"),
        (Group::Identity, "identity"),
    ] {
        let own: Vec<&Change> = changes
            .iter()
            .filter(|change| change.group == group)
            .collect();
        if group == Group::Identity && !verbose {
            if !own.is_empty() {
                let note = format!(
                    "{} fields that name a run differ as well; -v shows them",
                    own.len()
                );
                let _ = writeln!(out, "{}", paint.dim(&note));
            }
            continue;
        }
        let _ = writeln!(out, "{}", paint.dim(title));
        if own.is_empty() {
            out += "  nothing changed\n";
        }
        for change in own {
            out += &one(change, paint);
        }
    }
    out
}

fn one(change: &Change, paint: Paint) -> String {
    let place = printable(&change.place, 200);
    let (first, second) = (change.first.as_deref(), change.second.as_deref());
    let long = |text: Option<&str>| text.is_some_and(|t| t.contains('\n') || t.len() > SHORT);
    if !long(first) && !long(second) {
        let said = |text: Option<&str>| text.map_or("(absent)".into(), |t| printable(t, SHORT));
        return format!(
            "  {place}: {} → {}\n",
            paint.bad(&said(first)),
            paint.good(&said(second))
        );
    }
    let mut out = format!("  {place}\n");
    for line in lines(first.unwrap_or_default(), second.unwrap_or_default()) {
        let shown = printable(&line, 200);
        let shown = match line.as_bytes().first() {
            Some(b'-') => paint.bad(&shown),
            _ => paint.good(&shown),
        };
        let _ = writeln!(out, "    {shown}");
    }
    out
}
