//! `tki-attest keygen`.

use crate::cli::{Common, Format, KeygenArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::random::random_bytes;
use crate::trust::NAMESPACE;
use crate::trust::{keys, passphrase};
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

#[derive(Serialize)]
struct Made {
    private: String,
    public: String,
    fingerprint: String,
    allowed_signers: String,
}

/// Makes a key pair; never in the place of one that is there.
pub fn execute(args: &KeygenArgs, common: Common) -> Result<Exit, Failure> {
    let mut public = args.out.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    for path in [&args.out, &public] {
        if path.symlink_metadata().is_ok() {
            return Err(unwritable(
                path,
                "it is there already",
                "give another --out",
            ));
        }
    }
    let chosen = if args.no_passphrase {
        None
    } else {
        Some(passphrase::choose(args.passphrase.passphrase.as_ref())?)
    };
    let seed = Zeroizing::new(random_bytes::<32>()?);
    let words = chosen.as_ref().map(|words| words.as_str());
    let made = keys::generate(&seed, random_bytes::<16>()?, &args.comment, words)?;
    write(&args.out, made.private.as_bytes(), 0o600)?;
    write(&public, made.public.as_bytes(), 0o644)?;
    let key: Vec<&str> = made.public.split_whitespace().take(2).collect();
    let result = Made {
        private: args.out.to_string_lossy().into_owned(),
        public: public.to_string_lossy().into_owned(),
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

fn unwritable(path: &Path, why: impl std::fmt::Display, next: &str) -> Failure {
    Failure::usage(
        "out.unwritable",
        format!("cannot write {}: {why}", path.display()),
        next,
    )
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(mode);
    let written = options.open(path).and_then(|mut file| {
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.inspect_err(|_| drop(std::fs::remove_file(path)))
    });
    written.map_err(|error| unwritable(path, error, "give an --out that can be written to"))
}
