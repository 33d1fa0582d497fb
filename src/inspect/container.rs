//! The one container of an inspection, from its launch to its end.

use crate::attest::events::{Event, Listener, Stage};
use crate::clock;
use crate::engine::contract::{Extras, Volume};
use crate::engine::error::time_left;
use crate::engine::{Configured, Engine, EngineError, Launch, Program, Session};
use crate::host::claim;
use crate::host::janitor::Janitor;
use crate::image::Image;
use crate::inspect::brought::Brought;
use crate::inspect::contents;
use crate::inspect::conversation::{Conversation, Heard, Inspection, MOST_KEPT, TalkError, Terms};
use crate::inspect::error::{InspectError, OtherSandbox};
use crate::inspect::evidence::Attested;
use crate::inspect::fill::fill;
use crate::inspect::packet::Packet;
use crate::inspect::report::About;
use crate::inspect::room::Room;
use crate::inspect::same::{Common, same_backing};
use crate::launch;
use crate::launch::container::{Launched, Means, Ran, ended_early};
use crate::launch::sides::{Maker, Sides};
use crate::random::random_hex;
use crate::sandbox::seccomp::Seccomp;
use std::time::Instant;
use tki_evidence::described::names::{self, NAME_PREFIX};
use tki_evidence::evidence::{OutBacking, Sandbox};
use tki_evidence::settings::BindKind;
use tki_evidence::wire::MAX_TRANSCRIPT;
use tki_inspector::wire::{Go, INADEQUATE, LauncherMessage, PROTOCOL, TRIAGE};

/// What the container is for, as its label says, and what the inspector is told.
const ROLE: &str = "inspect";

/// What is launched, and from what.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The evidence of the sandbox.
    pub attested: &'a Attested,
    /// What that sandbox has.
    pub room: Room,
    /// The packet.
    pub packet: &'a Packet,
    /// What the launcher brings.
    pub brought: &'a Brought,
    /// The image.
    pub image: &'a Image,
    /// Its id on the engine.
    pub image_id: &'a str,
    /// How many processors the engine's host has.
    pub cpus: i64,
    /// The seccomp profile, before an exec gate extends it.
    pub seccomp: &'a Seccomp,
    /// The OCI runtime to use, if not the engine's own choice.
    pub runtime: Option<&'a str>,
    /// Who tidies up should we be killed.
    pub janitor: &'a Janitor,
    /// When everything must have ended.
    pub deadline: Instant,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What the inspector has written.
    pub inspection: Inspection,
    /// The OCI runtime that the container was made with, if the engine tells it.
    pub oci_runtime: Option<String>,
}

/// Launches, talks, waits for the end. Whatever comes of it, the volume goes.
pub fn run(
    engine: &mut dyn Engine,
    plan: &Plan,
    events: &mut dyn Listener,
) -> Result<Outcome, InspectError> {
    let run_id = names::run_id(clock::now(), &random_hex::<4>()?);
    plan.janitor.run(&run_id);
    let maker = maker(&plan.attested.says.sandbox);
    let outcome = attempt(engine, plan, &run_id, &maker, events);
    let let_go = match maker {
        Maker::Engine => engine.let_go(&[format!("{NAME_PREFIX}{run_id}")]),
        Maker::Launcher(_) => Ok(()),
    };
    let outcome = outcome?;
    let_go?;
    Ok(outcome)
}

fn attempt(
    engine: &mut dyn Engine,
    plan: &Plan,
    run_id: &str,
    maker: &Maker,
    events: &mut dyn Listener,
) -> Result<Outcome, InspectError> {
    let sandbox = &plan.attested.says.sandbox;
    let room = contents::room(plan.packet, plan.brought);
    let mut sides = Sides::with_room(run_id, room, plan.room.out, maker, plan.janitor)
        .map_err(InspectError::from)?;
    if !same_backing(&sandbox.out_backing, sides.backing()) {
        let shown = |backing: &OutBacking| format!("{} ({})", backing.kind, backing.reason);
        return Err(OtherSandbox::Backing {
            attested: shown(&sandbox.out_backing),
            launched: shown(sides.backing()),
        }
        .into());
    }
    let launch = order(plan, run_id, &sides)?;
    events.hear(Event::Begins(Stage::Fill));
    let files = contents::files(plan.packet, plan.brought);
    fill(engine, &launch, &sides, files).map_err(InspectError::Unfilled)?;
    events.hear(Event::Begins(Stage::Launch));
    let means = Means {
        image: plan.image,
        janitor: plan.janitor,
        maker,
        ends: &[TRIAGE as i64, INADEQUATE as i64],
    };
    let launched = launch::container::run(
        engine,
        launch,
        means,
        &mut sides,
        |session, sides, launch| talk(session, sides, launch, plan, events),
    )?;
    let attested = sandbox.gate.active;
    let Ran {
        said, gate, status, ..
    } = match launched {
        Launched::Ended(ran) => *ran,
        Launched::GateRefused(_) if attested => return Err(OtherSandbox::Gate { attested }.into()),
        Launched::GateRefused(_) => return Err(InspectError::GateRefused),
    };
    if attested && !gate.active {
        return Err(OtherSandbox::Gate { attested }.into());
    }
    // An engine that no longer knows the status contradicts nothing.
    match status {
        Some(status) if status != i64::from(said.inspection.status) => {
            Err(InspectError::OtherEnd {
                said: said.inspection.status,
                status,
            })
        }
        _ => Ok(said),
    }
}

/// Who made what stood behind /in and /out of the sandbox that was attested makes it again.
fn maker(sandbox: &Sandbox) -> Maker {
    let mut binds = sandbox.declared.binds.iter();
    match binds.any(|bind| bind.target == "/in" && bind.kind == BindKind::Volume) {
        true => Maker::Engine,
        false => {
            let said = sandbox.out_backing.maker.split_once(": ");
            Maker::Launcher(said.map_or_else(String::new, |(_, said)| said.to_owned()))
        }
    }
}

/// The container: that of the evidence, but for its program, its name and what is its own.
fn order(plan: &Plan, run_id: &str, sides: &Sides) -> Result<Launch, EngineError> {
    let sandbox = &plan.attested.says.sandbox;
    let mut settings = sandbox.declared.clone();
    settings.binds = sides.binds(plan.room.out);
    settings.seccomp = plan.seccomp.sha256.clone();
    // Rounded up: until then the container is ours.
    let nobodys_after = clock::now() + time_left(plan.deadline, "the launch")?.as_secs() + 1;
    let volume = |name| Volume {
        name,
        goes_along: true,
    };
    // Text has a longer form as JSON.
    let reports = plan.room.out.bytes.min(MOST_KEPT).saturating_mul(2);
    let reports = usize::try_from(reports).unwrap_or(usize::MAX);
    Ok(Launch {
        name: format!("{NAME_PREFIX}{run_id}"),
        labels: names::labels(run_id, ROLE, nobodys_after),
        image: plan.image_id.into(),
        program: Program::Inspector,
        arguments: vec![ROLE.into()],
        most_said: MAX_TRANSCRIPT.saturating_add(reports),
        settings,
        cpus: plan.cpus,
        seccomp: plan.seccomp.text.clone(),
        scratch: sides.scratch().map(|scratch| scratch.base().to_owned()),
        volumes: sides.volume().map(volume).into_iter().collect(),
        folder: claim::beside(run_id),
        runtime: plan.runtime.map(str::to_owned),
        gate: sandbox.gate.active,
        extras: Extras::default(),
    })
}

/// Hears the greeting, compares what the engine set with what was attested, lets the inspector
/// begin, and hears it to its end.
fn talk(
    session: &mut dyn Session,
    sides: &mut Sides,
    launch: &Launch,
    plan: &Plan,
    events: &mut dyn Listener,
) -> Result<Outcome, InspectError> {
    let brought = plan.brought.digests();
    let mut conversation = Conversation::new(Terms {
        about: About {
            packet: &plan.packet.says,
            sha256: &plan.packet.sha256,
            brought: &brought,
        },
        most: plan.room.out.bytes,
    });
    let Some(line) = session.receive()? else {
        return Err(ended_early(session, "before it said anything").into());
    };
    conversation.hear(&line)?;
    // The container runs, holds its file systems and waits for its go.
    sides.release();
    let configured = match session.configured() {
        // The engine no longer knows it.
        Err(EngineError::Refused { status: 404, .. }) => {
            return Err(ended_early(session, "before it was let go").into());
        }
        other => other?,
    };
    compare(&configured, launch, plan)?;
    events.hear(Event::Begins(Stage::Inspect));
    match session.send(&go(plan)?) {
        // Either the container is gone or the engine: the end tells which.
        Err(EngineError::Vanished { .. }) => {
            return Err(ended_early(session, "before it was let go").into());
        }
        other => other?,
    }
    let of = plan.packet.says.items.len() as u64;
    loop {
        let Some(line) = session.receive()? else {
            return Err(ended_early(session, "before it had written its report").into());
        };
        match conversation.hear(&line)? {
            Heard::Progress(done) => events.hear(Event::Done { done, of }),
            Heard::Hello | Heard::More => {}
            Heard::Done => break,
        }
    }
    // Anything after the end is not the inspector's.
    if session.receive()?.is_some() {
        return Err(TalkError::End.into());
    }
    Ok(Outcome {
        inspection: conversation.end()?,
        oci_runtime: configured.oci_runtime,
    })
}

/// The container is the one that was attested, as far as its engine says what it set.
fn compare(configured: &Configured, launch: &Launch, plan: &Plan) -> Result<(), OtherSandbox> {
    let evidence = &plan.attested.says;
    let given = &launch.settings.seccomp;
    let launched = Common::launched(&configured.settings, &plan.seccomp.sha256, given);
    let different = Common::attested(evidence).differences(&launched);
    if !different.is_empty() {
        return Err(OtherSandbox::Settings(different));
    }
    let image = &evidence.image.engine_reported_id;
    if *image != configured.image_id {
        return Err(OtherSandbox::Image {
            attested: image.clone(),
            launched: configured.image_id.clone(),
        });
    }
    let runtime = &evidence.runtime.oci_runtime;
    match &configured.oci_runtime {
        Some(used) if used != runtime => Err(OtherSandbox::Runtime {
            attested: runtime.clone(),
            launched: used.clone(),
        }),
        _ => Ok(()),
    }
}

/// The launcher's line.
fn go(plan: &Plan) -> Result<Vec<u8>, InspectError> {
    let left = time_left(plan.deadline, "the inspection")?.as_millis();
    let go = LauncherMessage::Go(Go {
        protocol: PROTOCOL,
        memory_bytes: plan.room.memory_bytes,
        out_bytes: plan.room.out.bytes,
        deadline_ms: u32::try_from(left).unwrap_or(u32::MAX),
    });
    let mut line = serde_json::to_vec(&go).map_err(InspectError::Json)?;
    line.push(b'\n');
    Ok(line)
}
