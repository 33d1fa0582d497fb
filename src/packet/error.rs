//! Everything that can go wrong with a packet, and what to do then.

use crate::engine::local::filter::FilterError;
use crate::executable::UnreadableTool;
use crate::failure::Failure;
use crate::image::ImageError;
use crate::random::RandomError;
use std::io;
use std::path::PathBuf;

/// Everything that can go wrong with a packet.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// There is no random id.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// This executable has no digest.
    #[error(transparent)]
    Tool(#[from] UnreadableTool),
    /// There is no image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A template has a place that nothing fills.
    #[error("no value for {place}")]
    NoValue {
        /// How the place begins.
        place: String,
    },
    /// A template has no place for a value.
    #[error("no place for {name}")]
    NoPlace {
        /// The value's name.
        name: String,
    },
    /// A value would act where it is put.
    #[error("{what} {value:?} cannot stand in a packet: it is not of plain characters")]
    Unsafe {
        /// What it is.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// The challenge cannot be written.
    #[error(transparent)]
    Challenge(serde_json::Error),
    /// The seccomp profile cannot be compiled.
    #[error("the profile {name}: {error}")]
    Seccomp {
        /// The profile.
        name: String,
        /// Why.
        error: FilterError,
    },
    /// The packet cannot be put on disk.
    #[error("{}: {error}", .path.display())]
    Unwritable {
        /// The packet, or the directory of its files.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its name would act in the command lines that it stands in.
    #[error("{}: it names no file of plain characters", .path.display())]
    NotPlain {
        /// The packet.
        path: PathBuf,
    },
    /// Something else has that name.
    #[error("{}: it is there, and is no packet", .path.display())]
    Exists {
        /// The packet.
        path: PathBuf,
    },
}

impl From<PacketError> for Failure {
    fn from(error: PacketError) -> Self {
        let what = error.to_string();
        match error {
            PacketError::Random(error) => error.into(),
            PacketError::Tool(error) => error.into(),
            PacketError::Image(error) => error.into(),
            PacketError::NoValue { .. } | PacketError::NoPlace { .. } => {
                Failure::internal("packet.template", what)
            }
            PacketError::Unsafe { .. } => Failure::usage(
                "packet.name",
                what,
                "give the file a name of letters, digits, spaces and . _ - + @ ( ) ,",
            ),
            PacketError::Challenge(_) => Failure::internal("packet.challenge", what),
            PacketError::Seccomp { .. } => Failure::usage(
                "packet.seccomp",
                what,
                "give a profile without SCMP_ACT_TRACE and SCMP_ACT_NOTIFY",
            ),
            PacketError::Unwritable { .. } | PacketError::NotPlain { .. } => Failure::usage(
                "packet.unwritable",
                what,
                "give a plain name in a directory that can be written to",
            ),
            PacketError::Exists { .. } => Failure::usage(
                "packet.exists",
                what,
                "give another name: only an earlier packet is replaced",
            ),
        }
    }
}
