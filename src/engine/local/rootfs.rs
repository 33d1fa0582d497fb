//! The image's layers, unpacked. The image is ours or the user's own, but it is
//! read as if it were hostile: every step of a name is taken by descriptor below the
//! root and through no link, modes are set on what was opened, sizes are bounded, and
//! only directories, files and symbolic links are made.

use super::job::Layer;
use crate::files::{Folder, is_folder};
use crate::host::system;
use flate2::read::MultiGzDecoder;
use rustix::fs::{AtFlags, Gid, Mode, Uid, chownat, fchmod, fchown};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use tar::{Archive, Entry, EntryType, Header};

/// The most bytes that all layers may have together.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The most entries that all layers may have together.
const MAX_ENTRIES: u32 = 200_000;

/// The most steps of a name.
const MAX_DEPTH: usize = 256;

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

/// The steps of an entry's name, below the root.
type Place = Vec<OsString>;

/// Unpacks the layers one over the other into an empty directory.
pub fn unpack(file: &[u8], layers: &[Layer], root: &Folder) -> Result<()> {
    let mut rest = file;
    let mut unpacking = Unpacking {
        root,
        bytes_left: MAX_BYTES,
        entries_left: MAX_ENTRIES,
        modes: BTreeMap::new(),
    };
    for layer in layers {
        let length = usize::try_from(layer.length).map_err(|_| refused("a layer without end"))?;
        let Some((stored, others)) = rest.split_at_checked(length) else {
            return Err(refused("a layer is cut short"));
        };
        if layer.gzip {
            unpacking.layer(MultiGzDecoder::new(stored))?;
        } else {
            unpacking.layer(stored)?;
        }
        rest = others;
    }
    unpacking.set_modes()
}

/// Layers on their way to a directory.
struct Unpacking<'a> {
    root: &'a Folder,
    bytes_left: u64,
    entries_left: u32,
    /// Modes of directories, set last because one may forbid to write into it. What is
    /// replaced or taken away is forgotten.
    modes: BTreeMap<Place, u32>,
}

impl Unpacking<'_> {
    fn layer(&mut self, tar: impl Read) -> Result<()> {
        let mut archive = Archive::new(tar.take(2 * MAX_BYTES));
        // The specification permits a name once in a layer; which one of two would count
        // is another matter with every tool.
        let mut seen: BTreeSet<Place> = BTreeSet::new();
        for entry in archive.entries()? {
            let entry = entry?;
            self.entries_left = self
                .entries_left
                .checked_sub(1)
                .ok_or_else(|| refused("the image has too many entries"))?;
            if entry.header().entry_type() == EntryType::XGlobalHeader {
                continue;
            }
            let place = place_of(&entry.path()?)?;
            if !seen.insert(place.clone()) {
                let shown = place.join(OsStr::new("/"));
                let shown = tki_text::printable(&shown.to_string_lossy(), 200);
                return Err(refused(&format!("`{shown}` twice in one layer")));
            }
            self.entry(entry, &place)?;
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry<impl Read>, place: &Place) -> Result<()> {
        // The root itself is ours: its mode and owner stay.
        let Some((name, parents)) = place.split_last() else {
            return Ok(());
        };
        let parent = descend(self.root, parents)?;
        let parent = parent.as_ref().unwrap_or(self.root);
        if let Some(hidden) = name.as_bytes().strip_prefix(b".wh.") {
            return self.whiteout(parent, parents, OsStr::from_bytes(hidden));
        }
        let mode = entry.header().mode()? & 0o7777;
        match entry.header().entry_type() {
            EntryType::Directory => {
                let there = parent.look(name)?;
                let folder = if there.is_some_and(|found| is_folder(&found)) {
                    parent.enter(name)?
                } else {
                    self.take_away(parent, place)?;
                    parent.make(name)?
                };
                give(&folder, entry.header())?;
                self.modes.insert(place.clone(), mode);
            }
            EntryType::Regular => {
                self.bytes_left = self
                    .bytes_left
                    .checked_sub(entry.size())
                    .ok_or_else(|| refused("the image is too large"))?;
                self.take_away(parent, place)?;
                let mut file: File = parent.create(name, 0o600)?;
                std::io::copy(&mut entry, &mut file)?;
                give(&file, entry.header())?;
                // After the owner, whose change takes set-id bits away.
                fchmod(&file, Mode::from(mode))?;
            }
            EntryType::Symlink => {
                let target = entry
                    .link_name()?
                    .ok_or_else(|| refused("a link to nowhere"))?;
                self.take_away(parent, place)?;
                rustix::fs::symlinkat(target.as_ref(), parent, name.as_os_str())?;
                if let Some((uid, gid)) = owner(entry.header())? {
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    chownat(parent, name.as_os_str(), Some(uid), Some(gid), flags)?;
                }
            }
            other => return Err(refused(&format!("an entry of type {other:?}"))),
        }
        Ok(())
    }

    /// Makes room for another entry.
    fn take_away(&mut self, parent: &Folder, place: &[OsString]) -> Result<()> {
        // What lies below stands right behind it.
        let below = self.modes.range(place.to_vec()..);
        let below = below.take_while(|(known, _)| known.starts_with(place));
        for known in below.map(|(known, _)| known.clone()).collect::<Vec<_>>() {
            self.modes.remove(&known);
        }
        match place.last() {
            Some(name) => parent.remove_all(name),
            None => Ok(()),
        }
    }

    /// A layer takes away what one below it has.
    fn whiteout(&mut self, parent: &Folder, parents: &[OsString], hidden: &OsStr) -> Result<()> {
        let below = |name: &OsStr| [parents, &[name.to_owned()]].concat();
        if hidden == ".wh..opq" {
            for name in parent.names()? {
                self.take_away(parent, &below(&name))?;
            }
            return Ok(());
        }
        if hidden.is_empty() || hidden == "." || hidden == ".." {
            return Err(refused("a whiteout of nothing"));
        }
        self.take_away(parent, &below(hidden))
    }

    /// The deepest first: one above may forbid to go there.
    fn set_modes(self) -> Result<()> {
        for (place, mode) in self.modes.into_iter().rev() {
            if let Some(folder) = descend(self.root, &place)? {
                folder.set_mode(mode)?;
            }
        }
        Ok(())
    }
}

/// The owner that a header names. Nobody but root can give files away: for others
/// everything is their own.
fn owner(header: &Header) -> Result<Option<(Uid, Gid)>> {
    if !system::is_root() {
        return Ok(None);
    }
    // The highest number would leave the owner as it is.
    let id = |id: u64| match u32::try_from(id) {
        Ok(u32::MAX) | Err(_) => Err(refused("an owner without a number")),
        Ok(id) => Ok(id),
    };
    let (uid, gid) = (id(header.uid()?)?, id(header.gid()?)?);
    Ok(Some((Uid::from_raw(uid), Gid::from_raw(gid))))
}

/// Gives a file to its owner, as other engines do.
fn give(file: impl AsFd, header: &Header) -> Result<()> {
    match owner(header)? {
        Some((uid, gid)) => Ok(fchown(file, Some(uid), Some(gid))?),
        None => Ok(()),
    }
}

/// The steps of an entry's name.
fn place_of(entry: &Path) -> Result<Place> {
    let mut place = Place::new();
    for part in entry.components() {
        match part {
            Component::CurDir | Component::RootDir => {}
            Component::Normal(name) => place.push(name.to_owned()),
            _ => return Err(refused("an entry outside of the root")),
        }
    }
    if place.len() > MAX_DEPTH {
        return Err(refused("an entry too far below the root"));
    }
    Ok(place)
}

/// Goes down from the root, making what is missing. No step may be a symbolic link,
/// which another entry could have laid. `None` for the root itself.
fn descend(root: &Folder, steps: &[OsString]) -> Result<Option<Folder>> {
    let mut at: Option<Folder> = None;
    for step in steps {
        let here = at.as_ref().unwrap_or(root);
        let next = match here.look(step)? {
            None => {
                let made = here.make(step)?;
                made.set_mode(0o755)?;
                made
            }
            Some(found) if is_folder(&found) => here.enter(step)?,
            Some(_) => return Err(refused("an entry below something that is no directory")),
        };
        at = Some(next);
    }
    Ok(at)
}

/// Makes a place to mount over, a directory or an empty file. The image may hold
/// links, and following one would lead out of the root: none is followed.
pub fn mount_point(root: &Folder, target: &Path, folder: bool) -> Result<()> {
    let place = place_of(target)?;
    let Some((name, parents)) = place.split_last() else {
        return Ok(());
    };
    let parent = descend(root, parents)?;
    let parent = parent.as_ref().unwrap_or(root);
    match parent.look(name)? {
        Some(found) => {
            let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
            match kind == rustix::fs::FileType::Directory {
                true if folder => Ok(()),
                false if !folder && kind != rustix::fs::FileType::Symlink => Ok(()),
                _ => Err(refused("the image has something else at a mount point")),
            }
        }
        None if folder => parent.make(name)?.set_mode(0o755),
        None => parent.create(name, 0o644).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn layer(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        layer_with(0o6777, entries)
    }

    fn layer_with(mode: u32, entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(mode);
            header.set_uid(7);
            header.set_gid(8);
            // Past the checks of the crate that would write no such name.
            let name = &mut header.as_old_mut().name;
            name[..path.len()].copy_from_slice(path.as_bytes());
            if *kind == EntryType::Symlink {
                header.set_link_name_literal(content).unwrap();
                header.set_size(0);
                header.set_cksum();
                builder.append(&header, std::io::empty()).unwrap();
            } else {
                header.set_size(content.len() as u64);
                header.set_cksum();
                builder.append(&header, content.as_bytes()).unwrap();
            }
        }
        builder.into_inner().unwrap()
    }

    fn gzip(tar: &[u8]) -> Vec<u8> {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(tar).unwrap();
        gz.finish().unwrap()
    }

    fn unpack_all(layers: &[Vec<u8>]) -> (tempfile::TempDir, Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let table: Vec<Layer> = layers
            .iter()
            .map(|layer| Layer {
                length: layer.len() as u64,
                gzip: layer.starts_with(&[0x1f, 0x8b]),
            })
            .collect();
        let root = Folder::open(folder.path()).unwrap();
        let result = unpack(&layers.concat(), &table, &root);
        (folder, result)
    }

    #[test]
    fn later_layers_replace_and_take_away() {
        let (folder, result) = unpack_all(&[
            layer(&[
                ("a/", EntryType::Directory, ""),
                ("a/one", EntryType::Regular, "1"),
                ("a/two", EntryType::Regular, "2"),
            ]),
            // As tools write it.
            gzip(&layer(&[
                ("a/one", EntryType::Regular, "new"),
                ("a/.wh.two", EntryType::Regular, ""),
            ])),
        ]);
        result.unwrap();
        let one = fs::read_to_string(folder.path().join("a/one")).unwrap();
        assert_eq!(one, "new");
        let owners = |name: &str| {
            let found = fs::symlink_metadata(folder.path().join(name)).unwrap();
            (found.uid(), found.gid())
        };
        let own = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        let wanted = if system::is_root() { (7, 8) } else { own };
        assert_eq!((owners("a"), owners("a/one")), (wanted, wanted));
        assert!(!folder.path().join("a/two").exists());
    }

    #[test]
    fn a_mount_point_follows_no_link() {
        let (folder, result) = unpack_all(&[layer(&[
            ("in", EntryType::Symlink, "/tmp"),
            ("usr", EntryType::Symlink, "/"),
            ("out/", EntryType::Directory, ""),
        ])]);
        result.unwrap();
        let root = folder.path();
        let held = Folder::open(root).unwrap();
        let mount_point = |target: &Path, is_folder| mount_point(&held, target, is_folder);
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        fs::write(&victim, "whole").unwrap();
        let through = Path::new("/usr").join(victim.strip_prefix("/").unwrap());
        assert!(mount_point(&through, false).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
        assert!(mount_point(Path::new("/in"), true).is_err());
        assert!(mount_point(Path::new("/out"), false).is_err());
        for (target, is_folder) in [("/out", true), ("/a/b", true), ("/c/d", false)] {
            mount_point(Path::new(target), is_folder).unwrap();
            assert_eq!(root.join(&target[1..]).is_dir(), is_folder);
        }
    }

    #[test]
    fn nothing_leaves_the_root() {
        for entries in [
            vec![("../out", EntryType::Regular, "x")],
            vec![
                ("link", EntryType::Symlink, "/tmp"),
                ("link/out", EntryType::Regular, "x"),
            ],
            vec![("pipe", EntryType::Fifo, "")],
            vec![("link", EntryType::Link, "")],
        ] {
            let (_folder, result) = unpack_all(&[layer(&entries)]);
            assert!(result.is_err(), "{entries:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let root = Folder::open(folder.path()).unwrap();
        let short = Layer {
            length: 10,
            gzip: false,
        };
        assert!(unpack(b"", &[short], &root).is_err());
        // What is not what it is said to be.
        let whole = layer(&[("a", EntryType::Regular, "1")]);
        for (bytes, is_gzip) in [(gzip(&whole), false), (whole, true)] {
            let said = Layer {
                length: bytes.len() as u64,
                gzip: is_gzip,
            };
            assert!(unpack(&bytes, &[said], &root).is_err());
        }
    }

    /// Layers that try to have modes and owners set on something of the host's: a name
    /// that is first a file or a directory and then a link to it.
    #[test]
    fn no_layer_changes_the_host() {
        let outside = tempfile::tempdir().unwrap();
        let (file, folder) = (outside.path().join("x"), outside.path());
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::write(&file, "whole").unwrap();
        set(&file, 0o600);
        set(folder, 0o700);
        let state = || {
            [&file, folder].map(|path| {
                let found = fs::symlink_metadata(path).unwrap();
                (found.mode(), found.uid(), found.gid())
            })
        };
        let before = state();
        let (to_file, to_folder) = (file.to_str().unwrap(), folder.to_str().unwrap());
        let (kept, link) = (EntryType::Regular, EntryType::Symlink);
        let made = EntryType::Directory;
        // Each of these is what the specification calls one layer over the other.
        for layers in [
            vec![vec![("x", kept, "1")], vec![("x", link, to_file)]],
            vec![vec![("d/", made, "")], vec![("d", link, to_folder)]],
            vec![vec![("d/x", kept, "1")], vec![("d", link, to_folder)]],
            vec![vec![("d/e/", made, "")], vec![("d", link, "/")]],
            // A name is replaced by a link in the layer that has something below it.
            vec![vec![("d/x", kept, "1"), ("d", link, to_folder)]],
            vec![vec![("d/e/", made, ""), ("d", link, to_folder)]],
        ] {
            let layers: Vec<_> = layers.iter().map(|entries| layer(entries)).collect();
            let (root, result) = unpack_all(&layers);
            result.unwrap();
            let replaced = fs::read_dir(root.path()).unwrap().next().unwrap().unwrap();
            assert!(replaced.file_type().unwrap().is_symlink());
            assert_eq!(state(), before, "{layers:?}");
        }
        // The same name twice in a layer, or something below a link, is refused.
        for entries in [
            vec![("x", kept, "1"), ("x", link, to_file)],
            vec![("./x", kept, "1"), ("/x", kept, "2")],
            vec![("d/", made, ""), ("d", link, to_folder)],
            vec![("d", link, to_folder), ("d/x", kept, "1")],
            vec![("d", link, to_folder), ("d/e/", made, "")],
            vec![("d", link, to_folder), ("d/.wh.x", kept, "")],
            vec![("d", link, to_folder), ("d/.wh..wh..opq", kept, "")],
        ] {
            let (_root, result) = unpack_all(&[layer(&entries)]);
            assert!(result.is_err(), "{entries:?}");
            assert_eq!(state(), before, "{entries:?}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "whole");
    }

    /// Modes that forbid their owner to enter are set once all layers are there.
    #[test]
    fn modes_and_set_id_bits_come_out_as_they_are() {
        let (folder, result) = unpack_all(&[
            layer_with(0o6511, &[("d/", EntryType::Directory, "")]),
            layer_with(0o4755, &[("d/x", EntryType::Regular, "1")]),
        ]);
        result.unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o7777;
        assert_eq!((mode("d"), mode("d/x")), (0o6511, 0o4755));
    }
}
