//! Engines side by side: what is here, and what the probes came to on each.

use crate::attest::offers::EngineOffer;
use crate::report::table::{Paint, column};
use std::fmt::Write as _;
use tki_evidence::evidence::{Evidence, Status};
use tki_evidence::venue::THIS_HOST;
use tki_text::printable;

/// A line per engine, and below it what it gives up.
pub fn list(rows: &[EngineOffer], paint: Paint) -> String {
    let mut out = String::new();
    let heading = format!(
        "{} {} {} {} {} {} {} GATE",
        column("ENGINE", 9),
        column("USABLE", 7),
        column("VERSION", 18),
        column("RUNTIME", 13),
        column("ROOTLESS", 9),
        column("CGROUPS", 8),
        column("SECCOMP BY", 12)
    );
    let _ = writeln!(out, "{}", paint.dim(&heading));
    for row in rows {
        if !row.usable {
            let _ = writeln!(
                out,
                "{} {} {}",
                column(row.engine, 9),
                paint.doubt(&column("no", 7)),
                printable(&row.reason, 200)
            );
            continue;
        }
        let _ = writeln!(
            out,
            "{} {} {} {} {} {} {} {}",
            column(row.engine, 9),
            paint.good(&column("yes", 7)),
            column(&printable(&row.version, 18), 18),
            column(&printable(&row.oci_runtime, 13), 13),
            column(if row.rootless { "yes" } else { "no" }, 9),
            column(&row.cgroups, 8),
            column(row.seccomp, 12),
            printable(&row.gate, 200)
        );
        if row.at != THIS_HOST {
            let at = printable(&row.at, 300);
            let _ = writeln!(out, "{}  is not this host's: {at}", " ".repeat(9));
        }
        for line in &row.gives_up {
            let _ = writeln!(out, "{}  gives up: {}", " ".repeat(9), printable(line, 200));
        }
    }
    out
}

/// What one engine came to.
#[derive(Debug)]
pub struct Column<'a> {
    /// The engine.
    pub engine: &'a str,
    /// Its evidence, or why there is none.
    pub result: Result<&'a Evidence, &'a str>,
}

/// Probes × engines.
pub fn matrix(columns: &[Column], paint: Paint) -> String {
    const WIDTH: usize = 11;
    let mut out = String::new();
    let ran: Vec<(&str, &Evidence)> = columns
        .iter()
        .filter_map(|column| Some((column.engine, column.result.ok()?)))
        .collect();
    let mut heading = column("PROBE", 16);
    for (engine, _) in &ran {
        heading += &column(engine, WIDTH);
    }
    let _ = writeln!(out, "{}", paint.dim(heading.trim_end()));
    let mut names: Vec<&str> = Vec::new();
    for (_, evidence) in &ran {
        for probe in &evidence.probes {
            if !names.contains(&probe.probe_id.as_str()) {
                names.push(&probe.probe_id);
            }
        }
    }
    for name in names {
        let mut line = column(&printable(name, 15), 16);
        for (_, evidence) in &ran {
            let found = evidence.probes.iter().find(|probe| probe.probe_id == name);
            line += &match found {
                Some(probe) => paint.verdict(probe.verdict, WIDTH),
                None => column("-", WIDTH),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let mut row = |title: &str, of: &dyn Fn(&Evidence) -> String| {
        let mut line = column(title, 16);
        for (_, evidence) in &ran {
            line += &column(&printable(&of(evidence), WIDTH - 1), WIDTH);
        }
        let _ = writeln!(out, "{}", line.trim_end());
    };
    row("exec denied by", &|evidence| {
        let exec = evidence.probes.iter().find(|p| p.probe_id == "PR-EXEC-1");
        exec.and_then(|probe| probe.enforced_by.clone())
            .unwrap_or_else(|| "-".into())
    });
    row("outside view", &|evidence| {
        let whole = evidence.raw.outside.absent.is_empty();
        match (evidence.witnesses.outside.available, whole) {
            (true, true) => "yes",
            (true, false) => "in part",
            (false, _) => "no",
        }
        .into()
    });
    row("controls", &|evidence| {
        let good = evidence.controls.iter().filter(|control| control.holds);
        format!("{}/{}", good.count(), evidence.controls.len())
    });
    row("result", &|evidence| {
        match evidence.status {
            Status::SandboxAttested => "ATTESTED",
            Status::SandboxAttestationPartial => "PARTIAL",
            Status::SandboxAttestationFailed => "FAILED",
        }
        .into()
    });
    for column in columns {
        if let Err(why) = column.result {
            let _ = writeln!(out, "{}: {}", column.engine, printable(why, 300));
        }
    }
    out
}
