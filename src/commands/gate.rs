//! `tki-attest gate`.

use crate::cli::{Common, GateArgs};
use crate::commands::inputs::inputs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::table::Paint;
use crate::report::verification::text;
use crate::verify::{Decision, exit, many};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Verifies, and becomes the command if the bundle is accepted.
pub fn execute(args: &GateArgs, common: Common) -> Result<Exit, Failure> {
    if args.verify_time.is_some() {
        return Err(Failure::usage(
            "gate.verify-time",
            "--verify-time is for audits: a command runs now, and what was good at another \
             time may be stale",
            "leave it out; `tki-attest verify --verify-time` looks back and runs nothing",
        ));
    }
    let verification = many::one(&args.bundle, &inputs(&args.flags, None)?)?;
    let accepted = verification.decision == Decision::B4PrimeAccepted;
    if !common.quiet {
        // Standard output is the command's.
        let shown = text(&verification, common.verbose, Paint::stderr(common.color));
        let _ = std::io::stderr().write_all(shown.as_bytes());
    }
    if !accepted {
        return Ok(exit(verification.decision));
    }
    let (program, arguments) = args.command.split_first().ok_or_else(|| {
        Failure::usage("gate.command", "there is no command", "name one after --")
    })?;
    let error = Command::new(program).args(arguments).exec();
    Err(Failure::usage(
        "gate.command",
        format!(
            "accepted, but {} cannot be run: {error}",
            program.to_string_lossy()
        ),
        "name a program that can be executed after --",
    ))
}
