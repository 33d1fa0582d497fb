//! A base image: its layers verbatim, its tree, its configuration.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use tar::{Archive, EntryType};

use crate::config::Config;
use crate::error::{ImageError, LayoutError};
use crate::layout::{Layout, Limits};
use crate::manifest::Descriptor;
use crate::paths;
use crate::recipe::Owner;
use crate::text::shown;
use crate::tree::BaseNode;

/// The most entries of a base's tree.
const MAX_ENTRIES: usize = 500_000;
/// A file of this name in a layer hides everything that lower layers have in
/// its directory; this prefix alone hides one file.
const OPAQUE: &str = ".wh..wh..opq";
const WHITEOUT: &str = ".wh.";

/// What an image inherits. The default is `FROM scratch`.
#[derive(Debug, Default)]
pub(crate) struct Foundation {
    /// The base's layers, in order, as they were stored.
    pub(crate) layers: Vec<(Descriptor, Vec<u8>)>,
    /// The base's configuration.
    pub(crate) config: Config,
    /// The base's tree by clean path.
    pub(crate) tree: BTreeMap<String, BaseNode>,
}

/// Reads a base for an architecture, and checks all of it.
pub(crate) fn read(dir: &Path, architecture: &str) -> Result<Foundation, ImageError> {
    let layout = Layout::open(dir)?;
    let config = &layout.config;
    let refuse = |why: String, next| LayoutError::new("layout.base", dir, why, next);
    if config.os != "linux" || config.architecture != architecture {
        let (os, other) = (shown(&config.os), shown(&config.architecture));
        let why = format!("is for {os}/{other}, and the image is for linux/{architecture}");
        return Err(refuse(why, "use a base for this machine").into());
    }
    if let Some(name) = config.config.as_ref().and_then(|runtime| runtime.refused()) {
        let why = format!("was built with {name}, which is not supported");
        return Err(refuse(why, "rebuild the base without it").into());
    }
    let mut limits = Limits::default();
    let mut tree = BTreeMap::new();
    let mut layers = Vec::new();
    for (index, descriptor) in layout.manifest.layers.iter().enumerate() {
        let stored = layout.layer(index, &mut limits)?;
        layout.unpack(index, &stored, &mut limits, |tar| {
            overlay(&mut tree, tar).map_err(|why| {
                let why = format!("layer {index} {why}");
                LayoutError::new("layout.malformed", dir, why, "use another base")
            })
        })?;
        layers.push((descriptor.clone(), stored));
    }
    Ok(Foundation {
        layers,
        config: layout.config,
        tree,
    })
}

/// Why a layer is not taken; the words follow its number.
#[derive(Debug, thiserror::Error)]
enum LayerProblem {
    #[error("is not a tar archive: {}", shown(&.0.to_string()))]
    Archive(#[from] std::io::Error),
    #[error("has a name that is not UTF-8")]
    Name,
    #[error("has the path `{}`", shown(.0))]
    Path(String),
    #[error("has an id that is too large")]
    Id,
    #[error("brings the tree to more than {MAX_ENTRIES} entries")]
    Entries,
}

/// Lays one layer over the tree of those below it.
fn overlay(tree: &mut BTreeMap<String, BaseNode>, tar: &mut dyn Read) -> Result<(), LayerProblem> {
    let mut archive = Archive::new(tar);
    // A layer's own entries survive its opaque markers, wherever they stand.
    let mut fresh = BTreeMap::new();
    for entry in archive.entries()? {
        let entry = entry?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader) {
            continue;
        }
        let path =
            String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| LayerProblem::Name)?;
        if path.split('/').any(|part| part == "..") {
            return Err(LayerProblem::Path(path));
        }
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        let path = parts.join("/");
        let Some((name, parents)) = parts.split_last() else {
            continue;
        };
        let parent = parents.join("/");
        if *name == OPAQUE {
            remove_below(tree, &parent);
        } else if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            let hidden = paths::join(&parent, hidden);
            remove_below(tree, &hidden);
            tree.remove(&hidden);
        } else {
            let node = match kind {
                EntryType::Directory => {
                    let header = entry.header();
                    let id = |id: u64| u32::try_from(id).map_err(|_| LayerProblem::Id);
                    BaseNode::Directory {
                        mode: header.mode()? & 0o7777,
                        owner: Owner {
                            uid: id(header.uid()?)?,
                            gid: id(header.gid()?)?,
                        },
                    }
                }
                EntryType::Symlink => BaseNode::Symlink,
                _ => BaseNode::Other,
            };
            fresh.insert(path, node);
        }
        if tree.len() + fresh.len() > MAX_ENTRIES {
            return Err(LayerProblem::Entries);
        }
    }
    for (path, node) in fresh {
        if !matches!(node, BaseNode::Directory { .. }) {
            remove_below(tree, &path);
        }
        tree.insert(path, node);
    }
    Ok(())
}

fn remove_below(tree: &mut BTreeMap<String, BaseNode>, path: &str) {
    if path.is_empty() {
        tree.clear();
        return;
    }
    // `0` follows `/`, so this range is exactly what starts with `path/`.
    let range = format!("{path}/")..format!("{path}0");
    let below: Vec<String> = tree.range(range).map(|(path, _)| path.clone()).collect();
    for path in below {
        tree.remove(&path);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tar::{Builder, EntryType, Header};

    use super::{BaseNode, LayerProblem, Owner, overlay};

    fn layer(entries: &[(&str, EntryType)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind) in entries {
            let mut header = Header::new_gnu();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o40_750);
            header.set_uid(1);
            header.set_gid(2);
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, &[][..]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn tree(layers: &[&[(&str, EntryType)]]) -> Result<BTreeMap<String, BaseNode>, LayerProblem> {
        let mut tree = BTreeMap::new();
        for entries in layers {
            overlay(&mut tree, &mut &*layer(entries))?;
        }
        Ok(tree)
    }

    const D: EntryType = EntryType::Directory;
    const F: EntryType = EntryType::Regular;
    const L: EntryType = EntryType::Symlink;

    #[test]
    fn layers_overlay_and_whiteouts_hide() {
        let found = tree(&[
            &[
                ("./", D),
                ("./a/", D),
                ("a/b/", D),
                ("a/b/c", F),
                ("a0", F),
                ("l", L),
            ],
            &[("a/b/new", F), ("a/b/.wh..wh..opq", F), (".wh.l", F)],
            &[(".wh.none", F), ("a0", L)],
        ])
        .unwrap();
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "a/b", "a/b/new", "a0"]);
        assert_eq!(found["a0"], BaseNode::Symlink);
        let owner = Owner { uid: 1, gid: 2 };
        assert_eq!(found["a"], BaseNode::Directory { mode: 0o750, owner });
    }

    #[test]
    fn a_file_over_a_directory_hides_its_content() {
        let found = tree(&[&[("a/", D), ("a/b", F)], &[("a", F)]]).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn a_path_that_climbs_is_refused() {
        assert!(tree(&[&[("a/../../b", F)]]).is_err());
    }
}
