//! `tki-attest packet`, and the packet that a BLOCKED command offers.

use crate::cli::{Audience, Common, Format, PacketArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::packet::{Facts, Why, Written, write};
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use std::path::Path;

/// Writes a packet.
pub fn execute(args: &PacketArgs, common: Common) -> Result<Exit, Failure> {
    let profile = Profile {
        seccomp: Seccomp::resolve(&args.seccomp)?,
        limits: match &args.profile {
            Some(file) => Limits::read(file)?,
            None => Limits::default(),
        },
    };
    let facts = Facts::new(profile)?;
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

/// Writes the operator's packet where a BLOCKED command was told to, or says
/// how to get it. Gives the sentence for the user.
pub fn offer(file: Option<&Path>, why: &Why) -> Result<String, Failure> {
    let Some(file) = file else {
        return Ok(
            "somebody else can run it: `tki-attest packet --for operator --out packet.md` \
                   (or --packet FILE here) writes what they need"
                .into(),
        );
    };
    let profile = Profile {
        seccomp: Seccomp::resolve("deny-by-default")?,
        limits: Limits::default(),
    };
    let facts = Facts::new(profile)?;
    let written = write::write(Audience::Operator, &facts, Some(why), file)?;
    let shown = written.packet.display();
    Ok(format!("hand over the operator's packet {shown}"))
}
