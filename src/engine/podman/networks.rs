//! Podman's networks, asked for beside everything else.

use super::libpod;
use crate::engine::api::raw::Raw;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use tokio::task::JoinHandle;

/// The names of its networks. Podman starts a program for each kind of network
/// before it tells, and creates nothing meanwhile: it is asked once the container
/// has been created, which has no network, and heard when the container has ended.
#[derive(Debug, Default)]
pub enum Networks {
    /// Nobody wants to know.
    #[default]
    Unwanted,
    /// To be asked for.
    Wanted,
    /// Asked for and not heard yet.
    Asked(JoinHandle<Result<Vec<String>, EngineError>>),
}

impl Networks {
    /// Asks, if a caller wants to know and none has asked.
    pub fn ask(&mut self, driver: &Driver, raw: &Raw) {
        if let Self::Wanted = self {
            let raw = raw.clone();
            *self = Self::Asked(driver.spawn(async move { libpod::networks(&raw).await }));
        }
    }
}
