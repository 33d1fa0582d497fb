//! The janitor's way to the engine.

use crate::cli::{Cli, Command};
use crate::engine::choice::{Choice, Connector};
use crate::engine::recover::run;
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
    let sought = args.engine.sought();
    let connector = Connector::new(&sought, None);
    // A keeper takes its container away by itself.
    let has_keepers = matches!(sought.choice, Choice::One(kind) if kind.has_keepers());
    janitor::main(|run_id| {
        if has_keepers {
            return false;
        }
        run::remove(|| connector.connect(sought.timeout), run_id);
        true
    })
}
