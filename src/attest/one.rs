//! A whole run on one engine, from the choice of the engine to the evidence on disk; and the
//! same on every engine of this host.

use crate::attest::answer;
use crate::attest::bundle::{self, Draft, Written};
use crate::attest::error::AttestError;
use crate::attest::events::{Event, Listener, Stage};
use crate::attest::memory::Memory;
use crate::attest::run::{Plan, attest};
use crate::engine::choice::{Connector, Sought};
use crate::engine::error::time_left;
use crate::engine::gate::GateChoice;
use crate::engine::{Engine, EngineError};
use crate::executable;
use crate::failure::{Cause, Failure};
use crate::files::Folder;
use crate::host::janitor::Janitor;
use crate::host::venue::Proofs;
use crate::image::source::ImageSource;
use crate::image::{Image, built_in};
use crate::sandbox::limit::Limit;
use crate::sandbox::profile::Profile;
use crate::state::State;
use crate::trust::envelope_file;
use crate::trust::keys::Key;
use crate::verify::own::self_verify;
use std::path::PathBuf;
use std::time::Instant;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::{Evidence, Status};
use tki_evidence::venue::VenueRules;

/// What is to be attested, with everything read that the user named: the same for every
/// engine.
#[derive(Debug)]
pub struct Order {
    /// The claimed venue.
    pub venue: &'static str,
    /// What makes a claim implausible.
    pub venue_rules: VenueRules,
    /// What others signed about the venue.
    pub proofs: Proofs,
    /// The sandbox.
    pub profile: Profile,
    /// Limits of it that the user chose.
    pub chosen: Vec<Limit>,
    /// Where the image comes from.
    pub image: ImageSource,
    /// Also run the controls.
    pub controls: bool,
    /// The OCI runtime to use, if not the engine's own choice.
    pub runtime: Option<String>,
    /// The exec gate.
    pub gate: GateChoice,
    /// The file with the verifying party's request.
    pub request: Option<PathBuf>,
    /// The key that signs.
    pub key: Option<Key>,
    /// Where evidence goes, held from the start.
    pub out: Folder,
    /// What runs remember, if they are to.
    pub state: Option<State>,
}

/// What was written, and the time that the run took inside.
#[derive(Debug)]
pub struct Attested {
    /// The evidence and where it is.
    pub written: Written,
    /// Microseconds.
    pub elapsed_us: u64,
}

/// What a run on one engine came to.
pub type RunResult = Result<Attested, Failure>;

/// Builds, launches, probes, writes and verifies.
pub fn on_one(order: &Order, sought: &Sought, events: &mut dyn Listener) -> RunResult {
    let deadline = Instant::now() + sought.timeout;
    let connector = Connector::new(sought, order.runtime.as_deref());
    connector.settle()?;
    let (_janitor, draft) = through(order, sought, &connector, deadline, events)?;
    // What was started for the run ends while its evidence is written.
    write(order, draft, deadline, || drop(connector), events)
}

/// The same over a connector that is there, and is needed afterwards.
pub fn on_this(
    order: &Order,
    sought: &Sought,
    connector: &Connector,
    deadline: Instant,
    events: &mut dyn Listener,
) -> RunResult {
    let (_janitor, draft) = through(order, sought, connector, deadline, events)?;
    write(order, draft, deadline, || (), events)
}

/// Builds, launches and probes. The janitor has nothing to do any more, and ends meanwhile.
fn through(
    order: &Order,
    sought: &Sought,
    connector: &Connector,
    deadline: Instant,
    events: &mut dyn Listener,
) -> Result<(Janitor, Draft), Failure> {
    events.hear(Event::Begins(Stage::Build));
    // One deadline for everything: whatever connects later has less time.
    let connect = || connector.connect(time_left(deadline, "connecting")?);
    let (janitor, image, engine) = prepare(order, sought, &connect)?;
    let request = order.request.as_deref();
    let request = request.map(|path| answer::binding(path, order.venue, &order.profile, &image));
    let plan = Plan {
        venue: order.venue,
        venue_rules: &order.venue_rules,
        proofs: &order.proofs,
        profile: &order.profile,
        chosen: &order.chosen,
        image: &image,
        deadline,
        controls: order.controls,
        limits: false,
        runtime: order.runtime.as_deref(),
        gate: order.gate,
        memory: order.state.as_ref().map_or(Memory::None, Memory::Used),
        janitor: &janitor,
        request: request.transpose()?,
    };
    let draft = attest(engine, &connect, &plan, events).inspect_err(|error| {
        // An engine that comes back, or another service of it, may hold something.
        if error.has_lost_engine() {
            janitor.take_over();
        } else if error.has_ended_early() {
            janitor.look();
        }
    })?;
    janitor.done();
    Ok((janitor, draft))
}

/// Writes and verifies, with something beside it.
fn write(
    order: &Order,
    draft: Draft,
    deadline: Instant,
    beside: impl FnOnce() + Send,
    events: &mut dyn Listener,
) -> RunResult {
    let elapsed_us = draft.elapsed_us;
    events.hear(Event::Begins(Stage::Write));
    let sign = order.key.as_ref().map(|key| {
        |name: &str, bytes: &[u8], evidence: &Evidence| {
            Ok(envelope_file::signed(name, bytes, evidence, key, deadline)?)
        }
    });
    let sign = sign.as_ref().map(|sign| sign as &bundle::Sign<Failure>);
    let written = std::thread::scope(|scope| {
        scope.spawn(beside);
        draft.write(&order.out, sign, |bytes, folder| {
            Ok(self_verify(bytes, folder)?)
        })
    });
    Ok(Attested {
        written: written?,
        elapsed_us,
    })
}

type Prepared = (Janitor, Image, Box<dyn Engine>);

/// The engine takes as long to agree on a version as the image to be built, so both happen
/// at the same time. What is wrong with the image is said first.
fn prepare(
    order: &Order,
    sought: &Sought,
    connect: &(dyn Fn() -> Result<Box<dyn Engine>, EngineError> + Sync),
) -> Result<Prepared, Failure> {
    let (janitor, image, reached) = std::thread::scope(|scope| {
        let agreeing = scope.spawn(|| {
            let mut engine = connect()?;
            engine.expect_launch();
            // While an engine starts it has no processor to spare.
            executable::begin_to_describe();
            Ok::<_, EngineError>(engine)
        });
        let janitor = sought.janitor();
        let image = order.image.build(built_in::TAG);
        (janitor, image, agreeing.join())
    });
    let image = image?;
    let engine = reached.map_err(|_| AttestError::ConnectingPanicked)??;
    Ok((janitor?, image, engine))
}

/// One engine after the other, each with what its run came to. An interrupt ends all of it,
/// and not the run on this engine alone.
pub fn on_each(
    mut one: impl FnMut(EngineKind) -> RunResult,
) -> Result<Vec<(EngineKind, RunResult)>, Failure> {
    let mut outcomes = Vec::new();
    for kind in EngineKind::ALL {
        match one(kind) {
            Err(failure) if failure.cause == Cause::Interrupted => return Err(failure),
            outcome => outcomes.push((kind, outcome)),
        }
    }
    Ok(outcomes)
}

/// The status of all of them. An engine that is not here is no failure; one that fails is,
/// and nothing at all proves nothing.
pub fn status_of_all(outcomes: &[(EngineKind, RunResult)]) -> Status {
    let broken = outcomes.iter().any(|(_, outcome)| {
        let absent = [Cause::EngineUnusable, Cause::EngineAbsent];
        matches!(outcome, Err(failure) if !absent.contains(&failure.cause))
    });
    let statuses: Vec<Status> = outcomes
        .iter()
        .filter_map(|(_, outcome)| Some(outcome.as_ref().ok()?.written.evidence.status))
        .collect();
    if statuses.contains(&Status::SandboxAttestationFailed) {
        Status::SandboxAttestationFailed
    } else if broken
        || statuses.iter().any(|s| *s != Status::SandboxAttested)
        || statuses.is_empty()
    {
        Status::SandboxAttestationPartial
    } else {
        Status::SandboxAttested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(cause: Cause) -> RunResult {
        let failure = Failure::blocked("x.y", "x", "x");
        Err(Failure { cause, ..failure })
    }

    #[test]
    fn an_interrupt_ends_the_runs_on_every_engine() {
        let mut asked = Vec::new();
        let ended = on_each(|kind| {
            asked.push(kind);
            match kind {
                EngineKind::Docker => failed(Cause::EngineAbsent),
                _ => failed(Cause::Interrupted),
            }
        });
        assert_eq!(ended.unwrap_err().cause, Cause::Interrupted);
        assert_eq!(asked, [EngineKind::Docker, EngineKind::Podman]);
    }

    #[test]
    fn nothing_at_all_proves_nothing() {
        let all = on_each(|_| failed(Cause::EngineAbsent)).unwrap();
        assert_eq!(all.len(), EngineKind::ALL.len());
        assert_eq!(status_of_all(&all), Status::SandboxAttestationPartial);
        assert_eq!(status_of_all(&[]), Status::SandboxAttestationPartial);
    }
}
