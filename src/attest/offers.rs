//! What an engine offers, and what it would give up.

use crate::attest::error::AttestError;
use crate::attest::events::{Event, Listener};
use crate::attest::memory::{self, Memory};
use crate::attest::run::{Plan, attest};
use crate::attest::whereabouts::Whereabouts;
use crate::clock;
use crate::engine::choice::{Connector, Sought};
use crate::engine::error::time_left;
use crate::engine::gate::GateChoice;
use crate::engine::{EngineFacts, GateKind, ImageNames};
use crate::failure::{Cause, Failure};
use crate::host::venue::Proofs;
use crate::image::built_in;
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use crate::state::State;
use serde::Serialize;
use std::time::Instant;
use tki_evidence::controller::Controller;
use tki_evidence::controls::CONTROLS;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::venue::VenueRules;

/// An engine on this host.
#[derive(Clone, Debug, Serialize)]
pub struct EngineOffer {
    /// Its name.
    pub engine: &'static str,
    /// It can be used.
    pub usable: bool,
    /// Why not.
    pub reason: String,
    /// Its version.
    pub version: String,
    /// The OCI runtime, or what takes its place.
    pub oci_runtime: String,
    /// It runs without root.
    pub rootless: bool,
    /// Control groups: `1`, `2` or `none`.
    pub cgroups: String,
    /// Who compiles the seccomp profile.
    pub seccomp: &'static str,
    /// Where it is: `this host`, or how it is reached.
    pub at: String,
    /// The exec gate.
    pub gate: String,
    /// What it would give up, one entry each.
    pub gives_up: Vec<String>,
}

/// How engines are looked at. Nothing is made unless the gate is tried.
#[derive(Debug)]
pub struct Looking {
    /// Launch a container, to find out whether the engine takes an exec gate.
    pub try_gate: bool,
    /// What runs remember, if it is to be used.
    pub state: Option<State>,
}

impl Looking {
    /// Every engine of this host. One that is not here is listed with the reason.
    pub fn everywhere(
        &self,
        sought: &Sought,
        events: &mut dyn Listener,
    ) -> Result<Vec<EngineOffer>, Failure> {
        let mut all = Vec::new();
        for kind in EngineKind::ALL {
            all.push(match self.describe(kind, sought, events) {
                // An interrupt ends all of it, and not the look at this engine alone.
                Err(failure) if failure.cause == Cause::Interrupted => return Err(failure),
                Err(failure) => absent(kind, failure.message),
                Ok(offer) => offer,
            });
        }
        Ok(all)
    }

    /// The engine at an address, whichever it is: what is wrong with it is an error.
    pub fn at_address(
        &self,
        sought: &Sought,
        events: &mut dyn Listener,
    ) -> Result<EngineOffer, Failure> {
        let mut first = None;
        for kind in EngineKind::WITH_ADDRESS {
            match self.describe(kind, sought, events) {
                Err(failure) if failure.cause == Cause::EngineUnusable => {
                    first.get_or_insert(failure);
                }
                Err(failure) => return Err(first.unwrap_or(failure)),
                Ok(offer) => return Ok(offer),
            }
        }
        Err(first.unwrap_or_else(|| AttestError::NotAsked.into()))
    }

    fn describe(
        &self,
        kind: EngineKind,
        sought: &Sought,
        events: &mut dyn Listener,
    ) -> Result<EngineOffer, Failure> {
        let sought = sought.of(kind);
        let connector = Connector::new(&sought, None);
        connector.settle()?;
        let mut engine = connector.connect(sought.timeout)?;
        let image = built_in::image()?;
        let names = ImageNames {
            manifest_digest: image.manifest_digest.clone(),
            config_digest: image.config_digest.clone(),
        };
        let facts = engine.look_around(&names)?.facts;
        let gate_kind = engine.gate_kind();
        drop(engine);
        let gate = match (self.try_gate, gate_kind) {
            (true, _) => self.tried(&sought, &connector)?,
            (false, GateKind::Own) => "yes".into(),
            (false, GateKind::Listener) => self.remembered(&facts, events),
        };
        let runtime = &facts.runtime;
        Ok(EngineOffer {
            engine: kind.name(),
            usable: true,
            reason: String::new(),
            version: runtime.engine_version.clone(),
            oci_runtime: runtime.oci_runtime.clone(),
            rootless: runtime.rootless,
            cgroups: runtime.cgroup_version.clone(),
            seccomp: match kind.has_keepers() {
                true => "tki-attest",
                false => "its runtime",
            },
            at: Whereabouts::of(&facts).shown().to_owned(),
            gate,
            gives_up: gives_up(kind, &facts),
        })
    }

    /// What is known of the gate without trying.
    fn remembered(&self, facts: &EngineFacts, events: &mut dyn Listener) -> String {
        let known_as = memory::key(facts, None);
        let found = match (&self.state, known_as) {
            (Some(state), Some(by)) => state.refusal(&by, clock::now()),
            _ => Ok(None),
        };
        let refusal = found.unwrap_or_else(|why| {
            events.hear(Event::Note(&why.to_string()));
            None
        });
        match refusal {
            Some(refusal) => {
                let time = clock::rfc3339(refusal.when);
                let (date, _) = time.split_once('T').unwrap_or((&time, ""));
                format!("no (remembered since {date}; --try-gate tries)")
            }
            None => "if its runtime takes it (--try-gate tells)".into(),
        }
    }

    /// Launches a container with a gate before it.
    fn tried(&self, sought: &Sought, connector: &Connector) -> Result<String, Failure> {
        let deadline = Instant::now() + sought.timeout;
        let janitor = sought.janitor()?;
        let profile = Profile {
            seccomp: Seccomp::resolve("deny-by-default")?,
            limits: Limits::default(),
        };
        let image = built_in::image()?;
        let plan = Plan {
            venue: "dev",
            venue_rules: VenueRules::built_in(),
            proofs: &Proofs::default(),
            profile: &profile,
            chosen: &[],
            image: &image,
            deadline,
            controls: false,
            limits: false,
            runtime: None,
            gate: GateChoice::Auto,
            memory: self.state.as_ref().map_or(Memory::None, Memory::Renewed),
            janitor: &janitor,
            request: None,
        };
        let connect = || connector.connect(time_left(deadline, "connecting")?);
        let bundle = attest(connect()?, &connect, &plan, &mut ())?;
        let gate = &bundle.evidence().sandbox.gate;
        Ok(if gate.active {
            "yes".into()
        } else {
            format!("no: {}", gate.reason)
        })
    }
}

fn absent(kind: EngineKind, reason: String) -> EngineOffer {
    EngineOffer {
        engine: kind.name(),
        usable: false,
        reason,
        version: String::new(),
        oci_runtime: String::new(),
        rootless: false,
        cgroups: String::new(),
        seccomp: "",
        at: String::new(),
        gate: String::new(),
        gives_up: Vec::new(),
    }
}

fn gives_up(kind: EngineKind, facts: &EngineFacts) -> Vec<String> {
    let mut lines = Vec::new();
    for limit in &facts.lacks {
        lines.push(match limit {
            Controller::Cpu => "a limit of CPU time: its probe is UNPROVEN".into(),
            Controller::Pids => {
                "a limit of processes by control group: RLIMIT_NPROC stands in".into()
            }
            Controller::Memory => {
                format!("a limit of {limit} by control group: RLIMIT_AS stands in")
            }
        });
    }
    if kind == EngineKind::Podman && facts.lacks.contains(&Controller::Pids) {
        lines.push(
            "the control root-user: this user's other processes would use up RLIMIT_NPROC".into(),
        );
    }
    for control in CONTROLS {
        for (name, reason) in control.impossible_on {
            if *name == kind {
                lines.push(format!("the control {}: {reason}", control.name));
            }
        }
    }
    lines
}
