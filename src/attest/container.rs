//! One container, from launch to end: the run's own and every control's.

use crate::attest::first::{First, Marks};
use crate::attest::interface;
use crate::attest::janitor::Janitor;
use crate::attest::neighbour;
use crate::attest::outside::{self, View};
use crate::attest::scout;
use crate::attest::scratch;
use crate::attest::sides::{Maker, Sides};
use crate::engine::contract::{Extras, Volume};
use crate::engine::gate::Doorway;
use crate::engine::gate::GateChoice;
use crate::engine::{Configured, Ended, Engine, EngineError, GateKind, Launch, Session};
use crate::failure::Failure;
use crate::image::Image;
use crate::report::progress::Progress;
use crate::sandbox::profile::Profile;
use crate::sandbox::{relax, settings};
use std::path::Path;
use std::time::{Duration, Instant};
use tki_evidence::controls::Relaxation;
use tki_evidence::described::names::{self, NAME_PREFIX};
use tki_evidence::evidence::{GateReport, OutBacking};
use tki_evidence::judge::{Sweeps, Texts};
use tki_evidence::kernel::KernelKind;
use tki_evidence::observation::Phase;
use tki_evidence::seccomp::{gated, marked};
use tki_evidence::settings::{CPU_PERIOD_US, Memory, Settings};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::transcript::{Heard, Transcript, TranscriptError};
use tki_evidence::wire::{Challenge, HostMessage, Limits, PROBE_DEADLINE_MS, PROTOCOL};
use tki_text::printable;

/// What is to be launched.
#[derive(Debug)]
pub struct Job<'a> {
    /// The run that it belongs to.
    pub run_id: &'a str,
    /// The control that it is, if it is one.
    pub control: Option<&'a str>,
    /// What that control relaxes.
    pub relaxations: &'a [Relaxation],
    /// The image's id on the engine.
    pub image_id: &'a str,
    /// The image itself.
    pub image: &'a Image,
    /// The OCI runtime to use, if not the engine's own choice.
    pub runtime: Option<&'a str>,
    /// The exec gate.
    pub gate: GateChoice,
    /// Why the gate is not tried on an engine that is asked for it by the profile, unless it
    /// is required.
    pub untried: Option<&'a str>,
    /// Who tidies up should we be killed.
    pub janitor: &'a Janitor,
    /// Who makes what stands behind /in and /out.
    pub maker: &'a Maker,
    /// The container whose network some controls join, by the engine's id; empty if there
    /// is none.
    pub neighbour: &'a str,
    /// The sandbox.
    pub profile: &'a Profile,
    /// The engine's kernel can limit swap.
    pub swap_limit: bool,
    /// How many processors the engine's host has.
    pub cpus: i64,
    /// Limits that the engine cannot set.
    pub lacks: &'a [&'static str],
    /// Whose kernel it is known to have.
    pub kernel: KernelKind,
    /// Why the engine is taken for another machine's, if it is.
    pub elsewhere: Option<&'a str>,
    /// Probes to run.
    pub probes: Vec<String>,
    /// When the run, with all its containers, must have ended.
    pub deadline: Instant,
    /// The same in seconds since 1970: after that the container is nobody's.
    pub nobodys_after: u64,
    /// A file of the host that must not be reachable.
    pub canary_file: &'a Path,
    /// A variable that must not be set.
    pub canary_variable: &'a str,
    /// What the verifier or the run chose at random.
    pub nonce: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// As it was launched.
    pub launch: Launch,
    /// What the engine says it set.
    pub configured: Configured,
    /// What the inspector was asked.
    pub challenge: Challenge,
    /// What it said.
    pub heard: Heard,
    /// What stood behind /out.
    pub out_backing: OutBacking,
    /// The directory that held the host's side of /in and /out, or the volume that was
    /// /in.
    pub scratch: String,
    /// The container whose network it could have joined.
    pub neighbour: String,
    /// What the host saw of it, or why it could not look.
    pub outside: Result<View, String>,
    /// What the exec gate did.
    pub gate: GateReport,
    /// What the engine said when it refused the gate, and then launched the same container
    /// without it.
    pub gate_refused: Option<String>,
}

/// Launches, talks, waits for the end. Whether an engine lets a gate be put
/// before a container is found out by trying.
pub fn run(
    engine: &mut dyn Engine,
    job: &Job,
    mut progress: Option<&mut Progress>,
) -> Result<Outcome, Failure> {
    let mut refused = None;
    let by_profile = engine.gate_kind() == GateKind::Listener;
    let without = match (job.gate, job.untried.filter(|_| by_profile)) {
        (GateChoice::Off, _) => "no gate was asked for".to_owned(),
        (GateChoice::Auto, Some(why)) => why.to_owned(),
        _ => match attempt(engine, job, true, progress.as_deref_mut())? {
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
        return Err(Failure::blocked(
            "gate.unavailable",
            format!("there is no exec gate: {without}"),
            "use an engine that has one (`tki-attest engines` lists them), or --gate auto",
        ));
    }
    match attempt(engine, job, false, progress)? {
        Attempt::Done(mut outcome) => {
            outcome.gate.reason = without;
            outcome.gate_refused = refused;
            Ok(*outcome)
        }
        Attempt::GateRefused(_) => Err(Failure::internal("gate", "refused without being asked")),
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
    progress: Option<&mut Progress>,
) -> Result<Attempt, Failure> {
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
    .map_err(|error| {
        Failure::blocked(
            "control.unprepared",
            format!("cannot prepare control {name}: {error}"),
            "run again, or with --controls none",
        )
    })?;
    let mut launch = launch(job, &name, wanted, profile, &sides);
    launch.gate = gate;
    let plain = launch.seccomp.clone();
    let doorway = if gate && engine.gate_kind() == GateKind::Listener {
        Some(open_doorway(&mut sides, &mut launch)?)
    } else {
        None
    };
    job.janitor.make(&launch.folder);
    let launched = engine.launch(&launch, job.image);
    job.janitor.gone(&launch.folder);
    let mut session = match (launched, &doorway) {
        (Err(error), _) if is_about_volumes(&error, job.maker) => {
            return Err(Failure::blocked(
                NO_VOLUMES,
                format!("the engine makes no volumes for /in and /out: {error}"),
                "let the engine make volumes of its local driver, or run as root on its host",
            ));
        }
        (Err(EngineError::Refused { message, .. }), Some(_)) => {
            return Ok(Attempt::GateRefused(message));
        }
        (other, _) => other?,
    };
    let talked = talk(session.as_mut(), job, &mut sides, progress)
        .and_then(|talk| Ok((talk, session.finish()?)));
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
            "the inspector tries a few dozen execs; build the image from this tki-attest and run \
             again",
        ));
    }
    let (talk, ended) = talked?;
    if launch.seccomp != plain {
        gate.plain_profile = plain;
    }
    check_end(ended)?;
    let (challenge, configured, heard, outside) = talk;
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

/// The profile that a container gets.
fn seccomp(job: &Job) -> Result<String, Failure> {
    let own = &job.profile.seccomp.text;
    if job.relaxations.contains(&Relaxation::TargetedDeny) {
        Ok(tki_evidence::TARGETED_DENY.into())
    } else if job.relaxations.contains(&Relaxation::Marks) {
        let broken = || Failure::internal("control.marks", "the profile cannot be marked");
        marked(own).ok_or_else(broken)
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
    scout::is_one(job) || job.relaxations.iter().any(|one| others.contains(one))
}

/// What the inspector is told to be: process 1 with one thread, or a guest among a
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
        Some(control) => has_own_input(job) && !neighbour::fills(control),
    };
    let made = sides.volume().filter(|_| is_made);
    let volume = |name| Volume {
        name,
        goes_along: job.control.is_some(),
    };
    made.map(volume).into_iter().collect()
}

fn launch(job: &Job, name: &str, settings: Settings, seccomp: String, sides: &Sides) -> Launch {
    let role = match job.control {
        None => "probe",
        Some(_) if scout::is_one(job) => scout::NAME,
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
        folder: scratch::beside(name),
        runtime: job.runtime.map(str::to_owned),
        gate: false,
        extras: Extras {
            descriptor: job.relaxations.contains(&Relaxation::Descriptor),
            own_group: job.relaxations.contains(&Relaxation::CgroupWritable),
        },
    }
}

type Talk = (Challenge, Configured, Heard, Result<View, String>);

/// The conversation with the inspector, from its greeting to its end.
fn talk(
    session: &mut dyn Session,
    job: &Job,
    sides: &mut Sides,
    progress: Option<&mut Progress>,
) -> Result<Talk, Failure> {
    let mut transcript = Transcript::new();
    let marks = Marks::new(sides, job.lacks);
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
            None => outside::view(&configured, &marks),
        },
        Some(_) => Err("controls are not looked at".into()),
    };
    let is_joined = matches!(job.maker, Maker::Engine);
    if job.relaxations.contains(&Relaxation::Interface) && !is_joined {
        add_interface(job, &configured, &marks)?;
    }
    if let Some(progress) = progress {
        progress.stage("probe");
    }
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
    // Anything after the end is not the inspector's.
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

/// What an inspector says of itself must be true of an inspector of ours. `asked` is
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
            format!("the container does not speak as the inspector does: {why}"),
            "nothing it said counts; build the image from this tki-attest and run again",
        )),
    }
}

fn challenge(job: &Job, missing: Vec<String>, sides: &Sides) -> Challenge {
    let limits = &job.profile.limits;
    let left = job.deadline.saturating_duration_since(Instant::now());
    let positive = |value: i64| u32::try_from(value).unwrap_or(0);
    // What uses these up inside is the kernel's own on the host: it would end, and the
    // inspector with it.
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
            cpu_period_us: positive(CPU_PERIOD_US),
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
        None => First::find(configured, marks),
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
        format!("the container does not speak as the inspector does: {error}"),
        "nothing it said counts; build the image from this tki-attest and run again",
    )
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

/// The inspector ends with 0 when it has said everything.
fn check_end(ended: Ended) -> Result<(), Failure> {
    match ended.status {
        Some(0) | None => Ok(()),
        Some(status) => Err(Failure::blocked(
            "container.ended-badly",
            format!("the inspector said everything but ended with status {status}"),
            "see whether something on the host kills containers, then run again",
        )),
    }
}
