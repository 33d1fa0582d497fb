//! Arguments of `run`, and those about the sandbox, which `inspect` takes too.

use super::trust::PassphraseArgs;
use super::values::{Controls, Format, Venue};
use super::{EngineArgs, ImageArgs};
use crate::engine::gate::GateChoice;
use clap::Args;
use std::path::PathBuf;

/// The sandbox, and how it is launched.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// Seccomp profile: targeted-deny, deny-by-default, or a file in Docker's JSON form.
    #[arg(long, value_name = "PROFILE", default_value = "deny-by-default")]
    pub seccomp: String,
    /// Limits of the sandbox, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// The OCI runtime that Docker or Podman should use [default: the engine's own].
    #[arg(long, value_name = "NAME")]
    pub runtime: Option<String>,
    /// The exec gate: a supervisor that lets exactly the first exec through.
    #[arg(long, value_enum, default_value = "auto")]
    pub gate: GateChoice,
    /// Neither read nor write what runs remember: which engines refused the exec gate.
    #[arg(long)]
    pub no_state: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where this is: a claim that goes into the evidence and is checked against facts.
    #[arg(long, value_enum)]
    pub venue: Venue,
    /// Other rules on what makes a venue implausible, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub venue_rules: Option<PathBuf>,
    /// What the platform (a cloud, a CI system) signed about this place: kept, not checked.
    #[arg(long, value_name = "FILE")]
    pub platform_proof: Option<PathBuf>,
    /// What the hardware (a TPM) signed about this place: kept, not checked.
    #[arg(long, value_name = "FILE")]
    pub hardware_proof: Option<PathBuf>,
    /// Which engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Control runs, in which a boundary is relaxed so that its probe must flip
    /// [default: safe for vps and ci, none for dev].
    #[arg(long, value_enum)]
    pub controls: Option<Controls>,
    /// The sandbox.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// The verifying party's request; its nonce goes through the container.
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// Sign the evidence with this OpenSSH Ed25519 key.
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    /// Where the key's passphrase comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Directory for the evidence.
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub out: PathBuf,
    /// If the run is BLOCKED, write the operator's packet here.
    #[arg(long, value_name = "FILE")]
    pub packet: Option<PathBuf>,
    /// Where the image comes from.
    #[command(flatten)]
    pub source: ImageArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}
