//! Everything that can go wrong with an engine, and what to do then.

use crate::failure::{Cause, Failure};
use std::time::{Duration, Instant};

/// What is left until a deadline; the error if nothing is. `during` says what
/// would have come next.
pub fn time_left(deadline: Instant, during: &str) -> Result<Duration, EngineError> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(EngineError::TimedOut {
            request: during.into(),
        }),
        left => Ok(left),
    }
}

/// Everything that can go wrong with an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Nobody answers there.
    #[error("no container engine answers at {host}: {reason}")]
    Unreachable {
        /// Where.
        host: String,
        /// Why.
        reason: String,
    },
    /// This engine cannot be used on this host.
    #[error("the {engine} engine cannot be used here: {reason}")]
    Unusable {
        /// Which.
        engine: &'static str,
        /// Why.
        reason: String,
        /// What to do about it.
        next: String,
    },
    /// None of the engines can be used on this host.
    #[error("no engine can be used here: {}", .reasons.join("; "))]
    None {
        /// Why, for each.
        reasons: Vec<String>,
    },
    /// The socket is there but not for us.
    #[error("no permission to use the engine's socket {host}")]
    Permission {
        /// Where.
        host: String,
    },
    /// The socket is another user's.
    #[error("{what} at {host} belongs to uid {uid}, who is neither root nor this user")]
    Peer {
        /// Where.
        host: String,
        /// The socket itself, or the process that listens.
        what: &'static str,
        /// Whose it is.
        uid: u32,
    },
    /// The address is of a kind that is not supported.
    #[error("cannot use the engine address {host}: {why}")]
    Address {
        /// The address.
        host: String,
        /// Why.
        why: String,
    },
    /// One side does not take the other's certificate.
    #[error("no secure connection to the engine at {host}: {what}")]
    Tls {
        /// Where.
        host: String,
        /// Whose certificate, and what is wrong with it.
        what: String,
        /// What to do about it.
        next: &'static str,
    },
    /// A file for TLS cannot be used.
    #[error("cannot use TLS: {what}")]
    TlsFile {
        /// Which, and why not.
        what: String,
        /// What to do about it.
        next: String,
    },
    /// `ssh` does not get to the engine.
    #[error("ssh does not get to the engine at {host}: {said}")]
    Ssh {
        /// Where.
        host: String,
        /// What it says.
        said: String,
    },
    /// A context of Docker's client cannot be used.
    #[error("cannot use the Docker context {name:?}: {what}")]
    Context {
        /// Its name; empty if that is what cannot be read.
        name: String,
        /// Which file, and why not.
        what: String,
    },
    /// The engine, or a proxy before it, forbids the request.
    #[error("{host} forbids {request} (HTTP 403): {message}")]
    Forbidden {
        /// Where.
        host: String,
        /// What was asked.
        request: String,
        /// The answer.
        message: String,
    },
    /// It does not know what we need.
    #[error("the engine at {host} speaks API {found}; at least {least} is needed")]
    TooOld {
        /// Where.
        host: String,
        /// Its version.
        found: String,
        /// What is needed.
        least: &'static str,
    },
    /// It refuses the request.
    #[error("the engine at {host} refused {request} (HTTP {status}): {message}")]
    Refused {
        /// Where.
        host: String,
        /// What was asked.
        request: String,
        /// The status.
        status: u16,
        /// The answer.
        message: String,
    },
    /// It stopped answering, or answers what is not its protocol.
    #[error("lost the engine at {host} during {request}: {reason}")]
    Vanished {
        /// Where.
        host: String,
        /// What was asked.
        request: String,
        /// How.
        reason: String,
    },
    /// It answers more than any engine has to say.
    #[error("the engine at {host} was cut short during {request}: {what}")]
    Flood {
        /// Where.
        host: String,
        /// What was asked.
        request: String,
        /// How much of what.
        what: String,
    },
    /// The run's deadline passed.
    #[error("the time limit passed during {request}")]
    TimedOut {
        /// What was asked.
        request: String,
    },
    /// Ctrl-C or SIGTERM.
    #[error("interrupted by {signal} during {request}")]
    Interrupted {
        /// Which.
        signal: &'static str,
        /// What was asked.
        request: String,
    },
    /// The seccomp profile that Podman was given is another one by now.
    #[error("the seccomp profile {path} was changed: it has SHA-256 {found}, not {wanted}")]
    ProfileChanged {
        /// The file.
        path: String,
        /// The digest of what was written.
        wanted: String,
        /// The digest of what is there.
        found: String,
    },
    /// What is left of a container is in use.
    #[error("cannot unmount {path}: {reason}")]
    Busy {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
    /// The container says more than the program in it would.
    #[error("the container wrote {what}: that is not our program")]
    TooMuch {
        /// How much of what.
        what: String,
    },
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let (code, next): (&'static str, String) = match &error {
            EngineError::Unreachable { .. } => (
                "engine.unreachable",
                "start Docker or Podman, or name its address with --host or DOCKER_HOST".into(),
            ),
            EngineError::Unusable { next, .. } => ("engine.unusable", next.clone()),
            EngineError::None { .. } => (
                "engine.none",
                "run as root, or install bubblewrap, or have control groups delegated to this \
                 user; `tki-attest engines` lists the engines, docs/engines.md what each needs"
                    .into(),
            ),
            EngineError::Permission { host } => (
                "engine.permission",
                format!("run as root, or as a member of the group that owns {host}"),
            ),
            EngineError::Peer { uid, .. } => (
                "engine.peer",
                format!(
                    "run as uid {uid} to use that user's engine, or name one of root's or of \
                     your own: see --host, DOCKER_HOST, CONTAINER_HOST and XDG_RUNTIME_DIR"
                ),
            ),
            EngineError::Address { .. } => (
                "engine.address",
                "give unix:///path/to.sock, ssh://user@host or tcp://host:2376 with --tls-ca; \
                 docs/engines.md has an example of each"
                    .into(),
            ),
            EngineError::Tls { next, .. } => ("engine.tls", (*next).into()),
            EngineError::TlsFile { next, .. } => ("engine.tls-file", next.clone()),
            EngineError::Ssh { .. } => (
                "engine.ssh",
                "see that `ssh` gets there without a question, that it may forward to a socket \
                 (AllowStreamLocalForwarding), and that the user may use the engine's socket \
                 over there"
                    .into(),
            ),
            EngineError::Context { .. } => (
                "engine.context",
                "mend it (`docker context ls` lists them), choose another one with \
                 DOCKER_CONTEXT, or name the engine with --host"
                    .into(),
            ),
            EngineError::Forbidden { .. } => (
                "engine.read-only",
                "this is a read-only engine socket: an operator with the right to create \
                 containers must run tki-attest on this host"
                    .into(),
            ),
            EngineError::TooOld { .. } => {
                ("engine.too-old", "use Docker Engine 19.03 or newer".into())
            }
            EngineError::Refused { .. } => (
                "engine.refused",
                "correct what the engine names, then run again".into(),
            ),
            EngineError::Vanished { .. } => (
                "engine.vanished",
                "when the engine is back, run `tki-attest clean`, then run again".into(),
            ),
            EngineError::Flood { .. } => (
                "engine.flood",
                "see what really listens there; if it is the engine, remove what it does not \
                 need any more, then run `tki-attest clean` and run again"
                    .into(),
            ),
            EngineError::TimedOut { .. } => (
                "run.timeout",
                "look at the engine's load, or give a longer --timeout".into(),
            ),
            EngineError::Interrupted { .. } => (
                "run.interrupted",
                "run again; should the engine have been too slow to remove the container, `tki-attest \
                 clean` does it"
                    .into(),
            ),
            EngineError::ProfileChanged { .. } => (
                "seccomp.changed",
                "find out who writes into that directory, then run again; nothing is attested \
                 under a profile that may be another one"
                    .into(),
            ),
            EngineError::Busy { path, .. } => (
                "engine.busy",
                format!(
                    "end what uses it (`fuser -vm {path}` names it), then run `tki-attest clean` \
                     again"
                ),
            ),
            EngineError::TooMuch { .. } => (
                "inspector.flood",
                "build the image from this tki-attest and run again".into(),
            ),
        };
        let cause = match &error {
            EngineError::Interrupted { .. } => Cause::Interrupted,
            EngineError::Unusable { .. } => Cause::EngineUnusable,
            EngineError::Unreachable { .. } | EngineError::Permission { .. } => Cause::EngineAbsent,
            _ => Cause::Other,
        };
        // An address or a file that cannot be used is a wrong argument; all else means
        // that nothing could be proven.
        let failure = match error {
            EngineError::Address { .. }
            | EngineError::TlsFile { .. }
            | EngineError::Context { .. } => Failure::usage(code, error.to_string(), next),
            _ => Failure::blocked(code, error.to_string(), next),
        };
        failure.because(cause)
    }
}
