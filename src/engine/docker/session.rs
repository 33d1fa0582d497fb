//! A container of Docker's.

use super::host_config;
use crate::engine::api::container::Container;
use crate::engine::api::{Api, connect};
use crate::engine::contract::{Configured, Ended, Launch, Session};
use crate::engine::error::EngineError;
use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{CreateContainerOptionsBuilder, WaitContainerOptionsBuilder};
use futures_util::StreamExt;

/// Creates, attaches, starts.
pub fn launch<'a>(api: &'a mut Api, launch: &Launch) -> Result<Box<dyn Session + 'a>, EngineError> {
    let (docker, host) = (api.docker.clone(), api.host.clone());
    let options = CreateContainerOptionsBuilder::new()
        .name(&launch.name)
        .build();
    let body = host_config::create_body(launch);
    let request = "POST /containers/create";
    let mut container = Container::create(api, &launch.name, request, async {
        match docker.create_container(Some(options), body).await {
            Ok(created) => Ok(created.id),
            Err(error) => Err(connect::explain(&host, request, error)),
        }
    })?;
    container.attach()?;
    let removal = wait_for_removal(docker.clone(), host.clone(), container.id.clone());
    container.wait_beside(removal);
    container.start()?;
    Ok(Box::new(DockerSession { container }))
}

/// Waits until the container is removed; gives its status.
async fn wait_for_removal(
    docker: Docker,
    host: String,
    id: String,
) -> Result<Option<i64>, EngineError> {
    let options = WaitContainerOptionsBuilder::new()
        .condition("removed")
        .build();
    let mut answers = std::pin::pin!(docker.wait_container(&id, Some(options)));
    match answers.next().await {
        Some(Ok(answer)) => Ok(Some(answer.status_code)),
        Some(Err(Error::DockerContainerWaitError { code, .. })) => Ok(Some(code)),
        // It was removed before the engine heard the question.
        Some(Err(Error::DockerResponseServerError {
            status_code: 404, ..
        })) => Ok(None),
        Some(Err(error)) => {
            let request = "waiting for the container's removal";
            Err(connect::explain(&host, request, error))
        }
        None => Ok(Some(-1)),
    }
}

struct DockerSession<'a> {
    container: Container<'a>,
}

impl Session for DockerSession<'_> {
    fn configured(&mut self) -> Result<Configured, EngineError> {
        let docker = self.container.api.docker.clone();
        let found = self.container.api.call(
            "GET /containers/json",
            docker.inspect_container(&self.container.id, None),
        )?;
        Ok(Configured {
            settings: host_config::configured(&found),
            image_id: found.image.clone().unwrap_or_default(),
            oci_runtime: found
                .host_config
                .as_ref()
                .and_then(|host| host.runtime.clone())
                .filter(|name| !name.is_empty()),
            pid: found
                .state
                .as_ref()
                .and_then(|state| state.pid)
                .and_then(|pid| i32::try_from(pid).ok())
                .filter(|pid| *pid > 1),
            description: serde_json::to_string_pretty(&found).unwrap_or_default(),
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
