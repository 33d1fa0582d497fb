//! Why a text is no description.

use super::MAX_DESCRIPTION;
use alloc::string::String;

/// Why a text is no description of a container.
#[derive(Debug, thiserror::Error)]
pub enum DescribedError {
    /// It is longer than any engine's.
    #[error("{0} bytes; at most {MAX_DESCRIPTION} are read")]
    TooLarge(usize),
    /// Not text.
    #[error("it is not UTF-8")]
    Text,
    /// Not JSON of the engine's form, or a key that stands there twice.
    #[error("{0}")]
    Json(serde_json::Error),
    /// Evidence names an engine that is none.
    #[error("no engine of that name describes containers")]
    Engine,
    /// Another local engine wrote it.
    #[error("{maker:?} made it, not {engine}")]
    OtherMaker {
        /// Who says so.
        maker: String,
        /// Whose it should be.
        engine: String,
    },
    /// A local engine that is none.
    #[error("no local engine has that name")]
    NoMaker,
    /// There is no list of arguments.
    #[error("there are no arguments")]
    NoArguments,
    /// One of the arguments is something else.
    #[error("an argument is no text")]
    Argument,
}

impl From<serde_json::Error> for DescribedError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}
