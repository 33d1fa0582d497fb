//! What can be wrong with a connection to an engine.

use crate::engine::error::EngineError;
use std::io;

/// What is wrong with an engine's connection. It travels through the client library
/// inside an [`io::Error`], where [`Fault::within`] finds it again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The socket is another user's.
    #[error("{what} belongs to uid {uid}")]
    Peer {
        /// The socket itself, or the process that listens.
        what: &'static str,
        /// Whose it is.
        uid: u32,
    },
    /// There is more of it than any engine has to say.
    #[error("its answer has more than {most} {what}")]
    Flood {
        /// So many.
        most: u64,
        /// Of what.
        what: &'static str,
    },
    /// One side does not take the other's certificate.
    #[error("{what}")]
    Tls {
        /// Whose certificate, and what is wrong with it.
        what: String,
        /// What to do about it.
        next: &'static str,
    },
    /// `ssh` does not get there.
    #[error("ssh: {said}")]
    Ssh {
        /// What it says.
        said: String,
    },
    /// The container's streams do not come in frames.
    #[error("the container's streams are not multiplexed")]
    NotFramed,
}

impl Fault {
    /// The fault that caused an error, if one did.
    pub fn within<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(fault) = error.downcast_ref::<Self>() {
                return Some(fault);
            }
            // Its source is what caused the error in it, and not that error itself.
            let inner = error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref);
            if let Some(fault) = inner.and_then(|inner| Self::within(inner)) {
                return Some(fault);
            }
            next = error.source();
        }
        None
    }

    /// The same as an engine's error.
    pub fn explained(&self, host: &str, request: &str) -> EngineError {
        let (host, request) = (host.to_owned(), request.to_owned());
        match self {
            Self::Peer { what, uid } => EngineError::Peer {
                host,
                what,
                uid: *uid,
            },
            Self::Flood { .. } => EngineError::Flood {
                host,
                request,
                what: self.to_string(),
            },
            Self::Tls { what, next } => EngineError::Tls {
                host,
                what: what.clone(),
                next,
            },
            Self::Ssh { said } => EngineError::Ssh {
                host,
                said: said.clone(),
            },
            Self::NotFramed => EngineError::Vanished {
                host,
                request,
                reason: self.to_string(),
            },
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        io::Error::other(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error whose source is another.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Outer(#[from] io::Error);

    #[test]
    fn a_fault_is_found_wherever_it_was_put() {
        let fault = Fault::NotFramed;
        let error: io::Error = fault.clone().into();
        assert_eq!(Fault::within(&error), Some(&fault));
        let around = Outer(io::Error::other(error));
        assert_eq!(Fault::within(&io::Error::other(around)), Some(&fault));
        assert_eq!(Fault::within(&io::Error::other("x")), None);
    }
}
