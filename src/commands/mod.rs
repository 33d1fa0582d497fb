//! One short file per command: each wires stages together and holds no logic.

mod build;
mod clean;
mod engines;
pub mod janitor;
mod output;
mod packet;
mod probes;
mod run;
mod seccomp;
mod shared;
mod survey;
mod verify;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::failure::Failure;

/// Does what the command line says.
pub fn execute(cli: Cli) -> Result<Exit, Failure> {
    let common = cli.common;
    match cli.command {
        Command::Build(args) => build::execute(&args, common),
        Command::Run(args) => run::execute(&args, common),
        Command::Verify(args) => verify::execute(&args, common),
        Command::Probes(args) => probes::execute(&args, common),
        Command::Seccomp(args) => seccomp::execute(&args.command, common),
        Command::Engines(args) => engines::execute(&args, common),
        Command::Survey(args) => survey::execute(&args, common),
        Command::Packet(args) => packet::execute(&args, common),
        Command::Clean(args) => clean::execute(&args, common),
    }
}
