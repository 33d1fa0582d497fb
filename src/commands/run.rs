//! `tki-attest run`.

use crate::attest::bundle;
use crate::attest::run::{Plan, attest};
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
use crate::verify::{Decision, Inputs, Outcome, verify};
use std::path::Path;
use tki_evidence::evidence::Status;

/// Builds, launches, probes, writes and verifies.
pub fn execute(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
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
    let connect = || shared::connect(&args.engine);
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
        limit: args.engine.timeout,
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
    let mistake = finding
        .steps
        .iter()
        .find(|step| ours.contains(&step.code) && step.outcome != Outcome::Ok);
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
