//! The arguments that bubblewrap was given.

use crate::settings::{Bind, Settings, Tmpfs, covered_texts};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What arguments say, in the common form. What bubblewrap is not told is given:
/// options of memory file systems that the keeper set itself, and the digest of the
/// compiled profile. Limits are left out.
pub fn configured(arguments: &[String], tmpfs: &[Tmpfs], seccomp: &str) -> Settings {
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
    let memory: Vec<&str> = tmpfs.iter().map(|t| t.target.as_str()).collect();
    let system =
        |target: &str| target == "/" || target.starts_with("/proc/") || target.starts_with("/sys/");
    let mut binds = Vec::new();
    for (option, read_only) in [("--ro-bind", true), ("--bind", false)] {
        for pair in after(option, 2) {
            if let [source, target] = pair.as_slice()
                && !system(target)
                && !memory.contains(&target.as_str())
            {
                binds.push(Bind::of_host(source, target, read_only));
            }
        }
    }
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    let masked: Vec<String> = after("--ro-bind", 2)
        .into_iter()
        .filter(|pair| pair.first().is_some_and(|source| source == "/dev/null"))
        .filter_map(|pair| pair.into_iter().nth(1))
        .collect();
    let covered_texts = covered_texts(&masked);
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
        tmpfs: tmpfs.to_vec(),
        cap_add: after("--cap-add", 1)
            .concat()
            .iter()
            .map(|name| name.trim_start_matches("CAP_").to_owned())
            .collect(),
        cap_drop: after("--cap-drop", 1).concat(),
        // bubblewrap sets it always; the kernel is asked once it runs.
        no_new_privileges: true,
        seccomp: if has("--seccomp") {
            seccomp.to_owned()
        } else {
            "unconfined".into()
        },
        security_options: Vec::new(),
        // Only what this kernel has is masked at all.
        system_paths_masked: masked.len() > covered_texts.len(),
        covered_texts,
        lsm: String::new(),
        working_directory: one("--chdir").unwrap_or_default(),
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
