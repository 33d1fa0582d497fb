//! The containers and volumes of a run whose tool was killed.

use crate::engine::contract::{Engine, Leftover};
use crate::engine::error::EngineError;

/// Removes them. An engine that fails once, in the middle of what it does, may be asked again,
/// so an error is no answer.
pub fn remove(connect: impl FnOnce() -> Result<Box<dyn Engine>, EngineError>, run_id: &str) {
    let Ok(mut engine) = connect() else {
        return;
    };
    let Ok(found) = engine.leftovers() else {
        return;
    };
    let of_the_run = |found: &&Leftover| found.foreign.is_none() && found.run_id == run_id;
    for leftover in found.iter().filter(of_the_run) {
        let _ = engine.remove(&leftover.id);
    }
}
