//! What there is to know about a Podman of this host. Podman's own answer would
//! take longer than a container does, because it asks the package manager; so
//! the same places are read here that it reads.

use super::place::Place;
use crate::engine::contract::EngineFacts;
use crate::host::system::operating_system;
use std::path::Path;
use tki_evidence::controller::Controller;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::Runtime;
use tki_evidence::kernel::KernelKind;

/// Limits that a Podman with these controllers cannot set.
pub fn lacks(controllers: &[String]) -> Vec<Controller> {
    let is_missing = |one: &Controller| !controllers.iter().any(|own| own == one.name());
    Controller::ALL.into_iter().filter(is_missing).collect()
}

/// The facts, for a Podman that can use every controller. The runtime's name is known once
/// there is a container.
pub fn facts(place: &Place) -> EngineFacts {
    let system = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let cgroups = Path::new("/sys/fs/cgroup");
    let version_2 = cgroups.join("cgroup.controllers").exists();
    let swap_limit = if version_2 {
        cgroups.join("memory.swap.max").exists() || below_has(cgroups, "memory.swap.max")
    } else {
        cgroups.join("memory/memory.memsw.limit_in_bytes").exists()
    };
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    EngineFacts {
        runtime: Runtime {
            engine: EngineKind::Podman.name().into(),
            engine_version: place.ping.version.clone(),
            api_version: format!("{}.{}", place.ping.api.0, place.ping.api.1),
            oci_runtime: String::new(),
            kernel_kind: KernelKind::Shared,
            kernel: text(system.release()),
            arch: text(system.machine()),
            os: text(system.sysname()).to_lowercase(),
            cgroup_version: if version_2 { "2" } else { "1" }.into(),
            rootless: place.rootless,
            security_options: if place.rootless {
                vec!["name=rootless".into()]
            } else {
                Vec::new()
            },
        },
        operating_system: operating_system(),
        host_name: text(system.nodename()),
        reached: None,
        swap_limit,
        cpus: i64::try_from(cpus).unwrap_or(1),
        lacks: Vec::new(),
        notes: place.notes.clone(),
        // Its runtime is known once there is a container.
        identity: None,
    }
}

/// The root of a version 2 hierarchy has no limits; groups below it do.
fn below_has(cgroups: &Path, file: &str) -> bool {
    let entries = std::fs::read_dir(cgroups).into_iter().flatten().flatten();
    entries
        .take(64)
        .any(|entry| entry.path().join(file).exists())
}
