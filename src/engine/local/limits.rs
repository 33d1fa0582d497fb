//! Resource limits of the container's processes.

use rustix::process::{Resource, Rlimit};
use tki_evidence::settings::{Settings, Ulimit};

/// A limit stands in for a control group: too tight for the process that makes the
/// container, because processes of one user are counted together, and memory
/// of the maker's is larger. Such a limit is set last.
pub fn is_late(limit: &Ulimit, settings: &Settings) -> bool {
    limit.name == "as" || (limit.name == "nproc" && settings.pids_limit == 0)
}

/// Those limits that are set last, or the others.
pub fn wanted(settings: &Settings, late: bool) -> Vec<(Resource, Rlimit)> {
    let of_this_kind = settings
        .ulimits
        .iter()
        .filter(|limit| is_late(limit, settings) == late);
    of_this_kind
        .filter_map(|limit| {
            let resource = match limit.name.as_str() {
                "as" => Resource::As,
                "core" => Resource::Core,
                "nofile" => Resource::Nofile,
                "nproc" => Resource::Nproc,
                _ => return None,
            };
            let wanted = Rlimit {
                current: u64::try_from(limit.soft).ok(),
                maximum: u64::try_from(limit.hard).ok(),
            };
            Some((resource, wanted))
        })
        .collect()
}
