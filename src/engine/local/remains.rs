//! What engines without a daemon have left on this host.

use super::{cgroup, keepers};
use crate::engine::contract::{Leftover, NAME_PREFIX};
use crate::engine::names::run_of;
use crate::engine::support::Support;

/// What engines without a daemon have left here, for any caller: there is no engine to be
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
pub fn leftovers(support: &Support) -> Vec<Leftover> {
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

/// Takes away one that is left.
pub fn remove(id: &str, support: &Support) {
    keepers::end(id, support);
    if run_of(id).is_some() {
        cgroup::remove_empty(&cgroup::named(id, support));
    }
}
