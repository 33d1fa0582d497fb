//! Putting what the inspector reads behind /in.

use crate::engine::Engine;
use crate::engine::contract::{Launch, Volume};
use crate::engine::filling::{Files, FillError, What, changed};
use crate::engine::names::FILLER;
use crate::files::{Folder, READABLE};
use crate::launch::sides::Sides;
use std::io::{self, Read};

/// Has everything put there: into the launcher's directory, or by the engine into the run's volume,
/// through a container like the one that is about to be launched, which is never started.
pub fn fill(
    engine: &mut dyn Engine,
    launch: &Launch,
    sides: &Sides,
    files: Files,
) -> Result<(), FillError> {
    match sides.scratch() {
        Some(scratch) => into_folder(scratch.input_folder(), files).map_err(FillError::Source),
        None => engine.fill(&filler(launch), files),
    }
}

/// The container through which a volume is filled.
fn filler(launch: &Launch) -> Launch {
    let mut filler = launch.clone();
    filler.name += FILLER;
    filler.gate = false;
    let inputs = filler.settings.binds.iter_mut();
    for input in inputs.filter(|bind| bind.target == "/in") {
        input.read_only = false;
    }
    filler.volumes = launch.volumes.iter().map(kept).collect();
    filler
}

/// The volume is still needed when the container is gone.
fn kept(volume: &Volume) -> Volume {
    Volume {
        goes_along: false,
        ..volume.clone()
    }
}

/// Writes it into a directory that nobody else reaches. There it can be read by everybody.
fn into_folder(folder: &Folder, files: Files) -> io::Result<()> {
    for given in files {
        let given = given?;
        let (folders, name) = match given.path.rsplit_once('/') {
            Some((folders, name)) => (Some(folders), name),
            None => (None, given.path.as_str()),
        };
        let mut at: Option<Folder> = None;
        for step in folders.into_iter().flat_map(|folders| folders.split('/')) {
            at = Some(at.as_ref().unwrap_or(folder).enter(step)?);
        }
        let at = at.as_ref().unwrap_or(folder);
        match given.what {
            What::Folder => at.make(name)?.set_mode(0o755)?,
            What::File(size, from) => {
                let mut file = at.create(name, READABLE)?;
                // One byte more than there should be shows that there is more.
                let copied = io::copy(&mut from.take(size.saturating_add(1)), &mut file)?;
                if copied != size {
                    return Err(changed(&given.path, size));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::brought::{Brought, Named};
    use crate::inspect::contents;
    use crate::inspect::packet::Packet;
    use crate::inspect::packet::tests::{small, written};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_gets_everything_and_lets_everybody_read() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        written(&from, &small());
        fs::create_dir(&to).unwrap();
        let packet = Packet::open(&from).unwrap();
        let brought = Brought::read(Named::default()).unwrap();
        let held = Folder::open(&to).unwrap();
        into_folder(&held, contents::files(&packet, &brought)).unwrap();
        let text = |path: &str| fs::read_to_string(to.join(path)).unwrap();
        assert_eq!(text("packet/deep/er/b.txt"), "two\n");
        assert_eq!(text("packet/packet.json").as_bytes(), packet.bytes);
        let mode = |path: &str| fs::metadata(to.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("packet/deep"), 0o755);
        assert_eq!(mode("launcher/expected.json"), 0o644);
    }

    #[test]
    fn a_file_that_was_changed_is_not_taken() {
        use crate::engine::filling::Given;
        let folder = tempfile::tempdir().unwrap();
        let held = Folder::open(folder.path()).unwrap();
        for said in [3, 5] {
            let given = Given {
                path: format!("a{said}"),
                what: What::File(said, Box::new(&b"four"[..])),
            };
            let refused = into_folder(&held, Box::new([Ok(given)].into_iter())).unwrap_err();
            assert!(
                refused.to_string().contains("changed meanwhile"),
                "{refused}"
            );
        }
    }
}
