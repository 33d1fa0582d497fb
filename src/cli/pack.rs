//! Arguments of `pack`.

use super::values::Format;
use crate::pack::AsOf;
use clap::Args;
use std::path::PathBuf;
use tki_evidence::time::parse_rfc3339;

/// Arguments of `pack`.
#[derive(Debug, Args)]
pub struct PackArgs {
    /// The directory with the files; with --check, that of the packet.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// What is packed and what is claimed [default: claims.toml in DIR].
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    /// The packet's directory, which must not be there [default: ID-packet beside DIR].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["init", "check"])]
    pub out: Option<PathBuf>,
    /// The moment that the packet is judged at (RFC 3339, UTC), or `now` for this host's clock
    /// [default: as_of in claims.toml].
    #[arg(long, value_name = "TIME", value_parser = as_of, conflicts_with_all = ["init", "check"])]
    pub as_of: Option<AsOf>,
    /// Write a first claims.toml that lists the files of DIR; one that is there stays.
    #[arg(long, conflicts_with = "check")]
    pub init: bool,
    /// Check a packet: its form, every file, every place that a claim names. Exits with 2 if
    /// anything is wrong.
    #[arg(long, conflicts_with = "claims")]
    pub check: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// A moment, or the word for this one.
fn as_of(text: &str) -> Result<AsOf, String> {
    match AsOf::of(text) {
        AsOf::At(text) if parse_rfc3339(&text).is_none() => {
            Err("a time such as 2026-06-10T12:00:00Z, or now".into())
        }
        as_of => Ok(as_of),
    }
}
