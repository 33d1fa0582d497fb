//! `tki-attest engines`.

use crate::attest::memory::{self, Memory};
use crate::attest::run::{Plan, attest};
use crate::attest::whereabouts::Whereabouts;
use crate::cli::{Common, EngineArgs, EngineName, EnginesArgs, Format};
use crate::clock;
use crate::commands::output;
use crate::commands::shared::{self, CANDIDATES, Connector};
use crate::engine::error::time_left;
use crate::engine::gate::GateChoice;
use crate::engine::{EngineFacts, GateKind, ImageNames};
use crate::exit::Exit;
use crate::failure::{Cause, Failure};
use crate::host::venue::Proofs;
use crate::image::built_in;
use crate::report::engines::{EngineRow, list};
use crate::report::progress::Progress;
use crate::report::table::Paint;
use crate::sandbox::profile::{Limits, Profile};
use crate::sandbox::seccomp::Seccomp;
use crate::state::State;
use std::time::Instant;
use tki_evidence::controller::Controller;
use tki_evidence::controls::CONTROLS;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::venue::VenueRules;

/// Lists the engines of this host. Nothing is made unless the gate is tried.
pub fn execute(args: &EnginesArgs, common: Common) -> Result<Exit, Failure> {
    // A user who gives an address means the engine that is there, and wants to know what is
    // wrong with it.
    if args.at.host.is_some() {
        return at_address(args, common);
    }
    let looking = Looking::new(args, common);
    let mut rows = Vec::new();
    for name in CANDIDATES {
        let engine = EngineArgs {
            engine: *name,
            at: args.at.clone(),
            timeout: args.timeout,
        };
        rows.push(looking.look(&engine)?);
    }
    print(&rows, args, common)?;
    Ok(if rows.iter().any(|row| row.usable) {
        Exit::Done
    } else {
        Exit::Blocked
    })
}

/// Shows the engine at an address.
fn at_address(args: &EnginesArgs, common: Common) -> Result<Exit, Failure> {
    let looking = Looking::new(args, common);
    let mut first = None;
    // Docker and Podman have addresses.
    for name in &CANDIDATES[..2] {
        let engine = EngineArgs {
            engine: *name,
            at: args.at.clone(),
            timeout: args.timeout,
        };
        match looking.describe(&engine) {
            Ok(row) => {
                print(&[row], args, common)?;
                return Ok(Exit::Done);
            }
            Err(failure) if failure.cause == Cause::EngineUnusable => {
                first.get_or_insert(failure);
            }
            Err(failure) => return Err(first.unwrap_or(failure)),
        }
    }
    Err(first.unwrap_or_else(|| Failure::internal("engines.none", "no engine was asked")))
}

fn print(rows: &[EngineRow], args: &EnginesArgs, common: Common) -> Result<(), Failure> {
    match args.format {
        Format::Json => output::print_json(&rows),
        Format::Text => output::print(&list(rows, Paint::stdout(common.color))),
    }
}

/// How engines are looked at.
struct Looking {
    try_gate: bool,
    /// What runs remember, if it is to be used.
    state: Option<State>,
    common: Common,
}

impl Looking {
    fn new(args: &EnginesArgs, common: Common) -> Self {
        Self {
            try_gate: args.try_gate,
            state: State::here().filter(|_| !args.no_state),
            common,
        }
    }

    fn look(&self, args: &EngineArgs) -> Result<EngineRow, Failure> {
        let name = args.engine.name();
        let absent = |reason: String| EngineRow {
            engine: name,
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
        };
        match self.describe(args) {
            // Whoever interrupts means all of it, and not this engine.
            Err(failure) if failure.cause == Cause::Interrupted => Err(failure),
            Err(failure) => Ok(absent(failure.message)),
            row => row,
        }
    }

    fn describe(&self, args: &EngineArgs) -> Result<EngineRow, Failure> {
        let connector = Connector::new(args, None);
        connector.settle()?;
        let mut engine = connector.connect(args.timeout)?;
        let image = built_in::image()?;
        let names = ImageNames {
            manifest_digest: image.manifest_digest.clone(),
            config_digest: image.config_digest.clone(),
        };
        let facts = engine.look_around(&names)?.facts;
        let kind = engine.gate_kind();
        drop(engine);
        let gate = match (self.try_gate, kind) {
            (true, _) => self.tried(args, &connector)?,
            (false, GateKind::Own) => "yes".into(),
            (false, GateKind::Listener) => self.remembered(&facts),
        };
        let runtime = &facts.runtime;
        Ok(EngineRow {
            engine: args.engine.name(),
            usable: true,
            reason: String::new(),
            version: runtime.engine_version.clone(),
            oci_runtime: runtime.oci_runtime.clone(),
            rootless: runtime.rootless,
            cgroups: runtime.cgroup_version.clone(),
            seccomp: match args.engine {
                EngineName::Embedded | EngineName::Bwrap => "tki-attest",
                _ => "its runtime",
            },
            at: Whereabouts::of(&facts).shown().to_owned(),
            gate,
            gives_up: gives_up(facts.runtime.kind(), &facts),
        })
    }

    fn progress(&self, quiet: bool) -> Progress {
        Progress::new(quiet, Paint::stderr(self.common.color))
    }

    /// What is known of the gate without trying.
    fn remembered(&self, facts: &EngineFacts) -> String {
        let known_as = memory::key(facts, None);
        let found = match (&self.state, known_as) {
            (Some(state), Some(by)) => state.refusal(&by, clock::now()),
            _ => Ok(None),
        };
        let refusal = found.unwrap_or_else(|why| {
            self.progress(self.common.quiet).note(&why.to_string());
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
    fn tried(&self, args: &EngineArgs, connector: &Connector) -> Result<String, Failure> {
        let deadline = Instant::now() + args.timeout;
        let janitor = shared::janitor(args)?;
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
        let bundle = attest(connect()?, &connect, &plan, &mut self.progress(true))?;
        let gate = &bundle.evidence().sandbox.gate;
        Ok(if gate.active {
            "yes".into()
        } else {
            format!("no: {}", gate.reason)
        })
    }
}

fn gives_up(engine: Option<EngineKind>, facts: &EngineFacts) -> Vec<String> {
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
    if engine == Some(EngineKind::Podman) && facts.lacks.contains(&Controller::Pids) {
        lines.push(
            "the control root-user: this user's other processes would use up RLIMIT_NPROC".into(),
        );
    }
    for control in CONTROLS {
        for (kind, reason) in control.impossible_on {
            if Some(*kind) == engine {
                lines.push(format!("the control {}: {reason}", control.name));
            }
        }
    }
    lines
}
