//! What a Dockerfile asks for, as values.

use std::collections::BTreeMap;

use crate::error::Location;

/// A Dockerfile after everything outside the supported subset was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// What the image is built upon.
    pub base: Base,
    /// The steps that change the file tree, in order.
    pub steps: Vec<Step>,
    /// What the image's configuration will say.
    pub settings: Settings,
    /// Where `FROM` names the base.
    pub from: Location,
}

/// What the image is built upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nothing.
    Scratch,
    /// An OCI layout that the caller gives under this name.
    Named(String),
}

/// A step that changes the file tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `COPY`.
    Copy(Copy),
    /// `WORKDIR`, which creates the directory if it is missing.
    Workdir {
        /// The directory, relative to the image's root.
        path: String,
        /// The `USER` in force, who will own the directory.
        owner: Option<Owner>,
        /// Where the instruction stands.
        at: Location,
    },
}

/// A `COPY` instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The sources, relative to the context's root.
    pub sources: Vec<String>,
    /// The destination without slashes at its ends.
    pub destination: String,
    /// Whether the destination was written from the root, not from the `WORKDIR`.
    pub absolute: bool,
    /// Whether the destination was written as a directory.
    pub into_directory: bool,
    /// `--chmod`.
    pub mode: Option<u32>,
    /// `--chown`.
    pub owner: Option<Owner>,
    /// Where the instruction stands.
    pub at: Location,
}

/// A numeric user and group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

/// What the image's configuration will say; `None` leaves the base's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `USER`, as written.
    pub user: Option<String>,
    /// `ENV`, in the order of first mention.
    pub env: Vec<(String, String)>,
    /// `ENTRYPOINT`.
    pub entrypoint: Option<Vec<String>>,
    /// `CMD`.
    pub cmd: Option<Vec<String>>,
    /// `WORKDIR`, absolute.
    pub workdir: Option<String>,
    /// `LABEL`.
    pub labels: BTreeMap<String, String>,
    /// `STOPSIGNAL`.
    pub stop_signal: Option<String>,
}

impl Settings {
    /// Sets a variable; an earlier mention keeps its place.
    pub(crate) fn set_env(&mut self, key: String, value: String) {
        match self.env.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None => self.env.push((key, value)),
        }
    }
}
