//! A container of Podman's.

use super::configured::{self, Description, Oci};
use super::profile::ProfileFile;
use super::{Networks, Place, libpod, spec, strays};
use crate::engine::api::Api;
use crate::engine::api::container::Container;
use crate::engine::contract::{Configured, Ended, Launch, Session};
use crate::engine::error::EngineError;
use crate::engine::process::wait_for;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinHandle;

/// The most that an OCI configuration may have.
const MAX_CONFIG: u64 = 4 << 20;

/// Creates, attaches, starts.
pub fn launch<'a>(
    api: &'a mut Api,
    place: &'a Place,
    networks: &mut Networks,
    launch: &Launch,
) -> Result<Box<dyn Session + 'a>, EngineError> {
    let raw = &place.raw;
    let file = match launch.settings.seccomp.as_str() {
        "unconfined" => None,
        _ => Some(ProfileFile::write(&launch.folder, &launch.seccomp)?),
    };
    let spec = spec::spec(launch, file.as_ref().map(ProfileFile::path));
    let container = Container::create(
        api,
        &launch.name,
        "POST /libpod/containers/create",
        libpod::create(raw, &launch.name, spec.to_string().into()),
    )?;
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
    // Podman describes what the runtime has made while it has it started.
    let asked = raw.clone();
    let describing = async move { libpod::inspect(&asked, &id).await };
    session.description = Some(container.api.driver.spawn(describing));
    container.attach()?;
    container.start()?;
    // Podman has read the file at some moment between then and now. If it is
    // still the same, that is what Podman has read.
    session.profile = match file {
        None => None,
        Some(file) => Some((file.path().display().to_string(), file.read_again()?)),
    };
    Ok(Box::new(session))
}

struct PodmanSession<'a> {
    container: Container<'a>,
    rest: Rest,
    /// Its monitor, once that is known.
    monitor: Option<Arc<OwnedFd>>,
    place: &'a Place,
    /// What Podman says about it, asked for and not heard yet.
    description: Option<JoinHandle<Result<serde_json::Value, EngineError>>>,
    /// The path that Podman was given, and what stood there after the start.
    profile: Option<(String, Vec<u8>)>,
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
    /// What Podman handed to the runtime.
    fn oci_config(&self, path: &str) -> Result<String, EngineError> {
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(MAX_CONFIG).read_to_string(&mut text))
            .map_err(|error| EngineError::Unusable {
                engine: "podman",
                reason: format!("what it set cannot be read from {path}: {error}"),
                next: "run as the user that Podman's service runs as, on the same host".into(),
            })?;
        Ok(text)
    }

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
        let request = "GET /libpod/containers/json";
        let (driver, raw) = (&mut self.container.api.driver, &self.place.raw);
        let found = match self.description.take() {
            Some(asked) => driver.join(request, &raw.host, asked)?,
            None => driver.run(request, libpod::inspect(raw, &self.container.id))?,
        };
        let unread = |error: serde_json::Error| EngineError::Vanished {
            host: self.place.raw.host.clone(),
            request: request.into(),
            reason: format!("its description of the container cannot be read: {error}"),
        };
        let described: Description = serde_json::from_value(found.clone()).map_err(unread)?;
        self.monitor = self.place.monitors.watch(described.state.conmon_pid);
        self.check_runtime(&described.oci_runtime)?;
        let config = self.oci_config(&described.oci_config_path)?;
        let config: serde_json::Value = serde_json::from_str(&config).map_err(unread)?;
        let oci: Oci = serde_json::from_value(config.clone()).map_err(unread)?;
        let profile = self
            .profile
            .as_ref()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let both = serde_json::json!({"inspect": found, "oci_config": config});
        Ok(Configured {
            settings: configured::settings(&described, &oci, profile),
            image_id: libpod::digest(&described.image),
            pid: i32::try_from(described.state.pid)
                .ok()
                .filter(|pid| *pid > 1),
            oci_runtime: Some(described.oci_runtime),
            description: serde_json::to_string_pretty(&both).unwrap_or_default(),
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
        let is_gone = || {
            let monitor = monitor.as_ref();
            monitor.is_none_or(|monitor| wait_for(monitor.as_fd(), Instant::now()))
        };
        let ending = libpod::end(&self.place.raw, &id, is_gone);
        let ended = self.container.finish_by(ending)?;
        self.rest.0 = None;
        Ok(ended)
    }
}
