//! The choice of an engine. It is made once, so that every connection of a command leads to
//! the same engine.

use crate::engine::api::endpoint::{Endpoint, Wanted};
use crate::engine::docker::DockerEngine;
use crate::engine::local::{LocalEngine, Maker, own};
use crate::engine::podman::{Place, PodmanEngine};
use crate::engine::{Engine, EngineError};
use crate::failure::Failure;
use crate::host::janitor::Janitor;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tki_evidence::engine_kind::EngineKind;

/// Which engine a command is to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first that can be used.
    First,
    /// This one.
    One(EngineKind),
    /// Each that can be used, one after the other.
    Each,
}

impl Choice {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "auto",
            Self::One(kind) => kind.name(),
            Self::Each => "all",
        }
    }
}

/// Which engine, where it is, and how long everything may take.
#[derive(Clone, Debug)]
pub struct Sought {
    /// Which engine.
    pub choice: Choice,
    /// Where it is.
    pub at: Wanted,
    /// The time limit for everything.
    pub timeout: Duration,
}

impl Sought {
    /// The same address and time limit, for this engine.
    pub fn of(&self, kind: EngineKind) -> Self {
        Self {
            choice: Choice::One(kind),
            ..self.clone()
        }
    }

    /// Connects once.
    pub fn connect(&self) -> Result<Box<dyn Engine>, EngineError> {
        Connector::new(self, None).connect(self.timeout)
    }

    /// Starts the process that tidies up should this one be killed. It finds the engine by
    /// the same arguments.
    pub fn janitor(&self) -> Result<Janitor, Failure> {
        let mut words: Vec<OsString> = vec!["--engine".into(), self.choice.name().into()];
        words.extend(words_of(&self.at));
        Ok(Janitor::start(&words)?)
    }
}

/// Where an engine is, as arguments for another process of ours.
fn words_of(at: &Wanted) -> impl Iterator<Item = OsString> {
    let host = at.host.as_ref().map(OsString::from);
    let file = |path: &Option<PathBuf>| path.clone().map(PathBuf::into_os_string);
    let given = [
        ("--host", host),
        ("--tls-ca", file(&at.tls.ca)),
        ("--tls-cert", file(&at.tls.cert)),
        ("--tls-key", file(&at.tls.key)),
        ("--ssh-config", file(&at.ssh_config)),
    ];
    given.into_iter().filter_map(|(flag, value)| {
        // One word, so that a value that begins with a dash is still a value.
        let mut word = OsString::from(flag);
        word.push("=");
        word.push(value?);
        Some(word)
    })
}

/// Connects to the engine that is sought. What was started for it ends with this value.
#[derive(Debug)]
pub struct Connector {
    sought: Sought,
    runtime: Option<String>,
    found: Mutex<Option<Found>>,
}

/// An engine that was found.
#[derive(Clone, Debug)]
enum Found {
    Docker(Arc<Endpoint>),
    Podman(Arc<Place>),
    Local(Maker),
}

impl Connector {
    /// A connector to this engine, and for an OCI runtime if one is named.
    pub fn new(sought: &Sought, runtime: Option<&str>) -> Self {
        Self {
            sought: sought.clone(),
            runtime: runtime.map(ToOwned::to_owned),
            found: Mutex::new(None),
        }
    }

    /// Chooses the engine while the process has one thread: one without a daemon
    /// needs namespaces of the tool's own for users who are not root.
    pub fn settle(&self) -> Result<(), EngineError> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        self.connect(self.sought.timeout).map(drop)
    }

    /// Makes a connection. Everything that is done with it must end within
    /// `limit`.
    pub fn connect(&self, limit: Duration) -> Result<Box<dyn Engine>, EngineError> {
        let mut known = self
            .found
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(found) = known.as_ref() {
            return found.connect(limit);
        }
        let (found, engine) = match self.sought.choice {
            Choice::First => self.first(limit)?,
            Choice::One(kind) => self.reach(kind, self.sought.at.host.as_deref(), limit)?,
            Choice::Each => return Err(not_one(Choice::Each)),
        };
        *known = Some(found);
        Ok(engine)
    }

    /// The first candidate that is there. If none is, the user hears what is
    /// wrong with each; with the engine at an address that was given, what is
    /// wrong there.
    fn first(&self, limit: Duration) -> Result<(Found, Box<dyn Engine>), EngineError> {
        let mut errors = Vec::new();
        // A user who gives an address means the engine that is there.
        let named = self.sought.at.named()?;
        let host = named.as_ref().map(|named| named.host.as_str());
        let candidates: &[EngineKind] = match &named {
            None => &EngineKind::ALL,
            Some(named) if named.is_plain => &EngineKind::WITH_ADDRESS,
            Some(_) => &[EngineKind::Docker],
        };
        for kind in candidates {
            match self.reach(*kind, host, limit) {
                Ok(found) => return Ok(found),
                Err(error) if is_elsewhere(&error) => errors.push(error),
                Err(error) => return Err(error),
            }
        }
        if named.is_some() {
            errors.truncate(1);
            return Err(errors.pop().unwrap_or_else(|| not_one(Choice::First)));
        }
        Err(EngineError::None {
            reasons: errors.iter().map(EngineError::to_string).collect(),
        })
    }

    fn reach(
        &self,
        kind: EngineKind,
        host: Option<&str>,
        limit: Duration,
    ) -> Result<(Found, Box<dyn Engine>), EngineError> {
        let found = match kind {
            EngineKind::Docker => Found::Docker(Arc::new(self.sought.at.resolve(limit)?)),
            EngineKind::Podman => {
                let place = Place::find(host, self.runtime.as_deref(), limit)?;
                Found::Podman(Arc::new(place))
            }
            EngineKind::Embedded => Found::Local(own_namespaces(Maker::Embedded)?),
            EngineKind::Bwrap => Found::Local(own_namespaces(Maker::Bwrap)?),
        };
        let engine = found.connect(limit)?;
        Ok((found, engine))
    }
}

impl Found {
    fn connect(&self, limit: Duration) -> Result<Box<dyn Engine>, EngineError> {
        Ok(match self {
            Self::Docker(endpoint) => Box::new(DockerEngine::connect(endpoint, limit)?),
            Self::Podman(place) => Box::new(PodmanEngine::connect(place, limit)?),
            Self::Local(maker) => Box::new(LocalEngine::new(*maker, limit)?),
        })
    }
}

/// Where a user without root gets what root has.
fn own_namespaces(maker: Maker) -> Result<Maker, EngineError> {
    own::enter().map_err(|error| EngineError::Unusable {
        engine: maker.name(),
        reason: format!("this user gets no user namespace: {error}"),
        next: "run as root, or let unprivileged users make user namespaces".into(),
    })?;
    Ok(maker)
}

/// The engine is not here or not for this user: another one may be.
fn is_elsewhere(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Unreachable { .. }
            | EngineError::Unusable { .. }
            | EngineError::Permission { .. }
            | EngineError::Address { .. }
    )
}

fn not_one(choice: Choice) -> EngineError {
    EngineError::Unusable {
        engine: choice.name(),
        reason: "this command needs one engine".into(),
        next: "name one with --engine".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_janitor_is_told_where_the_engine_is_in_single_words() {
        let mut at = Wanted {
            host: Some("-x".into()),
            ..Wanted::default()
        };
        at.tls.ca = Some("/ca file".into());
        let words: Vec<OsString> = words_of(&at).collect();
        assert_eq!(words, ["--host=-x", "--tls-ca=/ca file"]);
    }

    #[test]
    fn a_command_for_one_engine_refuses_all_of_them() {
        let sought = Sought {
            choice: Choice::Each,
            at: Wanted::default(),
            timeout: Duration::from_secs(1),
        };
        let refused = sought.connect().err().unwrap();
        assert!(
            refused.to_string().contains("needs one engine"),
            "{refused}"
        );
    }
}
