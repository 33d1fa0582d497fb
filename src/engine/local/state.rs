//! What an engine without a daemon is, before it has a container.

use super::job::Maker;
use super::moves;
use super::reserve::Keeper;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::engine::support::Support;
use crate::host::process::{find_program, told_by};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// An engine without a daemon.
#[derive(Debug)]
pub struct LocalEngine {
    pub(super) maker: Maker,
    pub(super) driver: Driver,
    pub(super) support: Support,
    /// A keeper that waits for its job.
    pub(super) reserve: Option<Keeper>,
    /// The container about to be made can be moved into its groups at once.
    pub(super) ready: Option<moves::Ready>,
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
                return Err(without_bwrap(BwrapError::Missing));
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
    pub(super) fn get_ready(&mut self) {
        if self.support.version != 0 {
            self.ready.get_or_insert_with(moves::Ready::begin);
        }
    }

    pub(super) fn version(&self) -> Result<String, EngineError> {
        match self.maker {
            Maker::Embedded => Ok(env!("CARGO_PKG_VERSION").to_owned()),
            Maker::Bwrap => bwrap_version().map_err(without_bwrap),
        }
    }
}

fn without_bwrap(error: BwrapError) -> EngineError {
    EngineError::Unusable {
        engine: Maker::Bwrap.name(),
        reason: error.to_string(),
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

/// Why bubblewrap cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BwrapError {
    /// It is not installed.
    #[error("there is no bwrap in PATH")]
    Missing,
    /// It was there a moment ago.
    #[error("bwrap: no such program")]
    Gone,
    /// Some other program has its name.
    #[error("bwrap does not tell its version")]
    Silent,
}

/// The version that bubblewrap tells, asked once.
fn bwrap_version() -> Result<String, BwrapError> {
    static TOLD: OnceLock<Result<String, BwrapError>> = OnceLock::new();
    TOLD.get_or_init(ask_bwrap_version).clone()
}

fn ask_bwrap_version() -> Result<String, BwrapError> {
    let bwrap = find_program("bwrap").ok_or(BwrapError::Gone)?;
    const PATIENCE: Duration = Duration::from_secs(5);
    let told = told_by(Command::new(bwrap).arg("--version"), PATIENCE);
    let told = told.ok_or(BwrapError::Silent)?;
    let text = String::from_utf8_lossy(&told);
    let version = text.trim().strip_prefix("bubblewrap ");
    version
        .map(|version| tki_text::printable(version, 40))
        .ok_or(BwrapError::Silent)
}
