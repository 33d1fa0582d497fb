//! `tki-attest run`.

use crate::attest::bundle::{self, Written};
use crate::attest::memory::Memory;
use crate::attest::run::{Plan, attest};
use crate::cli::{Common, Controls, EngineArgs, EngineName, Format, RunArgs, Venue};
use crate::clock;
use crate::commands::packet::{self, Offer};
use crate::commands::shared::{CANDIDATES, Connector};
use crate::commands::{inputs, output, shared};
use crate::engine::EngineError;
use crate::engine::error::time_left;
use crate::executable;
use crate::exit::Exit;
use crate::failure::{Cause, Failure};
use crate::files::Folder;
use crate::host::venue::{self, Proofs};
use crate::image::{Image, built_in};
use crate::packet::Why;
use crate::report::engines::{self, Column};
use crate::report::evidence as report;
use crate::report::progress::Progress;
use crate::report::table::Paint;
use crate::sandbox::limit::Limit;
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use crate::state::State;
use crate::trust::envelope_file;
use crate::trust::keys::Key;
use crate::verify::artifacts::Source;
use crate::verify::inputs::Clock;
use crate::verify::pipeline::{contradiction, false_attestation};
use crate::verify::{Bundle, Inputs, Step, StepCode, verify};
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use tki_evidence::evidence::{Evidence, RequestBinding, Status};
use tki_evidence::venue::VenueRules;
use tki_text::printable;

/// Builds, launches, probes, writes and verifies, on one engine or on all. Where
/// that is BLOCKED, the packet for another operator is offered.
pub fn execute(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
    let offer = Offer {
        file: args.packet.as_deref(),
        seccomp: &args.seccomp,
        limits: args.profile.as_deref(),
    };
    match attempt(args, common) {
        Err(mut failure)
            if failure.exit == Exit::Blocked && failure.cause != Cause::Interrupted =>
        {
            let offer = packet::offer(offer, &Why::from_failure(&failure))?;
            failure.next = format!("{}\n    or: {offer}", failure.next);
            Err(failure)
        }
        Ok(Exit::Blocked) => {
            let why = Why {
                reason: "the run was BLOCKED: not every probe was proven".into(),
                next: "see the evidence that was written".into(),
                rows: Vec::new(),
            };
            let offer = packet::offer(offer, &why)?;
            let _ = writeln!(std::io::stderr(), "tki-attest: {}", printable(&offer, 4000));
            Ok(Exit::Blocked)
        }
        other => other,
    }
}

fn attempt(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
    let seccomp = Seccomp::resolve(&args.seccomp)?;
    let (limits, chosen) = match &args.profile {
        Some(file) => Limits::read_chosen(file)?,
        None => (Limits::default(), Vec::new()),
    };
    let profile = Profile { seccomp, limits };
    let venue_rules = venue::rules(args.venue_rules.as_deref())?;
    let proofs = Proofs::read(
        args.platform_proof.as_deref(),
        args.hardware_proof.as_deref(),
    )?;
    let out = bundle::prepare_folder(&args.out)?;
    // A passphrase is asked for before anything is launched.
    let key = args.sign.as_deref();
    let limit = args.engine.timeout;
    let key = key.map(|path| Key::open(path, args.passphrase.passphrase.as_ref(), limit));
    let key = key.transpose()?;
    let job = Job {
        args,
        profile,
        chosen,
        venue_rules,
        proofs,
        key,
        out,
        state: State::here().filter(|_| !args.no_state),
    };
    if args.engine.engine == EngineName::All {
        return on_all(&job, common);
    }
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    let (written, elapsed_us) = on_one(&job, &args.engine, &mut progress)?;
    progress.finish();
    let evidence = &written.evidence;
    match args.format {
        Format::Json => output::print_json(&report::summary(evidence, &written.path))?,
        Format::Text if common.quiet => {}
        Format::Text => {
            let paint = Paint::stdout(common.color);
            let mut text = report::table(evidence, paint);
            if common.verbose {
                text += &report::details(evidence, elapsed_us, paint);
            }
            text += &report::conclusion(evidence, &written.path, paint);
            output::print(&text)?;
        }
    }
    Ok(exit_of(evidence.status))
}

/// What is the same for every engine.
struct Job<'a> {
    args: &'a RunArgs,
    profile: Profile,
    /// Limits that somebody chose.
    chosen: Vec<Limit>,
    venue_rules: VenueRules,
    proofs: Proofs,
    key: Option<Key>,
    /// Where evidence goes, held from the start.
    out: Folder,
    /// What runs remember, if they are to.
    state: Option<State>,
}

fn exit_of(status: Status) -> Exit {
    match status {
        Status::SandboxAttested => Exit::Done,
        Status::SandboxAttestationFailed => Exit::Disproved,
        Status::SandboxAttestationPartial => Exit::Blocked,
    }
}

/// One engine after the other, then probes × engines. An engine that is not here
/// is named and is no failure; one that fails is.
fn on_all(job: &Job, common: Common) -> Result<Exit, Failure> {
    let args = job.args;
    let mut results = Vec::new();
    for name in CANDIDATES {
        let engine = EngineArgs {
            engine: *name,
            ..args.engine.clone()
        };
        let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
        let result = on_one(job, &engine, &mut progress);
        progress.finish();
        match result {
            // Whoever interrupts means all of it, and not this engine.
            Err(failure) if failure.cause == Cause::Interrupted => return Err(failure),
            result => results.push((name.name(), result)),
        }
    }
    let written = || {
        results
            .iter()
            .filter_map(|(_, result)| result.as_ref().ok())
    };
    match args.format {
        Format::Json => {
            let summaries: Vec<_> = written()
                .map(|(written, _)| report::summary(&written.evidence, &written.path))
                .collect();
            output::print_json(&summaries)?;
        }
        Format::Text if common.quiet => {}
        Format::Text => {
            let columns: Vec<Column> = results
                .iter()
                .map(|(engine, result)| Column {
                    engine,
                    result: match result {
                        Ok((written, _)) => Ok(&written.evidence),
                        Err(failure) => Err(failure.message.as_str()),
                    },
                })
                .collect();
            let mut text = engines::matrix(&columns, Paint::stdout(common.color));
            for (written, _) in written() {
                text += &format!("evidence  {}\n", written.path.display());
            }
            output::print(&text)?;
        }
    }
    let broken = results.iter().any(|(_, result)| {
        let absent = [Cause::EngineUnusable, Cause::EngineAbsent];
        matches!(result, Err(failure) if !absent.contains(&failure.cause))
    });
    let statuses: Vec<Status> = written()
        .map(|(written, _)| written.evidence.status)
        .collect();
    Ok(if statuses.contains(&Status::SandboxAttestationFailed) {
        Exit::Disproved
    } else if broken
        || statuses.iter().any(|s| *s != Status::SandboxAttested)
        || statuses.is_empty()
    {
        Exit::Blocked
    } else {
        Exit::Done
    })
}

/// A whole run on one engine, and the time that it took inside.
fn on_one(
    job: &Job,
    engine: &EngineArgs,
    progress: &mut Progress,
) -> Result<(Written, u64), Failure> {
    let (args, profile) = (job.args, &job.profile);
    let deadline = Instant::now() + engine.timeout;
    let connector = Connector::new(engine, args.runtime.as_deref());
    connector.settle()?;
    progress.stage("build");
    // One deadline for everything: whatever connects later has less time.
    let connect = || connector.connect(time_left(deadline, "connecting")?);
    // The engine takes as long to agree on a version as the image to be built.
    // What is wrong with the image is said first.
    let (janitor, image, reached) = std::thread::scope(|scope| {
        let agreeing = scope.spawn(|| {
            let mut engine = connect()?;
            engine.expect_launch();
            // While an engine starts it has no processor to spare.
            executable::begin_to_describe();
            Ok::<_, EngineError>(engine)
        });
        let janitor = shared::janitor(engine);
        let image = shared::build_image(&args.source, built_in::TAG);
        (janitor, image, agreeing.join())
    });
    let image = image?;
    let engine =
        reached.map_err(|_| Failure::internal("engine.connect", "connecting panicked"))??;
    let janitor = janitor?;
    let controls = args.controls.unwrap_or(match args.venue {
        Venue::Vps | Venue::Ci => Controls::Safe,
        Venue::Dev => Controls::None,
    });
    let plan = Plan {
        venue: args.venue.name(),
        venue_rules: &job.venue_rules,
        proofs: &job.proofs,
        profile,
        chosen: &job.chosen,
        image: &image,
        deadline,
        controls: controls == Controls::Safe,
        limits: false,
        runtime: args.runtime.as_deref(),
        gate: args.gate,
        memory: job.state.as_ref().map_or(Memory::None, Memory::Used),
        janitor: &janitor,
        request: answer(args, profile, &image)?,
    };
    let bundle = attest(engine, &connect, &plan, progress).inspect_err(|error| {
        // An engine that comes back, or another service of it, may hold something.
        if error.has_lost_engine() {
            janitor.take_over();
        } else if error.has_ended_early() {
            janitor.look();
        }
    })?;
    janitor.done();
    let elapsed_us = bundle.elapsed_us;
    progress.stage("write");
    let sign = job.key.as_ref().map(|key| {
        |name: &str, bytes: &[u8], evidence: &Evidence| {
            Ok(envelope_file::signed(name, bytes, evidence, key, deadline)?)
        }
    });
    let sign = sign.as_ref().map(|sign| sign as &bundle::Sign<Failure>);
    // What was started for the run ends while its evidence is written.
    let written = std::thread::scope(|scope| {
        scope.spawn(|| drop(connector));
        bundle.write(&job.out, sign, self_verify)
    });
    Ok((written?, elapsed_us))
}

/// Evidence that our own verifier calls false is never written.
fn self_verify(bytes: &[u8], folder: &Path) -> Result<(), Failure> {
    let inputs = Inputs {
        clock: Clock {
            now: clock::now(),
            given: false,
        },
        ..Inputs::default()
    };
    let bundle = Bundle {
        name: "the new evidence".into(),
        evidence: bytes.to_vec(),
        envelope: None,
        artifacts: Source::Folder(folder.to_owned()),
    };
    let verification = verify(&bundle, &inputs)?;
    let contradicted = |step: &Step| {
        Err(Failure::blocked(
            "run.contradicted",
            format!("{}: {}", step.code, step.got),
            "the engine, the prober or the kernel contradicts this run: use an engine and an \
             image that you trust, then run again",
        ))
    };
    // A leak is a true finding; a stamp or a verdict that does not follow is
    // our own mistake.
    match contradiction(&verification) {
        None => match false_attestation(&verification) {
            None => Ok(()),
            Some(step) => contradicted(step),
        },
        // Settings and conversation are what was recorded: what differs is the engine's
        // or the prober's own word.
        Some(step) if [StepCode::Container, StepCode::Transcript].contains(&step.code) => {
            contradicted(step)
        }
        Some(step) => Err(Failure::internal(
            "run.self-verify",
            format!(
                "{}: expected {}, got {}",
                step.code, step.expected, step.got
            ),
        )),
    }
}

/// The request, if this run can answer it. What could not be accepted later is
/// not begun.
fn answer(
    args: &RunArgs,
    profile: &Profile,
    image: &Image,
) -> Result<Option<RequestBinding>, Failure> {
    let Some(path) = &args.request else {
        return Ok(None);
    };
    let (request, sha256) = inputs::request(path)?;
    for (what, asked, here) in [
        ("venue", &request.venue, &args.venue.name().to_owned()),
        ("image", &request.image_digest, &image.manifest_digest),
        (
            "seccomp profile",
            &request.seccomp_sha256,
            &profile.seccomp.sha256,
        ),
    ] {
        if asked != here {
            return Err(Failure::blocked(
                "request.other",
                format!(
                    "{}: it asks for {what} {asked}, and here it is {here}",
                    path.display()
                ),
                "run what it asks for, or ask for another request",
            ));
        }
    }
    if clock::parse_rfc3339(&request.not_after).is_none_or(|end| end < clock::now()) {
        return Err(Failure::blocked(
            "request.stale",
            format!(
                "{}: answers counted until {}",
                path.display(),
                request.not_after
            ),
            "ask the verifying party for a new request",
        ));
    }
    Ok(Some(RequestBinding {
        sha256,
        nonce: request.nonce,
    }))
}
