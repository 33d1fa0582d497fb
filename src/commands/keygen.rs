//! `tki-attest keygen`.

use crate::cli::{Common, Format, KeygenArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::trust::pair::PairFiles;
use crate::trust::{NAMESPACE, passphrase};
use serde::Serialize;

#[derive(Serialize)]
struct Made {
    private: String,
    public: String,
    fingerprint: String,
    allowed_signers: String,
}

/// Makes a key pair; never in the place of one that is there.
pub fn execute(args: &KeygenArgs, common: Common) -> Result<Exit, Failure> {
    let place = PairFiles::free(&args.out)?;
    let chosen = if args.no_passphrase {
        None
    } else {
        Some(passphrase::choose(args.passphrase.passphrase.as_ref())?)
    };
    let words = chosen.as_ref().map(|words| words.as_str());
    let made = place.make(&args.comment, words)?;
    let key: Vec<&str> = made.public.split_whitespace().take(2).collect();
    let result = Made {
        private: args.out.to_string_lossy().into_owned(),
        public: place.public.to_string_lossy().into_owned(),
        fingerprint: made.fingerprint,
        allowed_signers: format!(
            "{} namespaces=\"{NAMESPACE}\" {}",
            args.comment,
            key.join(" ")
        ),
    };
    match args.format {
        Format::Json => output::print_json(&result)?,
        Format::Text if common.quiet => {}
        Format::Text => output::print(&format!(
            "private          {}\npublic           {}\nfingerprint      {}\nallowed signers  {}\n",
            result.private, result.public, result.fingerprint, result.allowed_signers
        ))?,
    }
    Ok(Exit::Done)
}
