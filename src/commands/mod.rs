//! One short file per command: each wires stages together and holds no logic.

mod build;
mod clean;
mod completions;
mod diff;
mod engines;
mod error;
mod gate;
mod inputs;
mod inspect;
pub mod janitor;
mod keygen;
mod output;
mod pack;
mod packet;
mod probes;
mod request;
mod results;
mod run;
mod seccomp;
mod sign;
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
        Command::Inspect(args) => inspect::execute(&args, common),
        Command::Verify(args) => verify::execute(&args, common),
        Command::Request(args) => request::execute(&args, common),
        Command::Sign(args) => sign::execute(&args, common),
        Command::Gate(args) => gate::execute(&args, common),
        Command::Diff(args) => diff::execute(&args, common),
        Command::Keygen(args) => keygen::execute(&args, common),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
        Command::Probes(args) => probes::execute(&args, common),
        Command::Seccomp(args) => seccomp::execute(&args.command, common),
        Command::Engines(args) => engines::execute(&args, common),
        Command::Survey(args) => survey::execute(&args, common),
        Command::Pack(args) => pack::execute(&args, common),
        Command::Packet(args) => packet::execute(&args, common),
        Command::Clean(args) => clean::execute(&args, common),
    }
}
