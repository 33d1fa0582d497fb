//! `tki-attest seccomp lint|explain|derive`.

use crate::attest::error::AttestError;
use crate::attest::memory::Memory;
use crate::attest::run::{Plan, attest};
use crate::cli::{Common, DeriveArgs, Format, ProfileArgs, SeccompCommand};
use crate::commands::{output, shared};
use crate::engine::EngineError;
use crate::engine::gate::GateChoice;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::venue::Proofs;
use crate::image::built_in;
use crate::report::progress::Progress;
use crate::report::seccomp as report;
use crate::report::table::Paint;
use crate::sandbox::explain::explain;
use crate::sandbox::lint::{Severity, lint};
use crate::sandbox::minimise::minimise;
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use std::time::Instant;
use tki_evidence::venue::VenueRules;

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
    let image = built_in::image()?;
    let janitor = shared::janitor(&args.engine)?;
    let connector = shared::Connector::new(&args.engine, None);
    let connect = || connector.connect(args.engine.timeout);
    let text = Seccomp::resolve(&args.from)?.text;
    let paint = Paint::stderr(common.color);
    let mut progress = Progress::new(common.quiet, paint);
    // A start can fail for reasons of its own: what does not pass is asked
    // twice before it counts as needed.
    let mut passes = |seccomp: &Seccomp| -> Result<bool, Failure> {
        let profile = Profile {
            seccomp: seccomp.clone(),
            limits: Limits::default(),
        };
        for _ in 0..2 {
            let plan = Plan {
                venue: "dev",
                venue_rules: VenueRules::built_in(),
                proofs: &Proofs::default(),
                profile: &profile,
                chosen: &[],
                image: &image,
                deadline: Instant::now() + args.engine.timeout,
                controls: false,
                limits: true,
                runtime: None,
                gate: GateChoice::Off,
                memory: Memory::None,
                janitor: &janitor,
                request: None,
            };
            let attested = connect().map_err(AttestError::from).and_then(|engine| {
                attest(engine, &connect, &plan, &mut Progress::new(true, paint))
            });
            match attested {
                // Only the probes count here, not what else happens on the engine.
                Ok(bundle) if bundle.all_passed() => return Ok(true),
                Ok(_) => {}
                Err(error) if is_no_verdict(&error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(false)
    };
    let minimal = minimise(&text, &mut passes, |name, superfluous| {
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

/// Nothing was tried, and another profile would be tried in vain.
fn is_no_verdict(error: &AttestError) -> bool {
    matches!(
        error.root(),
        AttestError::Engine(
            EngineError::Interrupted { .. }
                | EngineError::Unusable { .. }
                | EngineError::Unreachable { .. }
        )
    )
}
