//! What kind of host this is, and what this process is on it.

use std::fs;

/// This process lives in the first user namespace, the one of real root.
fn in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// This process is real root's.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root() && in_first_user_namespace()
}

/// How many processors this host has, whether or not this process may use them.
pub fn processors() -> i64 {
    let is_cpu = |name: &str| {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let entries = fs::read_dir("/sys/devices/system/cpu");
    let names = entries.into_iter().flatten().flatten();
    let found = names.filter(|entry| is_cpu(&entry.file_name().to_string_lossy()));
    i64::try_from(found.count()).unwrap_or(0)
}

/// The operating system's name for people.
pub fn operating_system() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .unwrap_or("unknown");
    name.trim_matches('"').to_owned()
}
