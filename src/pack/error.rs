//! Everything that can go wrong while a packet is made or checked, and what to do then.

use crate::failure::Failure;
use crate::pack::mistake::{Mistake, Unfit};
use std::io;
use std::path::PathBuf;
use tki_inspector::packet::{MAX_ITEMS, PacketError};
use tki_text::printable;

/// Everything that can go wrong while a packet is made or checked.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The directory cannot be read.
    #[error("{}: {source}", .path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no `claims.toml`.
    #[error("{}: there is no such file", .path.display())]
    NoClaims {
        /// Where it should be.
        path: PathBuf,
    },
    /// `claims.toml` cannot be read.
    #[error("{}: {source}", .path.display())]
    Claims {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// `claims.toml` is no text.
    #[error("{}, line {line}, column {column}: it is not UTF-8", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// `claims.toml` is no TOML, or has a key that there is none of.
    #[error("{}, line {line}, column {column}: {}", .path.display(), printable(.error.message(), 300))]
    Form {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        error: Box<toml::de::Error>,
    },
    /// What stands in `claims.toml` is wrong.
    #[error("{}, line {line}, column {column}: {} {mistake}", .path.display(), printable(.place, 100))]
    Mistake {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// Where in its terms, such as `claim[3].evidence[0].quote`.
        place: String,
        /// What is wrong.
        mistake: Box<Mistake>,
    },
    /// Nobody says at which moment the packet is judged.
    #[error("{}: it has no as_of, and no clock is asked unless you say so", .path.display())]
    NoMoment {
        /// The file.
        path: PathBuf,
    },
    /// What stands at `--out` stays.
    #[error("{}: it is there already, and nothing is replaced", .path.display())]
    Exists {
        /// It.
        path: PathBuf,
    },
    /// Something cannot be written.
    #[error("{}: {source}", .path.display())]
    Unwritable {
        /// What.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// `--out` has no last name.
    #[error("{}: it names no directory", .path.display())]
    NoName {
        /// It.
        path: PathBuf,
    },
    /// A file whose path no item can have.
    #[error("{}: {} cannot be an item: {problem}", .path.display(), printable(.name, 200))]
    Name {
        /// The directory.
        path: PathBuf,
        /// The file.
        name: String,
        /// Why not.
        problem: NameProblem,
    },
    /// More files than a packet may have.
    #[error("{}: it has more than {MAX_ITEMS} files", .path.display())]
    Many {
        /// The directory.
        path: PathBuf,
    },
    /// A `packet.json` that cannot be read.
    #[error("{}: {problem}", .path.display())]
    NoPacket {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: Unfit,
    },
    /// A file that `--init` looks into.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: Unfit,
    },
    /// A `packet.json` of another form.
    #[error("{}: {error}", .path.display())]
    Packet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: PacketError,
    },
    /// What was made is no packet.
    #[error("what was packed cannot be read again: {0}")]
    Own(#[source] PacketError),
    /// A packet that has no form as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Why a path is none that an item can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// It is not text.
    #[error("its name is not UTF-8")]
    NotText,
    /// It is text of another form.
    #[error("of its path, {0}")]
    Path(#[from] tki_inspector::path::PathError),
}

const REFERENCE: &str = "docs/pack.md explains every key of claims.toml";

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        let what = error.to_string();
        match error {
            PackError::Folder { .. } => {
                Self::usage("pack.unreadable", what, "give a directory that can be read")
            }
            PackError::Claims { .. } => Self::usage(
                "pack.unreadable",
                what,
                "give a claims.toml of at most 4 MiB that can be read",
            ),
            PackError::NoClaims { .. } => Self::usage(
                "pack.unreadable",
                what,
                "`tki-attest pack --init DIR` writes one to begin with; --claims names another",
            ),
            PackError::NoPacket { .. } => Self::usage(
                "pack.unreadable",
                what,
                "give the directory of a packet, as `tki-attest pack` wrote it",
            ),
            PackError::NotText { .. } | PackError::Form { .. } => {
                Self::usage("pack.malformed", what, REFERENCE)
            }
            PackError::Mistake { mistake, .. } => {
                let (code, next) = of_mistake(&mistake);
                Self::usage(code, what, next)
            }
            PackError::NoMoment { .. } => Self::usage(
                "pack.as-of",
                what,
                "write as_of = \"2026-06-10T12:00:00Z\", or as_of = \"now\" for this host's clock; \
                 --as-of gives either",
            ),
            PackError::Exists { .. } => Self::usage(
                "pack.exists",
                what,
                "give another name, or move away what is there",
            ),
            PackError::Unwritable { .. } | PackError::NoName { .. } => Self::usage(
                "pack.unwritable",
                what,
                "give a new name in a directory that can be written to",
            ),
            PackError::Name { .. } => Self::usage(
                "pack.name",
                what,
                "rename it, or pack a directory without it",
            ),
            PackError::Many { .. } => Self::usage(
                "pack.limit",
                what,
                "make several packets, each of the files that its claims need",
            ),
            PackError::File { .. } => {
                Self::usage("pack.item", what, "give a regular file that can be read")
            }
            PackError::Packet { .. } => Self::usage(
                "pack.packet",
                what,
                "make the packet again with `tki-attest pack`; \
                 inspector/schema/packet.v1.schema.json describes the form",
            ),
            PackError::Own(_) => Self::internal("pack.own", what),
            PackError::Json(_) => Self::internal("pack.json", what),
        }
    }
}

fn of_mistake(mistake: &Mistake) -> (&'static str, &'static str) {
    match mistake {
        Mistake::File { problem, .. } => match problem {
            Unfit::TooLarge(_) | Unfit::Total(_) | Unfit::Held(_) | Unfit::Many => (
                "pack.limit",
                "pack less: the part that the claims need, marked as an excerpt",
            ),
            _ => (
                "pack.item",
                "name a regular file below the directory, by its path from there",
            ),
        },
        Mistake::Absent(_) => (
            "pack.place",
            "quote what stands there to the letter, or correct the pointer or the step",
        ),
        Mistake::Schema { .. }
        | Mistake::Missing(_)
        | Mistake::NotWith(_)
        | Mistake::Wheres
        | Mistake::Expectations
        | Mistake::NoItem(_)
        | Mistake::NoEvidence
        | Mistake::Integer
        | Mistake::Packet { .. } => ("pack.field", REFERENCE),
    }
}
