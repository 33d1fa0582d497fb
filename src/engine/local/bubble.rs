//! Settings ↔ bubblewrap's arguments. What is read back goes through the second
//! function, so that a setting which was lost on the way shows.

use super::oci::MASKED;
use std::path::Path;
use tki_evidence::settings::{Bind, Settings, Tmpfs};

/// Descriptors that bubblewrap is given.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// The compiled seccomp program, if there is one.
    pub seccomp: Option<i32>,
    /// Where it writes the container's process id.
    pub info: i32,
    /// What it waits for before the exec.
    pub block: i32,
}

/// The arguments, without the program's own name. `rootfs` is the unpacked
/// image, and each memory file system of the settings has been mounted at the
/// place that `tmpfs` gives for it: bubblewrap's own would be executable. `frozen`
/// are paths of /proc with the mounts that stand for them, `groups` the control group
/// whose counters the container may read.
pub fn arguments(
    settings: &Settings,
    program: &[String],
    rootfs: &Path,
    tmpfs: &[(String, String)],
    frozen: &[(String, String)],
    groups: Option<&(String, String)>,
    descriptors: Descriptors,
) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut add = |words: &[&str]| list.extend(words.iter().map(|word| (*word).to_owned()));
    let (uid, gid) = settings
        .user
        .split_once(':')
        .unwrap_or((&settings.user, "0"));
    add(&[
        "--unshare-all",
        "--unshare-user",
        "--as-pid-1",
        "--die-with-parent",
    ]);
    add(&["--new-session", "--clearenv", "--uid", uid, "--gid", gid]);
    add(&["--hostname", &settings.hostname, "--cap-drop", "ALL"]);
    for name in &settings.cap_add {
        add(&["--cap-add", &format!("CAP_{name}")]);
    }
    for entry in &settings.env {
        if let Some((name, value)) = entry.split_once('=') {
            add(&["--setenv", name, value]);
        }
    }
    let root = if settings.read_only_rootfs {
        "--ro-bind"
    } else {
        "--bind"
    };
    add(&[root, &rootfs.to_string_lossy(), "/"]);
    add(&["--proc", "/proc", "--dev", "/dev"]);
    if settings.system_paths_masked {
        for path in MASKED.iter().filter(|path| path.starts_with("/proc/")) {
            // What this kernel does not have needs no mask.
            let found = std::fs::metadata(path);
            if found.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
                add(&["--tmpfs", path, "--remount-ro", path]);
            } else if found.is_ok() {
                add(&["--ro-bind", "/dev/null", path]);
            }
        }
        for (source, path) in frozen {
            add(&["--ro-bind", source, path]);
        }
    }
    if let Some((source, target)) = groups {
        add(&["--ro-bind", source, target]);
    }
    // First, because a file of the host may lie below.
    for (source, target) in tmpfs {
        add(&["--bind", source, target]);
    }
    for bind in &settings.binds {
        let kind = if bind.read_only {
            "--ro-bind"
        } else {
            "--bind"
        };
        add(&[kind, &bind.source, &bind.target]);
    }
    for device in &settings.devices {
        if let Some((host, inside)) = device.split_once(':') {
            add(&["--dev-bind", host, inside]);
        }
    }
    // Last, so that nothing needs to be made in it any more.
    add(&["--remount-ro", "/dev"]);
    add(&["--info-fd", &descriptors.info.to_string()]);
    add(&["--block-fd", &descriptors.block.to_string()]);
    if let Some(fd) = descriptors.seccomp {
        add(&["--seccomp", &fd.to_string()]);
    }
    add(&["--"]);
    list.extend_from_slice(program);
    list
}

/// What arguments say, in the common form. What bubblewrap is not told is given:
/// options of memory file systems that the keeper set itself. Limits are left out.
pub fn configured(arguments: &[String], rest: &SetByKeeper) -> Settings {
    let words: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .take_while(|word| *word != "--")
        .collect();
    let has = |option: &str| words.contains(&option);
    let after = |option: &str, count: usize| -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for (place, word) in words.iter().enumerate() {
            if *word == option {
                let values = words.iter().skip(place + 1).take(count);
                found.push(values.map(|value| (*value).to_owned()).collect());
            }
        }
        found
    };
    let one = |option: &str| {
        let mut found = after(option, 1);
        found.pop().and_then(|mut values| values.pop())
    };
    let own = |option: &str| {
        if has("--unshare-all") || has(option) {
            "private"
        } else {
            "host"
        }
        .to_owned()
    };
    let memory: Vec<&str> = rest.tmpfs.iter().map(|t| t.target.as_str()).collect();
    let system =
        |target: &str| target == "/" || target.starts_with("/proc/") || target.starts_with("/sys/");
    let mut binds = Vec::new();
    for (option, read_only) in [("--ro-bind", true), ("--bind", false)] {
        for pair in after(option, 2) {
            if let [source, target] = pair.as_slice()
                && !system(target)
                && !memory.contains(&target.as_str())
            {
                binds.push(Bind {
                    source: source.clone(),
                    target: target.clone(),
                    read_only,
                });
            }
        }
    }
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    let masked = after("--ro-bind", 2)
        .iter()
        .any(|pair| pair.first().is_some_and(|source| source == "/dev/null"));
    Settings {
        network: if has("--unshare-all") && !has("--share-net") {
            "none"
        } else {
            "host"
        }
        .into(),
        // There is no /dev/shm: bubblewrap's /dev is read-only and without one.
        ipc: if has("--unshare-all") { "none" } else { "host" }.into(),
        pid: own("--unshare-pid"),
        uts: own("--unshare-uts"),
        userns: "default".into(),
        cgroupns: own("--unshare-cgroup"),
        hostname: one("--hostname").unwrap_or_default(),
        privileged: false,
        read_only_rootfs: after("--ro-bind", 2)
            .iter()
            .any(|pair| pair.get(1).is_some_and(|target| target == "/")),
        user: format!(
            "{}:{}",
            one("--uid").unwrap_or_default(),
            one("--gid").unwrap_or_default()
        ),
        env: after("--setenv", 1).concat(),
        binds,
        tmpfs: rest.tmpfs.clone(),
        cap_add: after("--cap-add", 1)
            .concat()
            .iter()
            .map(|name| name.trim_start_matches("CAP_").to_owned())
            .collect(),
        cap_drop: after("--cap-drop", 1).concat(),
        // bubblewrap sets it always; the kernel is asked once it runs.
        no_new_privileges: true,
        seccomp: if has("--seccomp") {
            rest.seccomp.clone()
        } else {
            "unconfined".into()
        },
        system_paths_masked: masked,
        devices: after("--dev-bind", 2)
            .iter()
            .map(|pair| pair.join(":"))
            .collect(),
        // What follows is not bubblewrap's to set.
        pids_limit: 0,
        memory_bytes: 0,
        memory_swap_bytes: 0,
        cpu_period_us: 0,
        cpu_quota_us: 0,
        ulimits: Vec::new(),
        auto_remove: has("--die-with-parent"),
        log_driver: "none".into(),
    }
}

/// What the keeper sets itself, beside bubblewrap.
#[derive(Clone, Debug)]
pub struct SetByKeeper {
    /// Memory file systems.
    pub tmpfs: Vec<Tmpfs>,
    /// The digest of the compiled profile.
    pub seccomp: String,
}
