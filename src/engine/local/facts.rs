//! What an engine without a daemon says about its host.

use crate::engine::contract::EngineFacts;
use crate::engine::support::Support;
use crate::host::system::{is_root, operating_system};
use tki_evidence::controller::Controller;
use tki_evidence::evidence::Runtime;
use tki_evidence::kernel::KernelKind;

/// Facts about this host.
pub fn facts(engine: &str, version: &str, oci_runtime: &str, support: &Support) -> EngineFacts {
    let names = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    EngineFacts {
        runtime: Runtime {
            engine: engine.into(),
            engine_version: version.into(),
            api_version: String::new(),
            oci_runtime: oci_runtime.into(),
            kernel_kind: KernelKind::Shared,
            kernel: word(names.release()),
            arch: word(names.machine()),
            os: word(names.sysname()).to_lowercase(),
            cgroup_version: match support.version {
                0 => "none".into(),
                version => version.to_string(),
            },
            rootless: !is_root(),
            security_options: Vec::new(),
        },
        operating_system: operating_system(),
        host_name: word(names.nodename()),
        reached: None,
        swap_limit: support.swap,
        cpus: std::thread::available_parallelism()
            .ok()
            .and_then(|count| i64::try_from(count.get()).ok())
            .unwrap_or(1),
        lacks: [
            (Controller::Pids, support.pids.is_some()),
            (Controller::Memory, support.memory.is_some()),
            (Controller::Cpu, support.cpu.is_some()),
        ]
        .into_iter()
        .filter(|(_, can)| !can)
        .map(|(controller, _)| controller)
        .collect(),
        notes: Vec::new(),
        identity: None,
    }
}
