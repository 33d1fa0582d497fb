//! `tki-attest gate`.

use crate::cli::{Common, GateArgs};
use crate::commands::error::CommandError;
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
        return Err(CommandError::GateTime.into());
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
    let command = args.command.split_first();
    let (program, arguments) = command.ok_or(CommandError::NoCommand)?;
    let source = Command::new(program).args(arguments).exec();
    let program = program.clone();
    Err(CommandError::Command { program, source }.into())
}
