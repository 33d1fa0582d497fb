//! The Docker Engine, through its API.

mod ask;
mod connect;
mod host_config;
mod session;

use crate::engine::contract::{
    Engine, GateKind, ImageNames, LABEL_DEADLINE, LABEL_RUN, Launch, Leftover, Session,
    Surroundings,
};
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::image::Image;
use bollard::Docker;
use bollard::query_parameters::{
    ImportImageOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt;
use std::time::Duration;
use tki_evidence::evidence::Holdings;

/// A connection to a Docker Engine.
#[derive(Debug)]
pub struct DockerEngine {
    driver: Driver,
    docker: Docker,
    host: String,
}

impl DockerEngine {
    /// Connects to the engine at `host`, or at `DOCKER_HOST`, or at the usual
    /// socket, and agrees on an API version. Everything that is done with it
    /// must end within `limit`.
    pub fn connect(host: Option<&str>, limit: Duration) -> Result<Self, EngineError> {
        let host = connect::resolve(host);
        let mut driver = Driver::new(limit).map_err(|error| EngineError::Unreachable {
            host: host.clone(),
            reason: error.to_string(),
        })?;
        let docker = connect::connect(&mut driver, &host)?;
        Ok(Self {
            driver,
            docker,
            host,
        })
    }

    fn call<T>(
        &mut self,
        request: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, EngineError> {
        let host = &self.host;
        self.driver.run(request, async {
            call.await
                .map_err(|error| connect::explain(host, request, error))
        })
    }

    /// The answer, or `None` for "no such object".
    fn look_up<T>(
        &mut self,
        request: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<Option<T>, EngineError> {
        match self.call(request, call) {
            Ok(found) => Ok(Some(found)),
            Err(EngineError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Engine for DockerEngine {
    fn look_around(&mut self, tag: &str, image: &ImageNames) -> Result<Surroundings, EngineError> {
        let docker = self.docker.clone();
        let (info, holdings, tagged, by_config, by_manifest) =
            self.call("looking around", async {
                tokio::try_join!(
                    docker.info(),
                    ask::holdings(&docker),
                    ask::image_id(&docker, tag),
                    // Image stores disagree on which digest is the id.
                    ask::image_id(&docker, &image.config_digest),
                    ask::image_id(&docker, &image.manifest_digest),
                )
            })?;
        let api_version = self.docker.client_version().to_string();
        Ok(Surroundings {
            facts: ask::facts(info, api_version),
            holdings,
            tagged,
            held: by_config.or(by_manifest),
        })
    }

    fn holdings(&mut self) -> Result<Holdings, EngineError> {
        let docker = self.docker.clone();
        self.call("the inventory", ask::holdings(&docker))
    }

    fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError> {
        let docker = self.docker.clone();
        let (by_config, by_manifest) = self.call("GET /images", async {
            tokio::try_join!(
                ask::image_id(&docker, &image.config_digest),
                ask::image_id(&docker, &image.manifest_digest),
            )
        })?;
        Ok(by_config.or(by_manifest))
    }

    fn load(&mut self, image: &Image) -> Result<(), EngineError> {
        let docker = self.docker.clone();
        let archive = image.archive();
        self.call("POST /images/load", async {
            let body = bollard::body_full(archive.into());
            let mut progress =
                std::pin::pin!(docker.import_image(ImportImageOptions::default(), body, None));
            while let Some(step) = progress.next().await {
                step?;
            }
            Ok(())
        })
    }

    fn launch(
        &mut self,
        launch: &Launch,
        _image: &Image,
    ) -> Result<Box<dyn Session + '_>, EngineError> {
        session::launch(self, launch)
    }

    fn gate_kind(&self) -> GateKind {
        GateKind::Listener
    }

    fn leftovers(&mut self) -> Result<Vec<Leftover>, EngineError> {
        let docker = self.docker.clone();
        let filter = std::collections::HashMap::from([("label", vec![LABEL_RUN])]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filter)
            .build();
        let found = self.call("GET /containers", docker.list_containers(Some(options)))?;
        Ok(found
            .into_iter()
            .filter_map(|container| {
                // The engine filtered already; this is not taken on trust,
                // because what is returned here is removed.
                let labels = container.labels?;
                Some(Leftover {
                    id: container.id?,
                    run_id: labels.get(LABEL_RUN)?.clone(),
                    state: container.state.map(|s| s.to_string()).unwrap_or_default(),
                    deadline: labels.get(LABEL_DEADLINE).and_then(|at| at.parse().ok()),
                })
            })
            .collect())
    }

    fn remove(&mut self, id: &str) -> Result<(), EngineError> {
        let docker = self.docker.clone();
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        let removed = self.look_up(
            "DELETE /containers",
            docker.remove_container(id, Some(options)),
        );
        match removed {
            // It is being removed already.
            Err(EngineError::Refused { status: 409, .. }) => Ok(()),
            other => other.map(drop),
        }
    }
}
