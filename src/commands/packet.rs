//! `tki-attest packet`.

use crate::cli::{Common, Format, PacketArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::packet::offer::profile;
use crate::packet::{Facts, Written, write};

/// Writes a packet.
pub fn execute(args: &PacketArgs, common: Common) -> Result<Exit, Failure> {
    let facts = Facts::new(profile(&args.seccomp, args.profile.as_deref())?)?;
    let written = write::write(args.audience, &facts, None, &args.out)?;
    match args.format {
        Format::Json => output::print_json(&written)?,
        Format::Text if common.quiet => {}
        Format::Text => output::print(&told(&written))?,
    }
    Ok(Exit::Done)
}

fn told(written: &Written) -> String {
    let mut text = format!("packet    {}\n", written.packet.display());
    if let Some(files) = &written.files {
        text += &format!("files     {}\n", files.display());
    }
    text + &format!(
        "image     {}\nseccomp   sha256:{}\ntool      sha256:{}\n",
        written.image_digest, written.seccomp_sha256, written.tool_sha256
    )
}
