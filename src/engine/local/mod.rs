//! Engines without a daemon: libcontainer inside this tool (`embedded`) and
//! bubblewrap (`bwrap`). Both make their container in a [`keeper`], a process of
//! its own that leaves nothing behind.

mod bubble;
mod cgroup;
pub mod filter;
pub(super) mod host;
mod job;
pub mod keeper;
mod keepers;
pub(super) mod kernel;
mod loopback;
mod moves;
mod oci;
mod orphans;
pub mod own;
mod rootfs;
mod session;
pub mod support;
mod wire;

pub use cgroup::members;
pub use job::Maker;

use crate::engine::api::names::run_of;
use crate::engine::contract::{
    Engine, GateKind, ImageNames, Launch, Leftover, NAME_PREFIX, Session, Surroundings,
};
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::engine::process::{find_program, told_by};
use crate::image::Image;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use support::Support;
use tki_evidence::evidence::Holdings;

/// A profile as the program that the kernel runs, for `bwrap --seccomp`.
pub fn compiled_filter(profile: &str) -> Result<Vec<u8>, String> {
    Ok(filter::bytes(&filter::compile(profile)?))
}

/// An engine without a daemon.
#[derive(Debug)]
pub struct LocalEngine {
    maker: Maker,
    driver: Driver,
    support: Support,
    /// A keeper that waits for its job.
    reserve: Option<session::Keeper>,
    /// The container about to be made can be moved into its groups at once.
    ready: Option<moves::Ready>,
}

impl LocalEngine {
    /// The engine, if this host can have it.
    pub fn new(maker: Maker, limit: Duration) -> Result<Self, EngineError> {
        let unusable = |reason: String, next: &str| EngineError::Unusable {
            engine: maker.name(),
            reason,
            next: next.into(),
        };
        if maker == Maker::Bwrap {
            if find_program("bwrap").is_none() {
                return Err(without_bwrap("there is no bwrap in PATH".into()));
            }
            // It is told while a keeper is started.
            std::thread::spawn(bwrap_version);
        }
        let support = Support::here();
        if maker == Maker::Embedded && support.version == 0 {
            return Err(unusable(
                "there is no control group that this user may use".into(),
                "run as root, or have control groups delegated to this user (docs/engines.md); \
                 --engine bwrap goes without",
            ));
        }
        let driver =
            Driver::new(limit).map_err(|error| unusable(error.to_string(), "run again"))?;
        Ok(Self {
            maker,
            driver,
            support,
            reserve: None,
            ready: None,
        })
    }

    /// Has the kernel ready to move a process into a group.
    fn get_ready(&mut self) {
        if self.support.version != 0 {
            self.ready.get_or_insert_with(moves::Ready::begin);
        }
    }

    fn version(&self) -> Result<String, EngineError> {
        match self.maker {
            Maker::Embedded => Ok(env!("CARGO_PKG_VERSION").to_owned()),
            Maker::Bwrap => bwrap_version().map_err(without_bwrap),
        }
    }
}

fn without_bwrap(reason: String) -> EngineError {
    EngineError::Unusable {
        engine: Maker::Bwrap.name(),
        reason,
        next: "install bubblewrap, or use another --engine".into(),
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        if let Some(keeper) = self.reserve.take() {
            keeper.dismiss();
        }
    }
}

/// The version that bubblewrap tells, asked once.
fn bwrap_version() -> Result<String, String> {
    static TOLD: OnceLock<Result<String, String>> = OnceLock::new();
    TOLD.get_or_init(ask_bwrap_version).clone()
}

fn ask_bwrap_version() -> Result<String, String> {
    let bwrap = find_program("bwrap").ok_or("bwrap: no such program")?;
    const PATIENCE: Duration = Duration::from_secs(5);
    let told = told_by(Command::new(bwrap).arg("--version"), PATIENCE);
    let told = told.ok_or("bwrap does not tell its version")?;
    let text = String::from_utf8_lossy(&told);
    let version = text.trim().strip_prefix("bubblewrap ");
    version
        .map(|version| tki_text::printable(version, 40))
        .ok_or_else(|| "bwrap does not tell its version".into())
}

impl Engine for LocalEngine {
    fn expect_launch(&mut self) {
        self.get_ready();
        // Should it fail, it fails again at the launch, and is said there.
        self.reserve = session::Keeper::start().ok();
    }

    fn look_around(&mut self, image: &ImageNames) -> Result<Surroundings, EngineError> {
        let runtime = match self.maker {
            Maker::Embedded => "libcontainer",
            Maker::Bwrap => "bwrap",
        };
        let facts = host::facts(self.maker.name(), &self.version()?, runtime, &self.support);
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

/// What engines without a daemon have left here, whoever asks: there is no engine to be
/// reached for that.
#[derive(Debug)]
pub struct Remains(Support);

impl Remains {
    /// Of this user's.
    pub fn here() -> Self {
        Self(Support::here())
    }

    /// What is left.
    pub fn leftovers(&self) -> Vec<Leftover> {
        leftovers(&self.0)
    }

    /// Removes one of these.
    pub fn remove(&self, id: &str) {
        remove(id, &self.0);
    }
}

/// A container goes with its keeper, and a keeper with its tool; one that was stopped
/// does not. Control groups stay if the keeper and the tool were killed together; those of
/// a run that has just begun are empty, too, and so only old ones count.
fn leftovers(support: &Support) -> Vec<Leftover> {
    let groups = cgroup::abandoned(NAME_PREFIX, support).into_iter();
    let groups = groups.filter_map(|name| {
        Some(Leftover {
            run_id: run_of(&name)?.id,
            id: name,
            state: "empty control group".into(),
            deadline: None,
            foreign: None,
        })
    });
    keepers::leftovers().into_iter().chain(groups).collect()
}

fn remove(id: &str, support: &Support) {
    keepers::end(id, support);
    if run_of(id).is_some() {
        cgroup::remove_empty(&cgroup::named(id, support));
    }
}
