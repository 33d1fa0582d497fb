//! One run: launch, challenge, listen, record.

use crate::attest::bundle::{Bundle, Recorded};
use crate::attest::scratch::Scratch;
use crate::attest::transcript::{Heard, Transcript, TranscriptError};
use crate::clock;
use crate::engine::contract::{LABEL_DEADLINE, LABEL_ROLE, LABEL_RUN};
use crate::engine::{
    Configured, Ended, Engine, EngineError, EngineFacts, ImageNames, Launch, Session,
};
use crate::failure::Failure;
use crate::image::Image;
use crate::report::progress::Progress;
use crate::report::text::printable;
use crate::sandbox::profile::Profile;
use crate::sandbox::{command_line, settings};
use std::time::Duration;
use tki_evidence::catalogue::CANONICAL;
use tki_evidence::evidence::{ImageIdentity, Inventory, Sandbox, Tool, VenueFacts};
use tki_evidence::observation::Phase;
use tki_evidence::stamp::hex;
use tki_evidence::venue;
use tki_evidence::wire::{Challenge, HostMessage, PROTOCOL};

/// How long one probe may take inside.
const PROBE_DEADLINE_MS: u32 = 2_000;

/// Names of variables by which CI systems make themselves known.
const CI_VARIABLES: &[&str] = &[
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "JENKINS_URL",
    "CIRCLECI",
];

/// What is to be attested, where, and for how long at most.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The claimed venue.
    pub venue: &'a str,
    /// The sandbox.
    pub profile: &'a Profile,
    /// The image.
    pub image: &'a Image,
    /// The tag that the image is loaded under.
    pub tag: &'a str,
    /// The time limit for everything.
    pub limit: Duration,
}

/// A random id that sorts by time.
pub fn new_run_id(now: u64) -> Result<String, Failure> {
    let time: String = clock::rfc3339(now)
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .collect();
    Ok(format!("{}-{}", time.to_lowercase(), random_hex::<4>()?))
}

fn random_hex<const BYTES: usize>() -> Result<String, Failure> {
    let mut bytes = [0u8; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::internal("random", format!("getrandom: {error}"))),
        }
    }
    Ok(hex(&bytes))
}

/// Runs the probes on an engine and records what happened.
pub fn attest(
    engine: &mut dyn Engine,
    plan: &Plan,
    progress: &mut Progress,
) -> Result<Bundle, Failure> {
    let started = clock::now();
    let run_id = new_run_id(started)?;
    let tool = std::thread::spawn(describe_tool);

    progress.stage("engine");
    let facts = engine.facts()?;
    check_venue(plan.venue, &facts)?;
    let before = engine.holdings()?;

    progress.stage("image");
    let mut own_images: Vec<String> = engine.image_tagged(plan.tag)?.into_iter().collect();
    let image_id = provide_image(engine, plan.image)?;
    own_images.push(image_id.clone());
    own_images.sort();
    own_images.dedup();

    progress.stage("launch");
    let mut scratch = Scratch::new(&run_id, &plan.profile.limits)?;
    let declared = settings::settings(
        plan.profile,
        &scratch.input(),
        &scratch.output(),
        facts.swap_limit,
    );
    let launch = Launch {
        name: format!("tki-attest-{run_id}"),
        labels: vec![
            (LABEL_RUN.into(), run_id.clone()),
            (LABEL_ROLE.into(), "probe".into()),
            (
                LABEL_DEADLINE.into(),
                (started + plan.limit.as_secs()).to_string(),
            ),
        ],
        image: image_id,
        arguments: vec!["probe".into()],
        settings: declared.clone(),
        seccomp: plan.profile.seccomp.text.clone(),
    };
    let mut session = engine.launch(&launch)?;
    let conversation = converse(session.as_mut(), plan, &mut scratch, progress)?;
    let ended = session.finish()?;
    drop(session);
    check_end(ended)?;

    progress.stage("collect");
    let after = engine.holdings()?;
    let tool = tool
        .join()
        .map_err(|_| Failure::internal("tool.digest", "hashing the executable panicked"))??;
    let (challenge, configured, heard) = conversation;
    let recorded = Recorded {
        run_id,
        started,
        finished: clock::now(),
        tool,
        venue: plan.venue.to_owned(),
        venue_facts: VenueFacts {
            tier: "self-reported".into(),
            operating_system: facts.operating_system,
            host_name: facts.host_name,
            ci_variables: CI_VARIABLES
                .iter()
                .filter(|name| std::env::var_os(name).is_some())
                .map(|name| (*name).into())
                .collect(),
        },
        image: ImageIdentity {
            manifest_digest: plan.image.manifest_digest.clone(),
            config_digest: plan.image.config_digest.clone(),
            diff_ids: plan.image.diff_ids.clone(),
            engine_reported_id: configured.image_id,
        },
        seccomp: plan.profile.seccomp.clone(),
        runtime: facts.runtime,
        sandbox: Sandbox {
            command_line: command_line::docker_run(
                &declared,
                &launch.name,
                &launch.labels,
                "seccomp.json",
                &launch.image,
            ),
            declared,
            configured: configured.settings,
            out_backing: scratch.backing().clone(),
        },
        inventory: Inventory {
            before,
            after,
            own_images,
            unchanged: false,
        },
        challenge,
        container: configured.description,
        heard,
    };
    drop(scratch);
    Ok(Bundle::new(recorded))
}

/// A developer's machine may not pass for an approved venue.
fn check_venue(venue: &str, facts: &EngineFacts) -> Result<(), Failure> {
    let signs = venue::desktop_signs(
        &facts.operating_system,
        &facts.runtime.kernel,
        &facts.host_name,
    );
    if venue == "dev" || signs.is_empty() {
        return Ok(());
    }
    Err(Failure::blocked(
        "venue.implausible",
        format!(
            "--venue {venue} is claimed, but the engine looks like a developer's machine: {}",
            printable(&signs.join(", "), 200)
        ),
        "run with --venue dev for development; run on the VPS or the CI runner for B4′ evidence",
    ))
}

/// The image's id on the engine, loading it only if it is not there.
fn provide_image(engine: &mut dyn Engine, image: &Image) -> Result<String, Failure> {
    let names = ImageNames {
        manifest_digest: image.manifest_digest.clone(),
        config_digest: image.config_digest.clone(),
    };
    if let Some(id) = engine.image_id(&names)? {
        return Ok(id);
    }
    engine.load(image.archive())?;
    engine.image_id(&names)?.ok_or_else(|| {
        Failure::blocked(
            "image.not-held",
            format!(
                "the engine loaded the image but knows neither {} nor {}",
                names.config_digest, names.manifest_digest
            ),
            "look at the engine's log; an image under another digest is not used",
        )
    })
}

type Conversation = (Challenge, Configured, Heard);

/// The conversation with the inspector, from its greeting to its end.
fn converse(
    session: &mut dyn Session,
    plan: &Plan,
    scratch: &mut Scratch,
    progress: &mut Progress,
) -> Result<Conversation, Failure> {
    let mut transcript = Transcript::new();
    let Some(line) = session.receive()? else {
        return Err(ended_early(session, "before it said anything"));
    };
    let missing = transcript
        .hear_hello(&line)
        .map_err(|error| misspoken(&error))?;
    // The container runs and waits for its go.
    scratch.release();
    let configured = match session.configured() {
        // The engine no longer knows it.
        Err(EngineError::Refused { status: 404, .. }) => {
            return Err(ended_early(session, "before it was asked anything"));
        }
        other => other?,
    };

    progress.stage("probe");
    let challenge = Challenge {
        protocol: PROTOCOL,
        nonce: random_hex::<32>()?,
        probes: CANONICAL.iter().map(|probe| probe.id.into()).collect(),
        phases: vec![Phase::Engine, Phase::Locked],
        probe_deadline_ms: PROBE_DEADLINE_MS,
        overall_deadline_ms: u32::try_from(plan.limit.as_millis()).unwrap_or(u32::MAX),
        env_canary: format!("TKI_CANARY_{}", random_hex::<4>()?),
        // A missing invariant is for the probes to prove, not to hide.
        accept_missing: missing,
    };
    let mut line = serde_json::to_vec(&HostMessage::Challenge(challenge.clone()))
        .map_err(|error| Failure::internal("challenge", error.to_string()))?;
    line.push(b'\n');
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
    Ok((challenge, configured, heard))
}

fn misspoken(error: &TranscriptError) -> Failure {
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
fn ended_early(session: &mut dyn Session, when: &str) -> Failure {
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

/// This executable, by name, version and digest.
fn describe_tool() -> Result<Tool, Failure> {
    use sha2::{Digest, Sha256};
    use std::io::Read;
    let unreadable = |error: std::io::Error| {
        Failure::internal("tool.digest", format!("/proc/self/exe: {error}"))
    };
    let mut file = std::fs::File::open("/proc/self/exe").map_err(unreadable)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(unreadable)? {
            0 => break,
            count => digest.update(&buffer[..count]),
        }
    }
    Ok(Tool {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        sha256: hex(&digest.finalize()),
    })
}
