//! The Docker Engine, through its API.

mod connect;
mod host_config;
mod session;

use crate::engine::contract::{
    Engine, EngineFacts, ImageNames, LABEL_DEADLINE, LABEL_RUN, Launch, Leftover, Session,
};
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use bollard::Docker;
use bollard::query_parameters::{
    ImportImageOptions, ListContainersOptionsBuilder, ListImagesOptionsBuilder,
    ListNetworksOptions, ListVolumesOptions, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt;
use std::time::Duration;
use tki_evidence::evidence::{Holdings, Runtime};

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
    fn facts(&mut self) -> Result<EngineFacts, EngineError> {
        let docker = self.docker.clone();
        let (info, version) = self.call("GET /info", async {
            tokio::try_join!(docker.info(), docker.version())
        })?;
        let security_options = info.security_options.unwrap_or_default();
        let rootless = security_options
            .iter()
            .any(|option| option == "name=rootless");
        Ok(EngineFacts {
            runtime: Runtime {
                engine: "docker".into(),
                engine_version: version.version.unwrap_or_default(),
                api_version: self.docker.client_version().to_string(),
                oci_runtime: info.default_runtime.unwrap_or_default(),
                kernel: info.kernel_version.unwrap_or_default(),
                arch: info.architecture.unwrap_or_default(),
                os: info.os_type.unwrap_or_default(),
                cgroup_version: info
                    .cgroup_version
                    .map(|version| version.to_string())
                    .unwrap_or_default(),
                rootless,
                security_options,
            },
            operating_system: info.operating_system.unwrap_or_default(),
            host_name: info.name.unwrap_or_default(),
            swap_limit: info.swap_limit.unwrap_or(false),
        })
    }

    fn holdings(&mut self) -> Result<Holdings, EngineError> {
        let docker = self.docker.clone();
        let all = ListContainersOptionsBuilder::new().all(true).build();
        let every = ListImagesOptionsBuilder::new().all(true).build();
        let (containers, networks, volumes, images) = self.call("the inventory", async {
            tokio::try_join!(
                docker.list_containers(Some(all)),
                docker.list_networks(None::<ListNetworksOptions>),
                docker.list_volumes(None::<ListVolumesOptions>),
                docker.list_images(Some(every)),
            )
        })?;
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids.dedup();
            ids
        };
        Ok(Holdings {
            containers: sorted(
                containers
                    .into_iter()
                    .filter(|container| {
                        let labels = container.labels.as_ref();
                        !labels.is_some_and(|labels| labels.contains_key(LABEL_RUN))
                    })
                    .filter_map(|container| container.id)
                    .collect(),
            ),
            networks: sorted(networks.into_iter().filter_map(|net| net.id).collect()),
            volumes: sorted(
                volumes
                    .volumes
                    .unwrap_or_default()
                    .into_iter()
                    .map(|volume| volume.name)
                    .collect(),
            ),
            images: sorted(images.into_iter().map(|image| image.id).collect()),
        })
    }

    fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError> {
        // Image stores disagree on which digest is the id.
        for digest in [&image.config_digest, &image.manifest_digest] {
            if let Some(id) = self.image_tagged(digest)? {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn image_tagged(&mut self, tag: &str) -> Result<Option<String>, EngineError> {
        let docker = self.docker.clone();
        let found = self.look_up("GET /images", docker.inspect_image(tag))?;
        Ok(found.and_then(|image| image.id))
    }

    fn load(&mut self, archive: Vec<u8>) -> Result<(), EngineError> {
        let docker = self.docker.clone();
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

    fn launch(&mut self, launch: &Launch) -> Result<Box<dyn Session + '_>, EngineError> {
        session::launch(self, launch)
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
