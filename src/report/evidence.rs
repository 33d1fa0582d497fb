//! What a run came to, for a person and for a program.

use crate::report::table::{Paint, column};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use tki_evidence::calibrate::{Comparable, control_problems};
use tki_evidence::derive;
use tki_evidence::evidence::{Evidence, Status, Summary, Verdict};
use tki_evidence::kernel;
use tki_evidence::settings::shortfalls;
use tki_evidence::venue;
use tki_text::printable;

/// The result of a run for a program.
#[derive(Debug, Serialize)]
pub struct RunSummary<'a> {
    status: Status,
    evidence: String,
    evidence_sha256: &'a str,
    run_id: &'a str,
    venue: &'a str,
    image_digest: &'a str,
    seccomp_profile: &'a str,
    summary: &'a Summary,
    /// Where the sandbox is less than it must be.
    sandbox: Vec<String>,
    probes: Vec<ProbeSummary<'a>>,
}

#[derive(Debug, Serialize)]
struct ProbeSummary<'a> {
    probe_id: &'a str,
    verdict: Verdict,
    errno_or_exit: &'a str,
    reasons: &'a [String],
}

/// The result of a run for a program.
pub fn summary<'a>(evidence: &'a Evidence, path: &Path) -> RunSummary<'a> {
    RunSummary {
        status: evidence.status,
        evidence: path.to_string_lossy().into_owned(),
        evidence_sha256: &evidence.evidence_sha256,
        run_id: &evidence.run_id,
        venue: &evidence.venue,
        image_digest: &evidence.image_digest,
        seccomp_profile: &evidence.seccomp_profile,
        summary: &evidence.summary,
        sandbox: sandbox_problems(evidence),
        probes: evidence
            .probes
            .iter()
            .map(|probe| ProbeSummary {
                probe_id: &probe.probe_id,
                verdict: probe.verdict,
                errno_or_exit: &probe.errno_or_exit,
                reasons: &probe.reasons,
            })
            .collect(),
    }
}

/// Where the sandbox falls short of the requirements, or the engine of what it was
/// asked for.
fn sandbox_problems(evidence: &Evidence) -> Vec<String> {
    let mut lines = shortfalls(&evidence.sandbox.configured);
    lines.extend(derive::deviations(evidence).into_iter().map(|differs| {
        format!(
            "{}: asked for {}, got {}",
            differs.setting, differs.declared, differs.configured
        )
    }));
    lines
}

/// A line per probe, and the reasons of those that did not pass.
pub fn table(evidence: &Evidence, paint: Paint) -> String {
    let mut out = String::new();
    let heading = format!(
        "{} {} {} {}",
        column("PROBE", 15),
        column("VERDICT", 9),
        column("PROOF", 22),
        "WHAT WAS TRIED"
    );
    let _ = writeln!(out, "{}", paint.dim(&heading));
    for probe in &evidence.probes {
        let proof = match probe.enforced_by.as_deref() {
            Some(who) => format!("{} (by {who})", probe.errno_or_exit),
            None => probe.errno_or_exit.clone(),
        };
        let _ = writeln!(
            out,
            "{} {} {} {}",
            column(&printable(&probe.probe_id, 15), 15),
            paint.verdict(probe.verdict, 9),
            column(&printable(&proof, 22), 22),
            printable(&probe.operation, 70)
        );
        for reason in &probe.reasons {
            let _ = writeln!(out, "{}  {}", " ".repeat(15), printable(reason, 160));
        }
    }
    out
}

/// What `-v` adds: engine, digests, witnesses and the equivalent command line.
pub fn details(evidence: &Evidence, elapsed_us: u64, paint: Paint) -> String {
    let mut out = String::new();
    let runtime = &evidence.runtime;
    let rows = [
        (
            "engine",
            format!(
                "{} {} (API {}, {}), kernel {} ({}), cgroup v{}",
                runtime.engine,
                runtime.engine_version,
                runtime.api_version,
                runtime.oci_runtime,
                runtime.kernel,
                runtime.kernel_kind.name(),
                runtime.cgroup_version
            ),
        ),
        ("image", evidence.image_digest.clone()),
        (
            "seccomp",
            format!("{} {}", evidence.seccomp_profile, evidence.seccomp_sha256),
        ),
        (
            "inside",
            format!("{}.{:03} ms", elapsed_us / 1000, elapsed_us % 1000),
        ),
        (
            "/out",
            format!(
                "{}: {}",
                evidence.sandbox.out_backing.kind, evidence.sandbox.out_backing.reason
            ),
        ),
        (
            "controls",
            match evidence.controls.len() {
                0 => "none were run".into(),
                all => format!(
                    "{} of {all} hold",
                    evidence.controls.iter().filter(|c| c.holds).count()
                ),
            },
        ),
        (
            "agreement",
            format!(
                "{} of {} facts that two witnesses share",
                evidence
                    .witnesses
                    .agreement
                    .iter()
                    .filter(|row| row.agree)
                    .count(),
                evidence.witnesses.agreement.len()
            ),
        ),
    ];
    out.push('\n');
    for (name, value) in rows {
        let _ = writeln!(
            out,
            "{} {}",
            paint.dim(&column(name, 10)),
            printable(&value, 200)
        );
    }
    let _ = writeln!(out, "\n{}", paint.dim("the same as a command line:"));
    // One flag a line; the words before the first flag and after the last
    // stay together.
    let mut line = String::new();
    for word in &evidence.sandbox.command_line {
        let flag = word.starts_with("--") && word.contains('=') && !word.starts_with("--unset");
        line += match (line.is_empty(), flag) {
            (true, _) => "",
            (false, true) => " \\\n    ",
            (false, false) => " ",
        };
        line += &quoted(&printable(word, 300));
    }
    let _ = writeln!(out, "{line}");
    out
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=:,./@+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The status and where the evidence is.
pub fn conclusion(evidence: &Evidence, path: &Path, paint: Paint) -> String {
    let mut out = String::from("\n");
    for row in evidence.witnesses.agreement.iter().filter(|row| !row.agree) {
        let said = |what: &Option<String>| printable(what.as_deref().unwrap_or("-"), 60);
        let _ = writeln!(
            out,
            "{} {}: inside {}, outside {}, configured {}",
            paint.bad("witnesses disagree on"),
            printable(&row.fact, 40),
            said(&row.inside),
            said(&row.outside),
            said(&row.configured)
        );
    }
    if let Some(cause) = kernel::ignored_profile(evidence) {
        let _ = writeln!(out, "{} {cause}", paint.bad("seccomp:"));
    }
    if evidence.runtime.kernel_kind.is_own() {
        let _ = writeln!(
            out,
            "{} the container has one of its own ({}); {} {} on the host",
            paint.doubt("kernel:"),
            evidence.runtime.kernel_kind.name(),
            match evidence.witnesses.outside.available {
                true => "seen from outside was",
                false => "nobody looked at",
            },
            evidence.runtime.kernel_kind.process()
        );
    }
    let run = Comparable::of(&derive::without_gate(evidence))
        .on(evidence.runtime.kernel_kind, &evidence.probes);
    for control in evidence.controls.iter().filter(|control| !control.holds) {
        for problem in control_problems(control, &run) {
            let _ = writeln!(
                out,
                "{} {}",
                paint.doubt(&format!("control {}:", printable(&control.control, 40))),
                printable(&problem, 300)
            );
        }
    }
    for short in sandbox_problems(evidence) {
        let _ = writeln!(
            out,
            "{} {}",
            paint.doubt("sandbox:"),
            printable(&short, 200)
        );
    }
    if !evidence.inventory.unchanged {
        let _ = writeln!(
            out,
            "{} something else changed on the engine meanwhile",
            paint.doubt("inventory:")
        );
    }
    if !venue::is_here(&evidence.venue_facts) {
        let _ = writeln!(
            out,
            "{} not on this host ({}): nothing that is seen here is said of its machine",
            paint.doubt("engine:"),
            printable(&evidence.venue_facts.engine_at, 300)
        );
    }
    let summary = &evidence.summary;
    let status = evidence.status.name();
    let status = match evidence.status {
        Status::SandboxAttested => paint.good(status),
        Status::SandboxAttestationFailed => paint.bad(status),
        Status::SandboxAttestationPartial => paint.doubt(status),
    };
    let _ = writeln!(
        out,
        "{status}  {} of {} required probes PASS, {} FAIL, {} UNPROVEN",
        summary.passed, summary.required, summary.failed, summary.unproven
    );
    let _ = writeln!(out, "evidence  {}", path.display());
    if evidence.venue == "dev" {
        let note = "venue dev: for development only, never B4′ evidence";
        let _ = writeln!(out, "{}", paint.dim(note));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_as_a_shell_needs_it() {
        assert_eq!(quoted("--tmpfs=/tmp:rw,size=1"), "--tmpfs=/tmp:rw,size=1");
        assert_eq!(quoted("--mount=a,\"b,c\""), "'--mount=a,\"b,c\"'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
