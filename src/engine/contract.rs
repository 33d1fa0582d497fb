//! What an engine must offer.

use crate::engine::EngineError;
use crate::engine::filling::{Files, FillError};
use crate::engine::gate::Closed;
use crate::host::first::Named;
use crate::image::Image;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tki_evidence::controller::Controller;
use tki_evidence::evidence::{Holdings, Runtime};
use tki_evidence::settings::Settings;

pub use tki_evidence::described::names::{
    INSPECTOR, LABEL_DEADLINE, LABEL_ROLE, LABEL_RUN, NAME_PREFIX, PROBER, PROGRAMS,
};
pub use tki_evidence::wire::LONGEST_RUN;

/// An engine, in the order in which its functions are used.
pub trait Engine: Send {
    /// Something will be launched soon: what takes time and changes nothing may
    /// begin.
    fn expect_launch(&mut self) {}

    /// Everything that must be known before anything is made, asked at once:
    /// what the engine says about itself, what it holds, and the id of `image` if it
    /// is there.
    fn look_around(&mut self, image: &ImageNames) -> Result<Surroundings, EngineError>;

    /// Adds what [`Self::look_around`] has asked and was slow to be told about
    /// what the engine held.
    fn complete(&mut self, _held: &mut Holdings) -> Result<(), EngineError> {
        Ok(())
    }

    /// What it holds, without containers of ours. One that carries our label and is
    /// otherwise not ours is held.
    fn holdings(&mut self) -> Result<Holdings, EngineError>;

    /// The id of the image if it is there, under whichever digest the engine
    /// knows images by.
    fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError>;

    /// Loads an image.
    fn load(&mut self, image: &Image) -> Result<(), EngineError>;

    /// Creates a container, attaches to it and starts it. An engine without a
    /// store of its own takes the files from `image`.
    fn launch(
        &mut self,
        launch: &Launch,
        image: &Image,
    ) -> Result<Box<dyn Session + '_>, EngineError>;

    /// It makes volumes for a container, so that nothing of it is a path of this host.
    fn makes_volumes(&self) -> bool {
        false
    }

    /// Puts files below /in of a container that is made as `launch` says, never started, and
    /// removed: its volume there keeps them. Asked only of an engine that makes volumes.
    fn fill(&mut self, _launch: &Launch, _files: Files) -> Result<(), FillError> {
        Err(FillError::NoVolumes)
    }

    /// Removes volumes of a run whose containers are gone, by name. It is done even after a
    /// deadline or a signal.
    fn let_go(&mut self, _volumes: &[String]) -> Result<(), EngineError> {
        Ok(())
    }

    /// How an exec gate is put before a container here.
    fn gate_kind(&self) -> GateKind;

    /// Containers that carry our label, ours or not, and what is left of some of ours that
    /// the engine has forgotten.
    fn leftovers(&mut self) -> Result<Vec<Leftover>, EngineError>;

    /// Removes one of these that is ours.
    fn remove(&mut self, id: &str) -> Result<(), EngineError>;
}

/// Makes a connection to the engine: one for a run, more for its controls.
pub type Connect<'a> = dyn Fn() -> Result<Box<dyn Engine>, EngineError> + Sync + 'a;

/// A running container. Dropping it removes the container.
pub trait Session {
    /// What the engine says it set.
    fn configured(&mut self) -> Result<Configured, EngineError>;

    /// Sends a line to the container's standard input.
    fn send(&mut self, line: &[u8]) -> Result<(), EngineError>;

    /// The next line of its standard output, without the newline; `None` when
    /// it has ended. Lines and the whole are bounded.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, EngineError>;

    /// What it wrote to standard error so far, bounded.
    fn complaint(&mut self) -> String;

    /// Waits until the container has ended and is removed.
    fn finish(&mut self) -> Result<Ended, EngineError>;

    /// What the exec gate did, or why there was none. Asked after the end.
    /// A gate that the profile asks for is not the session's.
    fn gate(&mut self) -> Closed {
        Closed::default()
    }
}

/// How an exec gate is put before a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateKind {
    /// The engine does it itself, beside the profile.
    Own,
    /// The profile names a socket (`listenerPath`), to which the OCI runtime
    /// hands its listener, if the engine passes that on.
    Listener,
}

/// What an engine says about itself.
#[derive(Clone, Debug)]
pub struct EngineFacts {
    /// For the evidence.
    pub runtime: Runtime,
    /// Its operating system, as it names it.
    pub operating_system: String,
    /// Its host's name.
    pub host_name: String,
    /// How it is reached, if not on this host or through a unix socket: as a user would
    /// write the address.
    pub reached: Option<String>,
    /// The kernel can limit swap.
    pub swap_limit: bool,
    /// Processors.
    pub cpus: i64,
    /// Limits that it cannot set.
    pub lacks: Vec<Controller>,
    /// What the user should know about the choice of engine or runtime.
    pub notes: Vec<String>,
    /// By what it is known again, if it says that before it is asked for a container.
    pub identity: Option<Identity>,
}

/// By what an engine is known again, beside its name, its version and its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its address, as a user would write it.
    pub address: String,
    /// What it calls itself by; empty if it does not.
    pub id: String,
    /// What it says its runtime was built from; empty if it does not.
    pub runtime_commit: String,
}

/// What must be known before anything is made.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// What the engine says about itself.
    pub facts: EngineFacts,
    /// What it holds.
    pub holdings: Holdings,
    /// The id of the image that is needed, if it is there.
    pub held: Option<String>,
}

/// The digests by which an engine may know an image.
#[derive(Clone, Debug)]
pub struct ImageNames {
    /// Of the manifest.
    pub manifest_digest: String,
    /// Of the config.
    pub config_digest: String,
}

/// A container to launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// The image's id.
    pub image: String,
    /// What it executes.
    pub program: Program,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The most bytes that it may write to its standard output, all in all.
    pub most_said: usize,
    /// Its settings.
    pub settings: Settings,
    /// How many processors the engine's host has.
    pub cpus: i64,
    /// The seccomp profile's text, to which `settings.seccomp` is the digest.
    pub seccomp: String,
    /// The directory on the host that holds what is bound, perhaps a mount of its own;
    /// none if the engine makes volumes.
    pub scratch: Option<PathBuf>,
    /// Volumes of the engine's that are made for the container.
    pub volumes: Vec<Volume>,
    /// A directory that the engine may make on the host if it needs one, until
    /// the container has started.
    pub folder: PathBuf,
    /// The OCI runtime to use, if not the engine's own choice.
    pub runtime: Option<String>,
    /// Put an exec gate before the container.
    pub gate: bool,
    /// What it gets besides its settings.
    pub extras: Extras,
}

/// What a container of ours executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// The prober, to which an image leads by itself.
    Prober,
    /// The inspector.
    Inspector,
}

impl Program {
    /// Where it is in an image.
    pub fn path(self) -> &'static str {
        match self {
            Self::Prober => "/tki-prober",
            Self::Inspector => "/tki-inspector",
        }
    }

    /// What an engine is told to execute, where it is not what the image says.
    pub fn entry_point(self) -> Option<Vec<String>> {
        match self {
            Self::Prober => None,
            Self::Inspector => Some(vec![self.path().to_owned()]),
        }
    }
}

/// What a control's container gets that no setting says. Engines with a daemon have no way
/// to give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    /// One more descriptor, of the null device.
    pub descriptor: bool,
    /// Its own control group, writable and its user's.
    pub own_group: bool,
}

/// A volume of the engine's that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name.
    pub name: String,
    /// It is removed when the container is gone. Otherwise further containers of the run
    /// have it, and [`Engine::let_go`] removes it.
    pub goes_along: bool,
}

/// What the engine says it set.
#[derive(Clone, Debug)]
pub struct Configured {
    /// In the common form.
    pub settings: Settings,
    /// The image that the container was made from.
    pub image_id: String,
    /// The OCI runtime that the container was made with, if the engine tells it.
    pub oci_runtime: Option<String>,
    /// The process id of the container's init, if the engine tells it.
    pub pid: Option<i32>,
    /// What the container's control groups are called, where the engine makes any.
    pub group: String,
    /// The engine's own description, verbatim.
    pub description: String,
}

impl Configured {
    /// What the engine says of the container's first process.
    pub fn first(&self) -> Named<'_> {
        Named {
            pid: self.pid,
            group: &self.group,
        }
    }
}

/// How a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, if the engine still knew it.
    pub status: Option<i64>,
}

/// A container of ours, or one that looks like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its id.
    pub id: String,
    /// The run that it belongs to.
    pub run_id: String,
    /// The engine's word for its state.
    pub state: String,
    /// Unix time after which `clean` may remove it.
    pub deadline: Option<u64>,
    /// In what it differs from any container of ours. It is another party's then, and
    /// stays.
    pub foreign: Option<&'static str>,
}
