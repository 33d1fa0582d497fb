//! The conversation with a prober, from its greeting to its end.

use crate::attest::events::{Event, Listener, Stage};
use crate::attest::job::Job;
use crate::engine::{Configured, EngineError, Session};
use crate::failure::Failure;
use crate::host::first::{First, Marks};
use crate::host::interface;
use crate::host::outside::{self, View};
use crate::launch::container::ended_early;
use crate::launch::sides::{Maker, Sides};
use crate::sandbox::settings;
use std::time::{Duration, Instant};
use tki_evidence::controls::Relaxation;
use tki_evidence::judge::{Sweeps, Texts};
use tki_evidence::observation::Phase;
use tki_evidence::settings::Memory;
use tki_evidence::transcript::{Heard, Transcript, TranscriptError};
use tki_evidence::wire::{Challenge, HostMessage, Limits, PROBE_DEADLINE_MS, PROTOCOL};

/// What was asked, what the engine says it set, what the prober said, and what the host
/// saw meanwhile or why it could not look.
pub type Talk = (Challenge, Configured, Heard, Result<View, String>);

/// Talks with the prober.
pub fn talk(
    session: &mut dyn Session,
    job: &Job,
    sides: &mut Sides,
    events: &mut dyn Listener,
) -> Result<Talk, Failure> {
    let mut transcript = Transcript::new();
    let marks = sides.marks(job.lacks);
    let Some(line) = session.receive()? else {
        return Err(ended_early(session, "before it said anything"));
    };
    let missing = transcript
        .hear_hello(&line)
        .map_err(|error| misspoken(&error))?;
    // The container runs and waits for its go.
    sides.release();
    let configured = match session.configured() {
        // The engine no longer knows it.
        Err(EngineError::Refused { status: 404, .. }) => {
            return Err(ended_early(session, "before it was asked anything"));
        }
        other => other?,
    };
    let outside = match job.control {
        None => match job.elsewhere {
            Some(why) => Err(why.to_owned()),
            None => outside::view(configured.first(), &marks),
        },
        Some(_) => Err("controls are not looked at".into()),
    };
    let is_joined = matches!(job.maker, Maker::Engine);
    if job.relaxations.contains(&Relaxation::Interface) && !is_joined {
        add_interface(job, &configured, &marks)?;
    }
    events.hear(Event::Begins(Stage::Probe));
    let challenge = challenge(job, missing, sides);
    let mut line = serde_json::to_vec(&HostMessage::Challenge(challenge.clone()))
        .map_err(|error| Failure::internal("challenge", error.to_string()))?;
    line.push(b'\n');
    let asked = Instant::now();
    match session.send(&line) {
        // Either the container is gone or the engine: the end tells which.
        Err(EngineError::Vanished { .. }) => {
            return Err(ended_early(session, "before it was asked anything"));
        }
        other => other?,
    }
    loop {
        let Some(line) = session.receive()? else {
            return Err(ended_early(session, "before it had answered"));
        };
        if transcript
            .hear(&line, &challenge)
            .map_err(|error| misspoken(&error))?
        {
            break;
        }
    }
    // Anything after the end is not the prober's.
    if let Some(line) = session.receive()? {
        transcript
            .hear(&line, &challenge)
            .map_err(|error| misspoken(&error))?;
    }
    let heard = transcript
        .end()
        .ok_or_else(|| Failure::internal("transcript", "the end was heard but is not there"))?;
    check_words(job, &heard, asked)?;
    Ok((challenge, configured, heard, outside))
}

/// What a prober says of itself must be true of a prober of ours. `asked` is
/// when it was asked.
fn check_words(job: &Job, heard: &Heard, asked: Instant) -> Result<(), Failure> {
    // Its clock may be another machine's.
    let longest = (asked.elapsed() + Duration::from_secs(1)).as_micros();
    let later = job.relaxations.contains(&Relaxation::Interface);
    let sweeps = Sweeps::default();
    let texts = Texts::of_run(&heard.raw, &sweeps);
    let untrue = heard.untrue(env!("CARGO_PKG_VERSION"), later, &texts);
    let too_long = u128::from(heard.elapsed_us) > longest;
    match untrue.or(too_long.then_some("it took longer than it was given")) {
        None => Ok(()),
        Some(why) => Err(Failure::blocked(
            "inspector.garbled",
            format!("the container does not speak as the prober does: {why}"),
            "nothing it said counts; build the image from this tki-attest and run again",
        )),
    }
}

fn challenge(job: &Job, missing: Vec<String>, sides: &Sides) -> Challenge {
    let limits = &job.profile.limits;
    let left = job.deadline.saturating_duration_since(Instant::now());
    let positive = |value: i64| u32::try_from(value).unwrap_or(0);
    // What uses these up inside is the kernel's own on the host: it would end, and the
    // prober with it.
    let is_fatal = job.kernel.is_own();
    // A plain directory of the host has no size of its own.
    let out = match sides.backing().kind == "tmpfs" {
        true => limits.out(),
        false => Memory::default(),
    };
    Challenge {
        protocol: PROTOCOL,
        nonce: job.nonce.clone(),
        probes: job.probes.clone(),
        phases: vec![Phase::Engine, Phase::Locked],
        probe_deadline_ms: PROBE_DEADLINE_MS,
        overall_deadline_ms: u32::try_from(left.as_millis()).unwrap_or(u32::MAX),
        lock: !job.relaxations.contains(&Relaxation::LockOff),
        env_canary: job.canary_variable.into(),
        host_canary: job.canary_file.to_string_lossy().into_owned(),
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
            cpu_quota_us: if job.lacks.contains(&"cpu") {
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
fn add_interface(job: &Job, configured: &Configured, marks: &Marks) -> Result<(), Failure> {
    let first = match job.elsewhere {
        Some(why) => Err(format!("{why}, which may be another machine")),
        None => First::find(configured.first(), marks),
    };
    let added = first
        .map_err(std::io::Error::other)
        .and_then(|first| interface::add(&first));
    added.map_err(|error| {
        Failure::blocked(
            "control.network",
            format!("cannot put an interface into the control's network namespace: {error}"),
            "run as root on the engine's own host, or with --controls none",
        )
    })
}

/// The failure of a container that does not speak as it should.
pub fn misspoken(error: &TranscriptError) -> Failure {
    let code = match error {
        TranscriptError::Refused(_) => "inspector.refused",
        _ => "inspector.garbled",
    };
    Failure::blocked(
        code,
        format!("the container does not speak as the prober does: {error}"),
        "nothing it said counts; build the image from this tki-attest and run again",
    )
}
