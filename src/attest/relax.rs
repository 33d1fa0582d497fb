//! A control's relaxations, applied to everything they touch: settings, the
//! host's side, the challenge. What happens to settings is said once, in
//! `tki_evidence::relaxation`, where the verifier reads it too.

use crate::launch::sides::Sides;
use crate::sandbox::profile::Limits;
use std::path::Path;
use tki_evidence::relaxation::{FACTOR, Names, Relaxation, relax};
use tki_evidence::settings::Settings;
use tki_evidence::stamp::sha256_hex;

/// Limits of the file systems that a control needs before anything is made.
pub fn limits(relaxations: &[Relaxation], mut limits: Limits) -> Limits {
    if relaxations.contains(&Relaxation::OutSize) {
        limits.out_bytes *= FACTOR.unsigned_abs();
    }
    if relaxations.contains(&Relaxation::Inodes) {
        limits.out_files *= FACTOR.unsigned_abs();
    }
    limits
}

/// Applies what concerns the container's settings and the host's directories. Where the
/// engine makes volumes, the neighbour has put the decoys there. `canary` is the file of
/// the host that must not be reachable, `marked` the profile with marks.
pub fn apply(
    relaxations: &[Relaxation],
    settings: &mut Settings,
    sides: &Sides,
    neighbour: &str,
    env_canary: &str,
    canary: &Path,
    marked: &str,
) -> std::io::Result<()> {
    let names = Names {
        scratch: &sides.name(),
        neighbour,
        variable: &format!("{env_canary}=visible"),
        file: &canary.to_string_lossy(),
        marked: &sha256_hex(marked.as_bytes()),
    };
    for relaxation in relaxations {
        relax(*relaxation, settings, names);
        let Some(scratch) = sides.scratch() else {
            continue;
        };
        match relaxation {
            Relaxation::DecoySocket => {
                // The listener goes at once; the file stays and answers nobody.
                drop(scratch.input_folder().bind("docker.sock", 0o666)?);
            }
            Relaxation::ExtraBind => scratch.folder().make("extra")?.set_mode(0o755)?,
            Relaxation::SuidDecoy => {
                let text = b"not a program\n";
                drop(scratch.input_folder().write("suid-decoy", text, 0o4444)?);
            }
            _ => {}
        }
    }
    Ok(())
}
