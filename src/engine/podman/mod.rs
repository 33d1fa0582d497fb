//! Podman, through its own API and, for what that has in common with Docker's,
//! through Docker's. [`place`] finds a service or has [`service`] start one.

mod cgroups;
mod facts;
pub mod libpod;
mod listed;
mod networks;
mod place;
mod profile;
mod service;
mod session;
mod shelter;
mod spec;
mod store;
mod told;
mod volumes;

use cgroups::Delegated;
use networks::Networks;
pub use place::Place;

use crate::engine::api::volumes as api_volumes;
use crate::engine::api::{Api, ask};
use crate::engine::contract::{
    Engine, GateKind, ImageNames, Launch, Leftover, Session, Surroundings,
};
use crate::engine::error::EngineError;
use crate::engine::filling::{Files, FillError};
use crate::engine::recover::podman as strays;
use crate::image::Image;
use bollard::ClientVersion;
use std::sync::Arc;
use std::time::Duration;
use tki_evidence::evidence::Holdings;

/// A connection to Podman.
#[derive(Debug)]
pub struct PodmanEngine {
    api: Api,
    place: Arc<Place>,
    networks: Networks,
}

impl PodmanEngine {
    /// Connects to a service. Everything that is done with it must end within
    /// `limit`.
    pub fn connect(place: &Arc<Place>, limit: Duration) -> Result<Self, EngineError> {
        let raw = &place.raw;
        let (major_version, minor_version) = place.ping.api;
        let version = ClientVersion {
            major_version,
            minor_version,
        };
        Ok(Self {
            api: Api::agreed(raw, &version, limit)?,
            place: Arc::clone(place),
            networks: Networks::default(),
        })
    }

    /// An inventory, if evidence has room for it.
    fn bounded(&self, held: Holdings) -> Result<Holdings, EngineError> {
        match ask::within_bounds(&held) {
            Ok(()) => Ok(held),
            Err(fault) => Err(fault.explained(&self.place.raw.host, "the inventory")),
        }
    }
}

impl Engine for PodmanEngine {
    fn look_around(&mut self, image: &ImageNames) -> Result<Surroundings, EngineError> {
        let raw = &self.place.raw;
        // Root can use every controller; another user is told which. What listens at a
        // socket may lead to another machine. The question is a slow one.
        let is_asked = self.place.rootless || !self.place.is_here;
        let host = async {
            match is_asked {
                true => libpod::host(raw).await.map(Some),
                false => Ok(None),
            }
        };
        let (host, store) = self.api.driver.run("looking around", async {
            tokio::try_join!(host, store::store(raw))
        })?;
        self.networks = Networks::Wanted;
        let mut facts = facts::facts(&self.place);
        if let Some(host) = host {
            facts.host_name = host.hostname.clone();
            facts.runtime.kernel = host.kernel.clone();
            if self.place.rootless {
                facts.lacks = match host.controllers_of_a_user() {
                    Some(controllers) => facts::lacks(&controllers),
                    None => facts::lacks(
                        &self
                            .place
                            .delegated
                            .get_or_init(Delegated::here)
                            .controllers,
                    ),
                };
            }
        }
        Ok(Surroundings {
            facts,
            holdings: self.bounded(store.holdings())?,
            held: store.held(image),
        })
    }

    fn complete(&mut self, held: &mut Holdings) -> Result<(), EngineError> {
        self.place.call_off();
        self.networks.ask(&self.api.driver, &self.place.raw);
        let Networks::Asked(asked) = std::mem::take(&mut self.networks) else {
            return Ok(());
        };
        let (driver, host) = (&mut self.api.driver, &self.place.raw.host);
        held.networks = driver.join("GET /libpod/networks", host, asked)?;
        *held = self.bounded(std::mem::take(held))?;
        Ok(())
    }

    fn holdings(&mut self) -> Result<Holdings, EngineError> {
        let asked = store::holdings(&self.place.raw);
        let held = self.api.driver.run("the inventory", asked)?;
        self.bounded(held)
    }

    fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError> {
        let asked = store::store(&self.place.raw);
        let store = self.api.driver.run("GET /libpod/images", asked)?;
        Ok(store.held(image))
    }

    fn load(&mut self, image: &Image) -> Result<(), EngineError> {
        self.api.load(image)
    }

    fn launch(
        &mut self,
        launch: &Launch,
        _image: &Image,
    ) -> Result<Box<dyn Session + '_>, EngineError> {
        session::launch(&mut self.api, &self.place, &mut self.networks, launch)
    }

    fn makes_volumes(&self) -> bool {
        true
    }

    fn fill(&mut self, launch: &Launch, files: Files) -> Result<(), FillError> {
        session::fill(&mut self.api, &self.place, launch, files)
    }

    fn let_go(&mut self, volumes: &[String]) -> Result<(), EngineError> {
        api_volumes::let_go(&mut self.api, volumes)
    }

    fn gate_kind(&self) -> GateKind {
        GateKind::Listener
    }

    fn leftovers(&mut self) -> Result<Vec<Leftover>, EngineError> {
        let asked = libpod::containers_and_storage(&self.place.raw);
        let listed = self.api.driver.run("GET /libpod/containers", asked)?;
        let ids: Vec<String> = listed.iter().map(|one| one.id.clone()).collect();
        let asked = listed::leftovers(&self.place.raw, listed);
        let mut found = self.api.driver.run("GET /libpod/containers", asked)?;
        let asked = libpod::volumes(&self.place.raw);
        let listed = self.api.driver.run("GET /libpod/volumes", asked)?;
        // A volume goes after the container that has it.
        found.extend(api_volumes::leftovers(&listed));
        let strays = strays::unlisted(&ids);
        if !strays.is_empty() {
            // Another Podman of this user, with another storage, lists its own.
            let asked = libpod::storage(&self.place.raw);
            let storage = self.api.driver.run("GET /libpod/info", asked)?;
            let own = strays.into_iter().filter(|stray| stray.is_in(&storage));
            found.extend(own.map(|stray| stray.leftover));
        }
        Ok(found)
    }

    fn remove(&mut self, id: &str) -> Result<(), EngineError> {
        if let Some(name) = id.strip_prefix(api_volumes::VOLUME) {
            return api_volumes::remove(&mut self.api, name);
        }
        let removed = self.api.remove(id);
        strays::end(id);
        match removed {
            // What was in the way may be gone now.
            Err(EngineError::Refused { .. }) => self.api.remove(id),
            other => other,
        }
    }
}
