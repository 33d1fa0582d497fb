//! `tki-attest packet`, and the packet that a BLOCKED command offers.

use crate::cli::{Common, Format, PacketArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::packet::{Audience, Facts, Why, Written, write};
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use std::path::Path;

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

/// The sandbox that a user names.
fn profile(seccomp: &str, limits: Option<&Path>) -> Result<Profile, Failure> {
    Ok(Profile {
        seccomp: Seccomp::resolve(seccomp)?,
        limits: limits.map_or_else(|| Ok(Limits::default()), Limits::read)?,
    })
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

/// A packet that a BLOCKED command may be told to write.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Where; nowhere, and how to get it is said instead.
    pub file: Option<&'a Path>,
    /// The command's own `--seccomp`.
    pub seccomp: &'a str,
    /// The command's own `--profile`.
    pub limits: Option<&'a Path>,
}

/// Writes the operator's packet, or says how to get it. Gives the sentence for
/// the user.
pub fn offer(offer: Offer, why: &Why) -> Result<String, Failure> {
    let Some(file) = offer.file else {
        return Ok(
            "another operator can run it: `tki-attest packet --for operator --out packet.md` \
                   (or --packet FILE here) writes what they need"
                .into(),
        );
    };
    let facts = Facts::new(profile(offer.seccomp, offer.limits)?)?;
    let written = write::write(Audience::Operator, &facts, Some(why), file)?;
    let shown = written.packet.display();
    Ok(format!("hand over the operator's packet {shown}"))
}
