//! Settings → the body of Podman's create call.

use crate::engine::contract::Launch;
use serde_json::{Map, Value, json};
use std::path::Path;
use tki_evidence::described::podman::in_pages;
use tki_evidence::relaxation::UNCONFINED;
use tki_evidence::settings::{Bind, BindKind, Settings, masked_paths};

/// Podman shows the profile's path in its description under this name.
const SECCOMP_PATH: &str = "io.podman.annotations.seccomp";

/// The body of the create call. `profile` is the file with the seccomp profile;
/// without one the container has none, or Podman's own.
pub fn spec(launch: &Launch, profile: Option<&Path>) -> Value {
    let settings = &launch.settings;
    let seccomp = match profile {
        Some(path) => path.display().to_string(),
        None if settings.seccomp == "default" => String::new(),
        None => "unconfined".to_owned(),
    };
    let labels: Map<String, Value> = launch
        .labels
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    // Labels are Podman's to know; annotations go on to the runtime.
    let mut annotations = labels.clone();
    if !seccomp.is_empty() {
        annotations.insert(SECCOMP_PATH.into(), json!(seccomp));
    }
    let env: Map<String, Value> = settings
        .env
        .iter()
        .map(|entry| entry.split_once('=').unwrap_or((entry, "")))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let limits: Vec<Value> = settings
        .ulimits
        .iter()
        .map(|limit| json!({"type": limit.name, "soft": limit.soft, "hard": limit.hard}))
        .collect();
    let devices: Vec<Value> = settings
        .devices
        .iter()
        .map(|device| json!({"path": format!("{device}:r")}))
        .collect();
    let mut spec = json!({
        "name": launch.name,
        "image": launch.image,
        "command": launch.arguments,
        "labels": labels,
        "annotations": annotations,
        "stdin": true,
        "terminal": false,
        "remove": settings.auto_remove,
        "systemd": "false",
        "image_volume_mode": "ignore",
        // Nothing of the image's or the host's environment, and no file that
        // Podman can be kept from adding.
        "env": env,
        "unsetenvall": true,
        "env_host": false,
        "httpproxy": false,
        "manage_password": false,
        "use_image_hosts": true,
        "use_image_resolve_conf": true,
        "read_write_tmpfs": false,
        "user": settings.user,
        "work_dir": settings.working_directory,
        "hostname": settings.hostname,
        "netns": namespace(&settings.network),
        "ipcns": namespace(&settings.ipc),
        "pidns": namespace(&settings.pid),
        "utsns": namespace(&settings.uts),
        "cgroupns": namespace(&settings.cgroupns),
        "privileged": settings.privileged,
        "read_only_filesystem": settings.read_only_rootfs,
        "no_new_privileges": settings.no_new_privileges,
        "cap_add": settings.cap_add,
        "cap_drop": settings.cap_drop,
        "seccomp_profile_path": seccomp,
        "mounts": mounts(settings),
        "volumes": volumes(settings),
        "devices": devices,
        "resource_limits": resources(settings),
        "r_limits": limits,
        "log_configuration": {"driver": settings.log_driver},
    });
    // Podman has lists of its own, to which these are added.
    match settings.system_paths_masked {
        true => spec["mask"] = json!(masked_paths(settings, launch.cpus)),
        false => spec["unmask"] = json!(["ALL"]),
    }
    if settings
        .security_options
        .iter()
        .any(|one| one == UNCONFINED)
    {
        spec["apparmor_profile"] = json!("unconfined");
    }
    if let Some(program) = launch.program.entry_point() {
        spec["entrypoint"] = json!(program);
    }
    if let Some(runtime) = &launch.runtime {
        spec["oci_runtime"] = json!(runtime);
    }
    spec
}

fn namespace(mode: &str) -> Value {
    match mode.split_once(':') {
        Some((mode, whose)) => json!({"nsmode": mode, "value": whose}),
        None => json!({"nsmode": mode}),
    }
}

/// Flags that Podman gives whatever is mounted, whatever it is made of.
fn flags(bind: &Bind) -> Vec<String> {
    let access = if bind.read_only { "ro" } else { "rw" };
    let flags = ["rprivate", "nosuid", "nodev", "noexec", access];
    flags.map(str::to_owned).into()
}

/// A volume without a name is made with the container, and goes with it.
fn volumes(settings: &Settings) -> Vec<Value> {
    let volumes = settings.binds.iter();
    let volumes = volumes.filter(|bind| bind.kind == BindKind::Volume);
    volumes
        .map(|bind| {
            let mut options = flags(bind);
            if !bind.options.is_empty() {
                let pages = in_pages(&bind.options);
                // Those of the mount are one, and come last.
                let (first, last) = pages.split_once(",o=").unwrap_or((&pages, ""));
                options.extend(first.split(',').map(|word| format!("volume-opt={word}")));
                options.push(format!("volume-opt=o={last}"));
            }
            json!({"Name": bind.source, "Dest": bind.target, "Options": options})
        })
        .collect()
}

/// Podman can give a bind its flags whatever the host's file system has.
fn mounts(settings: &Settings) -> Vec<Value> {
    let binds = settings.binds.iter();
    let binds = binds.filter(|bind| bind.kind == BindKind::Bind);
    let binds = binds.map(|bind| {
        let options = ["rbind".to_owned()].into_iter().chain(flags(bind));
        json!({
            "type": "bind",
            "source": bind.source,
            "destination": bind.target,
            "options": options.collect::<Vec<_>>(),
        })
    });
    let tmpfs = settings.tmpfs.iter().map(|tmpfs| {
        // Podman knows an option by what stands before its first `=`, and hands on the rest as
        // it is: so the number of files, which it has no name for, comes with the size.
        let mut options: Vec<String> = Vec::new();
        for option in tmpfs.options.split(',') {
            match (option.starts_with("nr_inodes="), options.last_mut()) {
                (true, Some(size)) => *size = format!("{size},{option}"),
                _ => options.push(option.to_owned()),
            }
        }
        // What the image has there is not copied into it.
        options.push("notmpcopyup".into());
        json!({
            "type": "tmpfs",
            "source": "tmpfs",
            "destination": tmpfs.target,
            "options": options,
        })
    });
    binds.chain(tmpfs).collect()
}

/// A limit of 0 is one that cannot be set here.
fn resources(settings: &Settings) -> Value {
    let mut resources = json!({});
    for (kind, name, value) in [
        ("pids", "limit", settings.pids_limit),
        ("memory", "limit", settings.memory_bytes),
        ("memory", "swap", settings.memory_swap_bytes),
        ("cpu", "quota", settings.cpu_quota_us),
        ("cpu", "period", settings.cpu_period_us),
    ] {
        if value != 0 {
            resources[kind][name] = json!(value);
        }
    }
    resources
}
