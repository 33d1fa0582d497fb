//! The image that this tool carries: Dockerfile, files and inspector are
//! compiled in, so that one copied executable is all that an operator needs.

use crate::image::{self, BuildOptions, Context, Image, ImageError, Recipe};
use std::collections::BTreeMap;

/// The Dockerfile's name in errors.
const NAME: &str = "image/Dockerfile.sandbox";
const DOCKERFILE: &[u8] = include_bytes!("../../image/Dockerfile.sandbox");

/// The inspector, as the build script compiled it.
pub const INSPECTOR: &[u8] = include_bytes!(env!("TKI_INSPECTOR"));

/// The tag that the image is loaded under.
pub const TAG: &str = "tki-inspector:attest";

/// The recipe of the built-in image.
pub fn recipe() -> Result<Recipe, ImageError> {
    Recipe::parse(NAME, DOCKERFILE)
}

/// The files that its COPY instructions name.
pub fn context() -> Result<Context, ImageError> {
    let file = |path: &str, bytes: &[u8]| (path.to_owned(), bytes.to_vec());
    let files = BTreeMap::from([
        file(
            "rootfs/open/escape/README",
            include_bytes!("../../image/rootfs/open/escape/README"),
        ),
        file(
            "rootfs/tki-probe-target",
            include_bytes!("../../image/rootfs/tki-probe-target"),
        ),
        file(
            "rootfs/tki-sandbox",
            include_bytes!("../../image/rootfs/tki-sandbox"),
        ),
        file("tki-inspector", INSPECTOR),
    ]);
    Context::memory_with(files, &["rootfs/volumes/in", "rootfs/volumes/out"])
}

/// The built-in image. The time in it is 1970, whatever the environment says,
/// so that everybody who has this tool computes the same digest.
pub fn image() -> Result<Image, ImageError> {
    let options = BuildOptions {
        epoch: 0,
        tag: TAG.to_owned(),
        bases: BTreeMap::new(),
    };
    image::build(&recipe()?, &context()?, &options)
}
