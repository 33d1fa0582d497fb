//! `tki-attest inspect`.

use crate::attest::{bundle, one};
use crate::cli::{Common, Controls, Format, InspectArgs};
use crate::commands::inputs::{assurance, sandbox, usual_controls};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::venue::{self, Proofs};
use crate::image::source::ImageSource;
use crate::inspect::brought::{Brought, Named};
use crate::inspect::stage::{Order, inspect};
use crate::report::inspection as report;
use crate::report::progress::Progress;
use crate::report::table::Paint;
use crate::state::State;

/// Has a packet inspected. It never ends with 0.
pub fn execute(args: &InspectArgs, common: Common) -> Result<Exit, Failure> {
    let order = resolve(args)?;
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    let inspected = inspect(order, &args.engine.sought(), &mut progress)?;
    progress.finish();
    match args.format {
        Format::Json => output::print_json(&report::summary(&inspected))?,
        Format::Text if common.quiet => {}
        Format::Text => {
            let paint = Paint::stdout(common.color);
            output::print(&report::text(&inspected, common.verbose, paint))?;
        }
    }
    Ok(inspected.exit())
}

/// Everything that the arguments name, read, but for evidence and packet.
fn resolve(args: &InspectArgs) -> Result<Order, Failure> {
    let (profile, chosen) = sandbox(&args.sandbox)?;
    let brought = Brought::read(Named {
        allowed_signers: args.brought.allowed_signers.as_deref(),
        request: args.brought.request.as_deref(),
        policy: args.brought.policy.as_deref(),
        image: args.brought.image.as_deref(),
        assurance: args.brought.require_assurance.map(assurance),
    })?;
    let run = one::Order {
        venue: args.venue.name(),
        venue_rules: venue::rules(None)?,
        proofs: Proofs::default(),
        profile,
        chosen,
        image: ImageSource::default(),
        controls: usual_controls(args.venue) == Controls::Safe,
        runtime: args.sandbox.runtime.clone(),
        gate: args.sandbox.gate,
        request: None,
        key: None,
        out: bundle::prepare_folder(&args.out)?,
        state: State::here().filter(|_| !args.sandbox.no_state),
    };
    Ok(Order {
        run,
        packet: args.packet.clone(),
        evidence: args.evidence.clone(),
        dev: args.dev,
        max_age: args.max_age,
        brought,
    })
}
