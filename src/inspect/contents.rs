//! What comes below /in: the packet as it lies on disk, and the launcher's files.

use crate::engine::filling::{Files, Given, What, changed};
use crate::inspect::brought::Brought;
use crate::inspect::packet::{Packet, open};
use std::collections::BTreeSet;
use std::io::{self, Cursor};
use tki_evidence::settings::Memory;
use tki_inspector::packet::FILE;
use tki_inspector::wire::{LAUNCHER_FOLDER, PACKET_FOLDER};

/// The unit of memory on every machine that this tool knows.
const PAGE: u64 = 4096;

/// Room for names, and files that a file system has of its own.
const MARGIN: u64 = 64;

/// A folder of the inspector's as it is called below /in.
fn below(folder: &str) -> &str {
    folder.trim_start_matches("/in/")
}

/// The directories that the items are in, each after those that it is in, below /in.
fn folders(packet: &Packet) -> BTreeSet<String> {
    let root = below(PACKET_FOLDER);
    let mut found = BTreeSet::from([root.to_owned()]);
    for item in &packet.says.items {
        for (at, _) in item.path.match_indices('/') {
            found.insert(format!("{root}/{}", &item.path[..at]));
        }
    }
    found
}

/// How much room it takes.
pub fn room(packet: &Packet, brought: &Brought) -> Memory {
    let items = packet.says.items.iter().map(|item| item.size);
    let own = packet.bytes.len() as u64;
    let launchers = brought.files().iter().map(|(_, bytes)| bytes.len() as u64);
    let sizes: Vec<u64> = items.chain([own]).chain(launchers).collect();
    let bytes = sizes.iter().map(|size| size.next_multiple_of(PAGE));
    let names = sizes.len() + folders(packet).len();
    Memory {
        bytes: bytes.fold(MARGIN * PAGE, u64::saturating_add),
        files: MARGIN + names as u64,
    }
}

/// All of it, directories first. Each item is opened when it is its turn, and must still have the
/// size that the packet says.
pub fn files(packet: &Packet, brought: &Brought) -> Files {
    let mut folders = folders(packet);
    folders.insert(below(LAUNCHER_FOLDER).to_owned());
    let folders = folders.into_iter().map(|path| {
        Ok(Given {
            path,
            what: What::Folder,
        })
    });
    let own = [(
        format!("{}/{FILE}", below(PACKET_FOLDER)),
        packet.bytes.clone(),
    )];
    let launchers = brought.files().iter().map(|(name, bytes)| {
        let path = format!("{}/{name}", below(LAUNCHER_FOLDER));
        (path, bytes.clone())
    });
    let known: Vec<_> = own.into_iter().chain(launchers).collect();
    let known = known.into_iter().map(|(path, bytes)| {
        let size = bytes.len() as u64;
        Ok(Given {
            path,
            what: What::File(size, Box::new(Cursor::new(bytes))),
        })
    });
    let folder = packet.folder();
    let items = packet.says.items.clone().into_iter().map(move |item| {
        let file = open(&folder, &item)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", item.path)))?;
        if file.metadata()?.len() != item.size {
            return Err(changed(&item.path, item.size));
        }
        Ok(Given {
            path: format!("{}/{}", below(PACKET_FOLDER), item.path),
            what: What::File(item.size, Box::new(file)),
        })
    });
    Box::new(folders.chain(known).chain(items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::brought::Named;
    use crate::inspect::packet::tests::{small, written};

    #[test]
    fn everything_comes_after_what_it_is_in() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &small());
        let packet = Packet::open(folder.path()).unwrap();
        let brought = Brought::read(Named::default()).unwrap();
        let given: Vec<Given> = files(&packet, &brought).map(Result::unwrap).collect();
        let paths: Vec<&str> = given.iter().map(|one| one.path.as_str()).collect();
        let wanted = [
            "launcher",
            "packet",
            "packet/deep",
            "packet/deep/er",
            "packet/packet.json",
            "launcher/expected.json",
            "packet/a.txt",
            "packet/deep/er/b.txt",
        ];
        assert_eq!(paths, wanted);
        let room = room(&packet, &brought);
        assert!(
            room.bytes >= 4 * PAGE && room.files >= wanted.len() as u64,
            "{room:?}"
        );
    }

    #[test]
    fn an_item_that_was_changed_meanwhile_is_not_put_there() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &small());
        let packet = Packet::open(folder.path()).unwrap();
        let brought = Brought::read(Named::default()).unwrap();
        std::fs::write(folder.path().join("a.txt"), "more of it\n").unwrap();
        let wrong = files(&packet, &brought).find_map(Result::err).unwrap();
        assert!(
            wrong.to_string().contains("a.txt no longer has 4 bytes"),
            "{wrong}"
        );
    }
}
