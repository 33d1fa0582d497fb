//! Settings ↔ the OCI runtime's configuration. What is read back goes through
//! the second function, so that a setting which was lost on the way shows.

use super::keeper::limits::is_late;
use serde_json::{Value, json};
use tki_evidence::settings::{Bind, Settings, Tmpfs, Ulimit};

/// Paths that engines mask by default.
pub const MASKED: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];
/// Paths that engines freeze by default.
pub const FROZEN: &[&str] = &[
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Who the container's user is, if it becomes that in a user namespace of its own
/// right before the exec: libcontainer must be root to the last.
pub const BECOMES: &str = "dev.tki.attest.user";

/// How the container is made.
#[derive(Clone, Debug)]
pub struct Way {
    /// The control group that libcontainer is to use.
    pub group: String,
    /// The group whose counters the container may read.
    pub counters: Option<String>,
    /// By real root. For others limits are set by the keeper, devices are binds,
    /// and there is no /sys, which some hosts let nobody else mount.
    pub root: bool,
    /// Control groups are of version 2.
    pub unified: bool,
}

/// The bundle's config.json.
pub fn config(settings: &Settings, arguments: &[String], way: &Way) -> Value {
    let user = if way.root { &settings.user } else { "0:0" };
    let (uid, gid) = ids(user);
    // The kernel lets nobody else make a user namespace that root is mapped into.
    let until_then: &[&str] = if way.root { &[] } else { &["CAP_SETFCAP"] };
    let capabilities: Vec<String> = settings
        .cap_add
        .iter()
        .map(|name| format!("CAP_{name}"))
        .collect();
    let paths = |list: &[&str]| -> Vec<String> {
        if settings.system_paths_masked {
            list.iter().map(|path| (*path).to_owned()).collect()
        } else {
            Vec::new()
        }
    };
    let namespaces: Vec<Value> = ["pid", "network", "ipc", "uts", "mount", "cgroup"]
        .iter()
        .map(|kind| json!({ "type": kind }))
        .collect();
    let mut linux = json!({
        "maskedPaths": paths(MASKED),
        "readonlyPaths": paths(FROZEN),
        "cgroupsPath": way.group,
        "rootfsPropagation": "private",
        "namespaces": namespaces,
    });
    let mut annotations = json!({});
    if way.root {
        linux["devices"] = json!(devices(settings));
        linux["resources"] = resources(settings, way.unified);
    } else {
        annotations[BECOMES] = json!(settings.user);
    }
    json!({
        "ociVersion": "1.0.2",
        "hostname": settings.hostname,
        "root": { "path": "rootfs", "readonly": settings.read_only_rootfs },
        "process": {
            "terminal": false,
            "user": { "uid": uid, "gid": gid },
            "args": arguments,
            "env": settings.env,
            "cwd": "/",
            "noNewPrivileges": settings.no_new_privileges,
            "capabilities": {
                "bounding": capabilities,
                "effective": until_then,
                "inheritable": [],
                "permitted": until_then,
                "ambient": [],
            },
            "rlimits": settings.ulimits.iter().filter(|limit| !is_late(limit, settings)).map(|limit| json!({
                "type": format!("RLIMIT_{}", limit.name.to_uppercase()),
                "soft": limit.soft,
                "hard": limit.hard,
            })).collect::<Vec<_>>(),
        },
        "mounts": mounts(settings, way),
        "linux": linux,
        "annotations": annotations,
    })
}

/// User and group of a setting.
pub fn ids(user: &str) -> (u32, u32) {
    let mut ids = user.split(':').map(|id| id.parse().unwrap_or(u32::MAX));
    let uid = ids.next().unwrap_or(u32::MAX);
    (uid, ids.next().unwrap_or(uid))
}

fn mounts(settings: &Settings, way: &Way) -> Vec<Value> {
    let pseudo = |target: &str, kind: &str, options: &[&str]| json!({ "destination": target, "type": kind, "source": kind, "options": options });
    let mut mounts = vec![
        pseudo("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        pseudo(
            "/dev",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        pseudo(
            "/dev/pts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
            ],
        ),
        pseudo("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
    ];
    if way.root {
        mounts.push(pseudo(
            "/sys",
            "sysfs",
            &["nosuid", "noexec", "nodev", "ro"],
        ));
    }
    if let Some(counters) = &way.counters {
        // Where the container's own use of its limits can be read, by a bind:
        // the runtime's own mount of groups of version 1 would be writable.
        mounts.push(json!({
            "destination": "/sys/fs/cgroup",
            "type": "bind",
            "source": counters,
            "options": ["bind", "private", "ro", "nosuid", "nodev", "noexec"],
        }));
    }
    // First, because a file of the host may lie below.
    for tmpfs in &settings.tmpfs {
        let options: Vec<&str> = tmpfs.options.split(',').collect();
        mounts.push(json!({
            "destination": tmpfs.target,
            "type": "tmpfs",
            "source": "tmpfs",
            "options": options,
        }));
    }
    for bind in &settings.binds {
        let access = if bind.read_only { "ro" } else { "rw" };
        mounts.push(json!({
            "destination": bind.target,
            "type": "bind",
            "source": bind.source,
            "options": ["rbind", "rprivate", access],
        }));
    }
    if !way.root {
        for device in devices(settings) {
            mounts.push(json!({
                "destination": device["path"],
                "type": "bind",
                "source": "/dev/null",
                "options": ["bind", "private", "nosuid", "noexec"],
            }));
        }
    }
    mounts
}

/// `HOST:CONTAINER`: only the null device is ever passed in, under another name.
fn devices(settings: &Settings) -> Vec<Value> {
    settings
        .devices
        .iter()
        .filter_map(|device| device.split_once(':'))
        .filter(|(host, _)| *host == "/dev/null")
        .map(|(_, inside)| {
            json!({ "path": inside, "type": "c", "major": 1, "minor": 3, "fileMode": 0o666 })
        })
        .collect()
}

fn resources(settings: &Settings, unified: bool) -> Value {
    let mut resources = json!({
        "devices": [{ "allow": false, "access": "rwm" }],
    });
    if settings.pids_limit > 0 {
        resources["pids"] = json!({ "limit": settings.pids_limit });
    }
    if settings.memory_bytes > 0 {
        resources["memory"] = json!({ "limit": settings.memory_bytes });
        if settings.memory_swap_bytes > 0 {
            resources["memory"]["swap"] = json!(settings.memory_swap_bytes);
            if unified {
                // For libcontainer no swap at all is no limit of swap.
                let swap = settings.memory_swap_bytes - settings.memory_bytes;
                resources["unified"] = json!({ "memory.swap.max": swap.to_string() });
            }
        }
    }
    if settings.cpu_quota_us > 0 {
        resources["cpu"] = json!({
            "quota": settings.cpu_quota_us,
            "period": settings.cpu_period_us,
        });
    }
    resources
}

/// A bind that stands for a device node.
fn is_device(mount: &Value) -> bool {
    mount["type"] == "bind" && mount["source"] == "/dev/null"
}

/// What a configuration says, in the common form. `seccomp` is the digest of
/// the profile that was compiled and loaded, or `unconfined`.
pub fn configured(config: &Value, seccomp: &str) -> Settings {
    let process = &config["process"];
    let linux = &config["linux"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let fresh = |kind: &str| {
        let found = list(&linux["namespaces"]);
        found
            .iter()
            .any(|entry| entry["type"] == kind && entry["path"].is_null())
    };
    let own = |kind: &str| if fresh(kind) { "private" } else { "host" }.to_owned();
    let mount_list = list(&config["mounts"]);
    let options =
        |mount: &Value| -> Vec<String> { list(&mount["options"]).iter().map(text).collect() };
    let has_shm = mount_list
        .iter()
        .any(|mount| mount["destination"] == "/dev/shm");
    let becomes = config["annotations"][BECOMES].as_str();
    // Whoever becomes somebody else holds nothing any more.
    let held: &[&str] = match becomes {
        Some(_) => &[],
        None => &["effective", "permitted"],
    };
    let capabilities: Vec<String> = ["bounding", "inheritable", "ambient"]
        .iter()
        .chain(held)
        .flat_map(|set| list(&process["capabilities"][*set]))
        .map(|name| text(&name).trim_start_matches("CAP_").to_owned())
        .collect();
    let mut binds: Vec<Bind> = mount_list
        .iter()
        .filter(|mount| mount["type"] == "bind" && mount["destination"] != "/sys/fs/cgroup")
        .filter(|mount| !is_device(mount))
        .map(|mount| Bind {
            source: text(&mount["source"]),
            target: text(&mount["destination"]),
            read_only: options(mount).iter().any(|option| option == "ro"),
        })
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    let mut ulimits: Vec<Ulimit> = list(&process["rlimits"])
        .iter()
        .map(|limit| Ulimit {
            name: text(&limit["type"])
                .trim_start_matches("RLIMIT_")
                .to_lowercase(),
            soft: number(&limit["soft"]),
            hard: number(&limit["hard"]),
        })
        .collect();
    ulimits.sort_by(|a, b| a.name.cmp(&b.name));
    let resources = &linux["resources"];
    Settings {
        network: if fresh("network") { "none" } else { "host" }.into(),
        ipc: match (fresh("ipc"), has_shm) {
            (true, false) => "none".into(),
            (true, true) => "private".into(),
            (false, _) => "host".into(),
        },
        pid: own("pid"),
        uts: own("uts"),
        userns: "default".into(),
        cgroupns: own("cgroup"),
        hostname: text(&config["hostname"]),
        privileged: false,
        read_only_rootfs: config["root"]["readonly"] == true,
        user: match becomes {
            Some(somebody) => somebody.to_owned(),
            None => format!(
                "{}:{}",
                number(&process["user"]["uid"]),
                number(&process["user"]["gid"])
            ),
        },
        env: list(&process["env"])
            .iter()
            .filter_map(|entry| Some(entry.as_str()?.split_once('=')?.0.to_owned()))
            .collect(),
        binds,
        tmpfs: mount_list
            .iter()
            .filter(|mount| mount["type"] == "tmpfs" && mount["destination"] != "/dev")
            .map(|mount| Tmpfs {
                target: text(&mount["destination"]),
                options: options(mount).join(","),
            })
            .collect(),
        cap_add: capabilities,
        // Sets that are not named are left as they are.
        cap_drop: if process["capabilities"].is_object() {
            vec!["ALL".into()]
        } else {
            Vec::new()
        },
        no_new_privileges: process["noNewPrivileges"] == true,
        seccomp: seccomp.into(),
        system_paths_masked: !list(&linux["maskedPaths"]).is_empty()
            && !list(&linux["readonlyPaths"]).is_empty(),
        devices: list(&linux["devices"])
            .iter()
            .map(|device| &device["path"])
            .chain(
                mount_list
                    .iter()
                    .filter(|mount| is_device(mount))
                    .map(|mount| &mount["destination"]),
            )
            .map(|path| format!("/dev/null:{}", text(path)))
            .collect(),
        pids_limit: number(&resources["pids"]["limit"]),
        memory_bytes: number(&resources["memory"]["limit"]),
        memory_swap_bytes: number(&resources["memory"]["swap"]),
        cpu_period_us: number(&resources["cpu"]["period"]),
        cpu_quota_us: number(&resources["cpu"]["quota"]),
        ulimits,
        // The keeper holds both promises: it removes what it made, and keeps
        // no output.
        auto_remove: true,
        log_driver: "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profile::{Limits, Profile};
    use crate::sandbox::seccomp::Seccomp;
    use std::path::Path;

    #[test]
    fn settings_survive_the_way_there_and_back() {
        let profile = Profile {
            seccomp: Seccomp::resolve("deny-by-default").unwrap(),
            limits: Limits::default(),
        };
        let mut settings = crate::sandbox::settings::settings(
            &profile,
            Path::new("/run/x/in"),
            Path::new("/run/x/out"),
            true,
        );
        let way = |root| Way {
            unified: false,
            group: "/x".into(),
            counters: None,
            root,
        };
        let arguments = ["/tki-inspector".to_owned()];
        let there = config(&settings, &arguments, &way(true));
        assert_eq!(configured(&there, &settings.seccomp), settings);
        settings.read_only_rootfs = false;
        settings.cap_add = vec!["NET_BIND_SERVICE".into()];
        settings.system_paths_masked = false;
        settings.devices = vec!["/dev/null:/dev/tki-extra".into()];
        settings.no_new_privileges = false;
        settings.pids_limit = 0;
        let there = config(&settings, &arguments, &way(true));
        // Set right before the exec, and read back from the kernel.
        let late = settings.ulimits.pop_if(|limit| limit.name == "nproc");
        assert!(late.is_some());
        assert_eq!(configured(&there, &settings.seccomp), settings);
        // Whoever is not root sets limits beside the configuration.
        let there = config(&settings, &arguments, &way(false));
        (settings.memory_bytes, settings.memory_swap_bytes) = (0, 0);
        (settings.cpu_period_us, settings.cpu_quota_us) = (0, 0);
        assert_eq!(configured(&there, &settings.seccomp), settings);
    }
}
