//! The limits of a profile by name, and what is wrong with the text of one.

use std::fmt;
use std::ops::RangeInclusive;

/// A limit, by its name in a profile file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Most processes in the container.
    Pids,
    /// Most memory.
    MemoryBytes,
    /// CPU quota.
    CpuMillis,
    /// Most open files of a process.
    Nofile,
    /// Most processes of the user.
    Nproc,
    /// Size of the file system behind /in and /out.
    OutBytes,
    /// Size of /tmp.
    TmpBytes,
    /// Most files behind /in and /out.
    OutFiles,
    /// Most files in /tmp.
    TmpFiles,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Pids,
        Self::MemoryBytes,
        Self::CpuMillis,
        Self::Nofile,
        Self::Nproc,
        Self::OutBytes,
        Self::TmpBytes,
        Self::OutFiles,
        Self::TmpFiles,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pids => "pids",
            Self::MemoryBytes => "memory_bytes",
            Self::CpuMillis => "cpu_millis",
            Self::Nofile => "nofile",
            Self::Nproc => "nproc",
            Self::OutBytes => "out_bytes",
            Self::TmpBytes => "tmp_bytes",
            Self::OutFiles => "out_files",
            Self::TmpFiles => "tmp_files",
        }
    }

    /// The least and the most that a run could keep.
    pub fn bounds(self) -> RangeInclusive<i64> {
        match self {
            Self::Pids => 8..=4096,
            Self::MemoryBytes => 16 << 20..=1 << 40,
            Self::CpuMillis => 10..=1_024_000,
            Self::Nofile => 16..=1 << 20,
            Self::Nproc => 8..=1 << 22,
            Self::OutBytes | Self::TmpBytes => 4096..=1 << 40,
            Self::OutFiles | Self::TmpFiles => 32..=1 << 20,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What is wrong with the text of a profile file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// Not TOML of this form.
    #[error("line {line}, column {column}: {message}")]
    Form {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A limit that is none, or that no run could keep.
    #[error("limits.{limit} is {value}; it must be between {least} and {most}")]
    Range {
        /// Which.
        limit: Limit,
        /// What it is.
        value: i64,
        /// What it may be.
        least: i64,
        /// What it may be.
        most: i64,
    },
}
