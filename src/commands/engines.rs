//! `tki-attest engines`.

use crate::attest::offers::{EngineOffer, Looking};
use crate::cli::{Common, EnginesArgs, Format};
use crate::commands::error::CommandError;
use crate::commands::output;
use crate::engine::choice::{Choice, Sought};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::engines::list;
use crate::report::progress::Progress;
use crate::report::table::Paint;
use crate::state::State;

/// Lists the engines of this host, or shows the one at an address. Nothing is made unless the
/// gate is tried.
pub fn execute(args: &EnginesArgs, common: Common) -> Result<Exit, Failure> {
    let looking = Looking {
        try_gate: args.try_gate,
        state: State::here().filter(|_| !args.no_state),
    };
    let sought = Sought {
        choice: Choice::Each,
        at: args.at.wanted(),
        timeout: args.timeout,
    };
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    // A user who gives an address wants to know what is wrong with the engine there.
    let offers = match args.at.host {
        Some(_) => vec![looking.at_address(&sought, &mut progress)?],
        None => looking.everywhere(&sought, &mut progress)?,
    };
    print(&offers, args.format, common)?;
    Ok(match offers.iter().any(|offer| offer.usable) {
        true => Exit::Done,
        false => Exit::Blocked,
    })
}

fn print(offers: &[EngineOffer], format: Format, common: Common) -> Result<(), CommandError> {
    match format {
        Format::Json => output::print_json(&offers),
        Format::Text => output::print(&list(offers, Paint::stdout(common.color))),
    }
}
