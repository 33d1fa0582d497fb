//! The conversation with a prober, from its greeting to its end.

use crate::attest::error::{AttestError, NoInterface};
use crate::attest::events::{Event, Listener, Stage};
use crate::attest::trial::Trial;
use crate::attest::whereabouts::Unwitnessed;
use crate::engine::{Configured, EngineError, Session};
use crate::host::first::{First, Marks};
use crate::host::interface;
use crate::host::outside::{self, View};
use crate::launch::container::ended_early;
use crate::launch::sides::{Maker, Sides};
use crate::sandbox::settings;
use std::time::{Duration, Instant};
use tki_evidence::controller::Controller;
use tki_evidence::controls::Relaxation;
use tki_evidence::judge::{Sweeps, Texts};
use tki_evidence::observation::Phase;
use tki_evidence::settings::Memory;
use tki_evidence::transcript::{Heard, Transcript};
use tki_evidence::wire::{Challenge, HostMessage, Limits, PROBE_DEADLINE_MS, PROTOCOL};

/// What was asked, what the engine says it set, what the prober said, and what the host
/// saw meanwhile or why it could not look.
pub type Talk = (Challenge, Configured, Heard, Result<View, Unwitnessed>);

/// Talks with the prober.
pub fn talk(
    session: &mut dyn Session,
    trial: &Trial,
    sides: &mut Sides,
    events: &mut dyn Listener,
) -> Result<Talk, AttestError> {
    let mut transcript = Transcript::new();
    let marks = sides.marks(trial.lacks);
    let Some(line) = session.receive()? else {
        return Err(ended_early(session, "before it said anything").into());
    };
    let missing = transcript.hear_hello(&line)?;
    // The container runs and waits for its go.
    sides.release();
    let configured = match session.configured() {
        // The engine no longer knows it.
        Err(EngineError::Refused { status: 404, .. }) => {
            return Err(ended_early(session, "before it was asked anything").into());
        }
        other => other?,
    };
    let outside = match trial.control {
        None => match trial.elsewhere {
            Some(why) => Err(why.clone().into()),
            None => outside::view(configured.first(), &marks).map_err(Unwitnessed::from),
        },
        Some(_) => Err(Unwitnessed::Control),
    };
    let is_joined = matches!(trial.maker, Maker::Engine);
    if trial.relaxations.contains(&Relaxation::Interface) && !is_joined {
        add_interface(trial, &configured, &marks)?;
    }
    events.hear(Event::Begins(Stage::Probe));
    let challenge = challenge(trial, missing, sides);
    let mut line = serde_json::to_vec(&HostMessage::Challenge(challenge.clone()))
        .map_err(AttestError::Challenge)?;
    line.push(b'\n');
    let asked = Instant::now();
    match session.send(&line) {
        // Either the container is gone or the engine: the end tells which.
        Err(EngineError::Vanished { .. }) => {
            return Err(ended_early(session, "before it was asked anything").into());
        }
        other => other?,
    }
    loop {
        let Some(line) = session.receive()? else {
            return Err(ended_early(session, "before it had answered").into());
        };
        if transcript.hear(&line, &challenge)? {
            break;
        }
    }
    // Anything after the end is not the prober's.
    if let Some(line) = session.receive()? {
        transcript.hear(&line, &challenge)?;
    }
    let heard = transcript.end().ok_or(AttestError::NoEnd)?;
    check_words(trial, &heard, asked)?;
    Ok((challenge, configured, heard, outside))
}

/// What a prober says of itself must be true of a prober of ours. `asked` is
/// when it was asked.
fn check_words(trial: &Trial, heard: &Heard, asked: Instant) -> Result<(), AttestError> {
    // Its clock may be another machine's.
    let longest = (asked.elapsed() + Duration::from_secs(1)).as_micros();
    let later = trial.relaxations.contains(&Relaxation::Interface);
    let sweeps = Sweeps::default();
    let texts = Texts::of_run(&heard.raw, &sweeps);
    let untrue = heard.untrue(env!("CARGO_PKG_VERSION"), later, &texts);
    let too_long = u128::from(heard.elapsed_us) > longest;
    match untrue.or(too_long.then_some("it took longer than it was given")) {
        None => Ok(()),
        Some(why) => Err(AttestError::Untrue(why)),
    }
}

fn challenge(trial: &Trial, missing: Vec<String>, sides: &Sides) -> Challenge {
    let limits = &trial.profile.limits;
    let left = trial.deadline.saturating_duration_since(Instant::now());
    let positive = |value: i64| u32::try_from(value).unwrap_or(0);
    // What uses these up inside is the kernel's own on the host: it would end, and the
    // prober with it.
    let is_fatal = trial.kernel.is_own();
    // A plain directory of the host has no size of its own.
    let out = match sides.backing().kind == "tmpfs" {
        true => limits.out(),
        false => Memory::default(),
    };
    Challenge {
        protocol: PROTOCOL,
        nonce: trial.nonce.clone(),
        probes: trial.probes.clone(),
        phases: vec![Phase::Engine, Phase::Locked],
        probe_deadline_ms: PROBE_DEADLINE_MS,
        overall_deadline_ms: u32::try_from(left.as_millis()).unwrap_or(u32::MAX),
        lock: !trial.relaxations.contains(&Relaxation::LockOff),
        env_canary: trial.canary_variable.into(),
        host_canary: trial.canary_file.to_string_lossy().into_owned(),
        limits: Limits {
            pids: match is_fatal {
                true => 0,
                false => positive(limits.pids),
            },
            memory_bytes: match is_fatal {
                true => 0,
                false => u64::try_from(limits.memory_bytes).unwrap_or(0),
            },
            out_bytes: out.bytes,
            tmp_bytes: limits.tmp_bytes,
            out_files: out.files,
            tmp_files: limits.tmp_files,
            nofile: positive(limits.nofile),
            cpu_period_us: positive(tki_evidence::settings::CPU_PERIOD_US),
            // A quota that cannot be set cannot be run into.
            cpu_quota_us: if trial.lacks.contains(&Controller::Cpu) {
                0
            } else {
                positive(settings::cpu_quota_us(limits))
            },
        },
        // A missing invariant is for the probes to prove, not to hide.
        accept_missing: missing,
    }
}

/// Puts an interface into the container's network namespace, on an engine of this host
/// alone: elsewhere its process id is the number of a process of ours, or of nobody.
fn add_interface(trial: &Trial, configured: &Configured, marks: &Marks) -> Result<(), NoInterface> {
    let first = match trial.elsewhere {
        Some(why) => return Err(NoInterface::Elsewhere(why.clone())),
        None => First::find(configured.first(), marks)?,
    };
    Ok(interface::add(&first)?)
}
