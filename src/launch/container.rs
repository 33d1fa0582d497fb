//! One container of an engine's, from its launch to its end, whatever is said to it in
//! between.

use crate::engine::gate::Doorway;
use crate::engine::{Ended, Engine, EngineError, GateKind, Launch, Session};
use crate::host::janitor::Janitor;
use crate::image::Image;
use crate::launch::error::LaunchError;
use crate::launch::sides::{Maker, Sides};
use tki_evidence::evidence::GateReport;
use tki_evidence::seccomp::gated;
use tki_evidence::stamp::sha256_hex;

/// What a container is launched from.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a> {
    /// The image, for an engine without a store of its own.
    pub image: &'a Image,
    /// Who tidies up should we be killed.
    pub janitor: &'a Janitor,
    /// Who makes what stands behind /in and /out.
    pub maker: &'a Maker,
    /// The exit statuses with which its program says that all is well.
    pub ends: &'static [i64],
}

/// What came of a launch.
#[derive(Debug)]
pub enum Launched<T> {
    /// The container ran to its end.
    Ended(Box<Ran<T>>),
    /// It did not start, and a gate had been asked for: what the engine said.
    GateRefused(String),
}

/// A container that ran to its end.
#[derive(Debug)]
pub struct Ran<T> {
    /// As it was launched.
    pub launch: Launch,
    /// What came of the conversation.
    pub said: T,
    /// What the exec gate did.
    pub gate: GateReport,
    /// Its exit status, one of those that were expected, if the engine still knew it.
    pub status: Option<i64>,
}

/// Launches a container with a gate before it, if the launch asks for one, has `converse`
/// talk with it, as it was launched, and waits for its end.
pub fn run<T, E: From<LaunchError>>(
    engine: &mut dyn Engine,
    mut launch: Launch,
    means: Means,
    sides: &mut Sides,
    converse: impl FnOnce(&mut dyn Session, &mut Sides, &Launch) -> Result<T, E>,
) -> Result<Launched<T>, E> {
    let plain = launch.seccomp.clone();
    let doorway = if launch.gate && engine.gate_kind() == GateKind::Listener {
        Some(open_doorway(sides, &mut launch)?)
    } else {
        None
    };
    means.janitor.make(&launch.folder);
    let launched = engine.launch(&launch, means.image);
    means.janitor.gone(&launch.folder);
    let mut session = match (launched, &doorway) {
        (Err(error), _) if is_about_volumes(&error, means.maker) => {
            return Err(LaunchError::NoVolumes(error).into());
        }
        (Err(EngineError::Refused { message, .. }), Some(_)) => {
            return Ok(Launched::GateRefused(message));
        }
        (other, _) => other.map_err(LaunchError::from)?,
    };
    let talked = converse(session.as_mut(), sides, &launch).and_then(|said| {
        let ended = session.finish().map_err(LaunchError::from)?;
        Ok((said, ended))
    });
    let own_gate = session.gate();
    drop(session);
    let closed = doorway.map_or(own_gate, Doorway::close);
    let mut gate = closed.report;
    // Whatever else came of it: nobody watched the container to its end.
    if closed.broken {
        let reason = gate.reason;
        return Err(LaunchError::GateBroken { reason }.into());
    }
    let (said, ended) = talked?;
    if launch.seccomp != plain {
        gate.plain_profile = plain;
    }
    let status = check_end(ended, means.ends)?;
    Ok(Launched::Ended(Box::new(Ran {
        launch,
        said,
        gate,
        status,
    })))
}

/// The engine was asked for volumes, and it is these that it did not make.
fn is_about_volumes(error: &EngineError, maker: &Maker) -> bool {
    let told = match error {
        EngineError::Refused { message, .. } | EngineError::Forbidden { message, .. } => message,
        _ => return false,
    };
    *maker == Maker::Engine && told.to_lowercase().contains("volume")
}

/// Opens the supervisor's socket beside the container's directories, and has
/// the profile ask it.
fn open_doorway(sides: &mut Sides, launch: &mut Launch) -> Result<Doorway, LaunchError> {
    const NAME: &str = "gate.sock";
    let opened = sides.folder().and_then(|folder| {
        let path = folder.path().join(NAME);
        let socket = folder.bind(NAME, 0o600)?;
        Ok((Doorway::open(&path, socket)?, path))
    });
    let (doorway, path) = opened.map_err(LaunchError::GateSocket)?;
    let profile =
        gated(&launch.seccomp, &path.to_string_lossy()).ok_or(LaunchError::GateProfile)?;
    launch.settings.seccomp = sha256_hex(profile.as_bytes());
    launch.seccomp = profile;
    Ok(doorway)
}

/// The container is gone in the middle: never a pass, whatever it said before.
pub fn ended_early(session: &mut dyn Session, when: &'static str) -> LaunchError {
    let complaint = session.complaint();
    let status = match session.finish() {
        Ok(Ended { status }) => status,
        Err(EngineError::Refused { .. }) => None,
        // Interrupted, out of time, or it is the engine that is gone.
        Err(error) => return error.into(),
    };
    LaunchError::EndedEarly {
        status,
        when,
        complaint,
    }
}

/// A program of ours ends with one of these when it has said everything.
fn check_end(ended: Ended, expected: &[i64]) -> Result<Option<i64>, LaunchError> {
    match ended.status {
        Some(status) if !expected.contains(&status) => Err(LaunchError::EndedBadly { status }),
        status => Ok(status),
    }
}
