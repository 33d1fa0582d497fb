//! `tki-attest sign`.

use crate::cli::{Common, Format, SignArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::trust::sign::sign;
use tki_text::printable;

/// Signs evidence that is consistent; adds to signatures that are there.
pub fn execute(args: &SignArgs, common: Common) -> Result<Exit, Failure> {
    let signed = sign(&args.bundle, &args.key, args.passphrase.passphrase.as_ref())?;
    match args.format {
        Format::Json => output::print_json(&signed)?,
        Format::Text if common.quiet => {}
        Format::Text => output::print(&format!(
            "envelope  {}\nkey       {}\nsigners   {}\n",
            printable(&signed.envelope, 300),
            signed.key,
            signed.signatures
        ))?,
    }
    Ok(Exit::Done)
}
