//! Volumes of ours: what they are called, whose they are, and how they go. A label says
//! what to look at; a volume is ours if everything that this tool gives one is there and
//! agrees. No engine removes a volume that a container has, and none is forced to.

use crate::clock::parse_rfc3339;
use crate::engine::api::{Api, connect};
use crate::engine::contract::{LABEL_ROLE, LABEL_RUN, Leftover, NAME_PREFIX};
use crate::engine::error::EngineError;
use crate::engine::names::{Run, is_id, run_of};
use crate::engine::recover::ours::{Labels, may_be, told};
use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{
    ListVolumesOptionsBuilder, RemoveVolumeOptions, RemoveVolumeOptionsBuilder,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Removes a volume of ours that no container has.
pub fn remove(api: &mut Api, name: &str) -> Result<(), EngineError> {
    // It becomes part of the request.
    if !is_name(name) {
        return Ok(());
    }
    let docker = api.docker.clone();
    let mut remove = |force| {
        let options = RemoveVolumeOptionsBuilder::new().force(force).build();
        let removed = docker.remove_volume(name, Some(options));
        api.look_up("DELETE /volumes", removed).map(drop)
    };
    // An engine lets go of it a moment after the container is gone.
    for _ in 0..20 {
        match remove(false) {
            Err(EngineError::Refused { status: 409, .. }) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            // One that was killed on the way has a volume without its directory, which it
            // can only forget.
            Err(EngineError::Refused { message, .. }) if is_without_directory(&message) => {
                return remove(true);
            }
            other => return other,
        }
    }
    remove(false)
}

/// What Docker says of a volume whose directory is gone.
fn is_without_directory(message: &str) -> bool {
    message.contains("/_data") && message.ends_with("no such file or directory")
}

/// Removes volumes of containers that are gone, even after a deadline or a signal.
pub fn let_go(api: &mut Api, names: &[String]) -> Result<(), EngineError> {
    if names.is_empty() {
        return Ok(());
    }
    let (docker, request) = (api.docker.clone(), "DELETE /volumes");
    match api.driver.run_clean_up(remove_all(&docker, names)) {
        Some(removed) => removed.map_err(|error| connect::explain(&api.host, request, error)),
        None => Err(EngineError::TimedOut {
            request: request.into(),
        }),
    }
}

/// Removes volumes of a run that have no name and that nobody has any more. An engine takes
/// them away with their container, unless another client removed that and left them.
pub fn sweep(api: &mut Api, run: &str) {
    let docker = api.docker.clone();
    api.driver.run_clean_up(async {
        let listed = listed(&docker, Some(run)).await.unwrap_or_default();
        let is_left = |volume: &&Listed| {
            is_id(&volume.name) && volume.run().is_ok_and(|found| found.id == run)
        };
        for volume in listed.iter().filter(is_left) {
            // Another container of the run may have it.
            let options = None::<RemoveVolumeOptions>;
            let _ = docker.remove_volume(&volume.name, options).await;
        }
    });
}

/// Every volume, or those that carry the label of a run.
pub async fn listed(docker: &Docker, run: Option<&str>) -> Result<Vec<Listed>, Error> {
    let label = run.map(|run| vec![format!("{LABEL_RUN}={run}")]);
    let filters: HashMap<&str, Vec<String>> =
        label.map(|label| ("label", label)).into_iter().collect();
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let listed = docker.list_volumes(Some(options)).await?;
    let listed = listed.volumes.unwrap_or_default().into_iter();
    let volume = |volume: bollard::models::Volume| Listed {
        name: volume.name,
        driver: volume.driver,
        labels: volume.labels.into_iter().collect(),
        options: volume.options.into_iter().collect(),
        created: volume
            .created_at
            .map(|time| time.to_string())
            .unwrap_or_default(),
    };
    Ok(listed.map(volume).collect())
}

/// How often a volume is tried that an engine says is in use: it lets go a moment after it
/// has told that the container is gone, and on a busy host that moment is long.
const TRIES: usize = 200;

async fn remove_all(docker: &Docker, names: &[String]) -> Result<(), Error> {
    let options = None::<RemoveVolumeOptions>;
    for name in names {
        let mut tries = 0;
        loop {
            tries += 1;
            match docker.remove_volume(name, options.clone()).await {
                Err(Error::DockerResponseServerError {
                    status_code: 409, ..
                }) if tries < TRIES => tokio::time::sleep(Duration::from_millis(10)).await,
                Ok(())
                | Err(Error::DockerResponseServerError {
                    status_code: 404, ..
                }) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// A volume as its engine lists it.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its labels.
    pub labels: Labels,
    /// What its driver was asked for.
    pub options: BTreeMap<String, String>,
    /// When it was made, as the engine writes it.
    pub created: String,
}

impl Listed {
    /// It carries our label, by whomever it was given.
    pub fn carries_label(&self) -> bool {
        self.labels.contains_key(LABEL_RUN)
    }

    /// The run of ours that it belongs to, or in what it differs from any volume that this
    /// tool makes.
    pub fn run(&self) -> Result<Run, &'static str> {
        if self.driver != "local" {
            return Err("it has another driver");
        }
        if self.is_memory() && is_id(&self.name) {
            return told(&self.labels).ok_or("its labels are not those of a run");
        }
        let run = run_of(&self.name).ok_or("it is not named like a volume of a run")?;
        if !self.options.is_empty() {
            return Err("it is made of something else");
        }
        let has_role = |label: &String| label == "neighbour" || may_be(label, &self.name, &run);
        let told = told(&self.labels)
            .filter(|told| told.id == run.id && self.labels.get(LABEL_ROLE).is_some_and(has_role));
        let told = told.ok_or("its labels do not agree with its name")?;
        match self.was_made_in(&run, &told) {
            true => Ok(told),
            false => Err("it was not made while its run lasted"),
        }
    }

    /// It is a volume in memory, as /out is.
    fn is_memory(&self) -> bool {
        let option = |name: &str| self.options.get(name).map(String::as_str);
        let flags = option("o").unwrap_or_default();
        self.options.len() == 3
            && option("type") == Some("tmpfs")
            && option("device") == Some("tmpfs")
            && flags.starts_with("noexec,nosuid,nodev,")
    }

    /// It is the /out of some container of ours, as far as an engine tells that gives such
    /// volumes no label.
    pub fn is_unlabelled_out(&self) -> bool {
        self.labels.is_empty() && self.driver == "local" && self.is_memory() && is_id(&self.name)
    }

    /// Engines write the moment with or without a fraction and a zone. What cannot be read
    /// was made at no moment of a run.
    fn was_made_in(&self, run: &Run, told: &Run) -> bool {
        let second = self.created.get(..19).unwrap_or_default();
        let Some(made) = parse_rfc3339(&format!("{second}Z")) else {
            return false;
        };
        // The zone may be any.
        const A_DAY: u64 = 24 * 3600;
        let began = run.removable_after.saturating_sub(A_DAY);
        let ended = told.removable_after.max(run.removable_after) + A_DAY;
        (began..=ended).contains(&made)
    }

    /// What `clean` is told about it.
    pub fn leftover(&self) -> Leftover {
        let run = self.run();
        Leftover {
            id: format!("{VOLUME}{}", self.name),
            run_id: match &run {
                Ok(run) => run.id.clone(),
                Err(_) => self.labels.get(LABEL_RUN).cloned().unwrap_or_default(),
            },
            state: "volume".into(),
            deadline: run.as_ref().ok().map(|run| run.removable_after),
            foreign: run.err(),
        }
    }
}

/// How the id of a leftover begins that is a volume; no container has such an id.
pub const VOLUME: &str = "volume ";

/// Names of volumes that are not ours.
pub fn foreign(listed: &[Listed]) -> Vec<String> {
    let foreign = listed.iter().filter(|one| {
        let ours = one.carries_label() && one.run().is_ok();
        !ours && !one.is_unlabelled_out()
    });
    let names: BTreeSet<&String> = foreign.map(|one| &one.name).collect();
    names.into_iter().cloned().collect()
}

/// What carries our label, ours or not.
pub fn leftovers(listed: &[Listed]) -> Vec<Leftover> {
    let labelled = listed.iter().filter(|one| one.carries_label());
    labelled.map(Listed::leftover).collect()
}

/// A volume's name is safe as part of a request.
pub fn is_name(name: &str) -> bool {
    is_id(name) || (name.starts_with(NAME_PREFIX) && run_of(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_without_its_directory_is_known_by_what_docker_says() {
        let said = "remove ab: umount /var/lib/docker/volumes/ab/_data, flags: 0x2: no such file \
                    or directory";
        assert!(is_without_directory(said));
        for other in [
            "remove ab: umount /var/lib/docker/volumes/ab/_data: device or resource busy",
            "get ab: no such volume",
            "no such file or directory",
        ] {
            assert!(!is_without_directory(other), "{other}");
        }
    }
    use crate::engine::contract::LABEL_DEADLINE;

    const ID: &str = "20261116t144406z-c1e21157";

    fn ours(suffix: &str, role: &str) -> Listed {
        let labels = [
            (LABEL_RUN, ID),
            (LABEL_ROLE, role),
            (LABEL_DEADLINE, "1794840300"),
        ];
        Listed {
            name: format!("{NAME_PREFIX}{ID}{suffix}"),
            driver: "local".into(),
            labels: labels.map(|(n, v)| (n.into(), v.into())).into(),
            options: BTreeMap::new(),
            created: "2026-11-16T14:44:07.123456789Z".into(),
        }
    }

    fn memory() -> BTreeMap<String, String> {
        let options = [
            ("type", "tmpfs"),
            ("device", "tmpfs"),
            ("o", "noexec,nosuid,nodev,size=4096"),
        ];
        options.map(|(n, v)| (n.into(), v.into())).into()
    }

    #[test]
    fn what_this_tool_makes_is_ours() {
        for (suffix, role) in [
            ("", "probe"),
            ("", "inspect"),
            ("-input", "control"),
            ("-suid-file", "neighbour"),
        ] {
            assert_eq!(ours(suffix, role).run().unwrap().id, ID);
            assert!(foreign(&[ours(suffix, role)]).is_empty());
        }
        let mut nameless = ours("", "probe");
        (nameless.name, nameless.options) = ("ab".repeat(32), memory());
        assert!(nameless.run().is_ok());
        nameless.labels.clear();
        assert!(nameless.run().is_err() && nameless.is_unlabelled_out());
        assert!(foreign(&[nameless]).is_empty());
    }

    #[test]
    fn whatever_differs_is_not_ours() {
        type Change = fn(&mut Listed);
        let changes: [Change; 12] = [
            |v| v.name = "postgres-data".into(),
            |v| v.name = v.name.replace("c1e21157", "c1e21158"),
            |v| v.name.push_str("-input"),
            |v| v.name = "ab".repeat(32),
            |v| v.driver = "nfs".into(),
            |v| drop(v.labels.remove(LABEL_DEADLINE)),
            |v| drop(v.labels.remove(LABEL_ROLE)),
            |v| drop(v.labels.insert(LABEL_ROLE.into(), "control".into())),
            |v| drop(v.labels.insert(LABEL_RUN.into(), "x".into())),
            |v| drop(v.options.insert("device".into(), "/srv".into())),
            |v| v.created = "2025-11-16T14:44:07Z".into(),
            |v| v.created = "yesterday".into(),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut volume = ours("", "probe");
            change(&mut volume);
            assert!(volume.run().is_err(), "{number}");
            assert!(volume.leftover().foreign.is_some());
            assert_eq!(foreign(&[volume]).len(), 1, "{number}");
        }
    }
}
