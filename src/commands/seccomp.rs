//! `tki-attest seccomp lint|explain|derive`.

use crate::attest::minimal::minimal;
use crate::cli::{Common, DeriveArgs, Format, ProfileArgs, SeccompCommand};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::progress::Progress;
use crate::report::seccomp as report;
use crate::report::table::Paint;
use crate::sandbox::explain::explain;
use crate::sandbox::lint::{Severity, lint};
use crate::sandbox::seccomp::Seccomp;

/// Reads a profile and says what it is worth.
pub fn execute(command: &SeccompCommand, common: Common) -> Result<Exit, Failure> {
    match command {
        SeccompCommand::Lint(args) => execute_lint(args, common),
        SeccompCommand::Explain(args) => execute_explain(args, common),
        SeccompCommand::Derive(args) => execute_derive(args, common),
    }
}

fn execute_lint(args: &ProfileArgs, common: Common) -> Result<Exit, Failure> {
    let findings = lint(&Seccomp::read_rules(&args.profile)?);
    match args.format {
        Format::Json => output::print_json(&findings)?,
        Format::Text if common.quiet => {}
        Format::Text => output::print(&report::findings(&findings, Paint::stdout(common.color)))?,
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    Ok(match worst {
        Some(Severity::Error) => Exit::Disproved,
        _ => Exit::Done,
    })
}

fn execute_explain(args: &ProfileArgs, common: Common) -> Result<Exit, Failure> {
    let explanation = explain(&Seccomp::read_rules(&args.profile)?);
    match args.format {
        Format::Json => output::print_json(&explanation)?,
        Format::Text => {
            let paint = Paint::stdout(common.color);
            output::print(&report::explanation(&explanation, common.verbose, paint))?;
        }
    }
    Ok(Exit::Done)
}

fn execute_derive(args: &DeriveArgs, common: Common) -> Result<Exit, Failure> {
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    let minimal = minimal(&args.from, &args.engine.sought(), |name, superfluous| {
        let mark = if superfluous { "superfluous" } else { "needed" };
        progress.stage(&format!("{name} {mark}"));
    })?;
    progress.finish();
    match args.format {
        Format::Json => output::print_json(&minimal)?,
        Format::Text => output::print(&report::minimal(&minimal))?,
    }
    Ok(Exit::Done)
}
