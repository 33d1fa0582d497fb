//! A container of Podman's.

use super::networks::Networks;
use super::place::Place;
use super::profile::ProfileFile;
use super::told::{self, Told};
use super::{libpod, spec, volumes};
use crate::engine::api::container::Container;
use crate::engine::api::{Api, fill};
use crate::engine::contract::{Configured, Ended, Launch, Session};
use crate::engine::error::EngineError;
use crate::engine::filling::{Files, FillError};
use crate::engine::recover::groups::Maker;
use crate::engine::recover::monitors::Monitor;
use crate::engine::recover::podman as strays;
use serde_json::json;
use std::sync::Arc;
use tki_evidence::described::podman::Profile;
use tokio::task::JoinHandle;

/// Creates, attaches, starts.
pub fn launch<'a>(
    api: &'a mut Api,
    place: &'a Place,
    networks: &mut Networks,
    launch: &Launch,
) -> Result<Box<dyn Session + 'a>, EngineError> {
    let raw = &place.raw;
    if let Some(scratch) = &launch.scratch {
        place.show(scratch)?;
    }
    let file = match launch.settings.seccomp.as_str() {
        "unconfined" | "default" => None,
        _ => Some(ProfileFile::write(&launch.folder, &launch.seccomp)?),
    };
    let container = create(api, place, launch, file.as_ref())?;
    networks.ask(&container.api.driver, raw);
    let id = container.id.clone();
    let mut session = PodmanSession {
        container,
        rest: Rest(Some(id.clone())),
        place,
        monitor: None,
        description: None,
        profile: None,
        runtime: launch.runtime.clone(),
    };
    let container = &mut session.container;
    // Attaching would do the same, and say less about what went wrong.
    container
        .api
        .driver
        .run("POST /libpod/containers/init", libpod::init(raw, &id))?;
    container.attach()?;
    container.start()?;
    // Podman has read the file at some moment between then and now. If it is
    // still the same, that is what Podman has read.
    session.profile = match file {
        None => None,
        Some(file) => Some(Profile {
            path: file.path().display().to_string(),
            text: String::from_utf8_lossy(&file.read_again()?).into_owned(),
        }),
    };
    // Podman describes it while its first words are on their way. Asked earlier, it would
    // be in the way of the start.
    let describing = told::ask(raw.clone(), id, session.profile.clone());
    session.description = Some(container.api.driver.spawn(describing));
    Ok(Box::new(session))
}

/// Creates, has the files put into its volume, and removes it.
pub fn fill(api: &mut Api, place: &Place, launch: &Launch, files: Files) -> Result<(), FillError> {
    // It is never started, and so under no profile.
    fill::fill(&mut create(api, place, launch, None)?, files)
}

fn create<'a>(
    api: &'a mut Api,
    place: &Place,
    launch: &Launch,
    profile: Option<&ProfileFile>,
) -> Result<Container<'a>, EngineError> {
    let raw = &place.raw;
    volumes::make(&mut api.driver, raw, launch)?;
    let mut spec = spec::spec(launch, profile.map(ProfileFile::path));
    let delegated = place.delegated.get();
    if let Some(parent) = delegated.and_then(|group| group.parent.as_ref()) {
        spec["cgroup_parent"] = json!(parent);
    }
    Container::create(
        api,
        Maker::Podman,
        launch,
        "POST /libpod/containers/create",
        libpod::create(raw, &launch.name, spec.to_string().into()),
    )
}

struct PodmanSession<'a> {
    container: Container<'a>,
    rest: Rest,
    /// Its monitor, once that is known.
    monitor: Option<Arc<Monitor>>,
    place: &'a Place,
    /// What Podman says about it, asked for and not heard yet.
    description: Option<JoinHandle<Result<Told, EngineError>>>,
    /// The path that Podman was given, and what stood there after the start.
    profile: Option<Profile>,
    runtime: Option<String>,
}

/// What may be left of a container that did not come to its end: a part of
/// Podman's may have been killed. Dropped after the container, which Podman has
/// then removed if it could.
struct Rest(Option<String>);

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(id) = &self.0 {
            strays::end(id);
        }
    }
}

impl PodmanSession<'_> {
    fn check_runtime(&self, used: &str) -> Result<(), EngineError> {
        match &self.runtime {
            Some(wanted) if wanted != used && wanted.rsplit('/').next() != Some(used) => {
                Err(EngineError::Unusable {
                    engine: "podman",
                    reason: format!(
                        "its service at {} made the container with {used}, not with {wanted}",
                        self.place.raw.host
                    ),
                    next: format!(
                        "leave out --host and CONTAINER_HOST, so that a service of our own is \
                         used, or start the service with `podman --runtime {wanted}`"
                    ),
                })
            }
            _ => Ok(()),
        }
    }
}

impl Session for PodmanSession<'_> {
    fn configured(&mut self) -> Result<Configured, EngineError> {
        let (driver, raw) = (&mut self.container.api.driver, &self.place.raw);
        let told = match self.description.take() {
            Some(asked) => driver.join(told::REQUEST, &raw.host, asked)?,
            None => {
                let (id, profile) = (self.container.id.clone(), self.profile.clone());
                driver.run(told::REQUEST, told::ask(raw.clone(), id, profile))?
            }
        };
        self.monitor = self.place.monitors.watch(told.monitor);
        let described = told.described;
        if let Some(used) = &described.oci_runtime {
            self.check_runtime(used)?;
        }
        Ok(Configured {
            group: self.container.id.clone(),
            settings: described.settings,
            image_id: described.image_id,
            pid: described.pid,
            oci_runtime: described.oci_runtime,
            description: told.verbatim,
        })
    }

    fn send(&mut self, line: &[u8]) -> Result<(), EngineError> {
        self.container.send(line)
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        self.container.receive()
    }

    fn complaint(&mut self) -> String {
        self.container.complaint()
    }

    fn finish(&mut self) -> Result<Ended, EngineError> {
        let id = self.container.id.clone();
        let monitor = self.monitor.take();
        // One that was not there any more when it was looked for is gone as well.
        let is_gone = || monitor.as_ref().is_none_or(|monitor| monitor.is_gone());
        let removed = || {
            if let Some(monitor) = &monitor {
                monitor.release();
            }
        };
        let ending = libpod::end(&self.place.raw, &id, is_gone, removed);
        let ended = self.container.finish_by(ending)?;
        self.rest.0 = None;
        Ok(ended)
    }
}
