//! Everything that can go wrong when something is signed, and what to do then.

use crate::deadline::Stopped;
use crate::failure::{Cause, Failure};
use crate::trust::agent::AgentError;
use std::io;
use std::path::PathBuf;

/// Everything that can go wrong when something is signed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is no passphrase.
    #[error("no passphrase: {0}")]
    Passphrase(#[from] NoPassphrase),
    /// The passphrase for a new key is empty.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// The passphrase is another key's.
    #[error("{}: this passphrase does not open it", .path.display())]
    WrongPassphrase {
        /// The key file.
        path: PathBuf,
    },
    /// The key file cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The key file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The key file holds no key that signs.
    #[error("{}: {why}", .path.display())]
    Unusable {
        /// The key file.
        path: PathBuf,
        /// Why.
        why: NoKey,
    },
    /// The agent does not sign.
    #[error(transparent)]
    Agent(AgentError),
    /// The user interrupted while the agent was asked.
    #[error("interrupted by {signal} while ssh-agent at {socket} was asked")]
    InterruptedAgent {
        /// The signal.
        signal: &'static str,
        /// The agent's socket.
        socket: String,
    },
    /// The agent signed with another key.
    #[error("ssh-agent gave a signature that is not this key's")]
    OtherSignature,
    /// A new key cannot be made.
    #[error(transparent)]
    Generate(ssh_key::Error),
    /// The statement cannot be written.
    #[error(transparent)]
    Statement(serde_json::Error),
    /// The bundle's file system has no locks.
    #[error("{}: it cannot be locked: {error}", .evidence.display())]
    Unlockable {
        /// The evidence file.
        evidence: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process goes on signing the bundle.
    #[error("{}: another process has locked it", .evidence.display())]
    Locked {
        /// The evidence file.
        evidence: PathBuf,
    },
    /// The user interrupted while another process had locked the bundle.
    #[error("interrupted by {signal} while {} was locked by another", .evidence.display())]
    InterruptedLock {
        /// The signal.
        signal: &'static str,
        /// The evidence file.
        evidence: PathBuf,
    },
}

/// Why there is no passphrase.
#[derive(Debug, thiserror::Error)]
pub enum NoPassphrase {
    /// The terminal gives none.
    #[error(transparent)]
    Terminal(#[from] io::Error),
    /// It was not typed twice.
    #[error("the two differ")]
    Differ,
    /// The file gives none.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The environment has none.
    #[error("the variable {0} is not set or not text")]
    Variable(String),
    /// The descriptor gives none.
    #[error("descriptor {number}: {error}")]
    Descriptor {
        /// Its number.
        number: i32,
        /// Why.
        error: io::Error,
    },
}

/// Why a file holds no key that signs.
#[derive(Debug, thiserror::Error)]
pub enum NoKey {
    /// It is binary.
    #[error("it is not text")]
    Binary,
    /// It is no secret.
    #[error("others may read this private key")]
    Open,
    /// It begins like a private key and is none.
    #[error("not an OpenSSH private key: {0}")]
    Private(#[source] ssh_key::Error),
    /// It is neither.
    #[error("neither an OpenSSH private key nor a public one: {0}")]
    Neither(#[source] ssh_key::Error),
    /// The private key is of another algorithm.
    #[error("it is a key of kind {0}")]
    PrivateKind(ssh_key::Algorithm),
    /// The public key is of another algorithm.
    #[error("it is a key of kind {0}")]
    PublicKind(ssh_key::Algorithm),
    /// The private half is another key's.
    #[error("its two halves do not belong together")]
    Halves,
}

impl NoKey {
    fn next(&self) -> &'static str {
        match self {
            Self::Binary => "give an OpenSSH key",
            Self::Open => {
                "take their rights away with `chmod 600`, and think about whether it is still \
                 secret"
            }
            Self::Private(_) => "give one; `tki-attest keygen` makes one",
            Self::Neither(_) => {
                "give a private key, or a public one whose private half ssh-agent holds"
            }
            Self::PrivateKind(_) => "give an Ed25519 key; `tki-attest keygen` makes one",
            Self::PublicKind(_) => "give an Ed25519 key",
            Self::Halves => "make a new key",
        }
    }
}

impl From<AgentError> for TrustError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Stopped {
                socket,
                stopped: Stopped::Interrupted(signal),
            } => Self::InterruptedAgent { signal, socket },
            error => Self::Agent(error),
        }
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        let what = error.to_string();
        match &error {
            TrustError::Passphrase(_) => Failure::usage(
                "key.passphrase",
                what,
                "give it with --passphrase file:PATH, env:NAME or fd:N, or run on a terminal",
            ),
            TrustError::EmptyPassphrase => {
                Failure::usage("key.passphrase", what, "give one, or say --no-passphrase")
            }
            TrustError::WrongPassphrase { .. } => {
                Failure::usage("key.passphrase", what, "give the right one")
            }
            TrustError::Unreadable { .. } => Failure::usage(
                "key.unreadable",
                what,
                "give an OpenSSH Ed25519 key; `tki-attest keygen` makes one",
            ),
            TrustError::Unusable { why, .. } => Failure::usage("key.unusable", what, why.next()),
            TrustError::Agent(AgentError::Stopped {
                stopped: Stopped::TimedOut,
                ..
            }) => Failure::blocked(
                "key.agent-slow",
                what,
                "see whether the agent waits for a person to confirm, then run again",
            ),
            TrustError::Agent(_) => Failure::usage(
                "key.agent",
                what,
                "start ssh-agent, add the key with `ssh-add`, and see that SSH_AUTH_SOCK is set",
            ),
            TrustError::OtherSignature => {
                Failure::usage("key.agent", what, "restart ssh-agent and add the key again")
            }
            TrustError::Generate(_) => Failure::internal("key.generate", what),
            TrustError::Statement(_) => Failure::internal("statement", what),
            TrustError::Unlockable { .. } => Failure::blocked(
                "sign.lock",
                what,
                "copy the bundle to a file system that has locks, and sign it there",
            ),
            TrustError::Locked { .. } => Failure::blocked(
                "sign.busy",
                what,
                "see what holds it with `lsof` or `fuser`, then sign again",
            ),
            TrustError::InterruptedAgent { .. } | TrustError::InterruptedLock { .. } => {
                Failure::blocked("run.interrupted", what, "run again").because(Cause::Interrupted)
            }
        }
    }
}
