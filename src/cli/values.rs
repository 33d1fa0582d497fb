//! Values that arguments of several commands have.

use crate::engine::choice::Choice;
use crate::engine::contract::LONGEST_RUN;
use clap::ValueEnum;
use std::time::Duration;
use tki_evidence::engine_kind::EngineKind;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; on standard output, everything else on standard error.
    Json,
}

/// Engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The first that can be used: Docker, Podman, embedded, bwrap.
    Auto,
    /// Docker Engine.
    Docker,
    /// Podman, through its service; one is started if none runs.
    Podman,
    /// The engine built into this tool; needs nothing installed.
    Embedded,
    /// bubblewrap.
    Bwrap,
    /// Every engine that can be used, one after the other (`run` only).
    All,
}

impl EngineName {
    /// The same for the engine's side.
    pub fn choice(self) -> Choice {
        match self {
            EngineName::Auto => Choice::First,
            EngineName::Docker => Choice::One(EngineKind::Docker),
            EngineName::Podman => Choice::One(EngineKind::Podman),
            EngineName::Embedded => Choice::One(EngineKind::Embedded),
            EngineName::Bwrap => Choice::One(EngineKind::Bwrap),
            EngineName::All => Choice::Each,
        }
    }
}

/// Venues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Venue {
    /// A throwaway container on the VPS engine: approved.
    Vps,
    /// A deny-by-default CI runner: approved.
    Ci,
    /// A developer's machine: never B4′ evidence.
    Dev,
}

impl Venue {
    /// The name used in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Venue::Vps => "vps",
            Venue::Ci => "ci",
            Venue::Dev => "dev",
        }
    }
}

/// Control runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Controls {
    /// No control runs.
    None,
    /// Every control, none of which opens a way out.
    Safe,
}

/// A number of seconds that a run may last.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=LONGEST_RUN) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("a number of seconds between 1 and {LONGEST_RUN}")),
    }
}
