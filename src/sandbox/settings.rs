//! Profile → settings: what any engine is asked for.

use crate::sandbox::profile::{Profile, USER};
use std::path::Path;
use tki_evidence::settings::{Bind, Settings, Tmpfs, Ulimit};

/// The container's settings for a profile, with the host's two directories.
pub fn settings(profile: &Profile, input: &Path, output: &Path, swap_limit: bool) -> Settings {
    let limits = &profile.limits;
    let bind = |source: &Path, target: &str, read_only| Bind {
        source: source.to_string_lossy().into_owned(),
        target: target.into(),
        read_only,
    };
    let ulimit = |name: &str, value| Ulimit {
        name: name.into(),
        soft: value,
        hard: value,
    };
    Settings {
        network: "none".into(),
        ipc: "none".into(),
        pid: "private".into(),
        uts: "private".into(),
        userns: "default".into(),
        privileged: false,
        read_only_rootfs: true,
        user: USER.into(),
        env: Vec::new(),
        binds: vec![bind(input, "/in", true), bind(output, "/out", false)],
        tmpfs: vec![Tmpfs {
            target: "/tmp".into(),
            options: format!("rw,noexec,nosuid,nodev,size={},mode=1777", limits.tmp_bytes),
        }],
        cap_add: Vec::new(),
        cap_drop: vec!["ALL".into()],
        no_new_privileges: true,
        seccomp: profile.seccomp.sha256.clone(),
        devices: Vec::new(),
        pids_limit: limits.pids,
        memory_bytes: limits.memory_bytes,
        // Some kernels cannot limit swap; engines then drop the setting.
        memory_swap_bytes: if swap_limit { limits.memory_bytes } else { 0 },
        nano_cpus: limits.cpu_millis * 1_000_000,
        ulimits: vec![
            ulimit("core", 0),
            ulimit("nofile", limits.nofile),
            ulimit("nproc", limits.nproc),
        ],
        auto_remove: true,
        log_driver: "none".into(),
    }
}
