//! An inspection, from the engine that is to be had to the report on disk.

use crate::attest::error::AttestError;
use crate::attest::events::{Event, Listener, Stage};
use crate::attest::one;
use crate::attest::run::load_image;
use crate::attest::whereabouts::Whereabouts;
use crate::clock;
use crate::engine::choice::{Connector, Sought};
use crate::engine::error::time_left;
use crate::engine::gate::GateChoice;
use crate::engine::{Engine, EngineError, EngineFacts, ImageNames};
use crate::executable;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::venue;
use crate::image::{Image, built_in};
use crate::inspect::brought::Brought;
use crate::inspect::container::{self, Outcome, Plan};
use crate::inspect::error::{InspectError, OtherSandbox};
use crate::inspect::evidence::{Attested, Demand};
use crate::inspect::packet::Packet;
use crate::inspect::stamp::{self, Accepted, Stamp};
use crate::inspect::{place, room, write};
use crate::launch::error::LaunchError;
use std::path::PathBuf;
use std::time::Instant;
use tki_evidence::evidence::VenueFacts;
use tki_evidence::stamp::sha256_hex;
use tki_inspector::report::Report;
use tki_inspector::wire;

/// What is to be inspected, and in what, with everything read that the user named but the packet.
#[derive(Debug)]
pub struct Order {
    /// How the sandbox is attested if there is no evidence of it, and launched; where evidence and
    /// report go.
    pub run: one::Order,
    /// The packet's directory.
    pub packet: PathBuf,
    /// The evidence file.
    pub evidence: Option<PathBuf>,
    /// It is for development.
    pub dev: bool,
    /// How old the evidence may be, in seconds.
    pub max_age: u64,
    /// What the launcher brings for bundles in the packet.
    pub brought: Brought,
}

/// What came of it.
#[derive(Debug)]
pub struct Inspected {
    /// The report.
    pub report: Report,
    /// What is said of the sandbox beside it.
    pub stamp: Stamp,
    /// The directory that holds both.
    pub path: PathBuf,
}

impl Inspected {
    /// As the inspector ended.
    pub fn exit(&self) -> Exit {
        match self.stamp.status {
            wire::TRIAGE => Exit::Triage,
            _ => Exit::Inadequate,
        }
    }
}

/// The venue for which nothing need be accepted.
const DEV: &str = "dev";

/// Finds a sandbox, attests it if that was not done, and has the packet inspected in it. Without a
/// sandbox the packet is not even opened.
pub fn inspect(
    mut order: Order,
    sought: &Sought,
    events: &mut dyn Listener,
) -> Result<Inspected, Failure> {
    match (order.run.venue == DEV, order.dev) {
        (true, false) => return Err(InspectError::Unsaid.into()),
        (false, true) => return Err(InspectError::NotDev(order.run.venue).into()),
        _ => {}
    }
    let started = clock::now();
    let deadline = Instant::now() + sought.timeout;
    let image = built_in::image()?;
    let connector = Connector::new(sought, order.run.runtime.as_deref());
    connector.settle()?;
    events.hear(Event::Begins(Stage::Engine));
    let found = Found::look(&connector, deadline, &image)?;
    let kernel = &found.facts.runtime.kernel;
    venue::check(
        order.run.venue,
        &found.venue,
        kernel,
        &order.run.venue_rules,
    )?;
    let given = match order.evidence.clone() {
        Some(path) => Some(found.attested(&path, &order)?),
        None => None,
    };
    events.hear(Event::Begins(Stage::Packet));
    let packet = Packet::open(&order.packet).map_err(InspectError::from)?;
    let need = packet.need().map_err(InspectError::from)?;
    let need = room::on(need, &found.facts.lacks);
    let (mut found, attested) = match given {
        Some(attested) => {
            // A run tells them by itself.
            for note in &found.facts.notes {
                events.hear(Event::Note(note));
            }
            (found, attested)
        }
        None => {
            drop(found);
            let limits = &mut order.run.profile.limits;
            *limits =
                room::enlarged(*limits, &order.run.chosen, need).map_err(InspectError::from)?;
            let run = one::on_this(&order.run, sought, &connector, deadline, events)?;
            let found = Found::look(&connector, deadline, &image)?;
            let attested = found.attested(&run.written.path, &order)?;
            (found, attested)
        }
    };
    let sandbox = room::attested(&attested.says.sandbox, need);
    room::enough(sandbox, need).map_err(InspectError::from)?;
    let janitor = sought.janitor()?;
    let image_id = found.image_id(&image)?;
    let plan = Plan {
        attested: &attested,
        room: sandbox,
        packet: &packet,
        brought: &order.brought,
        image: &image,
        image_id: &image_id,
        cpus: found.facts.cpus,
        seccomp: &order.run.profile.seccomp,
        runtime: order.run.runtime.as_deref(),
        janitor: &janitor,
        deadline,
    };
    let outcome = container::run(found.engine.as_mut(), &plan, events).inspect_err(|error| {
        match error {
            // An engine that comes back, or another service of it, may hold something.
            InspectError::Engine(error) if is_lost(error) => janitor.take_over(),
            InspectError::Launch(LaunchError::EndedEarly { .. }) => janitor.look(),
            _ => {}
        }
    })?;
    janitor.done();
    events.hear(Event::Begins(Stage::Write));
    let stamp = stamp(&order, &found, &attested, &packet, &outcome, started)?;
    let files = &outcome.inspection.files;
    let path = write::write(&order.run.out, &packet.says.id, files, &stamp)?;
    Ok(Inspected {
        report: outcome.inspection.report,
        stamp,
        path,
    })
}

/// An engine that can be used, and what is seen of it now.
struct Found {
    engine: Box<dyn Engine>,
    facts: EngineFacts,
    venue: VenueFacts,
    /// The id of the image, if it is there.
    held: Option<String>,
}

impl Found {
    fn look(connector: &Connector, deadline: Instant, image: &Image) -> Result<Self, EngineError> {
        let mut engine = connector.connect(time_left(deadline, "connecting")?)?;
        let around = engine.look_around(&names(image))?;
        let facts = around.facts;
        Ok(Self {
            venue: Whereabouts::of(&facts).venue(&facts),
            held: around.held,
            engine,
            facts,
        })
    }

    /// The evidence in this file, if it is of this sandbox, here and now.
    fn attested(&self, path: &std::path::Path, order: &Order) -> Result<Attested, InspectError> {
        let demand = Demand {
            venue: order.run.venue,
            dev: order.dev,
            max_age: order.max_age,
            seccomp: &order.run.profile.seccomp.sha256,
        };
        let attested = Attested::read(path, demand)?;
        place::check(&attested.says, &self.venue, &self.facts.runtime)?;
        let own = built_in::image()?.manifest_digest;
        if attested.says.image_digest != own {
            return Err(OtherSandbox::Image {
                attested: attested.says.image_digest,
                launched: own,
            }
            .into());
        }
        let gate = attested.says.sandbox.gate.active;
        match (gate, order.run.gate) {
            (true, GateChoice::Off) | (false, GateChoice::Require) => {
                Err(OtherSandbox::Gate { attested: gate }.into())
            }
            _ => Ok(attested),
        }
    }

    fn image_id(&mut self, image: &Image) -> Result<String, AttestError> {
        match self.held.take() {
            Some(id) => Ok(id),
            None => load_image(self.engine.as_mut(), image, &names(image)),
        }
    }
}

fn names(image: &Image) -> ImageNames {
    ImageNames {
        manifest_digest: image.manifest_digest.clone(),
        config_digest: image.config_digest.clone(),
    }
}

fn is_lost(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Vanished { .. }
            | EngineError::Ssh { .. }
            | EngineError::Tls { .. }
            | EngineError::Unreachable { .. }
    )
}

fn stamp(
    order: &Order,
    found: &Found,
    attested: &Attested,
    packet: &Packet,
    outcome: &Outcome,
    started: u64,
) -> Result<Stamp, InspectError> {
    let accepted = attested.is_accepted() && !order.dev;
    let runtime = &found.facts.runtime;
    let used = outcome.oci_runtime.as_ref();
    let reports = outcome.inspection.files.iter();
    Ok(Stamp {
        schema: stamp::SCHEMA,
        sandbox: match accepted {
            true => Accepted::Accepted,
            false => Accepted::NotAccepted,
        },
        accepted,
        dev: order.dev,
        venue: order.run.venue.to_owned(),
        tool: executable::describe()?,
        engine: stamp::Engine {
            name: runtime.engine.clone(),
            version: runtime.engine_version.clone(),
            runtime: used.unwrap_or(&attested.says.runtime.oci_runtime).clone(),
            at: found.venue.engine_at.clone(),
        },
        image_digest: attested.says.image_digest.clone(),
        evidence: stamp::Before {
            name: attested.name.clone(),
            sha256: attested.sha256.clone(),
            run_id: attested.says.run_id.clone(),
            decision: attested.decision,
            assurance: attested.assurance,
        },
        started: clock::rfc3339(started),
        finished: clock::rfc3339(clock::now()),
        selfcheck_us: outcome.inspection.selfcheck_us,
        judged_us: outcome.inspection.judged_us,
        packet: stamp::Packet {
            id: packet.says.id.clone(),
            sha256: packet.sha256.clone(),
        },
        status: outcome.inspection.status,
        reports: reports
            .map(|(name, bytes)| stamp::Written {
                name,
                sha256: sha256_hex(bytes),
                bytes: bytes.len() as u64,
            })
            .collect(),
    })
}
