//! The controllers of control groups that carry limits of a container.

use core::fmt;

/// A controller of control groups, and so the limit that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// How many processes.
    Pids,
    /// How much memory.
    Memory,
    /// How much time of the processors.
    Cpu,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pids, Self::Memory, Self::Cpu];

    /// The kernel's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pids => "pids",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
