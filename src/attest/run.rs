//! One run: the engine, the image, the container, its controls, the record.

use crate::attest::bundle::{Draft, Recorded};
use crate::attest::container;
use crate::attest::error::AttestError;
use crate::attest::events::{Event, Listener, Stage};
use crate::attest::memory::{self, Memory, Seen};
use crate::attest::neighbour::{self, Beside};
use crate::attest::trial::{Outcome, Trial};
use crate::attest::whereabouts::Whereabouts;
use crate::attest::{controls, scout};
use crate::clock;
use crate::engine::error::time_left;
use crate::engine::gate::GateChoice;
use crate::engine::{Connect, Engine, ImageNames};
use crate::executable;
use crate::host::canary::Canaries;
use crate::host::janitor::Janitor;
use crate::host::venue::Proofs;
use crate::host::{outside, venue};
use crate::image::Image;
use crate::launch::sides::Maker;
use crate::random::random_hex;
use crate::sandbox::limit::Limit;
use crate::sandbox::profile::Profile;
use crate::sandbox::seccomp::Seccomp;
use rustix::process::{Resource, getrlimit};
use std::cell::OnceCell;
use std::time::Instant;
use tki_evidence::calibrate;
use tki_evidence::catalogue;
use tki_evidence::command_line::{Client, command_line};
use tki_evidence::described::names::{self, NAME_PREFIX};
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::{ImageIdentity, Inventory, RequestBinding, Runtime, Sandbox};
use tki_evidence::kernel::{self, KernelKind};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::venue::VenueRules;
use tki_text::printable;

/// What is to be attested, where, and for how long at most.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The claimed venue.
    pub venue: &'a str,
    /// What makes a claim implausible.
    pub venue_rules: &'a VenueRules,
    /// What others signed about the venue.
    pub proofs: &'a Proofs,
    /// The sandbox.
    pub profile: &'a Profile,
    /// Limits of it that somebody chose.
    pub chosen: &'a [Limit],
    /// The image.
    pub image: &'a Image,
    /// When everything, the controls included, must have ended.
    pub deadline: Instant,
    /// Also run the controls, and into the limits.
    pub controls: bool,
    /// Run into the limits even without controls.
    pub limits: bool,
    /// The OCI runtime to use, if not the engine's own choice.
    pub runtime: Option<&'a str>,
    /// The exec gate.
    pub gate: GateChoice,
    /// What is known of it from runs before.
    pub memory: Memory<'a>,
    /// Who tidies up should we be killed.
    pub janitor: &'a Janitor,
    /// The verifying party's request, whose nonce goes through the container.
    pub request: Option<RequestBinding>,
}

/// Runs the probes on an engine and records what happened. Its controls get
/// connections of their own.
pub fn attest(
    mut engine: Box<dyn Engine>,
    connect: &Connect,
    plan: &Plan,
    events: &mut dyn Listener,
) -> Result<Draft, AttestError> {
    let started = clock::now();
    let run_id = names::run_id(started, &random_hex::<4>()?);
    plan.janitor.run(&run_id);
    let canaries = Canaries::new(&random_hex::<4>()?);

    events.hear(Event::Begins(Stage::Engine));
    let names = ImageNames {
        manifest_digest: plan.image.manifest_digest.clone(),
        config_digest: plan.image.config_digest.clone(),
    };
    let mut around = engine.look_around(&names)?;
    let mut facts = around.facts;
    for note in &facts.notes {
        events.hear(Event::Note(note));
    }
    let whereabouts = Whereabouts::of(&facts);
    let mut venue_facts = whereabouts.venue(&facts);
    around.holdings.modules = whereabouts.modules();
    plan.proofs.name(&mut venue_facts);
    venue::check(
        plan.venue,
        &venue_facts,
        &facts.runtime.kernel,
        plan.venue_rules,
    )?;

    events.hear(Event::Begins(Stage::Image));
    let image_id = match around.held {
        Some(id) => id,
        None => load_image(engine.as_mut(), plan.image, &names)?,
    };
    // An image that loses its tag to ours stays on the engine, and is not ours.
    let own_images = vec![image_id.clone()];

    events.hear(Event::Begins(Stage::Launch));
    // A quota beyond what the host has would be no limit, and never be seen.
    let mut profile = plan.profile.clone();
    // Memory is made of pages, and Podman counts them.
    profile.limits.out_bytes = profile.limits.out_bytes.next_multiple_of(PAGE);
    profile.limits.cpu_millis = profile
        .limits
        .cpu_millis
        .min(facts.cpus.saturating_mul(750));
    profile.limits.nproc = profile.limits.nproc.min(most_processes(&facts.runtime));
    // For a kernel of its own, and to find out whether it is one.
    let roomy = Profile {
        limits: scout::roomy(profile.limits, plan.chosen, facts.runtime.kind()),
        ..profile.clone()
    };
    let for_scout = Profile {
        limits: scout::roomy(profile.limits, &[], facts.runtime.kind()),
        ..profile.clone()
    };
    let known_as = memory::key(&facts, plan.runtime);
    let untried = plan
        .memory
        .recall(known_as.as_ref(), plan.gate, started, events);
    // Rounded up: until then the container is ours.
    let nonce = match &plan.request {
        Some(request) => request.nonce.clone(),
        None => random_hex::<32>()?,
    };
    let nobodys_after = clock::now() + time_left(plan.deadline, "the launch")?.as_secs() + 1;
    let by_engine = match engine.makes_volumes() {
        true => Maker::Engine,
        false => Maker::Launcher(String::new()),
    };
    let instead = OnceCell::new();
    let trial = |maker, profile, kernel| Trial {
        run_id: &run_id,
        control: None,
        relaxations: &[],
        image_id: &image_id,
        image: plan.image,
        runtime: plan.runtime,
        gate: plan.gate,
        untried: untried.as_deref(),
        janitor: plan.janitor,
        maker,
        neighbour: "",
        profile,
        swap_limit: facts.swap_limit,
        cpus: facts.cpus,
        lacks: &facts.lacks,
        kernel,
        elsewhere: whereabouts.elsewhere(),
        probes: catalogue::required(plan.controls || plan.limits)
            .map(|probe| probe.id.into())
            .collect(),
        deadline: plan.deadline,
        nobodys_after,
        canary_file: &canaries.file,
        canary_variable: &canaries.variable,
        nonce: nonce.clone(),
    };
    // What an engine cannot make, this tool can, where it has the right.
    let is_here = whereabouts.elsewhere().is_none();
    let other_maker = |error: &AttestError| {
        (error.is_about_volumes() && is_here).then(|| {
            let why = printable(&error.to_string(), 300);
            instead.get_or_init(|| Maker::Launcher(why))
        })
    };
    let kernel_of =
        |outcome: &Outcome| kernel::by_prober(&outcome.heard.raw, &facts.runtime, &venue_facts);
    let wanted = |outcome: &Outcome| match plan.controls {
        true => calibrate::applicable(
            facts.runtime.kind(),
            &outcome.configured.settings,
            kernel_of(outcome),
        ),
        false => Vec::new(),
    };
    let mut observe = || {
        let (mut kernel, mut maker) = (KernelKind::Shared, &by_engine);
        if scout::is_needed(plan.runtime, &facts.runtime.oci_runtime) {
            let mut look = |maker| {
                let trial = trial(maker, &for_scout, KernelKind::Shared);
                scout::look(engine.as_mut(), &trial, &facts.runtime, &venue_facts)
            };
            kernel = match look(maker) {
                Err(error) => {
                    let Some(other) = other_maker(&error) else {
                        return Err(error);
                    };
                    events.hear(Event::Note(&error.to_string()));
                    maker = other;
                    look(maker)?
                }
                Ok(kernel) => kernel,
            };
        }
        let limits = match kernel.is_own() {
            true => &roomy,
            false => &profile,
        };
        if kernel.is_own() {
            events.hear(Event::Note(&scout::note(kernel, &limits.limits)));
        }
        if !is_here && !kernel.is_own() {
            // The host's namespaces cannot be seen. The container's are held against those of a
            // neighbour, which is there before it.
            let trial = trial(maker, limits, kernel);
            let work = |beside: &Beside| {
                beside.wait().ok_or(AttestError::NoNeighbour)?;
                let outcome = container::run(engine.as_mut(), &trial, &mut *events)?;
                let wanted = wanted(&outcome);
                if plan.controls {
                    events.hear(Event::Begins(Stage::Controls));
                }
                let controls = controls::run(connect, &trial, &wanted, beside)?;
                Ok((outcome, controls))
            };
            let ((outcome, controls), neighbour) = neighbour::beside(connect, &trial, true, work)?;
            Ok((outcome, controls, neighbour))
        } else {
            let first = trial(maker, limits, kernel);
            let first = container::run(engine.as_mut(), &first, &mut *events);
            let (maker, outcome) = match first {
                Err(error) => {
                    let Some(maker) = other_maker(&error) else {
                        return Err(error);
                    };
                    events.hear(Event::Note(&error.to_string()));
                    let trial = trial(maker, limits, kernel);
                    let outcome = container::run(engine.as_mut(), &trial, &mut *events)?;
                    (maker, outcome)
                }
                Ok(outcome) => (maker, outcome),
            };
            let (trial, wanted) = (trial(maker, limits, kernel), wanted(&outcome));
            if plan.controls {
                events.hear(Event::Begins(Stage::Controls));
            }
            let is_needed = wanted
                .iter()
                .any(|control| neighbour::is_needed_by(control, maker));
            let work = |beside: &Beside| controls::run(connect, &trial, &wanted, beside);
            let (controls, neighbour) = neighbour::beside(connect, &trial, is_needed, work)?;
            Ok((outcome, controls, neighbour))
        }
    };
    let observed: Result<_, AttestError> = observe();
    // Whatever came of it: the controls had the run's /in, too.
    let let_go = engine.let_go(&[format!("{NAME_PREFIX}{run_id}")]);
    let (outcome, controls, neighbour) = observed?;
    let_go?;
    let seen = match &outcome.gate_refused {
        Some(said) => Seen::Refused(said),
        None if outcome.gate.active => Seen::Stood,
        None => Seen::Nothing,
    };
    plan.memory
        .keep(known_as.as_ref(), seen, clock::now(), events);
    // What the container was made with, not what the engine would have chosen.
    if let Some(used) = &outcome.configured.oci_runtime {
        facts.runtime.oci_runtime = used.clone();
    }

    events.hear(Event::Begins(Stage::Collect));
    engine.complete(&mut around.holdings)?;
    let mut after = engine.holdings()?;
    after.modules = whereabouts.modules();
    let launch = &outcome.launch;
    let recorded = Recorded {
        started,
        finished: clock::now(),
        tool: executable::describe()?,
        venue: plan.venue.to_owned(),
        venue_facts,
        proofs: plan.proofs.artifacts().collect(),
        image: ImageIdentity {
            manifest_digest: plan.image.manifest_digest.clone(),
            config_digest: plan.image.config_digest.clone(),
            diff_ids: plan.image.diff_ids.clone(),
            engine_reported_id: outcome.configured.image_id.clone(),
        },
        seccomp: Seccomp {
            name: plan.profile.seccomp.name.clone(),
            sha256: sha256_hex(launch.seccomp.as_bytes()),
            text: launch.seccomp.clone(),
        },
        runtime: facts.runtime.clone(),
        sandbox: Sandbox {
            command_line: command_line(
                match facts.runtime.kind() {
                    Some(EngineKind::Podman) => Client::Podman(&facts.runtime.oci_runtime),
                    _ => Client::Docker,
                },
                &launch.settings,
                &launch.name,
                &launch.labels,
                "seccomp.json",
                &launch.image,
            ),
            declared: launch.settings.clone(),
            configured: outcome.configured.settings.clone(),
            out_backing: outcome.out_backing.clone(),
            gate: outcome.gate.clone(),
        },
        inventory: Inventory {
            before: around.holdings,
            after,
            own_images,
            unchanged: false,
        },
        host_namespaces: match whereabouts {
            Whereabouts::Here => outside::own_namespaces(),
            // Those of this host say nothing about another one's.
            Whereabouts::Elsewhere { .. } => Vec::new(),
        },
        neighbour,
        outcome,
        controls,
        request: plan.request.clone(),
        run_id: run_id.clone(),
    };
    Ok(Draft::new(recorded))
}

/// The unit of memory on every machine that this tool knows.
const PAGE: u64 = 4096;

/// The highest limit of processes that can be set. A launcher that runs as this user
/// cannot go beyond this process's own, which on a small host is below ours.
fn most_processes(runtime: &Runtime) -> i64 {
    let as_us = runtime.rootless || runtime.kind().is_some_and(EngineKind::has_keepers);
    let own = getrlimit(Resource::Nproc).maximum.filter(|_| as_us);
    own.and_then(|most| i64::try_from(most).ok())
        .unwrap_or(i64::MAX)
}

/// Loads the image; gives its id on the engine.
pub fn load_image(
    engine: &mut dyn Engine,
    image: &Image,
    names: &ImageNames,
) -> Result<String, AttestError> {
    engine.load(image)?;
    let id = engine.image_id(names)?;
    id.ok_or_else(|| AttestError::ImageNotHeld {
        config: names.config_digest.clone(),
        manifest: names.manifest_digest.clone(),
    })
}
