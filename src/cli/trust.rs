//! Arguments of the commands about trust: request, sign, verify, gate, diff,
//! and those that everybody expects.

use super::values::{Format, Venue};
use crate::report::verification::VerifyFormat;
use crate::trust::passphrase::Source;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Levels of assurance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssuranceLevel {
    /// Consistent, but a party that can write the file could have made it.
    SelfReported,
    /// Signed by listed, currently valid keys.
    Signed,
    /// And it answers the request in time.
    SignedFresh,
}

/// Where a passphrase comes from.
#[derive(Debug, Args)]
pub struct PassphraseArgs {
    /// The key's passphrase: file:PATH, env:NAME or fd:N [default: asked on the terminal].
    #[arg(long, value_name = "SOURCE")]
    pub passphrase: Option<Source>,
}

/// What a verifier brings along.
#[derive(Debug, Args)]
pub struct VerifyFlags {
    /// The request that must have been answered; makes that check required.
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// What else is demanded, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Let the policy ask for less than the built-in bar; the decision repeats it.
    #[arg(long, requires = "policy")]
    pub allow_weaker: bool,
    /// Another acceptance matrix than the built-in one.
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// The image that must have been used, as an OCI layout.
    #[arg(long, value_name = "LAYOUT")]
    pub image: Option<PathBuf>,
    /// The seccomp profile that must have been used.
    #[arg(long, value_name = "FILE")]
    pub seccomp: Option<PathBuf>,
    /// Who may sign, in OpenSSH's format; makes a signature required.
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
    /// Only signers listed for this principal count.
    #[arg(long, value_name = "NAME", requires = "allowed_signers")]
    pub principal: Option<String>,
    /// How many different signers are needed [default: 1].
    #[arg(long, value_name = "N", requires = "allowed_signers", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub threshold: Option<u32>,
    /// The least assurance that is accepted.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub require_assurance: Option<AssuranceLevel>,
    /// How old the run may be: 90s, 15m, 24h, 7d.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub max_age: Option<u64>,
    /// A bundle without its artifacts is not enough, as it never is without --evidence-only.
    #[arg(long)]
    pub require_artifacts: bool,
    /// Settle for evidence whose artifacts are not there; the decision repeats it.
    #[arg(long, conflicts_with = "require_artifacts")]
    pub evidence_only: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Evidence files, or directories of them.
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// What the verifier brings along.
    #[command(flatten)]
    pub flags: VerifyFlags,
    /// Verify as of this time (RFC 3339, UTC) instead of now, for audits.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub verify_time: Option<u64>,
    /// Write the matrix binding as STEM.json and STEM.md.
    #[arg(long, value_name = "STEM", help_heading = "Results")]
    pub binding: Option<PathBuf>,
    /// Write the verification as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub verification: Option<PathBuf>,
    /// Sign the verification with this key; it is written to verification.json
    /// unless --verification says otherwise.
    #[arg(long, value_name = "KEY", help_heading = "Results")]
    pub attest: Option<PathBuf>,
    /// Where that key's passphrase comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// How many bundles are verified at the same time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: Option<u32>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: VerifyFormat,
}

/// Arguments of `gate`.
#[derive(Debug, Args)]
pub struct GateArgs {
    /// The evidence file.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// What the verifier brings along.
    #[command(flatten)]
    pub flags: VerifyFlags,
    /// Refused: a command runs now, so the bundle must be good now.
    #[arg(long, value_name = "TIME", hide = true)]
    pub verify_time: Option<std::ffi::OsString>,
    /// What to run if the bundle is accepted.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Arguments of `request`.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// The venue that must be claimed.
    #[arg(long, value_enum)]
    pub venue: Venue,
    /// The image that must be used, as an OCI layout [default: this tool's own].
    #[arg(long, value_name = "LAYOUT")]
    pub image: Option<PathBuf>,
    /// The seccomp profile that must be used: a built-in one or a file.
    #[arg(long, value_name = "PROFILE", default_value = "deny-by-default")]
    pub seccomp: String,
    /// The acceptance matrix that will be applied [default: the built-in one].
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// How long an answer counts: 90s, 15m, 24h, 7d.
    #[arg(long, value_name = "SPAN", default_value = "24h", value_parser = span)]
    pub valid_for: u64,
    /// Until when an answer counts (RFC 3339, UTC), instead of --valid-for.
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "valid_for")]
    pub not_after: Option<u64>,
    /// Where the request goes.
    #[arg(long, value_name = "FILE", default_value = "request.json")]
    pub out: PathBuf,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `sign`.
#[derive(Debug, Args)]
pub struct SignArgs {
    /// The evidence file.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// An OpenSSH Ed25519 key, or a public one whose private half ssh-agent holds.
    #[arg(long, value_name = "KEY")]
    pub key: PathBuf,
    /// Where its passphrase comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `keygen`.
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// The private key's file; the public one gets `.pub`.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Who it is for; also the principal in the printed line.
    #[arg(long, value_name = "TEXT", default_value = "tki-attest", value_parser = comment)]
    pub comment: String,
    /// Where the new passphrase comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Leave the private key unencrypted.
    #[arg(long, conflicts_with = "passphrase")]
    pub no_passphrase: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The first evidence file.
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The second evidence file.
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// Exit with 1 if something changed beyond what names a run.
    #[arg(long)]
    pub exit_code: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page per command into this directory.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

pub(super) fn span(text: &str) -> Result<u64, String> {
    tki_evidence::time::parse_span(text).ok_or_else(|| "a span such as 90s, 15m, 24h or 7d".into())
}

fn moment(text: &str) -> Result<u64, String> {
    tki_evidence::time::parse_rfc3339(text)
        .ok_or_else(|| "a time such as 2026-06-09T12:34:56Z".into())
}

/// A comment stands in a line of a file, and in front of a key in a list.
fn comment(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@._+-".contains(c);
    if !text.is_empty() && text.len() <= 200 && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("letters, digits and @ . _ + -".into())
    }
}
