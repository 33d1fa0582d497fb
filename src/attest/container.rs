//! One container, from launch to end: the run's own and every control's.

use crate::attest::conversation::talk;
use crate::attest::error::AttestError;
use crate::attest::events::Listener;
use crate::attest::job::{FILLED, Job, Outcome, SCOUT};
use crate::attest::relax;
use crate::engine::contract::{Extras, Volume};
use crate::engine::gate::GateChoice;
use crate::engine::{Engine, GateKind, Launch};
use crate::host::claim;
use crate::launch;
use crate::launch::container::{Launched, Means, Ran};
use crate::launch::sides::Sides;
use crate::sandbox::settings;
use tki_evidence::controls::Relaxation;
use tki_evidence::described::names::{self, NAME_PREFIX};
use tki_evidence::seccomp::marked;
use tki_evidence::settings::Settings;

/// Launches, talks, waits for the end. Whether an engine lets a gate be put
/// before a container is found out by trying.
pub fn run(
    engine: &mut dyn Engine,
    job: &Job,
    events: &mut dyn Listener,
) -> Result<Outcome, AttestError> {
    let mut refused = None;
    let by_profile = engine.gate_kind() == GateKind::Listener;
    let without = match (job.gate, job.untried.filter(|_| by_profile)) {
        (GateChoice::Off, _) => "no gate was asked for".to_owned(),
        (GateChoice::Auto, Some(why)) => why.to_owned(),
        _ => match attempt(engine, job, true, &mut *events)? {
            Attempt::Done(outcome) if outcome.gate.active || job.gate == GateChoice::Auto => {
                return Ok(*outcome);
            }
            Attempt::Done(outcome) => outcome.gate.reason,
            Attempt::GateRefused(reason) => {
                let without = format!("the engine does not take it: {reason}");
                refused = Some(reason);
                without
            }
        },
    };
    if job.gate == GateChoice::Require {
        return Err(AttestError::NoGate { without });
    }
    match attempt(engine, job, false, events)? {
        Attempt::Done(mut outcome) => {
            outcome.gate.reason = without;
            outcome.gate_refused = refused;
            Ok(*outcome)
        }
        Attempt::GateRefused(_) => Err(AttestError::GateRefused),
    }
}

/// What came of an attempt.
enum Attempt {
    /// The container ran to its end.
    Done(Box<Outcome>),
    /// It did not start, and a gate had been asked for.
    GateRefused(String),
}

fn attempt(
    engine: &mut dyn Engine,
    job: &Job,
    gate: bool,
    events: &mut dyn Listener,
) -> Result<Attempt, AttestError> {
    let name = match job.control {
        None => job.run_id.to_owned(),
        Some(control) => format!("{}-{control}", job.run_id),
    };
    let limits = relax::limits(job.relaxations, job.profile.limits);
    let input = match has_own_input(job) {
        true => &name,
        false => job.run_id,
    };
    let mut sides = Sides::new(&name, input, &limits, job.maker, job.janitor)?;
    let binds = sides.binds(&job.profile.limits);
    let mut wanted = settings::settings(job.profile, binds, job.swap_limit);
    settings::do_without(&mut wanted, job.lacks);
    let profile = seccomp(job)?;
    relax::apply(
        job.relaxations,
        &mut wanted,
        &sides,
        job.neighbour,
        job.canary_variable,
        job.canary_file,
        &profile,
    )
    .map_err(|error| AttestError::Unprepared {
        name: name.clone(),
        error,
    })?;
    let launch = Launch {
        gate,
        ..order(job, &name, wanted, profile, &sides)
    };
    let means = Means {
        image: job.image,
        janitor: job.janitor,
        maker: job.maker,
    };
    let launched = launch::container::run(engine, launch, means, &mut sides, |session, sides| {
        talk(session, job, sides, events)
    })?;
    let Ran { launch, said, gate } = match launched {
        Launched::Ended(ran) => *ran,
        Launched::GateRefused(message) => return Ok(Attempt::GateRefused(message)),
    };
    let (challenge, configured, heard, outside) = said;
    Ok(Attempt::Done(Box::new(Outcome {
        launch,
        configured,
        challenge,
        heard,
        out_backing: sides.backing().clone(),
        scratch: sides.name().into_owned(),
        neighbour: job.neighbour.to_owned(),
        outside,
        gate,
        gate_refused: None,
    })))
}

/// The profile that a container gets.
fn seccomp(job: &Job) -> Result<String, AttestError> {
    let own = &job.profile.seccomp.text;
    if job.relaxations.contains(&Relaxation::TargetedDeny) {
        Ok(tki_evidence::TARGETED_DENY.into())
    } else if job.relaxations.contains(&Relaxation::Marks) {
        marked(own).ok_or(AttestError::Unmarkable)
    } else {
        Ok(own.clone())
    }
}

/// It can write to /in, or finds something else there, or comes before the run itself. All
/// others see the same, and change nothing.
fn has_own_input(job: &Job) -> bool {
    let others = [
        Relaxation::InWritable,
        Relaxation::DecoySocket,
        Relaxation::SuidDecoy,
    ];
    job.is_scout() || job.relaxations.iter().any(|one| others.contains(one))
}

/// What the prober is told to be: process 1 with one thread, or a guest among a
/// neighbour's processes, or one with two threads.
fn errand(relaxations: &[Relaxation]) -> &'static str {
    let has = |one| relaxations.contains(&one);
    match (has(Relaxation::JoinPid), has(Relaxation::Thread)) {
        (true, _) => "guest",
        (false, true) => "threads",
        (false, false) => "probe",
    }
}

/// The volume that is made for a container: the run's own, which its controls have too, or
/// that of a control which writes to it. Those that a neighbour fills are the neighbour's.
fn volumes(job: &Job, sides: &Sides) -> Vec<Volume> {
    let is_made = match job.control {
        None => true,
        Some(control) => has_own_input(job) && !FILLED.contains(&control),
    };
    let made = sides.volume().filter(|_| is_made);
    let volume = |name| Volume {
        name,
        goes_along: job.control.is_some(),
    };
    made.map(volume).into_iter().collect()
}

fn order(job: &Job, name: &str, settings: Settings, seccomp: String, sides: &Sides) -> Launch {
    let role = match job.control {
        None => "probe",
        Some(_) if job.is_scout() => SCOUT,
        Some(_) => "control",
    };
    Launch {
        name: format!("{NAME_PREFIX}{name}"),
        labels: names::labels(job.run_id, role, job.nobodys_after),
        image: job.image_id.into(),
        arguments: vec![errand(job.relaxations).into()],
        settings,
        cpus: job.cpus,
        seccomp,
        scratch: sides.scratch().map(|scratch| scratch.base().to_owned()),
        volumes: volumes(job, sides),
        folder: claim::beside(name),
        runtime: job.runtime.map(str::to_owned),
        gate: false,
        extras: Extras {
            descriptor: job.relaxations.contains(&Relaxation::Descriptor),
            own_group: job.relaxations.contains(&Relaxation::CgroupWritable),
        },
    }
}
