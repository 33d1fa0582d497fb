//! `tki-attest survey`.

use crate::cli::{Common, Format, SurveyArgs};
use crate::commands::error::CommandError;
use crate::commands::output;
use crate::deadline::Deadline;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::venue;
use crate::image::built_in;
use crate::packet::Why;
use crate::packet::offer::Offer;
use crate::report::survey as report;
use crate::report::table::Paint;
use crate::survey::conditions::Conditions;
use crate::survey::inventory::{Scope, survey};
use crate::survey::routes::{self, Permit};

/// Surveys this host, or the routes that a file names.
pub fn execute(args: &SurveyArgs, common: Common) -> Result<Exit, Failure> {
    let image = built_in::image()?;
    let rules = venue::rules(args.venue_rules.as_deref())?;
    let deadline = Deadline::start(args.timeout).map_err(CommandError::Watch)?;
    if let Some(file) = &args.routes {
        let permit = Permit {
            names: &args.allow_writes,
        };
        let found = routes::survey(file, &permit, &image, &deadline)?;
        let paint = Paint::stdout(common.color);
        print(args.format, common, &found, || {
            report::routes(&found, paint)
        })?;
        return match &found.usable {
            Some(_) => Ok(Exit::Done),
            None => blocked(args, &Why::from_routes(&found)),
        };
    }
    let host = venue::observe_host();
    let conditions = Conditions {
        image: &image,
        rules: &rules,
        host: &host,
        deadline: &deadline,
        create: match args.read_only {
            true => Err("nothing is made with --read-only"),
            false => Ok(()),
        },
    };
    let scope = Scope {
        hosts: args.host.clone(),
        only_hosts: args.only_hosts,
        ssh_config: args.ssh_config.clone(),
    };
    let found = survey(&scope, &conditions)?;
    let paint = Paint::stdout(common.color);
    print(args.format, common, &found, || {
        report::surfaces(&found, common.verbose, paint)
    })?;
    match &found.route {
        Some(_) => Ok(Exit::Done),
        None => blocked(args, &Why::from_survey(&found)),
    }
}

fn print(
    format: Format,
    common: Common,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), CommandError> {
    match format {
        Format::Json => output::print_json(value),
        Format::Text if common.quiet => Ok(()),
        Format::Text => output::print(&text()),
    }
}

/// The verdict has been printed; the packet is what remains to be done.
fn blocked(args: &SurveyArgs, why: &Why) -> Result<Exit, Failure> {
    let offer = Offer {
        file: args.packet.as_deref(),
        seccomp: "deny-by-default",
        limits: None,
    };
    output::hint(&offer.make(why)?);
    Ok(Exit::Blocked)
}
