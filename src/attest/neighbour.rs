//! The neighbour: one more container of the run, in which the prober does for some
//! controls what nobody could do from outside without being root. It makes interfaces in
//! a network namespace that controls join, and puts decoys into volumes that are /in
//! there. No boundary of the host is open to it: it has no network, and a capability
//! over its own namespace alone.

use crate::attest::error::AttestError;
use crate::attest::trial::{FILLED, Trial};
use crate::engine::Connect;
use crate::engine::contract::{Extras, Volume};
use crate::engine::{Engine, Launch, Program};
use crate::host::claim;
use crate::launch::container::ended_early;
use crate::launch::sides::{Maker, Sides};
use crate::sandbox::settings::{self, do_without};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use tki_evidence::controls::{Control, Relaxation};
use tki_evidence::described::names::{self, NAME_PREFIX};
use tki_evidence::settings::{Bind, Settings};
use tki_evidence::transcript::{self, TranscriptError};
use tki_evidence::wire::{MAX_TRANSCRIPT, abstract_canary};

/// What it is called, after the run.
const NAME: &str = "neighbour";

/// The lines that it says: its greeting, and its namespaces.
const LINES: usize = 2;

/// Relaxations that it has to do with.
const RELAXATIONS: [Relaxation; 5] = [
    Relaxation::Interface,
    Relaxation::JoinIpc,
    Relaxation::JoinPid,
    Relaxation::DecoySocket,
    Relaxation::SuidDecoy,
];

/// A control needs it.
pub fn is_needed_by(control: &Control, maker: &Maker) -> bool {
    let concerned = |relaxation| RELAXATIONS.contains(relaxation);
    *maker == Maker::Engine && control.relaxations.iter().any(concerned)
}

/// What is known of it once all is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The engine's id of it.
    pub id: String,
    /// The namespaces that it is in.
    pub namespaces: Vec<String>,
    /// What it said, verbatim.
    pub words: Vec<u8>,
}

/// Where those that need it wait for it, and say when they need it no longer.
#[derive(Debug, Default)]
pub struct Beside {
    known: OnceLock<Option<Known>>,
    /// It ends when this is dropped.
    needed: Mutex<Option<Sender<()>>>,
}

impl Beside {
    /// Waits until it is there: `None` if there is none after all.
    pub fn wait(&self) -> Option<&Known> {
        self.known.wait().as_ref()
    }

    /// Nobody needs it any more. It ends beside whatever else goes on.
    pub fn let_go(&self) {
        if let Ok(mut needed) = self.needed.lock() {
            *needed = None;
        }
    }
}

/// Does some work with a neighbour beside it, if one is needed. It is launched over a
/// connection of its own while the work begins, and ends with it. Gives what the work gave,
/// and the neighbour.
pub fn beside<T>(
    connect: &Connect,
    template: &Trial,
    is_needed: bool,
    work: impl FnOnce(&Beside) -> Result<T, AttestError>,
) -> Result<(T, Option<Known>), AttestError> {
    if !is_needed {
        return Ok((work(&Beside::default())?, None));
    }
    let (needed, over) = channel();
    let beside = Beside {
        known: OnceLock::new(),
        needed: Mutex::new(Some(needed)),
    };
    let (kept, done) = std::thread::scope(|scope| {
        let known = &beside.known;
        let neighbour = scope.spawn(move || {
            let kept = keep(connect, template, known, &over);
            // Whatever came of it, nobody waits any longer.
            let _ = known.set(None);
            kept
        });
        let done = work(&beside);
        beside.let_go();
        let broken = |_| Err(AttestError::NeighbourPanicked);
        (neighbour.join().unwrap_or_else(broken), done)
    });
    match (done, kept) {
        // Without it the work came to nothing, and this is why.
        (Err(error), Err(cause)) if matches!(error.root(), AttestError::NoNeighbour) => Err(cause),
        (done, kept) => {
            let done = done?;
            kept?;
            Ok((done, beside.known.into_inner().flatten()))
        }
    }
}

/// Launches it, tells of it once all is there, and ends it when nobody needs it any more:
/// when `over` is closed.
fn keep(
    connect: &Connect,
    template: &Trial,
    known: &OnceLock<Option<Known>>,
    over: &Receiver<()>,
) -> Result<(), AttestError> {
    let kept = connect()
        .map_err(AttestError::from)
        .and_then(|mut engine| launch_and_keep(engine.as_mut(), template, known, over));
    kept.map_err(|error| AttestError::Neighbour(Box::new(error)))
}

fn launch_and_keep(
    engine: &mut dyn Engine,
    template: &Trial,
    known: &OnceLock<Option<Known>>,
    over: &Receiver<()>,
) -> Result<(), AttestError> {
    let launch = launch(template)?;
    let mut session = engine.launch(&launch, template.image)?;
    let mut words = Vec::new();
    let mut namespaces = None;
    for _ in 0..LINES {
        let Some(line) = session.receive()? else {
            let when = "before it was ready";
            return Err(ended_early(session.as_mut(), when).into());
        };
        words.extend_from_slice(&line);
        words.push(b'\n');
        namespaces = Some(transcript::read_neighbour(&words));
        // A refusal is all that it says.
        if matches!(namespaces, Some(Err(TranscriptError::Refused(_)))) {
            break;
        }
    }
    let namespaces = namespaces.ok_or(AttestError::NoNeighbour)??;
    let _ = known.set(Some(Known {
        id: session.configured()?.group,
        namespaces,
        words,
    }));
    // Closed, never spoken into.
    let _ = over.recv();
    session.finish()?;
    Ok(())
}

fn launch(template: &Trial) -> Result<Launch, AttestError> {
    let name = format!("{}-{NAME}", template.run_id);
    let sides = Sides::new(
        &name,
        &name,
        template.profile.limits.out(),
        template.maker,
        template.janitor,
    )?;
    let [input, output] =
        FILLED.map(|control| format!("{NAME_PREFIX}{}-{control}", template.run_id));
    let mut settings = Settings {
        user: "0:0".into(),
        // Others may join it.
        ipc: "shareable".into(),
        cap_add: vec!["NET_ADMIN".into()],
        seccomp: "default".into(),
        binds: vec![
            Bind::of_engine(&input, "/in", false),
            Bind::of_engine(&output, "/out", false),
        ],
        ..settings::settings(template.profile, Vec::new(), template.swap_limit)
    };
    do_without(&mut settings, template.lacks);
    // It makes no processes, and has memory enough. Limits that stand in for a control
    // group's would count what else this user runs, and what the runtime needs to start it.
    settings.ulimits.retain(|limit| limit.name != "as");
    for limit in settings.ulimits.iter_mut().filter(|l| l.name == "nproc") {
        (limit.soft, limit.hard) = (template.profile.limits.nproc, template.profile.limits.nproc);
    }
    let canary = abstract_canary(template.canary_variable).ok_or(AttestError::NoNeighbour)?;
    Ok(Launch {
        name: format!("{NAME_PREFIX}{name}"),
        labels: names::labels(template.run_id, NAME, template.nobodys_after),
        image: template.image_id.into(),
        program: Program::Prober,
        arguments: vec![NAME.into(), canary],
        most_said: MAX_TRANSCRIPT,
        settings,
        cpus: template.cpus,
        seccomp: String::new(),
        scratch: sides.scratch().map(|scratch| scratch.base().to_owned()),
        volumes: [input, output]
            .map(|name| Volume {
                name,
                goes_along: true,
            })
            .into(),
        folder: claim::beside(&name),
        runtime: template.runtime.map(str::to_owned),
        gate: false,
        extras: Extras::default(),
    })
}
