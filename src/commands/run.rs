//! `tki-attest run`.

use crate::attest::bundle;
use crate::attest::run::{Plan, attest, time_left};
use crate::cli::{Common, Controls, Format, RunArgs, Venue};
use crate::commands::{output, shared};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::image::embedded;
use crate::report::evidence as report;
use crate::report::progress::Progress;
use crate::report::table::Paint;
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use crate::verify::step::Step;
use crate::verify::{Decision, Inputs, Outcome, verify};
use std::path::Path;
use std::time::Instant;
use tki_evidence::evidence::Status;

/// Builds, launches, probes, writes and verifies.
pub fn execute(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
    let deadline = Instant::now() + args.engine.timeout;
    let profile = Profile {
        seccomp: Seccomp::resolve(&args.seccomp)?,
        limits: match &args.profile {
            Some(file) => Limits::read(file)?,
            None => Limits::default(),
        },
    };
    shared::settle(&args.engine)?;
    let janitor = shared::janitor(&args.engine)?;
    bundle::prepare_folder(&args.out)?;
    let mut progress = Progress::new(common.quiet, Paint::stderr(common.color));
    progress.stage("build");
    let connector = shared::Connector::new(&args.engine, args.runtime.as_deref());
    // One deadline for everything: whatever connects later has less time.
    let connect = || connector.connect(time_left(deadline, "connecting")?);
    // The engine takes as long to agree on a version as the image to be built.
    // What is wrong with the image is said first.
    let (image, engine) = std::thread::scope(|scope| {
        let agreeing = scope.spawn(|| connect().map(drop));
        let image = shared::build_image(&args.source, embedded::TAG);
        (image, agreeing.join())
    });
    let image = image?;
    engine.map_err(|_| Failure::internal("engine.connect", "connecting panicked"))??;
    let controls = args.controls.unwrap_or(match args.venue {
        Venue::Vps | Venue::Ci => Controls::Safe,
        Venue::Dev => Controls::None,
    });
    let plan = Plan {
        venue: args.venue.name(),
        profile: &profile,
        image: &image,
        tag: embedded::TAG,
        deadline,
        controls: controls == Controls::Safe,
        limits: false,
        runtime: args.runtime.as_deref(),
        gate: args.gate,
        janitor: &janitor,
    };
    let bundle = attest(&connect, &plan, &mut progress)?;
    let elapsed_us = bundle.elapsed_us;
    progress.stage("write");
    let written = bundle.write(&args.out, self_verify)?;
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
    Ok(match evidence.status {
        Status::SandboxAttested => Exit::Done,
        Status::SandboxAttestationFailed => Exit::Disproved,
        Status::SandboxAttestationPartial => Exit::Blocked,
    })
}

/// Evidence that our own verifier calls false is never written.
fn self_verify(bytes: &[u8], folder: &Path) -> Result<(), Failure> {
    let inputs = Inputs {
        require_artifacts: true,
        ..Inputs::default()
    };
    let finding = verify("the new evidence", bytes, folder, &inputs)?;
    // A leak is a true finding; a stamp or a verdict that does not follow is
    // our own mistake.
    let ours = [
        "EV-FORM",
        "EV-STAMP",
        "EV-ARTIFACTS",
        "EV-TRANSCRIPT",
        "EV-TIME",
        "EV-DERIVED",
    ];
    let is_mistake = |step: &&Step| match step.code {
        // A control that does not hold is a true finding as well.
        "EV-CONTROLS" => step.outcome == Outcome::False,
        code => ours.contains(&code) && step.outcome != Outcome::Ok,
    };
    let mistake = finding.steps.iter().find(is_mistake);
    match mistake {
        Some(step) if finding.decision != Decision::B4PrimeAccepted => Err(Failure::internal(
            "run.self-verify",
            format!(
                "{}: expected {}, got {}",
                step.code, step.expected, step.got
            ),
        )),
        _ => Ok(()),
    }
}
