//! Settings → the API's own form. The way back is `described::docker`, so a setting
//! that the engine dropped or changed shows as a difference.

use crate::engine::contract::Launch;
use bollard::models::{
    ContainerCreateBody, DeviceMapping, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountType, MountVolumeOptions, MountVolumeOptionsDriverConfig,
    ResourcesUlimits,
};
use std::collections::HashMap;
use tki_evidence::command_line::REMOVED_VARIABLES;
use tki_evidence::settings::{Bind, BindKind, Ulimit, frozen_paths, masked_paths};

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
        entrypoint: launch.program.entry_point(),
        cmd: Some(launch.arguments.clone()),
        user: Some(settings.user.clone()),
        // A container in another one's network is called as that one is.
        hostname: (!settings.network.starts_with("container:")).then(|| settings.hostname.clone()),
        env: Some(env),
        labels: Some(launch.labels.iter().cloned().collect()),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        working_dir: Some(settings.working_directory.clone()),
        // The engine's network code is not even asked for an empty sandbox: no
        // hook of its own runs in the container, and it binds no file of its.
        network_disabled: Some(settings.network == "none"),
        host_config: Some(HostConfig {
            runtime: launch.runtime.clone(),
            ..host_config(launch)
        }),
        ..ContainerCreateBody::default()
    }
}

/// The same, with volumes that get nothing of what the image has there.
pub fn with_empty_volumes(mut body: ContainerCreateBody) -> ContainerCreateBody {
    let mounts = body
        .host_config
        .as_mut()
        .and_then(|host| host.mounts.as_mut());
    let options = mounts.into_iter().flatten();
    for options in options.filter_map(|mount| mount.volume_options.as_mut()) {
        options.no_copy = Some(true);
    }
    body
}

fn host_config(launch: &Launch) -> HostConfig {
    let settings = &launch.settings;
    let mut security = match settings.seccomp.as_str() {
        "default" => Vec::new(),
        "unconfined" => vec!["seccomp=unconfined".into()],
        _ => vec![format!("seccomp={}", launch.seccomp)],
    };
    if settings.no_new_privileges {
        security.push("no-new-privileges".into());
    }
    security.extend(settings.security_options.iter().cloned());
    let tmpfs: HashMap<String, String> = settings
        .tmpfs
        .iter()
        .map(|tmpfs| (tmpfs.target.clone(), tmpfs.options.clone()))
        .collect();
    HostConfig {
        network_mode: Some(settings.network.clone()),
        ipc_mode: Some(settings.ipc.clone()),
        // Its own is what Docker has no word for.
        pid_mode: Some(settings.pid.clone()).filter(|mode| mode != "private"),
        privileged: Some(settings.privileged),
        readonly_rootfs: Some(settings.read_only_rootfs),
        // Mounts, not binds: a bind makes a missing directory on the host.
        mounts: Some(
            settings
                .binds
                .iter()
                .map(|bind| mount(bind, launch))
                .collect(),
        ),
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
        // Absent would mean the engine's own lists, which are as old as it is.
        masked_paths: Some(masked_paths(settings, launch.cpus)),
        readonly_paths: Some(frozen_paths(settings)),
        ulimits: Some(settings.ulimits.iter().map(ulimit).collect()),
        auto_remove: Some(settings.auto_remove),
        log_config: Some(HostConfigLogConfig {
            typ: Some(settings.log_driver.clone()),
            config: None,
        }),
        ..HostConfig::default()
    }
}

fn mount(bind: &Bind, launch: &Launch) -> Mount {
    match bind.kind {
        BindKind::Bind => bind_mount(bind),
        BindKind::Volume => Mount {
            typ: Some(MountType::VOLUME),
            source: Some(bind.source.clone()).filter(|name| !name.is_empty()),
            target: Some(bind.target.clone()),
            read_only: Some(bind.read_only),
            // A new volume gets what the image has there, and these.
            volume_options: Some(MountVolumeOptions {
                labels: Some(launch.labels.iter().cloned().collect()),
                driver_config: Some(MountVolumeOptionsDriverConfig {
                    name: Some("local".into()),
                    options: Some(driver_options(&bind.options)),
                }),
                ..MountVolumeOptions::default()
            }),
            ..Mount::default()
        },
    }
}

/// The options of a volume's driver, apart. Those of the mount come last, and are one.
fn driver_options(options: &str) -> HashMap<String, String> {
    let (first, last) = match options.split_once(",o=") {
        Some((first, last)) => (first, Some(("o", last))),
        None => (options, None),
    };
    let first = first.split(',').filter_map(|word| word.split_once('='));
    let all = first.chain(last);
    all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
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
