//! Arguments of `inspect`.

use super::trust::{AssuranceLevel, span};
use super::values::{Format, Venue};
use super::{EngineArgs, SandboxArgs};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The packet: a directory with packet.json in it.
    #[arg(long, value_name = "DIR")]
    pub packet: PathBuf,
    /// Directory for the report, and for evidence that is made on the spot.
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub out: PathBuf,
    /// Evidence of the sandbox, made on this host: then none is made.
    #[arg(long, value_name = "BUNDLE", conflicts_with = "profile")]
    pub evidence: Option<PathBuf>,
    /// How old the evidence may be: 90s, 15m, 24h, 7d.
    #[arg(long, value_name = "SPAN", default_value = "24h", value_parser = span)]
    pub max_age: u64,
    /// Where this is: a claim that is checked against facts, and must be that of the evidence.
    #[arg(long, value_enum)]
    pub venue: Venue,
    /// For development, with --venue dev: the sandbox need not be accepted, and the report's
    /// stamp says that it is not.
    #[arg(long)]
    pub dev: bool,
    /// Which engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// The sandbox.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// What the launcher brings for bundles in the packet.
    #[command(flatten)]
    pub brought: BroughtArgs,
}

/// What the launcher brings for bundles in the packet.
#[derive(Debug, Args)]
#[command(next_help_heading = "For bundles in the packet")]
pub struct BroughtArgs {
    /// Who may have signed them, in OpenSSH's format.
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
    /// The request that they must answer.
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// What else is demanded of them, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The image that they must be of, as an OCI layout.
    #[arg(long, value_name = "LAYOUT")]
    pub image: Option<PathBuf>,
    /// The least assurance that counts.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub require_assurance: Option<AssuranceLevel>,
}
