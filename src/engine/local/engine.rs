//! An engine without a daemon, as any engine is used.

use super::job::Maker;
use super::remains::{leftovers, remove};
use super::reserve::Keeper;
use super::state::LocalEngine;
use super::{facts, session};
use crate::engine::contract::{
    Engine, GateKind, ImageNames, Launch, Leftover, Session, Surroundings,
};
use crate::engine::error::EngineError;
use crate::image::Image;
use tki_evidence::evidence::Holdings;

impl Engine for LocalEngine {
    fn expect_launch(&mut self) {
        self.get_ready();
        // Should it fail, it fails again at the launch, and is said there.
        self.reserve = Keeper::start().ok();
    }

    fn look_around(&mut self, image: &ImageNames) -> Result<Surroundings, EngineError> {
        let runtime = match self.maker {
            Maker::Embedded => "libcontainer",
            Maker::Bwrap => "bwrap",
        };
        let facts = facts::facts(self.maker.name(), &self.version()?, runtime, &self.support);
        Ok(Surroundings {
            facts,
            holdings: Holdings::default(),
            held: self.image_id(image)?,
        })
    }

    /// There is no store: nothing is held between runs.
    fn holdings(&mut self) -> Result<Holdings, EngineError> {
        Ok(Holdings::default())
    }

    /// The image comes with each launch.
    fn image_id(&mut self, image: &ImageNames) -> Result<Option<String>, EngineError> {
        Ok(Some(image.config_digest.clone()))
    }

    fn load(&mut self, _image: &Image) -> Result<(), EngineError> {
        Ok(())
    }

    fn launch(
        &mut self,
        launch: &Launch,
        image: &Image,
    ) -> Result<Box<dyn Session + '_>, EngineError> {
        session::launch(self, launch, image)
    }

    fn gate_kind(&self) -> GateKind {
        GateKind::Own
    }

    fn leftovers(&mut self) -> Result<Vec<Leftover>, EngineError> {
        Ok(leftovers(&self.support))
    }

    fn remove(&mut self, id: &str) -> Result<(), EngineError> {
        remove(id, &self.support);
        Ok(())
    }
}
