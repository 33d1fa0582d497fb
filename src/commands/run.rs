//! `tki-attest run`.

use crate::attest::bundle;
use crate::attest::one::{Attested, Order, RunResult, on_each, on_one, status_of_all};
use crate::cli::{Common, Controls, Format, RunArgs};
use crate::commands::error::CommandError;
use crate::commands::inputs::{sandbox, usual_controls};
use crate::commands::output;
use crate::engine::choice::Choice;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::venue::{self, Proofs};
use crate::packet::Why;
use crate::packet::offer::Offer;
use crate::report::engines::{self, Column};
use crate::report::evidence as report;
use crate::report::progress::Progress;
use crate::report::table::Paint;
use crate::state::State;
use crate::trust::keys::Key;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::Status;

/// Builds, launches, probes, writes and verifies, on one engine or on all. Where
/// that is BLOCKED, the packet for another operator is offered.
pub fn execute(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
    let offer = Offer {
        file: args.packet.as_deref(),
        seccomp: &args.sandbox.seccomp,
        limits: args.sandbox.profile.as_deref(),
    };
    match attempt(args, common) {
        Err(failure) => Err(offer.instead_of(failure)?),
        Ok(Exit::Blocked) => {
            output::hint(&offer.make(&Why::from_partial_run())?);
            Ok(Exit::Blocked)
        }
        other => other,
    }
}

fn attempt(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
    let order = resolve(args)?;
    let sought = args.engine.sought();
    if sought.choice == Choice::Each {
        let outcomes = on_each(|kind| {
            let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
            let outcome = on_one(&order, &sought.of(kind), &mut progress);
            progress.finish();
            outcome
        })?;
        show_all(&outcomes, args.format, common)?;
        return Ok(exit_of(status_of_all(&outcomes)));
    }
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    let attested = on_one(&order, &sought, &mut progress)?;
    progress.finish();
    show(&attested, args.format, common)?;
    Ok(exit_of(attested.written.evidence.status))
}

/// Everything that the arguments name, read. A passphrase is asked for here, before
/// anything is launched.
fn resolve(args: &RunArgs) -> Result<Order, Failure> {
    let (profile, chosen) = sandbox(&args.sandbox)?;
    let venue_rules = venue::rules(args.venue_rules.as_deref())?;
    let proofs = Proofs::read(
        args.platform_proof.as_deref(),
        args.hardware_proof.as_deref(),
    )?;
    let out = bundle::prepare_folder(&args.out)?;
    let key = args.sign.as_deref();
    let limit = args.engine.timeout;
    let key = key.map(|path| Key::open(path, args.passphrase.passphrase.as_ref(), limit));
    let controls = args.controls.unwrap_or(usual_controls(args.venue));
    Ok(Order {
        venue: args.venue.name(),
        venue_rules,
        proofs,
        profile,
        chosen,
        image: args.source.source(),
        controls: controls == Controls::Safe,
        runtime: args.sandbox.runtime.clone(),
        gate: args.sandbox.gate,
        request: args.request.clone(),
        key: key.transpose()?,
        out,
        state: State::here().filter(|_| !args.sandbox.no_state),
    })
}

fn exit_of(status: Status) -> Exit {
    match status {
        Status::SandboxAttested => Exit::Done,
        Status::SandboxAttestationFailed => Exit::Disproved,
        Status::SandboxAttestationPartial => Exit::Blocked,
    }
}

fn show(attested: &Attested, format: Format, common: Common) -> Result<(), CommandError> {
    let (evidence, path) = (&attested.written.evidence, &attested.written.path);
    match format {
        Format::Json => output::print_json(&report::summary(evidence, path)),
        Format::Text if common.quiet => Ok(()),
        Format::Text => {
            let paint = Paint::stdout(common.color);
            let mut text = report::table(evidence, paint);
            if common.verbose {
                text += &report::details(evidence, attested.elapsed_us, paint);
            }
            text += &report::conclusion(evidence, path, paint);
            output::print(&text)
        }
    }
}

/// Probes × engines. An engine that is not here is named.
fn show_all(
    outcomes: &[(EngineKind, RunResult)],
    format: Format,
    common: Common,
) -> Result<(), CommandError> {
    let attested = outcomes
        .iter()
        .filter_map(|(_, outcome)| outcome.as_ref().ok());
    let written = attested.map(|attested| &attested.written);
    match format {
        Format::Json => {
            let summaries: Vec<_> = written
                .map(|written| report::summary(&written.evidence, &written.path))
                .collect();
            output::print_json(&summaries)
        }
        Format::Text if common.quiet => Ok(()),
        Format::Text => {
            let columns: Vec<Column> = outcomes
                .iter()
                .map(|(kind, outcome)| Column {
                    engine: kind.name(),
                    result: match outcome {
                        Ok(attested) => Ok(&attested.written.evidence),
                        Err(failure) => Err(failure.message.as_str()),
                    },
                })
                .collect();
            let mut text = engines::matrix(&columns, Paint::stdout(common.color));
            for written in written {
                text += &format!("evidence  {}\n", written.path.display());
            }
            output::print(&text)
        }
    }
}
