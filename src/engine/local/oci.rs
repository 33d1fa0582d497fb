//! Settings → the OCI runtime's configuration. The way back is `described::embedded`,
//! so that a setting which was lost on the way shows.

use super::limits::is_late;
use serde_json::{Value, json};
use tki_evidence::described::embedded::BECOMES;
use tki_evidence::settings::{Settings, frozen_paths, masked_paths};

/// How the container is made.
#[derive(Clone, Debug)]
pub struct Way {
    /// The control group that libcontainer is to use.
    pub group: String,
    /// The group whose counters the container may read.
    pub counters: Option<String>,
    /// It may write to that group as well.
    pub writable: bool,
    /// By real root. For others limits are set by the keeper, devices are binds,
    /// and there is no /sys, which some hosts let nobody else mount.
    pub root: bool,
    /// Control groups are of version 2.
    pub unified: bool,
    /// How many processors there are.
    pub cpus: i64,
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
    let namespaces: Vec<Value> = ["pid", "network", "ipc", "uts", "mount", "cgroup"]
        .iter()
        .map(|kind| json!({ "type": kind }))
        .collect();
    let mut linux = json!({
        "maskedPaths": masked_paths(settings, way.cpus),
        "readonlyPaths": frozen_paths(settings),
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
            "cwd": settings.working_directory,
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
        let access = if way.writable { "rw" } else { "ro" };
        // Where the container's own use of its limits can be read, by a bind:
        // the runtime's own mount of groups of version 1 would be writable.
        mounts.push(json!({
            "destination": "/sys/fs/cgroup",
            "type": "bind",
            "source": counters,
            "options": ["bind", "private", access, "nosuid", "nodev", "noexec"],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profile::{Limits, Profile};
    use crate::sandbox::seccomp::Seccomp;
    use tki_evidence::described::embedded::configured;
    use tki_evidence::settings::Bind;

    #[test]
    fn settings_survive_the_way_there_and_back() {
        let profile = Profile {
            seccomp: Seccomp::resolve("deny-by-default").unwrap(),
            limits: Limits::default(),
        };
        let binds = vec![
            Bind::of_host("/run/x/in", "/in", true),
            Bind::of_host("/run/x/out", "/out", false),
        ];
        let mut settings = crate::sandbox::settings::settings(&profile, binds, true);
        let way = |root| Way {
            cpus: 2,
            unified: false,
            group: "/x".into(),
            counters: None,
            writable: false,
            root,
        };
        let arguments = ["/tki-prober".to_owned()];
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
        // A user who is not root sets limits beside the configuration.
        let there = config(&settings, &arguments, &way(false));
        (settings.memory_bytes, settings.memory_swap_bytes) = (0, 0);
        (settings.cpu_period_us, settings.cpu_quota_us) = (0, 0);
        assert_eq!(configured(&there, &settings.seccomp), settings);
    }
}
