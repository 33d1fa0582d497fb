//! Whose a container is that an engine lists. Labels come with an image, so that a
//! container of anybody's may carry ours: a label says what to look at. A container is
//! ours if everything that this tool gives one is there and agrees.

use crate::engine::contract::{LABEL_DEADLINE, LABEL_ROLE, LABEL_RUN, Leftover, NAME_PREFIX};
use crate::engine::names::{FILLER, Run, is_id, run_of};
use crate::engine::recover::bundle::{
    ARGUMENT, Bound, GUEST, INSPECT, NEIGHBOUR, THREADS, errand, is_prober, run_by_sides,
};
use std::collections::BTreeMap;

/// Labels.
pub type Labels = BTreeMap<String, String>;

/// A container as its engine describes it.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// Its id.
    pub id: String,
    /// Its name. Docker puts a stroke before it.
    pub name: String,
    /// The engine's word for its state.
    pub state: String,
    /// Its own labels and those of its image.
    pub labels: Labels,
    /// What only a whole description tells. An engine that is about to make or to remove
    /// a container lists it, and may be unable to describe it.
    pub whole: Option<Whole>,
    /// The image that it was made from, if the engine still has it.
    pub image: Option<ImageDescribed>,
}

/// The part of a description that a list does not have.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// What it executes, with the arguments.
    pub program: Vec<String>,
    /// The engine removes it when it has ended.
    pub auto_remove: bool,
    /// What is mounted in it.
    pub mounts: Vec<Mounted>,
}

/// Something that is mounted in a container.
#[derive(Clone, Debug, Default)]
pub struct Mounted {
    /// `bind`, `volume`, `tmpfs`.
    pub kind: String,
    /// The name of a volume.
    pub name: String,
    /// On the host.
    pub source: String,
    /// In the container.
    pub destination: String,
}

/// An image as its engine describes it.
#[derive(Clone, Debug, Default)]
pub struct ImageDescribed {
    /// Labels that each of its containers gets.
    pub labels: Labels,
    /// What each of its containers executes.
    pub entrypoint: Vec<String>,
}

impl ImageDescribed {
    /// It is one for the prober, and gives its containers no label of ours.
    pub fn is_for_the_prober(&self) -> bool {
        let labels = [LABEL_RUN, LABEL_ROLE, LABEL_DEADLINE];
        let is_probers = matches!(self.entrypoint.as_slice(), [one] if is_prober(one));
        is_probers && !labels.iter().any(|label| self.labels.contains_key(*label))
    }
}

/// What the labels of a container of ours tell: its run, and when `clean` may remove it.
pub fn told(labels: &Labels) -> Option<Run> {
    let id = labels.get(LABEL_RUN)?;
    let run = run_of(&format!("{NAME_PREFIX}{id}")).filter(|run| run.id == *id)?;
    let removable_after = labels.get(LABEL_DEADLINE)?.parse().ok()?;
    let role = labels.get(LABEL_ROLE)?;
    ROLES.contains(&role.as_str()).then_some(Run {
        removable_after,
        ..run
    })
}

/// What a container of a run is for: the run itself, a control of it, its neighbour, its scout,
/// or an inspection.
const ROLES: [&str; 5] = ["probe", "control", NEIGHBOUR, "scout", INSPECT];

/// A container or a volume with this name may have this role. A control is called by its name as
/// well; a run of probes and an inspection are both called by their id.
pub fn may_be(role: &str, name: &str, run: &Run) -> bool {
    match name.get(NAME_PREFIX.len() + run.id.len()..) {
        None | Some("") => role == "probe" || role == INSPECT,
        Some("-neighbour") => role == NEIGHBOUR,
        Some("-scout") => role == "scout",
        Some(FILLER) => role == INSPECT,
        Some(_) => role == "control",
    }
}

/// What the program is told in a container with this name and role.
fn argument(name: &str, role: &str, run: &Run) -> &'static str {
    match name.get(NAME_PREFIX.len() + run.id.len()..) {
        _ if role == INSPECT => INSPECT,
        Some("-neighbour") => NEIGHBOUR,
        Some("-processes") => GUEST,
        Some("-threads") => THREADS,
        _ => ARGUMENT,
    }
}

impl Described {
    /// The run of ours that it belongs to, or in what it differs from any container that
    /// this tool makes.
    pub fn run(&self) -> Result<Run, &'static str> {
        let name = self.name.strip_prefix('/').unwrap_or(&self.name);
        let run = run_of(name).ok_or("it is not named like a container of a run")?;
        let role = self.labels.get(LABEL_ROLE).map_or("", String::as_str);
        let told = told(&self.labels).filter(|told| told.id == run.id && may_be(role, name, &run));
        let told = told.ok_or("its labels do not agree with its name")?;
        if let Some(whole) = &self.whole {
            whole.is_of(&run, argument(name, role, &run))?;
        }
        match &self.image {
            None => Err("its image is gone"),
            Some(image) if !image.is_for_the_prober() => Err("its image is not ours"),
            Some(_) => Ok(told),
        }
    }

    /// What `clean` is told about it.
    pub fn leftover(self) -> Leftover {
        let run = self.run();
        Leftover {
            run_id: match &run {
                Ok(run) => run.id.clone(),
                Err(_) => self.labels.get(LABEL_RUN).cloned().unwrap_or_default(),
            },
            deadline: run.as_ref().ok().map(|run| run.removable_after),
            foreign: run.err(),
            state: self.state,
            id: self.id,
        }
    }
}

impl Whole {
    /// It is of a container that this tool has made for the run.
    fn is_of(&self, run: &Run, argument: &str) -> Result<(), &'static str> {
        if errand(&self.program) != Some(argument) {
            return Err("it does not execute a program of ours");
        }
        if !self.auto_remove {
            return Err("it stays when it has ended");
        }
        let others = self.mounts.iter().filter(|mount| mount.kind == "volume");
        if others.clone().any(|mount| !mount.is_volume_of(run)) {
            return Err("it has a volume that is not of its run");
        }
        let binds = self.mounts.iter();
        let binds = binds.filter(|mount| matches!(mount.kind.as_str(), "bind" | "volume"));
        let binds: Vec<Bound> = binds.map(Mounted::bound).collect();
        match run_by_sides(&binds) {
            Some(found) if found.id == run.id => Ok(()),
            _ => Err("its /in and /out are not those of its run"),
        }
    }
}

impl Mounted {
    /// A volume that has the run's name, or none and is /out, or what a control has more.
    fn is_volume_of(&self, run: &Run) -> bool {
        let is_runs = run_of(&self.name).is_some_and(|found| found.id == run.id);
        let is_known = matches!(self.destination.as_str(), "/out" | "/host");
        is_runs || (is_known && is_id(&self.name))
    }

    fn bound(&self) -> Bound {
        Bound {
            destination: self.destination.clone(),
            source: Some(self.source.clone().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "20261116t144406z-c1e21157";

    fn ours(control: &str) -> Described {
        let name = format!("{NAME_PREFIX}{ID}{control}");
        let role = match control {
            "" => "probe",
            "-scout" => "scout",
            _ => "control",
        };
        let labels = [(LABEL_RUN, ID), (LABEL_ROLE, role), (LABEL_DEADLINE, "7")];
        let side = |side: &str| Mounted {
            kind: "bind".into(),
            name: String::new(),
            source: format!("/run/{name}/{side}"),
            destination: format!("/{side}"),
        };
        Described {
            id: "ab".repeat(32),
            state: "running".into(),
            labels: labels.map(|(n, v)| (n.into(), v.into())).into(),
            whole: Some(Whole {
                program: ["/tki-prober", "probe"].map(Into::into).into(),
                auto_remove: true,
                mounts: vec![side("in"), side("out"), Mounted::default()],
            }),
            image: Some(ImageDescribed {
                labels: Labels::new(),
                entrypoint: vec!["/tki-prober".into()],
            }),
            name: format!("/{name}"),
        }
    }

    #[test]
    fn what_this_tool_makes_is_ours() {
        for control in ["", "-network", "-scout"] {
            let run = ours(control).run().unwrap();
            assert_eq!((run.id.as_str(), run.removable_after), (ID, 7));
            let leftover = ours(control).leftover();
            assert_eq!((leftover.foreign, leftover.deadline), (None, Some(7)));
        }
        // The neighbour is told a name besides, which can be any of its form and no other.
        let mut neighbour = ours("-neighbour");
        neighbour.labels.insert(LABEL_ROLE.into(), NEIGHBOUR.into());
        for (words, is_ours) in [
            (&["/tki-prober", NEIGHBOUR, "tki-canary-0123abcd"][..], true),
            (&["/tki-prober", NEIGHBOUR], false),
            (
                &["/tki-prober", NEIGHBOUR, "tki-canary-0123abcd", "x"],
                false,
            ),
            (&["/tki-prober", NEIGHBOUR, "/bin/sh"], false),
            (&["/tki-prober", "probe"], false),
        ] {
            whole(&mut neighbour).program = words.iter().map(|word| (*word).into()).collect();
            assert_eq!(neighbour.run().is_ok(), is_ours, "{words:?}");
        }
        for (name, program, is_ours) in [
            ("", ["/tki-inspector", INSPECT], true),
            (FILLER, ["/tki-inspector", INSPECT], true),
            ("-network", ["/tki-inspector", INSPECT], false),
            ("", ["/tki-prober", "probe"], false),
            ("", ["/tki-inspector", "probe"], false),
        ] {
            let mut inspection = ours(name);
            inspection.labels.insert(LABEL_ROLE.into(), INSPECT.into());
            whole(&mut inspection).program = program.map(Into::into).into();
            assert_eq!(inspection.run().is_ok(), is_ours, "{name} {program:?}");
        }
        let mut podmans = ours("");
        podmans.name = podmans.name[1..].to_owned();
        assert!(podmans.run().is_ok());
    }

    /// With volumes in place of the host's directories.
    fn volumes(container: &mut Described) -> &mut Vec<Mounted> {
        let own = container.name.trim_start_matches('/').to_owned();
        let volume = |name: String, destination: &str| Mounted {
            kind: "volume".into(),
            source: format!("/var/lib/docker/volumes/{name}/_data"),
            name,
            destination: destination.into(),
        };
        let mounts = &mut whole(container).mounts;
        *mounts = vec![volume(own, "/in"), volume("cd".repeat(32), "/out")];
        mounts
    }

    #[test]
    fn volumes_of_the_run_are_ours_too() {
        let mut with_volumes = ours("-network");
        volumes(&mut with_volumes);
        assert_eq!(with_volumes.run().unwrap().id, ID);
    }

    fn whole(container: &mut Described) -> &mut Whole {
        container.whole.as_mut().unwrap()
    }

    /// Listed and not described: the list and the image still have to be as ours are.
    #[test]
    fn what_an_engine_cannot_describe_is_known_by_its_name_its_labels_and_its_image() {
        let listed = || Described {
            whole: None,
            ..ours("")
        };
        assert!(listed().run().is_ok());
        let mut named = listed();
        named.name = "/postgres".into();
        assert!(named.run().is_err());
        let mut labelled = listed();
        labelled.labels.insert(LABEL_RUN.into(), "x".into());
        assert!(labelled.run().is_err());
        let mut made = listed();
        made.image = None;
        assert!(made.run().is_err());
    }

    #[test]
    fn whatever_differs_is_not_ours() {
        type Change = fn(&mut Described);
        let changes: [Change; 25] = [
            |c| c.name = "postgres".into(),
            |c| c.name = format!("//{NAME_PREFIX}{ID}"),
            |c| c.name = format!("/{NAME_PREFIX}production"),
            |c| c.name = c.name.replace("c1e21157", "c1e21158"),
            |c| c.name.push_str("-network"),
            |c| drop(c.labels.insert(LABEL_RUN.into(), "x".into())),
            |c| drop(c.labels.insert(LABEL_ROLE.into(), "control".into())),
            |c| drop(c.labels.insert(LABEL_DEADLINE.into(), "never".into())),
            |c| drop(c.labels.remove(LABEL_RUN)),
            |c| drop(c.labels.remove(LABEL_ROLE)),
            |c| drop(c.labels.remove(LABEL_DEADLINE)),
            |c| whole(c).program = vec!["/bin/postgres".into()],
            |c| whole(c).program.push("x".into()),
            |c| whole(c).auto_remove = false,
            |c| whole(c).mounts[2].kind = "volume".into(),
            |c| drop(whole(c).mounts.remove(0)),
            |c| whole(c).mounts[1].source = "/srv/out".into(),
            |c| whole(c).mounts[0].kind = "volume".into(),
            |c| volumes(c)[0].name = format!("{NAME_PREFIX}production"),
            |c| volumes(c)[0].name = "ab".repeat(32),
            |c| volumes(c)[0].source = "/var/lib/docker/volumes/other/_data".into(),
            |c| volumes(c)[1].name = "postgres-data".into(),
            |c| volumes(c)[1].destination = "/data".into(),
            |c| c.image = None,
            |c| c.image.as_mut().unwrap().entrypoint.push("probe".into()),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut container = ours("");
            change(&mut container);
            assert!(container.run().is_err(), "{number}");
            let leftover = container.leftover();
            assert!(leftover.foreign.is_some() && leftover.deadline.is_none());
        }
        // A label that comes with the image was not given by this tool.
        for label in [LABEL_RUN, LABEL_ROLE, LABEL_DEADLINE] {
            let mut container = ours("");
            let image = container.image.as_mut().unwrap();
            image.labels.insert(label.into(), "7".into());
            assert_eq!(container.run(), Err("its image is not ours"));
        }
    }
}
