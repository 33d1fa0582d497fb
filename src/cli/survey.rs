//! Arguments of `survey` and `packet`.

use super::values::{Format, seconds};
use crate::packet::Audience;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `survey`.
#[derive(Debug, Args)]
pub struct SurveyArgs {
    /// Probe the write routes that this TOML file names, instead of this host's engines.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "only_hosts", "read_only"])]
    pub routes: Option<PathBuf>,
    /// A route of the file on which something may be changed; may be repeated.
    #[arg(long, value_name = "ROUTE", requires = "routes")]
    pub allow_writes: Vec<String>,
    /// A further engine: unix://, tcp:// or ssh://[user@]host[:port]; may be repeated.
    #[arg(long, value_name = "URL")]
    pub host: Vec<String>,
    /// ssh's configuration for ssh:// hosts, instead of the user's own.
    #[arg(long, value_name = "FILE", requires = "host")]
    pub ssh_config: Option<PathBuf>,
    /// Look at no engine but those of --host.
    #[arg(long, requires = "host")]
    pub only_hosts: bool,
    /// Create nothing, not even a container that is never started.
    #[arg(long)]
    pub read_only: bool,
    /// Other rules on what makes a venue implausible, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub venue_rules: Option<PathBuf>,
    /// If nothing can be used, write the operator's packet here.
    #[arg(long, value_name = "FILE")]
    pub packet: Option<PathBuf>,
    /// Time limit for everything.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `packet`.
#[derive(Debug, Args)]
pub struct PacketArgs {
    /// Who it is for.
    #[arg(long = "for", value_enum, value_name = "WHOM")]
    pub audience: Audience,
    /// The file; what it needs lies beside it in a directory of the same name. Only an earlier
    /// packet is replaced.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Seccomp profile: targeted-deny, deny-by-default, or a file in Docker's JSON form.
    #[arg(long, value_name = "PROFILE", default_value = "deny-by-default")]
    pub seccomp: String,
    /// Limits of the sandbox, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}
