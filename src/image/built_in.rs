//! The image that this tool carries: Dockerfile, files and programs are
//! compiled in, so that one copied executable is all that an operator needs.

use crate::image::{self, BuildOptions, Context, Image, ImageError, Recipe};
use std::collections::BTreeMap;

/// The Dockerfile's name in errors.
const NAME: &str = "image/Dockerfile.sandbox";
const DOCKERFILE: &[u8] = include_bytes!("../../image/Dockerfile.sandbox");

/// The prober, as the build script compiled it.
pub const PROBER: &[u8] = include_bytes!(env!("TKI_PROBER"));

/// The inspector, likewise.
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
        file("tki-prober", PROBER),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read;
    use tki_evidence::catalogue::{IMAGE_FILES, IMAGE_PROGRAMS};

    /// The regular files of the image outside /in and /out, and whether the kernel would know
    /// how to execute each.
    fn files() -> BTreeMap<String, bool> {
        let mut found = BTreeMap::new();
        for layer in image().unwrap().layers() {
            let mut bytes = Vec::new();
            match layer.gzip {
                true => flate2::read::GzDecoder::new(layer.bytes).read_to_end(&mut bytes),
                false => { layer.bytes }.read_to_end(&mut bytes),
            }
            .unwrap();
            for entry in tar::Archive::new(&bytes[..]).entries().unwrap() {
                let mut entry = entry.unwrap();
                let path = format!("/{}", entry.path().unwrap().display());
                let is_volume = path.starts_with("/in/") || path.starts_with("/out/");
                if entry.header().entry_type().is_file() && !is_volume {
                    let mut start = Vec::new();
                    entry.by_ref().take(4).read_to_end(&mut start).unwrap();
                    let is_program = start == b"\x7fELF" || start.starts_with(b"#!");
                    found.insert(path, is_program);
                }
            }
        }
        found
    }

    /// XP-FS-FILES allows these files, and PR-EXEC-1 executes these programs.
    #[test]
    fn the_catalogue_knows_the_files_of_the_image_and_which_can_be_executed() {
        let found = files();
        let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, IMAGE_FILES.iter().copied().collect());
        let programs = found.iter().filter(|(_, is_program)| **is_program);
        let programs: BTreeSet<&str> = programs.map(|(path, _)| path.as_str()).collect();
        assert_eq!(programs, IMAGE_PROGRAMS.iter().copied().collect());
    }
}
