//! The janitor's way to the engine.

use crate::cli::{Cli, Command, EngineName};
use crate::commands::shared;
use crate::engine::Leftover;
use crate::host::janitor;
use clap::Parser;
use std::process::ExitCode;

/// Lives as a janitor. The arguments are those of `clean`, which says where the
/// engine is.
pub fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(2);
    let program = [std::ffi::OsString::from("tki-attest"), "clean".into()];
    let Ok(cli) = Cli::try_parse_from(program.into_iter().chain(arguments)) else {
        return ExitCode::from(2);
    };
    let Command::Clean(args) = cli.command else {
        return ExitCode::from(2);
    };
    let connector = shared::Connector::new(&args.engine, None);
    janitor::main(|run_id| {
        // A keeper takes its container away by itself.
        if matches!(args.engine.engine, EngineName::Embedded | EngineName::Bwrap) {
            return false;
        }
        // An engine that fails once, in the middle of what it does, may be asked again.
        let Ok(mut engine) = connector.connect(args.engine.timeout) else {
            return true;
        };
        let Ok(found) = engine.leftovers() else {
            return true;
        };
        let of_the_run = |found: &&Leftover| found.foreign.is_none() && found.run_id == run_id;
        for leftover in found.iter().filter(of_the_run) {
            let _ = engine.remove(&leftover.id);
        }
        true
    })
}
