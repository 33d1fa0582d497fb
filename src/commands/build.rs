//! `tki-attest build`.

use crate::cli::{BuildArgs, Common, Format};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::image::store;
use crate::report::progress::Progress;
use crate::report::table::Paint;
use serde::Serialize;

#[derive(Serialize)]
struct Built<'a> {
    tag: &'a str,
    manifest_digest: &'a str,
    config_digest: &'a str,
    diff_ids: &'a [String],
}

/// Builds, writes and loads as asked; prints the digests.
pub fn execute(args: &BuildArgs, common: Common) -> Result<Exit, Failure> {
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    progress.stage("build");
    let image = args.source.source().build(&args.tag)?;
    if let Some(folder) = &args.layout {
        progress.stage("layout");
        store::write_layout(&image, folder)?;
    }
    if let Some(file) = &args.archive {
        progress.stage("archive");
        store::write_archive(&image, file)?;
    }
    if args.load {
        progress.stage("load");
        args.engine.sought().connect()?.load(&image)?;
    }
    progress.finish();
    let built = Built {
        tag: &image.tag,
        manifest_digest: &image.manifest_digest,
        config_digest: &image.config_digest,
        diff_ids: &image.diff_ids,
    };
    match args.format {
        Format::Json => output::print_json(&built)?,
        Format::Text => output::print(&format!(
            "image     {}\nmanifest  {}\nconfig    {}\ndiff ids  {}\n",
            built.tag,
            built.manifest_digest,
            built.config_digest,
            built.diff_ids.join("\n          ")
        ))?,
    }
    Ok(Exit::Done)
}
