//! The OCI configuration that libcontainer was given.

use crate::settings::{Bind, Settings, Tmpfs, Ulimit, are_system_paths_masked, covered_texts};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use serde_json::Value;

/// Who the container's user is, if it becomes that in a user namespace of its own
/// right before the exec: libcontainer must be root to the last.
pub const BECOMES: &str = "dev.tki.attest.user";

/// A bind that stands for a device node.
fn is_device(mount: &Value) -> bool {
    mount["type"] == "bind" && mount["source"] == "/dev/null"
}

/// What gives a container more than it has by itself and has no setting of its own,
/// in the form of security options: a mount namespace that is not its own, groups of
/// others, and rules that allow devices of every number.
pub(super) fn beyond(config: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    let is_own = |entry: &Value| {
        entry["type"] == "mount" && entry["path"].as_str().unwrap_or_default().is_empty()
    };
    if !list(&config["linux"]["namespaces"]).iter().any(is_own) {
        found.push("mount-namespace=host".to_owned());
    }
    let user = &config["process"]["user"];
    let groups = list(&user["additionalGids"]).into_iter();
    let others = groups.filter(|group| *group != user["gid"]);
    found.extend(others.map(|group| format!("group-add={group}")));
    let rules = list(&config["linux"]["resources"]["devices"]);
    let is_open = |rule: &Value| rule["allow"] == true && rule["major"].as_i64().is_none();
    if rules.iter().any(is_open) {
        found.push("device-cgroup-rule=a".to_owned());
    }
    found
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
    // A process that becomes another user holds nothing any more.
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
        .map(|mount| {
            let read_only = options(mount).iter().any(|option| option == "ro");
            let (source, target) = (text(&mount["source"]), text(&mount["destination"]));
            Bind::of_host(&source, &target, read_only)
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
    let paths = |value: &Value| list(value).iter().map(text).collect::<Vec<_>>();
    let (masked, frozen) = (paths(&linux["maskedPaths"]), paths(&linux["readonlyPaths"]));
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
            Some(user) => user.to_owned(),
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
        security_options: beyond(config),
        system_paths_masked: are_system_paths_masked(&masked, &frozen),
        covered_texts: covered_texts(&masked),
        lsm: text(&process["apparmorProfile"]),
        working_directory: text(&process["cwd"]),
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
