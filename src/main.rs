//! Arguments → command → exit code.

use clap::Parser;
use std::process::ExitCode;
use tki_attest::cli::Cli;
use tki_attest::commands;
use tki_attest::engine::local::keeper;
use tki_attest::exit::Exit;
use tki_attest::host::{janitor, visitor};
use tki_attest::report::{self, table::Paint};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    // Processes of our own, which are not commands for people.
    match std::env::args_os().nth(1) {
        Some(first) if first == keeper::ARGUMENT => return keeper::main(),
        Some(first) if first == visitor::ARGUMENT => return visitor::main(),
        Some(first) if first == janitor::ARGUMENT => return commands::janitor::main(),
        _ => {}
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // clap's own codes are 2 for usage and 0 for help and version.
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let paint = Paint::stderr(cli.common.color);
    let is_json = cli.is_json();
    match commands::execute(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            report::failure::print(&failure, paint);
            if is_json {
                report::failure::print_json(&failure);
            }
            failure.exit.into()
        }
    }
}

/// A panic is a bug, and a bug has its own exit code.
fn report_panic(info: &std::panic::PanicHookInfo) {
    eprintln!(
        "tki-attest: [internal.panic] {info}\n  next: this is a bug in tki-attest: please report \
         it with the command line"
    );
    std::process::exit(i32::from(Exit::Internal as u8));
}
