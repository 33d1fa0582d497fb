//! One container of an engine's, from its launch to its end, whatever is said to it in
//! between.

use crate::engine::gate::Doorway;
use crate::engine::{Ended, Engine, EngineError, GateKind, Launch, Session};
use crate::failure::Failure;
use crate::host::janitor::Janitor;
use crate::image::Image;
use crate::launch::sides::{Maker, Sides};
use tki_evidence::evidence::GateReport;
use tki_evidence::seccomp::gated;
use tki_evidence::stamp::sha256_hex;
use tki_text::printable;

/// What a container is launched from.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a> {
    /// The image, for an engine without a store of its own.
    pub image: &'a Image,
    /// Who tidies up should we be killed.
    pub janitor: &'a Janitor,
    /// Who makes what stands behind /in and /out.
    pub maker: &'a Maker,
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
}

/// Launches a container with a gate before it, if the launch asks for one, has `converse`
/// talk with it, and waits for its end.
pub fn run<T>(
    engine: &mut dyn Engine,
    mut launch: Launch,
    means: Means,
    sides: &mut Sides,
    converse: impl FnOnce(&mut dyn Session, &mut Sides) -> Result<T, Failure>,
) -> Result<Launched<T>, Failure> {
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
            return Err(Failure::blocked(
                NO_VOLUMES,
                format!("the engine makes no volumes for /in and /out: {error}"),
                "let the engine make volumes of its local driver, or run as root on its host",
            ));
        }
        (Err(EngineError::Refused { message, .. }), Some(_)) => {
            return Ok(Launched::GateRefused(message));
        }
        (other, _) => other?,
    };
    let talked = converse(session.as_mut(), sides).and_then(|said| Ok((said, session.finish()?)));
    let own_gate = session.gate();
    drop(session);
    let closed = doorway.map_or(own_gate, Doorway::close);
    let mut gate = closed.report;
    // Whatever else came of it: nobody watched the container to its end.
    if closed.broken {
        return Err(Failure::blocked(
            "gate.broken",
            format!(
                "the exec gate broke and ended the container: {}",
                gate.reason
            ),
            "the prober tries a few dozen execs; build the image from this tki-attest and run \
             again",
        ));
    }
    let (said, ended) = talked?;
    if launch.seccomp != plain {
        gate.plain_profile = plain;
    }
    check_end(ended)?;
    Ok(Launched::Ended(Box::new(Ran { launch, said, gate })))
}

/// The failure of a launch that an engine refused for its volumes.
pub const NO_VOLUMES: &str = "volumes.refused";

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
fn open_doorway(sides: &mut Sides, launch: &mut Launch) -> Result<Doorway, Failure> {
    const NAME: &str = "gate.sock";
    let opened = sides.folder().and_then(|folder| {
        let path = folder.path().join(NAME);
        let socket = folder.bind(NAME, 0o600)?;
        Ok((Doorway::open(&path, socket)?, path))
    });
    let (doorway, path) = opened.map_err(|error| {
        Failure::blocked(
            "gate.socket",
            format!("cannot make a socket for the exec gate: {error}"),
            "run again, or with --gate off",
        )
    })?;
    let profile = gated(&launch.seccomp, &path.to_string_lossy())
        .ok_or_else(|| Failure::internal("gate.profile", "the profile cannot be extended"))?;
    launch.settings.seccomp = sha256_hex(profile.as_bytes());
    launch.seccomp = profile;
    Ok(doorway)
}

/// The container is gone in the middle: never a pass, whatever it said before.
pub fn ended_early(session: &mut dyn Session, when: &str) -> Failure {
    let complaint = session.complaint();
    let status = match session.finish() {
        Ok(Ended {
            status: Some(status),
        }) => format!("status {status}"),
        Ok(_) => "unknown status".into(),
        Err(EngineError::Refused { .. }) => "unknown status".into(),
        // Interrupted, out of time, or it is the engine that is gone.
        Err(error) => return error.into(),
    };
    let said = match complaint.as_str() {
        "" => String::new(),
        complaint => format!("; it wrote: {}", printable(complaint, 400)),
    };
    Failure::blocked(
        "container.ended-early",
        format!("the container ended ({status}) {when}{said}"),
        "a container that ends early proves nothing; see whether something on the host kills \
         containers, then run again",
    )
}

/// The prober ends with 0 when it has said everything.
fn check_end(ended: Ended) -> Result<(), Failure> {
    match ended.status {
        Some(0) | None => Ok(()),
        Some(status) => Err(Failure::blocked(
            "container.ended-badly",
            format!("the prober said everything but ended with status {status}"),
            "see whether something on the host kills containers, then run again",
        )),
    }
}
