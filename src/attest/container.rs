//! One container, from launch to end: the run's own and every control's.

use crate::attest::conversation::talk;
use crate::attest::error::AttestError;
use crate::attest::events::Listener;
use crate::attest::relax;
use crate::attest::trial::{FILLED, Outcome, SCOUT, Trial};
use crate::engine::contract::{Extras, Volume};
use crate::engine::gate::GateChoice;
use crate::engine::{Engine, GateKind, Launch, Program};
use crate::host::claim;
use crate::launch;
use crate::launch::container::{Launched, Means, Ran};
use crate::launch::sides::Sides;
use crate::sandbox::settings;
use tki_evidence::controls::Relaxation;
use tki_evidence::described::names::{self, NAME_PREFIX};
use tki_evidence::seccomp::marked;
use tki_evidence::settings::Settings;
use tki_evidence::wire::MAX_TRANSCRIPT;

/// Launches, talks, waits for the end. Whether an engine lets a gate be put
/// before a container is found out by trying.
pub fn run(
    engine: &mut dyn Engine,
    trial: &Trial,
    events: &mut dyn Listener,
) -> Result<Outcome, AttestError> {
    let mut refused = None;
    let by_profile = engine.gate_kind() == GateKind::Listener;
    let without = match (trial.gate, trial.untried.filter(|_| by_profile)) {
        (GateChoice::Off, _) => "no gate was asked for".to_owned(),
        (GateChoice::Auto, Some(why)) => why.to_owned(),
        _ => match attempt(engine, trial, true, &mut *events)? {
            Attempt::Done(outcome) if outcome.gate.active || trial.gate == GateChoice::Auto => {
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
    if trial.gate == GateChoice::Require {
        return Err(AttestError::NoGate { without });
    }
    match attempt(engine, trial, false, events)? {
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
    trial: &Trial,
    gate: bool,
    events: &mut dyn Listener,
) -> Result<Attempt, AttestError> {
    let name = match trial.control {
        None => trial.run_id.to_owned(),
        Some(control) => format!("{}-{control}", trial.run_id),
    };
    let limits = relax::limits(trial.relaxations, trial.profile.limits);
    let input = match has_own_input(trial) {
        true => &name,
        false => trial.run_id,
    };
    let mut sides = Sides::new(&name, input, limits.out(), trial.maker, trial.janitor)?;
    let binds = sides.binds(trial.profile.limits.out());
    let mut wanted = settings::settings(trial.profile, binds, trial.swap_limit);
    settings::do_without(&mut wanted, trial.lacks);
    let profile = seccomp(trial)?;
    relax::apply(
        trial.relaxations,
        &mut wanted,
        &sides,
        trial.neighbour,
        trial.canary_variable,
        trial.canary_file,
        &profile,
    )
    .map_err(|error| AttestError::Unprepared {
        name: name.clone(),
        error,
    })?;
    let launch = Launch {
        gate,
        ..order(trial, &name, wanted, profile, &sides)
    };
    let means = Means {
        image: trial.image,
        janitor: trial.janitor,
        maker: trial.maker,
        ends: &[0],
    };
    let launched =
        launch::container::run(engine, launch, means, &mut sides, |session, sides, _| {
            talk(session, trial, sides, events)
        })?;
    let Ran {
        launch, said, gate, ..
    } = match launched {
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
        neighbour: trial.neighbour.to_owned(),
        outside,
        gate,
        gate_refused: None,
    })))
}

/// The profile that a container gets.
fn seccomp(trial: &Trial) -> Result<String, AttestError> {
    let own = &trial.profile.seccomp.text;
    if trial.relaxations.contains(&Relaxation::TargetedDeny) {
        Ok(tki_evidence::TARGETED_DENY.into())
    } else if trial.relaxations.contains(&Relaxation::Marks) {
        marked(own).ok_or(AttestError::Unmarkable)
    } else {
        Ok(own.clone())
    }
}

/// It can write to /in, or finds something else there, or comes before the run itself. All
/// others see the same, and change nothing.
fn has_own_input(trial: &Trial) -> bool {
    let others = [
        Relaxation::InWritable,
        Relaxation::DecoySocket,
        Relaxation::SuidDecoy,
    ];
    trial.is_scout() || trial.relaxations.iter().any(|one| others.contains(one))
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
fn volumes(trial: &Trial, sides: &Sides) -> Vec<Volume> {
    let is_made = match trial.control {
        None => true,
        Some(control) => has_own_input(trial) && !FILLED.contains(&control),
    };
    let made = sides.volume().filter(|_| is_made);
    let volume = |name| Volume {
        name,
        goes_along: trial.control.is_some(),
    };
    made.map(volume).into_iter().collect()
}

fn order(trial: &Trial, name: &str, settings: Settings, seccomp: String, sides: &Sides) -> Launch {
    let role = match trial.control {
        None => "probe",
        Some(_) if trial.is_scout() => SCOUT,
        Some(_) => "control",
    };
    Launch {
        name: format!("{NAME_PREFIX}{name}"),
        labels: names::labels(trial.run_id, role, trial.nobodys_after),
        image: trial.image_id.into(),
        program: Program::Prober,
        arguments: vec![errand(trial.relaxations).into()],
        most_said: MAX_TRANSCRIPT,
        settings,
        cpus: trial.cpus,
        seccomp,
        scratch: sides.scratch().map(|scratch| scratch.base().to_owned()),
        volumes: volumes(trial, sides),
        folder: claim::beside(name),
        runtime: trial.runtime.map(str::to_owned),
        gate: false,
        extras: Extras {
            descriptor: trial.relaxations.contains(&Relaxation::Descriptor),
            own_group: trial.relaxations.contains(&Relaxation::CgroupWritable),
        },
    }
}
