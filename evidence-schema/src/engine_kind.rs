//! The engines that this tool knows.

use core::fmt;

/// An engine. Evidence has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineKind {
    /// Docker Engine.
    Docker,
    /// Podman, through its service.
    Podman,
    /// libcontainer, inside this tool.
    Embedded,
    /// bubblewrap.
    Bwrap,
}

impl EngineKind {
    /// All of them, in the order in which the first usable one is looked for.
    pub const ALL: [Self; 4] = [Self::Docker, Self::Podman, Self::Embedded, Self::Bwrap];

    /// Those that a user can give an address of.
    pub const WITH_ADDRESS: [Self; 2] = [Self::Docker, Self::Podman];

    /// The engine of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name on the command line and in evidence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Embedded => "embedded",
            Self::Bwrap => "bwrap",
        }
    }

    /// It has no daemon: this tool makes the containers, each with a keeper of its own.
    pub const fn has_keepers(self) -> bool {
        matches!(self, Self::Embedded | Self::Bwrap)
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
