//! The file tree that the steps build up, with `COPY`'s rules as BuildKit has them.
//!
//! A copied directory gives its content, not itself, to the destination;
//! `--chmod` applies to what is copied and not to directories created on the
//! way; `--chown` applies to both; a later copy wins.

use std::collections::BTreeMap;

use crate::context::{Budget, Context, Found, Item};
use crate::error::ContextError;
use crate::paths;
use crate::recipe::{Copy, Owner};
use crate::text::shown;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File(Vec<u8>),
    Directory,
    Symlink(String),
}

/// An entry of the new layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) node: Node,
    pub(crate) mode: u32,
    pub(crate) owner: Owner,
}

/// What the base has at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseNode {
    /// A directory and how it would have to be repeated in a later layer.
    Directory { mode: u32, owner: Owner },
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

/// Entries by clean path: parents sort before what they contain.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// The base's tree and what the new layer puts over it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    base: BTreeMap<String, BaseNode>,
    entries: Entries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Symlink,
}

impl Tree {
    /// An empty layer over a base.
    pub(crate) fn over(base: BTreeMap<String, BaseNode>) -> Self {
        Self {
            base,
            entries: BTreeMap::new(),
        }
    }

    /// The new layer's entries.
    pub(crate) fn into_entries(self) -> Entries {
        self.entries
    }

    /// Carries out a `COPY`; `workdir` is where a relative destination starts.
    pub(crate) fn copy(
        &mut self,
        copy: &Copy,
        workdir: &str,
        context: &Context,
        budget: &mut Budget,
    ) -> Result<(), ContextError> {
        let destination = match copy.absolute {
            true => copy.destination.clone(),
            false => paths::join(workdir, &copy.destination),
        };
        let owner = copy.owner.unwrap_or_default();
        for source in &copy.sources {
            match context.read(source, budget)? {
                Found::Directory(items) => {
                    self.make_directory(&destination, owner)?;
                    for (below, item) in items {
                        let path = paths::join(&destination, &below);
                        self.put(path, item, copy.mode, owner)?;
                    }
                }
                Found::File(item) => {
                    let inside =
                        copy.into_directory || self.kind(&destination) == Some(Kind::Directory);
                    let path = match inside {
                        true => paths::join(&destination, paths::file_name(source)),
                        false => destination.clone(),
                    };
                    self.make_parents(&path, owner)?;
                    self.put(path, item, copy.mode, owner)?;
                }
            }
        }
        Ok(())
    }

    /// Creates a directory and its parents where they are missing.
    pub(crate) fn make_directory(&mut self, path: &str, owner: Owner) -> Result<(), ContextError> {
        self.make_parents(path, owner)?;
        self.enter(path, owner)
    }

    /// Whether a directory is there already.
    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.kind(path) == Some(Kind::Directory)
    }

    fn make_parents(&mut self, path: &str, owner: Owner) -> Result<(), ContextError> {
        paths::ancestors(path).try_for_each(|parent| self.enter(parent, owner))
    }

    /// Makes sure that one path is a directory of the new layer. A directory of
    /// the base is repeated with the base's mode and owner: engines that unpack
    /// each layer on its own would otherwise invent both.
    fn enter(&mut self, path: &str, owner: Owner) -> Result<(), ContextError> {
        let (mode, owner) = match (path, self.kind(path)) {
            ("", _) => return Ok(()),
            (_, None) => (0o755, owner),
            (_, Some(Kind::Directory)) => match self.base.get(path) {
                Some(BaseNode::Directory { mode, owner }) => (*mode, *owner),
                _ => return Ok(()),
            },
            (_, Some(Kind::Symlink)) => {
                return Err(conflict(path, "is a symbolic link in the image"));
            }
            (_, Some(Kind::File)) => return Err(conflict(path, "is a file in the image")),
        };
        let node = Node::Directory;
        let entry = Entry { node, mode, owner };
        self.entries.entry(path.to_owned()).or_insert(entry);
        Ok(())
    }

    fn put(
        &mut self,
        path: String,
        item: Item,
        chmod: Option<u32>,
        owner: Owner,
    ) -> Result<(), ContextError> {
        let (node, mode) = match item {
            Item::File { data, executable } => {
                let fixed = if executable { 0o755 } else { 0o644 };
                (Node::File(data), chmod.unwrap_or(fixed))
            }
            Item::Directory => (Node::Directory, chmod.unwrap_or(0o755)),
            Item::Symlink(target) => (Node::Symlink(target), 0o777),
        };
        match (&node, self.kind(&path)) {
            (Node::File(_) | Node::Symlink(_), Some(Kind::Directory)) => {
                return Err(conflict(&path, "is a directory in the image already"));
            }
            (Node::Directory, Some(Kind::File)) => {
                return Err(conflict(&path, "is a file in the image already"));
            }
            (Node::File(_) | Node::Directory, Some(Kind::Symlink)) => {
                return Err(conflict(&path, "is a symbolic link in the image already"));
            }
            _ => {}
        }
        self.entries.insert(path, Entry { node, mode, owner });
        Ok(())
    }

    fn kind(&self, path: &str) -> Option<Kind> {
        if path.is_empty() {
            return Some(Kind::Directory);
        }
        if let Some(entry) = self.entries.get(path) {
            return Some(match entry.node {
                Node::File(_) => Kind::File,
                Node::Directory => Kind::Directory,
                Node::Symlink(_) => Kind::Symlink,
            });
        }
        self.base.get(path).map(|node| match node {
            BaseNode::Directory { .. } => Kind::Directory,
            BaseNode::Symlink => Kind::Symlink,
            BaseNode::Other => Kind::File,
        })
    }
}

fn conflict(path: &str, why: &str) -> ContextError {
    let why = format!("`/{}` {why}", shown(path));
    ContextError::new("context.conflict", why, "copy to another path")
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
