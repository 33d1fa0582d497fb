//! What an engine without a daemon says about its host.

use super::support::Support;
use crate::engine::contract::EngineFacts;
use std::fs;
use tki_evidence::evidence::Runtime;
use tki_evidence::kernel::KernelKind;

/// This process lives in the first user namespace, the one of real root.
fn in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// This process is real root's.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root() && in_first_user_namespace()
}

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
            ("pids", support.pids.is_some()),
            ("memory", support.memory.is_some()),
            ("cpu", support.cpu.is_some()),
        ]
        .into_iter()
        .filter(|(_, can)| !can)
        .map(|(name, _)| name)
        .collect(),
        notes: Vec::new(),
        identity: None,
    }
}

/// How many processors this host has, whether or not this process may use them.
pub fn processors() -> i64 {
    let is_cpu = |name: &str| {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let entries = std::fs::read_dir("/sys/devices/system/cpu");
    let names = entries.into_iter().flatten().flatten();
    let found = names.filter(|entry| is_cpu(&entry.file_name().to_string_lossy()));
    i64::try_from(found.count()).unwrap_or(0)
}

/// The operating system's name for people.
pub fn operating_system() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .unwrap_or("unknown");
    name.trim_matches('"').to_owned()
}
