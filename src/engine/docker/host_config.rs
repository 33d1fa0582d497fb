//! Settings ↔ the API's own form, in both directions. What is read back goes
//! through the second function, so a setting that the engine dropped or changed
//! shows as a difference.

use crate::engine::contract::Launch;
use crate::sandbox::command_line::REMOVED_VARIABLES;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, DeviceMapping, HostConfig, HostConfigLogConfig,
    Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};
use std::collections::HashMap;
use tki_evidence::settings::{Bind, Settings, Tmpfs, Ulimit};
use tki_evidence::stamp::sha256_hex;

/// The body of the create call.
pub fn create_body(launch: &Launch) -> ContainerCreateBody {
    let settings = &launch.settings;
    // A variable without `=` is removed from what the engine would set.
    let env = settings
        .env
        .iter()
        .cloned()
        .chain(REMOVED_VARIABLES.iter().map(|name| (*name).to_owned()))
        .collect();
    ContainerCreateBody {
        image: Some(launch.image.clone()),
        cmd: Some(launch.arguments.clone()),
        user: Some(settings.user.clone()),
        hostname: Some(settings.hostname.clone()),
        env: Some(env),
        labels: Some(launch.labels.iter().cloned().collect()),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        // The engine's network code is not even asked for an empty sandbox: no
        // hook of its own runs in the container, and it binds no file of its.
        network_disabled: Some(settings.network == "none"),
        host_config: Some(HostConfig {
            runtime: launch.runtime.clone(),
            ..host_config(settings, &launch.seccomp)
        }),
        ..ContainerCreateBody::default()
    }
}

fn host_config(settings: &Settings, seccomp: &str) -> HostConfig {
    let seccomp = match settings.seccomp.as_str() {
        "unconfined" => "unconfined",
        _ => seccomp,
    };
    let mut security = vec![format!("seccomp={seccomp}")];
    if settings.no_new_privileges {
        security.push("no-new-privileges".into());
    }
    let tmpfs: HashMap<String, String> = settings
        .tmpfs
        .iter()
        .map(|tmpfs| (tmpfs.target.clone(), tmpfs.options.clone()))
        .collect();
    HostConfig {
        network_mode: Some(settings.network.clone()),
        ipc_mode: Some(settings.ipc.clone()),
        privileged: Some(settings.privileged),
        readonly_rootfs: Some(settings.read_only_rootfs),
        // Mounts, not binds: a bind makes a missing directory on the host.
        mounts: Some(settings.binds.iter().map(bind_mount).collect()),
        tmpfs: Some(tmpfs),
        cap_add: Some(settings.cap_add.clone()),
        cap_drop: Some(settings.cap_drop.clone()),
        security_opt: Some(security),
        pids_limit: Some(settings.pids_limit),
        memory: Some(settings.memory_bytes),
        memory_swap: Some(settings.memory_swap_bytes).filter(|bytes| *bytes != 0),
        cpu_period: Some(settings.cpu_period_us),
        cpu_quota: Some(settings.cpu_quota_us),
        cgroupns_mode: settings.cgroupns.parse().ok(),
        devices: Some(
            settings
                .devices
                .iter()
                .map(|device| device_mapping(device))
                .collect(),
        ),
        // Absent means the engine's own lists; empty means none.
        masked_paths: (!settings.system_paths_masked).then(Vec::new),
        readonly_paths: (!settings.system_paths_masked).then(Vec::new),
        ulimits: Some(settings.ulimits.iter().map(ulimit).collect()),
        auto_remove: Some(settings.auto_remove),
        log_config: Some(HostConfigLogConfig {
            typ: Some(settings.log_driver.clone()),
            config: None,
        }),
        ..HostConfig::default()
    }
}

fn bind_mount(bind: &Bind) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(bind.source.clone()),
        target: Some(bind.target.clone()),
        read_only: Some(bind.read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

/// `HOST:CONTAINER`, readable only.
fn device_mapping(device: &str) -> DeviceMapping {
    let (host, inside) = device.split_once(':').unwrap_or((device, device));
    DeviceMapping {
        path_on_host: Some(host.into()),
        path_in_container: Some(inside.into()),
        cgroup_permissions: Some("r".into()),
    }
}

fn ulimit(limit: &Ulimit) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(limit.name.clone()),
        soft: Some(limit.soft),
        hard: Some(limit.hard),
    }
}

/// What the engine says it set, in the common form.
pub fn configured(found: &ContainerInspectResponse) -> Settings {
    let host = found.host_config.clone().unwrap_or_default();
    let config = found.config.clone().unwrap_or_default();
    let security = host.security_opt.unwrap_or_default();
    let seccomp = security
        .iter()
        .find_map(|option| option.strip_prefix("seccomp="));
    let mode = |mode: Option<String>, empty: &str| match mode {
        Some(mode) if !mode.is_empty() => mode,
        _ => empty.to_owned(),
    };
    let mut tmpfs: Vec<Tmpfs> = host
        .tmpfs
        .unwrap_or_default()
        .into_iter()
        .map(|(target, options)| Tmpfs { target, options })
        .collect();
    tmpfs.sort_by(|a, b| a.target.cmp(&b.target));
    let mut ulimits: Vec<Ulimit> = host
        .ulimits
        .unwrap_or_default()
        .into_iter()
        .map(|limit| Ulimit {
            name: limit.name.unwrap_or_default(),
            soft: limit.soft.unwrap_or_default(),
            hard: limit.hard.unwrap_or_default(),
        })
        .collect();
    ulimits.sort_by(|a, b| a.name.cmp(&b.name));
    Settings {
        network: mode(host.network_mode, "default"),
        ipc: mode(host.ipc_mode, "default"),
        pid: mode(host.pid_mode, "private"),
        uts: mode(host.uts_mode, "private"),
        userns: mode(host.userns_mode, "default"),
        cgroupns: mode(host.cgroupns_mode.map(|mode| mode.to_string()), "host"),
        hostname: config.hostname.unwrap_or_default(),
        privileged: host.privileged.unwrap_or(false),
        read_only_rootfs: host.readonly_rootfs.unwrap_or(false),
        user: config.user.unwrap_or_default(),
        env: variables(config.env.unwrap_or_default()),
        binds: binds(found),
        tmpfs,
        cap_add: host.cap_add.unwrap_or_default(),
        cap_drop: host.cap_drop.unwrap_or_default(),
        no_new_privileges: security.iter().any(|option| {
            ["no-new-privileges", "no-new-privileges:true"].contains(&option.as_str())
        }),
        seccomp: match seccomp {
            None => "default".into(),
            Some("unconfined") => "unconfined".into(),
            Some(profile) => sha256_hex(profile.as_bytes()),
        },
        system_paths_masked: !host.masked_paths.unwrap_or_default().is_empty()
            && !host.readonly_paths.unwrap_or_default().is_empty(),
        devices: host
            .devices
            .unwrap_or_default()
            .into_iter()
            .filter_map(|device| {
                Some(format!(
                    "{}:{}",
                    device.path_on_host?, device.path_in_container?
                ))
            })
            .collect(),
        pids_limit: host.pids_limit.unwrap_or(0),
        memory_bytes: host.memory.unwrap_or(0),
        // Where the kernel cannot limit swap the engine says -1.
        memory_swap_bytes: host.memory_swap.unwrap_or(0).max(0),
        cpu_period_us: host.cpu_period.unwrap_or(0),
        cpu_quota_us: host.cpu_quota.unwrap_or(0),
        ulimits,
        auto_remove: host.auto_remove.unwrap_or(false),
        log_driver: host.log_config.and_then(|log| log.typ).unwrap_or_default(),
    }
}

/// Names of variables that are set: an entry without `=` removes one.
fn variables(env: Vec<String>) -> Vec<String> {
    env.iter()
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Every bind, whether it came in as a mount or as an old-style bind. Volumes
/// count too: they are directories of the host.
fn binds(found: &ContainerInspectResponse) -> Vec<Bind> {
    let mut binds: Vec<Bind> = found
        .mounts
        .clone()
        .unwrap_or_default()
        .into_iter()
        .filter(|mount| mount.typ.as_deref() != Some("tmpfs"))
        .map(|mount| Bind {
            source: mount.source.unwrap_or_default(),
            target: mount.destination.unwrap_or_default(),
            read_only: !mount.rw.unwrap_or(true),
        })
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    binds
}
