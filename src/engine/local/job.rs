//! What the tool and the keeper tell each other: one JSON line each, over a
//! socket that only the two hold. When the tool's end closes, the keeper ends
//! the container; when the keeper's end closes, the tool knows that it is gone.

use crate::engine::contract::{Extras, Program};
use crate::engine::gate::Closed;
use crate::engine::support::Support;
use serde::{Deserialize, Serialize};
use tki_evidence::described::local::Made;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::settings::Settings;

/// The most bytes of a line.
pub const MAX_MESSAGE: u64 = 4 * 1024 * 1024;

/// Who makes the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Maker {
    /// libcontainer, in the keeper itself.
    Embedded,
    /// bubblewrap.
    Bwrap,
}

impl Maker {
    /// The engine.
    pub fn kind(self) -> EngineKind {
        match self {
            Maker::Embedded => EngineKind::Embedded,
            Maker::Bwrap => EngineKind::Bwrap,
        }
    }

    /// The engine's name.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }
}

/// The container that the keeper is to make. Four descriptors come with it:
/// the container's standard streams and a file with the image's layers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Who makes it.
    pub maker: Maker,
    /// The container's name.
    pub name: String,
    /// What it executes.
    pub program: Program,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// Its settings.
    pub settings: Settings,
    /// The seccomp profile's text.
    pub seccomp: String,
    /// Put an exec gate before it.
    pub gate: bool,
    /// What it gets besides its settings.
    pub extras: Extras,
    /// Which limits control groups can carry, and where they are made.
    pub support: Support,
    /// The layers in the file, one behind the other.
    pub layers: Vec<Layer>,
}

/// A layer in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Layer {
    /// Its length there.
    pub length: u64,
    /// It is a gzip file with a tar in it, and not a tar.
    pub gzip: bool,
}

/// What the keeper tells the tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum News {
    /// The container runs.
    Started {
        /// Its first process.
        pid: i32,
        /// How it was made.
        made: Box<Made>,
    },
    /// There will be no container, and nothing is left of it.
    Failed {
        /// Why.
        reason: String,
    },
    /// It has ended, and nothing is left of it.
    Ended {
        /// The exit status; 128 and the signal's number if it was killed.
        status: i64,
        /// What the gate did.
        gate: Closed,
    },
}
