//! Docker's description of a container, as its API gives it.

mod form;

use super::names::is_id;
use super::options::{Named, Options};
use super::{Described, DescribedError, unique};
use crate::settings::{
    Bind, BindKind, Settings, Tmpfs, Ulimit, are_system_paths_masked, covered_texts,
};
use crate::stamp::sha256_hex;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use form::{Container, Driver, HostConfig, Mount, MountPoint};

/// Reads what was written down of a description.
pub fn read(bytes: &[u8]) -> Result<Described, DescribedError> {
    Ok(described(&unique::read(bytes)?))
}

/// What a description says.
fn described(found: &Container) -> Described {
    let name = found.name.clone().unwrap_or_default();
    let config = found.config.as_ref();
    let labels = config.and_then(|config| config.labels.clone());
    let path = found.path.clone().unwrap_or_default();
    let arguments = found.args.clone().unwrap_or_default();
    let host = found.host_config.as_ref();
    let state = found.state.as_ref();
    Described {
        settings: settings(found),
        // Docker begins each name with what once was the name of a link's owner.
        name: name.strip_prefix('/').unwrap_or(&name).to_owned(),
        labels: labels.unwrap_or_default(),
        image_id: found.image.clone().unwrap_or_default(),
        program: [vec![path], arguments].concat(),
        oci_runtime: host
            .and_then(|host| host.runtime.clone())
            .filter(|name| !name.is_empty()),
        pid: state
            .and_then(|state| state.pid)
            .and_then(|pid| i32::try_from(pid).ok())
            .filter(|pid| *pid > 1),
    }
}

/// Mounts that were asked for and are not those that are there, and mounts that the
/// host sees changes of, or is seen through.
fn other_mounts(found: &Container) -> Vec<String> {
    let there = binds(found);
    let host = found.host_config.as_ref();
    let asked = host
        .and_then(|host| host.mounts.clone())
        .unwrap_or_default();
    let asked = asked.into_iter().map(|mount| asked_for(&mount));
    let absent = asked.filter(|bind| !there.contains(bind));
    let absent = absent.map(|bind| format!("mount={}", bind.target));
    let mounts = found.mounts.iter().flatten();
    let shared = mounts.filter_map(|mount| {
        let mode = mount.propagation.as_deref().unwrap_or_default();
        let is_private = matches!(mode, "" | "private" | "rprivate");
        (!is_private).then(|| format!("propagation={mode}"))
    });
    absent.chain(shared).collect()
}

/// What gives a container more than it has by itself and has no setting of its own,
/// in the form of security options: nobody asks for any of it.
fn beyond(host: &HostConfig) -> Vec<String> {
    let lists = [
        ("group-add", &host.group_add),
        ("device-cgroup-rule", &host.device_cgroup_rules),
        ("volumes-from", &host.volumes_from),
    ];
    let named = |(name, list): (&str, &Option<Vec<String>>)| {
        let items = list.clone().unwrap_or_default();
        items
            .into_iter()
            .map(move |item| format!("{name}={item}"))
            .collect::<Vec<_>>()
    };
    let mut found: Vec<String> = lists.into_iter().flat_map(named).collect();
    let requests = host.device_requests.as_ref();
    if requests.is_some_and(|requests| !requests.is_empty()) {
        found.push("device-request".into());
    }
    let sysctls = host.sysctls.iter().flatten();
    found.extend(sysctls.map(|(name, value)| format!("sysctl={name}={value}")));
    let ports = host
        .port_bindings
        .as_ref()
        .is_some_and(|ports| !ports.is_empty());
    if ports || host.publish_all_ports == Some(true) {
        found.push("publish".into());
    }
    if host.oom_kill_disable == Some(true) {
        found.push("oom-kill-disable".into());
    }
    found.sort();
    found
}

/// What the engine says it set, in the common form.
fn settings(found: &Container) -> Settings {
    let host = found.host_config.clone().unwrap_or_default();
    let config = found.config.clone().unwrap_or_default();
    let mut security = Options::of(host.security_opt.as_deref().unwrap_or_default());
    security.others.extend(beyond(&host));
    security.others.extend(other_mounts(found));
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
        cgroupns: mode(host.cgroupns_mode, "host"),
        hostname: config.hostname.unwrap_or_default(),
        privileged: host.privileged.unwrap_or(false),
        read_only_rootfs: host.readonly_rootfs.unwrap_or(false),
        user: config.user.unwrap_or_default(),
        env: variables(config.env.unwrap_or_default()),
        binds: binds(found),
        tmpfs,
        cap_add: host.cap_add.unwrap_or_default(),
        cap_drop: host.cap_drop.unwrap_or_default(),
        no_new_privileges: security.no_new_privileges,
        seccomp: match security.seccomp {
            Named::None => "default".into(),
            Named::One("unconfined") => "unconfined".into(),
            Named::One(profile) => sha256_hex(profile.as_bytes()),
            Named::Several => "several".into(),
        },
        security_options: security.others,
        system_paths_masked: are_system_paths_masked(
            host.masked_paths.as_deref().unwrap_or_default(),
            host.readonly_paths.as_deref().unwrap_or_default(),
        ),
        covered_texts: covered_texts(host.masked_paths.as_deref().unwrap_or_default()),
        lsm: label(found),
        working_directory: mode(config.working_dir, "/"),
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

/// The label of a security module. The engine names one of AppArmor's or one of SELinux's.
fn label(found: &Container) -> String {
    let labels = [&found.app_armor_profile, &found.process_label];
    let mut labels = labels
        .into_iter()
        .flatten()
        .filter(|label| !label.is_empty());
    labels.next().cloned().unwrap_or_default()
}

/// Names of variables that are set: an entry without `=` removes one.
fn variables(env: Vec<String>) -> Vec<String> {
    env.iter()
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Every bind and every volume, whether it came in as a mount or in the old style.
fn binds(found: &Container) -> Vec<Bind> {
    let host = found.host_config.as_ref();
    let asked = host.and_then(|host| host.mounts.as_deref());
    let asked: Vec<Bind> = asked.unwrap_or_default().iter().map(asked_for).collect();
    let mounts = found.mounts.iter().flatten();
    let mut binds: Vec<Bind> = mounts
        .filter(|mount| mount.typ.as_deref() != Some("tmpfs"))
        .map(|mount| mounted(mount, &asked))
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    binds
}

/// What is mounted somewhere. Docker tells what a volume is made of only as it was asked
/// for, and gives one without a name a random one.
fn mounted(mount: &MountPoint, asked: &[Bind]) -> Bind {
    let target = mount.destination.clone().unwrap_or_default();
    let read_only = !mount.rw.unwrap_or(true);
    if mount.typ.as_deref() != Some("volume") {
        let source = mount.source.clone().unwrap_or_default();
        return Bind::of_host(&source, &target, read_only);
    }
    let name = mount.name.clone().unwrap_or_default();
    let mut asked = asked.iter().filter(|bind| bind.target == target);
    match asked.next().filter(|bind| bind.kind == BindKind::Volume) {
        Some(bind) if bind.source == name || (bind.source.is_empty() && is_id(&name)) => Bind {
            read_only,
            ..bind.clone()
        },
        _ => Bind::of_engine(&name, &target, read_only),
    }
}

/// What was asked for.
fn asked_for(mount: &Mount) -> Bind {
    let source = mount.source.clone().unwrap_or_default();
    let target = mount.target.clone().unwrap_or_default();
    let read_only = mount.read_only.unwrap_or(false);
    if mount.typ.as_deref() != Some("volume") {
        return Bind::of_host(&source, &target, read_only);
    }
    let options = mount.volume_options.as_ref();
    let driver = options.and_then(|options| options.driver_config.as_ref());
    Bind {
        options: driver.map(options_of).unwrap_or_default(),
        ..Bind::of_engine(&source, &target, read_only)
    }
}

/// The options of a volume's driver, those of the mount last. Those of another driver than
/// the usual one begin with its name.
fn options_of(driver: &Driver) -> String {
    let name = driver.name.as_deref().filter(|name| *name != "local");
    let given = driver.options.iter().flatten();
    let (last, mut first): (Vec<_>, Vec<_>) = given.partition(|(name, _)| *name == "o");
    // In the order in which they are asked for: type, device.
    first.reverse();
    let words = first.into_iter().chain(last);
    let words = words.map(|(name, value)| format!("{name}={value}"));
    name.map(|name| format!("driver={name}"))
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use serde_json::{Value, json};

    fn read_options(options: Value) -> Settings {
        let found = json!({"HostConfig": {"SecurityOpt": options}});
        read(found.to_string().as_bytes()).unwrap().settings
    }

    #[test]
    fn one_profile_counts_and_two_do_not() {
        let sound = read_options(json!(["seccomp={}", "no-new-privileges"]));
        assert_eq!(sound.seccomp, sha256_hex(b"{}"));
        assert!(sound.no_new_privileges && sound.security_options.is_empty());
        for second in ["seccomp=unconfined", "seccomp:unconfined", "seccomp={}"] {
            for options in [json!(["seccomp={}", second]), json!([second, "seccomp={}"])] {
                let found = read_options(options);
                assert_eq!(found.seccomp, "several", "{second}");
                assert!(!found.security_options.is_empty(), "{second}");
            }
        }
    }

    #[test]
    fn what_nobody_asked_for_shows() {
        for (name, value) in [
            ("GroupAdd", json!(["docker"])),
            ("DeviceCgroupRules", json!(["a *:* rwm"])),
            ("VolumesFrom", json!(["other"])),
            ("DeviceRequests", json!([{"Driver": "nvidia"}])),
            ("Sysctls", json!({"kernel.msgmax": "1"})),
            ("PublishAllPorts", json!(true)),
            ("OomKillDisable", json!(true)),
            (
                "Mounts",
                json!([{"Target": "/x", "Source": "/", "Type": "bind"}]),
            ),
            ("SecurityOpt", json!(["label=disable"])),
        ] {
            let found = json!({"HostConfig": {name: value}});
            let found = read(found.to_string().as_bytes()).unwrap().settings;
            assert_eq!(found.security_options.len(), 1, "{name}");
        }
    }
}
