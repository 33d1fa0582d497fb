//! Arguments → command → exit code.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use tki_attest::cli::Cli;
use tki_attest::commands;
use tki_attest::report::table::Paint;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // clap's own codes are 2 for usage and 0 for help and version.
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let paint = Paint::stderr(cli.common.color);
    match commands::execute(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let _ = writeln!(
                std::io::stderr(),
                "{} [{}] {}\n  next: {}",
                paint.bad("tki-attest:"),
                failure.code,
                failure.message,
                failure.next
            );
            failure.exit.into()
        }
    }
}
