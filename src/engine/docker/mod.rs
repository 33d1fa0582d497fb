//! The Docker Engine, through its API.

mod host_config;
mod listed;
mod session;

use crate::engine::api::endpoint::Endpoint;
use crate::engine::api::{Api, ask, volumes};
use crate::engine::contract::{
    Engine, GateKind, ImageNames, Launch, Leftover, Session, Surroundings,
};
use crate::engine::error::EngineError;
use crate::engine::filling::{Files, FillError};
use crate::engine::recover::docker::{Strays, all};
use crate::engine::recover::ours::Described;
use crate::image::Image;
use bollard::Docker;
use bollard::errors::Error;
use std::time::Duration;
use tki_evidence::evidence::Holdings;

/// A connection to a Docker Engine.
#[derive(Debug)]
pub struct DockerEngine {
    api: Api,
    /// What [`Engine::leftovers`] has found beside the engine's list.
    strays: Strays,
}

impl DockerEngine {
    /// Connects to an engine and agrees on an API version. Everything that is done with it
    /// must end within `limit`.
    pub fn connect(endpoint: &Endpoint, limit: Duration) -> Result<Self, EngineError> {
        Ok(Self {
            api: Api::connect(endpoint, limit)?,
            strays: Strays::default(),
        })
    }
}

/// What the engine holds, without containers and volumes of ours. A label alone makes none ours.
async fn holdings(docker: &Docker) -> Result<Holdings, Error> {
    let (listed, volumes, mut holdings) = tokio::try_join!(
        all(docker),
        volumes::listed(docker, None),
        ask::holdings(docker)
    )?;
    holdings.volumes = volumes::foreign(&volumes);
    let foreign = listed.iter().filter(|one| !listed::carries_label(one));
    let mut ids: Vec<String> = foreign.filter_map(|one| one.id.clone()).collect();
    let labelled = listed::labelled(docker, &listed).await?.into_iter();
    ids.extend(labelled.filter(|one| one.run().is_err()).map(|one| one.id));
    ids.sort();
    ids.dedup();
    holdings.containers = ids;
    match ask::within_bounds(&holdings) {
        Ok(()) => Ok(holdings),
        Err(fault) => Err(std::io::Error::from(fault).into()),
    }
}

impl Engine for DockerEngine {
    fn look_around(&mut self, image: &ImageNames) -> Result<Surroundings, EngineError> {
        let docker = self.api.docker.clone();
        let (info, holdings, by_config, by_manifest) = self.api.call("looking around", async {
            tokio::try_join!(
                docker.info(),
                holdings(&docker),
                // Image stores disagree on which digest is the id.
                ask::image_id(&docker, &image.config_digest),
                ask::image_id(&docker, &image.manifest_digest),
            )
        })?;
        let api_version = self.api.docker.client_version().to_string();
        let address = &self.api.raw.address;
        let reached = address.far();
        let host = reached.as_ref().unwrap_or(&self.api.raw.host);
        let mut facts = ask::facts(info, api_version, host);
        facts.reached = reached;
        facts.notes.extend(address.note());
        Ok(Surroundings {
            facts,
            holdings,
            held: by_config.or(by_manifest),
        })
    }

    fn holdings(&mut self) -> Result<Holdings, EngineError> {
        let docker = self.api.docker.clone();
        self.api.call("the inventory", holdings(&docker))
    }

    fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError> {
        self.api.image_id(image)
    }

    fn load(&mut self, image: &Image) -> Result<(), EngineError> {
        self.api.load(image)
    }

    fn launch(
        &mut self,
        launch: &Launch,
        _image: &Image,
    ) -> Result<Box<dyn Session + '_>, EngineError> {
        session::launch(&mut self.api, launch)
    }

    fn makes_volumes(&self) -> bool {
        true
    }

    fn fill(&mut self, launch: &Launch, files: Files) -> Result<(), FillError> {
        session::fill(&mut self.api, launch, files)
    }

    fn let_go(&mut self, volumes: &[String]) -> Result<(), EngineError> {
        volumes::let_go(&mut self.api, volumes)
    }

    fn gate_kind(&self) -> GateKind {
        GateKind::Listener
    }

    fn leftovers(&mut self) -> Result<Vec<Leftover>, EngineError> {
        let docker = self.api.docker.clone();
        // A container that is listed with our label is looked at, and not only what is ours is told.
        let asked = async { listed::labelled(&docker, &all(&docker).await?).await };
        let found = self.api.call("GET /containers", asked)?;
        let mut found: Vec<Leftover> = found.into_iter().map(Described::leftover).collect();
        // A volume goes after the container that has it.
        let listed = self
            .api
            .call("GET /volumes", volumes::listed(&docker, None))?;
        found.extend(volumes::leftovers(&listed));
        let host = self.api.host.clone();
        let looked = Strays::look(&docker, &host);
        let (strays, forgotten) = self.api.call("looking for what was forgotten", looked)?;
        self.strays = strays;
        found.extend(forgotten);
        Ok(found)
    }

    fn remove(&mut self, id: &str) -> Result<(), EngineError> {
        if let Some(name) = id.strip_prefix(volumes::VOLUME) {
            return volumes::remove(&mut self.api, name);
        }
        if let Some(unmounted) = self.strays.unmount(id) {
            return unmounted.map_err(|(path, error)| EngineError::Busy {
                path: path.display().to_string(),
                reason: error.to_string(),
            });
        }
        let removed = self.api.remove(id);
        self.strays.end(id);
        removed
    }
}
