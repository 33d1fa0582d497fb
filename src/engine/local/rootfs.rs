//! The image's layers, unpacked. The image is ours or the user's own, but it is
//! read as if it were hostile: entries stay below the root, sizes are bounded,
//! and only directories, files and symbolic links are made.

use super::host;
use super::job::Layer;
use flate2::read::MultiGzDecoder;
use std::fs;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, EntryType, Header};

/// The most bytes that all layers may have together.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

/// Unpacks the layers one over the other into an empty directory.
pub fn unpack(file: &[u8], layers: &[Layer], root: &Path) -> Result<()> {
    let mut rest = file;
    let mut left = MAX_BYTES;
    for layer in layers {
        let length = usize::try_from(layer.length).map_err(|_| refused("a layer without end"))?;
        let Some((stored, others)) = rest.split_at_checked(length) else {
            return Err(refused("a layer is cut short"));
        };
        if layer.gzip {
            unpack_layer(MultiGzDecoder::new(stored), root, &mut left)?;
        } else {
            unpack_layer(stored, root, &mut left)?;
        }
        rest = others;
    }
    Ok(())
}

fn unpack_layer(tar: impl Read, root: &Path, left: &mut u64) -> Result<()> {
    let mut archive = Archive::new(tar.take(2 * MAX_BYTES));
    // Set last, because a directory may forbid to write into it.
    let mut modes: Vec<(PathBuf, u32)> = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let Some(path) = below(root, &entry.path()?)? else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(hidden) = name.strip_prefix(".wh.") {
            whiteout(&path, hidden)?;
            continue;
        }
        let mode = entry.header().mode()? & 0o7777;
        match entry.header().entry_type() {
            EntryType::Directory => {
                if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
                    fs::remove_file(&path)?;
                }
                fs::create_dir_all(&path)?;
                give(&path, entry.header())?;
                modes.push((path, mode));
            }
            EntryType::Regular => {
                *left = left
                    .checked_sub(entry.size())
                    .ok_or_else(|| refused("the image is too large"))?;
                replace(&path)?;
                let mut file = fs::File::create_new(&path)?;
                std::io::copy(&mut entry, &mut file)?;
                give(&path, entry.header())?;
                modes.push((path, mode));
            }
            EntryType::Symlink => {
                let target = entry
                    .link_name()?
                    .ok_or_else(|| refused("a link to nowhere"))?;
                replace(&path)?;
                symlink(target, &path)?;
                give(&path, entry.header())?;
            }
            EntryType::XGlobalHeader => {}
            other => return Err(refused(&format!("an entry of type {other:?}"))),
        }
    }
    for (path, mode) in modes.into_iter().rev() {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Gives a file to its owner, as other engines do. Nobody but root can: for others
/// everything is their own.
fn give(path: &Path, header: &Header) -> Result<()> {
    if !host::is_root() {
        return Ok(());
    }
    let id = |id: u64| u32::try_from(id).map_err(|_| refused("an owner without a number"));
    lchown(path, Some(id(header.uid()?)?), Some(id(header.gid()?)?))
}

/// The place of an entry. No component of it may be a symbolic link, which a
/// layer below could have laid.
fn below(root: &Path, entry: &Path) -> Result<Option<PathBuf>> {
    let mut path = root.to_owned();
    let mut parts = entry.components().peekable();
    while let Some(part) = parts.next() {
        match part {
            Component::CurDir | Component::RootDir => continue,
            Component::Normal(name) => path.push(name),
            _ => return Err(refused("an entry outside of the root")),
        }
        let is_parent = parts.peek().is_some();
        match fs::symlink_metadata(&path) {
            Ok(found) if is_parent && !found.is_dir() => {
                return Err(refused("an entry below something that is no directory"));
            }
            Err(_) if is_parent => fs::create_dir(&path)?,
            _ => {}
        }
    }
    Ok((path != root).then_some(path))
}

/// Makes a place to mount over, a directory or an empty file. The image may hold
/// links, and following one would lead out of the root: none is followed.
pub fn mount_point(root: &Path, target: &Path, folder: bool) -> Result<()> {
    let Some(path) = below(root, target)? else {
        return Ok(());
    };
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() == folder && !found.is_symlink() => Ok(()),
        Ok(_) => Err(refused("the image has something else at a mount point")),
        Err(_) if folder => fs::create_dir(&path),
        Err(_) => fs::File::create_new(&path).map(drop),
    }
}

fn replace(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// A layer takes away what one below it has.
fn whiteout(marker: &Path, hidden: &str) -> Result<()> {
    let Some(folder) = marker.parent() else {
        return Ok(());
    };
    if hidden == ".wh..opq" {
        for entry in fs::read_dir(folder)? {
            replace(&entry?.path())?;
        }
        return Ok(());
    }
    if hidden.is_empty() || hidden == "." || hidden == ".." {
        return Err(refused("a whiteout of nothing"));
    }
    replace(&folder.join(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    fn layer(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o755);
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
        let result = unpack(&layers.concat(), &table, folder.path());
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
        let wanted = if host::is_root() { (7, 8) } else { own };
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
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        fs::write(&victim, "whole").unwrap();
        let through = Path::new("/usr").join(victim.strip_prefix("/").unwrap());
        assert!(mount_point(root, &through, false).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
        assert!(mount_point(root, Path::new("/in"), true).is_err());
        assert!(mount_point(root, Path::new("/out"), false).is_err());
        for (target, is_folder) in [("/out", true), ("/a/b", true), ("/c/d", false)] {
            mount_point(root, Path::new(target), is_folder).unwrap();
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
        let short = Layer {
            length: 10,
            gzip: false,
        };
        assert!(unpack(b"", &[short], folder.path()).is_err());
        // What is not what it is said to be.
        let whole = layer(&[("a", EntryType::Regular, "1")]);
        for (bytes, is_gzip) in [(gzip(&whole), false), (whole, true)] {
            let said = Layer {
                length: bytes.len() as u64,
                gzip: is_gzip,
            };
            assert!(unpack(&bytes, &[said], folder.path()).is_err());
        }
    }
}
