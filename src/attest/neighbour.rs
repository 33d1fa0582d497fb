//! The neighbour: one more container of the run, in which the inspector does for some
//! controls what nobody could do from outside without being root. It makes interfaces in
//! a network namespace that controls join, and puts decoys into volumes that are /in
//! there. No boundary of the host is open to it: it has no network, and a capability
//! over its own namespace alone.

use crate::attest::container::{self, Job};
use crate::attest::scratch;
use crate::attest::sides::{Maker, Sides};
use crate::described::names::{self, NAME_PREFIX};
use crate::engine::{Engine, Launch};
use crate::failure::Failure;
use crate::sandbox::settings::{self, do_without};
use std::sync::OnceLock;
use std::sync::mpsc::Receiver;
use tki_evidence::controls::{Control, Relaxation};
use tki_evidence::settings::{Bind, Settings};
use tki_evidence::transcript::Transcript;

/// What it is called, after the run.
const NAME: &str = "neighbour";

/// The controls whose /in it fills: with a socket, and with a set-user-id file.
const FILLED: [&str; 2] = ["engine-socket", "suid-file"];

/// Relaxations that it has to do with.
const RELAXATIONS: [Relaxation; 3] = [
    Relaxation::Interface,
    Relaxation::DecoySocket,
    Relaxation::SuidDecoy,
];

/// A control needs it.
pub fn is_needed_by(control: &Control, maker: &Maker) -> bool {
    let concerned = |relaxation| RELAXATIONS.contains(relaxation);
    *maker == Maker::Engine && control.relaxations.iter().any(concerned)
}

/// Where those that need it learn its id: `None` if there is none after all.
pub type Id = OnceLock<Option<String>>;

/// Launches it, tells its id once all is there, and ends it when nobody needs it any more:
/// when `over` is closed. Whatever comes of it, somebody is told.
pub fn keep(
    engine: &mut dyn Engine,
    template: &Job,
    id: &Id,
    over: &Receiver<()>,
) -> Result<(), Failure> {
    let kept = launch_and_keep(engine, template, id, over);
    let _ = id.set(None);
    kept.map_err(|failure| Failure {
        message: format!("the neighbour of the controls: {}", failure.message),
        ..failure
    })
}

fn launch_and_keep(
    engine: &mut dyn Engine,
    template: &Job,
    id: &Id,
    over: &Receiver<()>,
) -> Result<(), Failure> {
    let launch = launch(template)?;
    let mut session = engine.launch(&launch, template.image)?;
    let Some(line) = session.receive()? else {
        return Err(container::ended_early(
            session.as_mut(),
            "before it was ready",
        ));
    };
    let mut transcript = Transcript::new();
    transcript
        .hear_hello(&line)
        .map_err(|error| container::misspoken(&error))?;
    let _ = id.set(Some(session.configured()?.group));
    // Closed, never spoken into.
    let _ = over.recv();
    session.finish().map_err(Failure::from).map(drop)
}

fn launch(template: &Job) -> Result<Launch, Failure> {
    let name = format!("{}-{NAME}", template.run_id);
    let sides = Sides::new(
        &name,
        &template.profile.limits,
        template.maker,
        template.janitor,
    )?;
    let [input, output] =
        FILLED.map(|control| format!("{NAME_PREFIX}{}-{control}", template.run_id));
    let mut settings = Settings {
        user: "0:0".into(),
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
    Ok(Launch {
        name: format!("{NAME_PREFIX}{name}"),
        labels: names::labels(template.run_id, NAME, template.nobodys_after),
        image: template.image_id.into(),
        arguments: vec![NAME.into()],
        settings,
        seccomp: String::new(),
        scratch: sides.scratch().map(|scratch| scratch.base().to_owned()),
        folder: scratch::beside(&name),
        runtime: template.runtime.map(str::to_owned),
        gate: false,
    })
}
