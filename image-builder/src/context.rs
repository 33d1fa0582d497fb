//! Where `COPY` finds its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::{ContextError, ImageError};
use crate::files::{self, Child};
use crate::paths;
use crate::text::shown;

/// The most bytes that one build copies.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The most files and directories that one build copies.
const MAX_ENTRIES: usize = 100_000;
/// The deepest nesting; more than a tar header's path can express.
const MAX_DEPTH: usize = 128;

/// Where `COPY` finds its sources: a directory, or files held in memory.
#[derive(Debug)]
pub struct Context(Source);

#[derive(Debug)]
enum Source {
    Directory {
        path: PathBuf,
        root: OwnedFd,
    },
    /// Content by clean path; an empty directory has none.
    Memory(BTreeMap<String, Option<Vec<u8>>>),
}

/// What a build may still copy.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    entries: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bytes: MAX_BYTES,
            entries: MAX_ENTRIES,
        }
    }
}

/// One thing to copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    File { data: Vec<u8>, executable: bool },
    Directory,
    Symlink(String),
}

/// What a source turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file, with its content.
    File(Item),
    /// A directory's content by path below it, parents first.
    Directory(Vec<(String, Item)>),
}

impl Context {
    /// Takes sources from a directory. Links are never followed.
    pub fn directory(path: impl Into<PathBuf>) -> Result<Self, ImageError> {
        let path = path.into();
        let root = files::open_root(&path).map_err(|error| ImageError::read(&path, error))?;
        // Other builders would leave files out here, and their image and this
        // one would differ without anybody noticing.
        if files::child(&root, ".dockerignore").is_ok() {
            return Err(ImageError::Context(ContextError::new(
                "context.ignore",
                format!(
                    "{} has a .dockerignore, which is not supported",
                    shown(&path.to_string_lossy())
                ),
                "stage the files to copy in a directory of their own",
            )));
        }
        Ok(Self(Source::Directory { path, root }))
    }

    /// Takes sources from memory: content by relative path. The files are not
    /// executable unless `--chmod` says so.
    pub fn memory(files: BTreeMap<String, Vec<u8>>) -> Result<Self, ImageError> {
        Self::memory_with(files, &[])
    }

    /// The same, and directories that have nothing in them.
    pub fn memory_with(
        files: BTreeMap<String, Vec<u8>>,
        empty: &[&str],
    ) -> Result<Self, ImageError> {
        let mut clean = BTreeMap::new();
        let files = files.into_iter().map(|(path, data)| (path, Some(data)));
        let empty = empty.iter().map(|path| ((*path).to_owned(), None));
        for (path, data) in files.chain(empty) {
            let refuse = |why: &str| {
                let why = format!("`{}` {why}", shown(&path));
                ContextError::new(
                    "context.name",
                    why,
                    "give every file a relative path of its own",
                )
            };
            let key = paths::clean(&path).map_err(|problem| refuse(problem.why()))?;
            if key.is_empty() {
                return Err(refuse("names the root").into());
            }
            if clean.insert(key, data).is_some() {
                return Err(refuse("is given twice").into());
            }
        }
        for path in clean.keys() {
            if let Some(parent) = paths::ancestors(path).find(|parent| clean.contains_key(*parent))
            {
                let why = format!("`{}` is both a file and a directory", shown(parent));
                let next = "rename one of them";
                return Err(ContextError::new("context.name", why, next).into());
            }
        }
        Ok(Self(Source::Memory(clean)))
    }

    /// Reads a source, given as a clean path.
    pub(crate) fn read(&self, source: &str, budget: &mut Budget) -> Result<Found, ContextError> {
        match &self.0 {
            Source::Directory { path, root } => DirectoryReader { path, budget }.read(root, source),
            Source::Memory(files) => from_memory(files, source, budget),
        }
    }
}

impl Budget {
    fn entry(&mut self) -> Result<(), ContextError> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| {
            let why = format!("the sources have more than {MAX_ENTRIES} files");
            ContextError::new("context.limit", why, "copy less")
        })?;
        Ok(())
    }

    fn spend(&mut self, bytes: u64) -> Result<(), ContextError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_many_bytes)?;
        Ok(())
    }
}

fn too_many_bytes() -> ContextError {
    let why = format!("the sources have more than {} MiB", MAX_BYTES >> 20);
    ContextError::new("context.limit", why, "copy less")
}

fn missing(source: &str) -> ContextError {
    let why = format!("`{}` is not in the build context", shown(source));
    ContextError::new("context.missing", why, "add it or correct the path")
}

fn from_memory(
    files: &BTreeMap<String, Option<Vec<u8>>>,
    source: &str,
    budget: &mut Budget,
) -> Result<Found, ContextError> {
    let mut item = |data: &Option<Vec<u8>>| {
        budget.entry()?;
        let Some(data) = data else {
            return Ok(Item::Directory);
        };
        budget.spend(data.len() as u64)?;
        Ok(Item::File {
            data: data.clone(),
            executable: false,
        })
    };
    match files.get(source) {
        Some(None) => return Ok(Found::Directory(Vec::new())),
        Some(data) => return Ok(Found::File(item(data)?)),
        None => {}
    }
    let prefix = match source {
        "" => String::new(),
        source => format!("{source}/"),
    };
    let mut items = Vec::new();
    let mut directories = BTreeSet::new();
    for (path, data) in files {
        let Some(below) = path.strip_prefix(&prefix) else {
            continue;
        };
        for parent in paths::ancestors(below) {
            if directories.insert(parent) {
                items.push((parent.to_owned(), Item::Directory));
            }
        }
        items.push((below.to_owned(), item(data)?));
    }
    if items.is_empty() && !source.is_empty() {
        return Err(missing(source));
    }
    Ok(Found::Directory(items))
}

struct DirectoryReader<'a> {
    path: &'a Path,
    budget: &'a mut Budget,
}

impl DirectoryReader<'_> {
    fn read(&mut self, root: &OwnedFd, source: &str) -> Result<Found, ContextError> {
        let mut directory = None;
        let mut walked = String::new();
        for name in source.split('/').filter(|name| !name.is_empty()) {
            walked = paths::join(&walked, name);
            let parent = directory.as_ref().unwrap_or(root);
            match self.child(parent, name, &walked)? {
                Child::Directory(opened) => directory = Some(opened),
                Child::File(file, executable) if walked == source => {
                    return Ok(Found::File(self.file(file, executable, source)?));
                }
                Child::File(..) => return Err(missing(source)),
                Child::Symlink(_) => {
                    let why = format!("`{}` is a symbolic link", shown(&walked));
                    let next = "name what it points to, inside the build context";
                    return Err(ContextError::new("context.symlink", why, next));
                }
                Child::Special => return Err(special(&walked)),
            }
        }
        let mut items = Vec::new();
        self.walk(
            directory.as_ref().unwrap_or(root),
            source,
            "",
            0,
            &mut items,
        )?;
        Ok(Found::Directory(items))
    }

    /// Collects what is below a directory. Links inside are taken as links.
    fn walk(
        &mut self,
        directory: &OwnedFd,
        source: &str,
        below: &str,
        depth: usize,
        items: &mut Vec<(String, Item)>,
    ) -> Result<(), ContextError> {
        let here = paths::join(source, below);
        if depth == MAX_DEPTH {
            let why = format!("`{}` is nested too deeply", shown(&here));
            return Err(ContextError::new(
                "context.limit",
                why,
                "flatten the directory",
            ));
        }
        let names = files::names(directory, self.budget.entries)
            .map_err(|error| self.unreadable(&here, &error))?;
        let Some(names) = names else {
            self.budget.entries = 0;
            return self.budget.entry();
        };
        for name in names {
            let name = String::from_utf8(name).map_err(|error| {
                let name = String::from_utf8_lossy(error.as_bytes()).into_owned();
                bad_name(&paths::join(&here, &name), "has a name that is not UTF-8")
            })?;
            let path = paths::join(&here, &name);
            paths::check_name(&name).map_err(|problem| bad_name(&path, problem.why()))?;
            let target = paths::join(below, &name);
            match self.child(directory, &name, &path)? {
                Child::File(file, executable) => {
                    items.push((target, self.file(file, executable, &path)?));
                }
                Child::Directory(opened) => {
                    self.budget.entry()?;
                    items.push((target.clone(), Item::Directory));
                    self.walk(&opened, source, &target, depth + 1, items)?;
                }
                Child::Symlink(link) => {
                    self.budget.entry()?;
                    let link = String::from_utf8(link)
                        .ok()
                        .filter(|link| !link.chars().any(char::is_control))
                        .ok_or_else(|| {
                            bad_name(&path, "links to a name that is not plain UTF-8")
                        })?;
                    items.push((target, Item::Symlink(link)));
                }
                Child::Special => return Err(special(&path)),
            }
        }
        Ok(())
    }

    fn child(&self, directory: &OwnedFd, name: &str, path: &str) -> Result<Child, ContextError> {
        files::child(directory, name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(path),
            _ => self.unreadable(path, &error),
        })
    }

    fn file(
        &mut self,
        file: std::fs::File,
        executable: bool,
        path: &str,
    ) -> Result<Item, ContextError> {
        self.budget.entry()?;
        let data = files::read_bounded(file, self.budget.bytes)
            .map_err(|error| self.unreadable(path, &error))?
            .ok_or_else(too_many_bytes)?;
        self.budget.spend(data.len() as u64)?;
        Ok(Item::File { data, executable })
    }

    fn unreadable(&self, path: &str, error: &io::Error) -> ContextError {
        let full = self.path.join(path);
        let why = format!("cannot read {}: {error}", shown(&full.to_string_lossy()));
        ContextError::new("context.unreadable", why, "check its permissions")
    }
}

fn special(path: &str) -> ContextError {
    let why = format!("`{}` is a device, socket or pipe", shown(path));
    ContextError::new(
        "context.special",
        why,
        "copy only files, directories and links",
    )
}

fn bad_name(path: &str, why: &str) -> ContextError {
    let why = format!("`{}` {why}", shown(path));
    ContextError::new("context.name", why, "rename it")
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
