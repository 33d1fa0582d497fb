//! Settings ↔ the OCI runtime's configuration. What is read back goes through
//! the second function, so that a setting which was lost on the way shows.

use super::cgroup;
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

/// The bundle's config.json. `group` names the control groups.
pub fn config(settings: &Settings, arguments: &[String], group: &str) -> Value {
    let (uid, gid) = ids(&settings.user);
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
        "devices": devices(settings),
        "cgroupsPath": format!("/{group}"),
        "resources": resources(settings),
        "rootfsPropagation": "private",
    });
    linux["namespaces"] = json!(namespaces);
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
                "effective": [],
                "inheritable": [],
                "permitted": [],
                "ambient": [],
            },
            "rlimits": settings.ulimits.iter().map(|limit| json!({
                "type": format!("RLIMIT_{}", limit.name.to_uppercase()),
                "soft": limit.soft,
                "hard": limit.hard,
            })).collect::<Vec<_>>(),
        },
        "mounts": mounts(settings, group),
        "linux": linux,
    })
}

fn ids(user: &str) -> (u32, u32) {
    let mut ids = user.split(':').map(|id| id.parse().unwrap_or(u32::MAX));
    let uid = ids.next().unwrap_or(u32::MAX);
    (uid, ids.next().unwrap_or(uid))
}

fn mounts(settings: &Settings, group: &str) -> Vec<Value> {
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
        pseudo("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
    ];
    if settings.cpu_quota_us > 0 {
        // Where the container's own use of its limits can be read, by a bind:
        // the runtime's own mount of groups of version 1 would be writable.
        mounts.push(json!({
            "destination": "/sys/fs/cgroup",
            "type": "bind",
            "source": cgroup::counters(group),
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

fn resources(settings: &Settings) -> Value {
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
    let capabilities: Vec<String> = [
        "bounding",
        "effective",
        "permitted",
        "inheritable",
        "ambient",
    ]
    .iter()
    .flat_map(|set| list(&process["capabilities"][*set]))
    .map(|name| text(&name).trim_start_matches("CAP_").to_owned())
    .collect();
    let mut binds: Vec<Bind> = mount_list
        .iter()
        .filter(|mount| mount["type"] == "bind" && mount["destination"] != "/sys/fs/cgroup")
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
        user: format!(
            "{}:{}",
            number(&process["user"]["uid"]),
            number(&process["user"]["gid"])
        ),
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
            .map(|device| format!("/dev/null:{}", text(&device["path"])))
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
        let there = config(&settings, &["/tki-inspector".into()], "x");
        assert_eq!(configured(&there, &settings.seccomp), settings);
        settings.read_only_rootfs = false;
        settings.cap_add = vec!["NET_BIND_SERVICE".into()];
        settings.system_paths_masked = false;
        settings.devices = vec!["/dev/null:/dev/tki-extra".into()];
        settings.no_new_privileges = false;
        settings.pids_limit = 0;
        let there = config(&settings, &["/tki-inspector".into()], "x");
        assert_eq!(configured(&there, &settings.seccomp), settings);
    }
}
