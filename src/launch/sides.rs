//! What stands behind /in and /out. Docker and Podman make volumes for a run, so that
//! nothing of it is a path of this host and nobody needs a right here. An engine without
//! volumes binds directories that [`Scratch`] makes.

use crate::host::claim::{self, Claim};
use crate::host::first::{self, Marks};
use crate::host::janitor::Janitor;
use crate::host::scratch::{Input, Scratch};
use crate::launch::error::LaunchError;
use crate::sandbox::profile::USER;
use std::borrow::Cow;
use std::path::PathBuf;
use tki_evidence::controller::Controller;
use tki_evidence::described::names::NAME_PREFIX;
use tki_evidence::evidence::OutBacking;
use tki_evidence::settings::{Bind, Memory, memory};

/// Who makes what stands behind /in and /out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The engine.
    Engine,
    /// This tool, on its own host, with what the engine said if it makes none.
    Launcher(String),
}

impl Maker {
    /// As evidence names it.
    fn name(&self) -> String {
        match self {
            Self::Engine => "engine".into(),
            Self::Launcher(why) if why.is_empty() => "launcher".into(),
            Self::Launcher(why) => format!("launcher: {why}"),
        }
    }
}

/// What stands behind /in and /out of a container; what this host has of it is gone when
/// dropped.
#[derive(Debug)]
pub enum Sides<'a> {
    /// Directories of this host.
    Host(Scratch<'a>),
    /// Volumes of the engine's.
    Engine(Volumes<'a>),
}

/// Volumes of the engine's: /in has the container's name, /out has none and goes with the
/// container.
#[derive(Debug)]
pub struct Volumes<'a> {
    name: String,
    input: String,
    backing: OutBacking,
    janitor: &'a Janitor,
    /// A directory for sockets of the tool's own, once it was needed.
    beside: Option<Claim>,
}

impl<'a> Sides<'a> {
    /// Those of the run or control that is called `name`, with /out of this size; if the engine
    /// makes them, /in is the volume of the one that is called `input`.
    pub fn new(
        name: &str,
        input: &str,
        out: Memory,
        maker: &Maker,
        janitor: &'a Janitor,
    ) -> Result<Self, LaunchError> {
        Self::with(name, input, Input::Target, out, maker, janitor)
    }

    /// Those of the inspection that is called `name`. On this host there is so much room for
    /// what it reads.
    pub fn with_room(
        name: &str,
        room: Memory,
        out: Memory,
        maker: &Maker,
        janitor: &'a Janitor,
    ) -> Result<Self, LaunchError> {
        Self::with(name, name, Input::Room(room), out, maker, janitor)
    }

    fn with(
        name: &str,
        input: &str,
        content: Input,
        out: Memory,
        maker: &Maker,
        janitor: &'a Janitor,
    ) -> Result<Self, LaunchError> {
        let Maker::Launcher(said) = maker else {
            return Ok(Self::Engine(Volumes::new(name, input, out, maker, janitor)));
        };
        let scratch = Scratch::new(name, out, content, USER, &maker.name(), janitor)?;
        if !said.is_empty() && scratch.backing().kind != "tmpfs" {
            return Err(LaunchError::NoRight {
                said: said.clone(),
                reason: scratch.backing().reason.clone(),
            });
        }
        Ok(Self::Host(scratch))
    }

    /// What a container is asked to be given, with /out of this size, before a control relaxes
    /// anything of it.
    pub fn binds(&self, out: Memory) -> Vec<Bind> {
        match self {
            Self::Host(scratch) => {
                let path = |path: PathBuf| path.to_string_lossy().into_owned();
                vec![
                    Bind::of_host(&path(scratch.input()), "/in", true),
                    Bind::of_host(&path(scratch.output()), "/out", false),
                ]
            }
            Self::Engine(volumes) => vec![
                Bind::of_engine(&volumes.input, "/in", true),
                Bind {
                    options: memory(out),
                    ..Bind::of_engine("", "/out", false)
                },
            ],
        }
    }

    /// What the names of this container's own begin with: the directory that holds both,
    /// or the volume.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Host(scratch) => scratch.base().to_string_lossy(),
            Self::Engine(volumes) => Cow::Borrowed(&volumes.input),
        }
    }

    /// The volume that has a name.
    pub fn volume(&self) -> Option<String> {
        match self {
            Self::Host(_) => None,
            Self::Engine(volumes) => Some(volumes.input.clone()),
        }
    }

    /// The directories of this host.
    pub fn scratch(&self) -> Option<&Scratch<'a>> {
        match self {
            Self::Host(scratch) => Some(scratch),
            Self::Engine(_) => None,
        }
    }

    /// What stands behind /out.
    pub fn backing(&self) -> &OutBacking {
        match self {
            Self::Host(scratch) => scratch.backing(),
            Self::Engine(volumes) => &volumes.backing,
        }
    }

    /// A directory of this tool's own on this host, for a socket that a part of the engine
    /// on the same host connects to.
    pub fn folder(&mut self) -> std::io::Result<&crate::files::Folder> {
        match self {
            Self::Host(scratch) => Ok(scratch.folder()),
            Self::Engine(volumes) => volumes.folder(),
        }
    }

    /// By what the host knows the first process of a container with these sides, on an
    /// engine that cannot set these limits.
    pub fn marks(&self, lacks: &[Controller]) -> Marks {
        let input = match self {
            Self::Host(scratch) => first::Input::directory(&scratch.input()),
            Self::Engine(volumes) => first::Input::Volume(volumes.input.clone()),
        };
        Marks::new(input, lacks)
    }

    /// The container runs and holds its file systems: what the host has of them can go.
    pub fn release(&mut self) {
        if let Self::Host(scratch) = self {
            scratch.release();
        }
    }
}

impl<'a> Volumes<'a> {
    fn new(name: &str, input: &str, out: Memory, maker: &Maker, janitor: &'a Janitor) -> Self {
        Self {
            name: name.to_owned(),
            input: format!("{NAME_PREFIX}{input}"),
            backing: OutBacking {
                kind: "tmpfs".into(),
                reason: format!(
                    "noexec,nosuid,nodev,size={},nr_inodes={}",
                    out.bytes, out.files
                ),
                maker: maker.name(),
            },
            janitor,
            beside: None,
        }
    }

    fn path(&self) -> PathBuf {
        claim::beside(&format!("{}-gate", self.name))
    }

    fn folder(&mut self) -> std::io::Result<&crate::files::Folder> {
        let claim = match self.beside.take() {
            Some(claim) => claim,
            None => {
                let path = self.path();
                self.janitor.make(&path);
                claim::claim(&path)?
            }
        };
        Ok(self.beside.insert(claim).folder())
    }
}

impl Drop for Volumes<'_> {
    fn drop(&mut self) {
        if let Some(claim) = self.beside.take() {
            drop(claim);
            self.janitor.gone(&self.path());
        }
    }
}
