//! A container of Docker's.

use super::host_config;
use crate::engine::api::container::Container;
use crate::engine::api::raw::Raw;
use crate::engine::api::{Api, connect, fill};
use crate::engine::contract::{Configured, Ended, Launch, Session};
use crate::engine::error::EngineError;
use crate::engine::filling::{Files, FillError};
use crate::engine::names::is_id;
use crate::engine::recover::groups::Maker;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::CreateContainerOptionsBuilder;
use hyper::Method;
use serde::Deserialize;
use tki_evidence::described::{MAX_DESCRIPTION, docker};

/// The most bytes of a container's settings: evidence repeats them in several places.
const MAX_SETTINGS: usize = 1 << 20;

/// Creates, attaches, starts.
pub fn launch<'a>(api: &'a mut Api, launch: &Launch) -> Result<Box<dyn Session + 'a>, EngineError> {
    let body = host_config::create_body(launch);
    let mut container = create(api, launch, body)?;
    container.attach()?;
    let removal = wait_for_removal(container.api.raw.clone(), container.id.clone());
    container.wait_beside(removal);
    container.start()?;
    Ok(Box::new(DockerSession { container }))
}

/// Creates, has the files put into its volume, and removes it.
pub fn fill(api: &mut Api, launch: &Launch, files: Files) -> Result<(), FillError> {
    let body = host_config::with_empty_volumes(host_config::create_body(launch));
    fill::fill(&mut create(api, launch, body)?, files)
}

fn create<'a>(
    api: &'a mut Api,
    launch: &Launch,
    body: ContainerCreateBody,
) -> Result<Container<'a>, EngineError> {
    let (docker, host) = (api.docker.clone(), api.host.clone());
    let options = CreateContainerOptionsBuilder::new()
        .name(&launch.name)
        .build();
    let request = "POST /containers/create";
    Container::create(api, Maker::Docker, launch, request, async {
        match docker.create_container(Some(options), body).await {
            // It becomes part of every later request.
            Ok(created) if is_id(&created.id) => Ok(created.id),
            Ok(_) => Err(EngineError::Vanished {
                host: host.clone(),
                request: request.into(),
                reason: "the id that it gave is none".into(),
            }),
            Err(error) => Err(connect::explain(&host, request, error)),
        }
    })
}

/// Waits until the container is removed; gives its status.
async fn wait_for_removal(raw: Raw, id: String) -> Result<Option<i64>, EngineError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Waited {
        status_code: i64,
    }
    let target = format!("/containers/{id}/wait?condition=removed");
    match raw.ask(Method::POST, &target, None).await {
        Ok(answer) if answer.body.is_empty() => Ok(Some(-1)),
        Ok(answer) => {
            let request = "waiting for the container's removal";
            let waited: Waited = raw.read(request, &answer.body)?;
            Ok(Some(waited.status_code))
        }
        // It was removed before the engine heard the question.
        Err(EngineError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

struct DockerSession<'a> {
    container: Container<'a>,
}

impl Session for DockerSession<'_> {
    fn configured(&mut self) -> Result<Configured, EngineError> {
        let docker = self.container.api.docker.clone();
        let host = self.container.api.host.clone();
        let request = "GET /containers/json";
        let found = self
            .container
            .api
            .call(request, docker.inspect_container(&self.container.id, None))?;
        let description = serde_json::to_string_pretty(&found).unwrap_or_default();
        // From the bytes that are kept, as `verify` will read them.
        let described =
            docker::read(description.as_bytes()).map_err(|reason| EngineError::Vanished {
                host: host.clone(),
                request: request.into(),
                reason: format!("its description of the container cannot be read: {reason}"),
            })?;
        let size = serde_json::to_string(&described.settings)
            .unwrap_or_default()
            .len();
        for (size, most) in [(size, MAX_SETTINGS), (description.len(), MAX_DESCRIPTION)] {
            if size > most {
                return Err(EngineError::Flood {
                    host,
                    request: request.into(),
                    what: format!("its description has {size} bytes, more than {most}"),
                });
            }
        }
        Ok(Configured {
            group: self.container.id.clone(),
            settings: described.settings,
            image_id: described.image_id,
            oci_runtime: described.oci_runtime,
            pid: described.pid,
            description,
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
        self.container.finish()
    }
}
