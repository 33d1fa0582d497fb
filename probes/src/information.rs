//! What is worth knowing about the place and is never judged.

use crate::sys;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::CStr;
use tki_inside::io;

/// The longest text of one piece of information.
const MOST: usize = 200;

const TEXTS: &[(&str, &CStr)] = &[
    ("kernel.osrelease", c"/proc/sys/kernel/osrelease"),
    ("kernel.kptr_restrict", c"/proc/sys/kernel/kptr_restrict"),
    ("kernel.dmesg_restrict", c"/proc/sys/kernel/dmesg_restrict"),
    (
        "kernel.io_uring_disabled",
        c"/proc/sys/kernel/io_uring_disabled",
    ),
    (
        "kernel.yama.ptrace_scope",
        c"/proc/sys/kernel/yama/ptrace_scope",
    ),
    (
        "kernel.unprivileged_bpf_disabled",
        c"/proc/sys/kernel/unprivileged_bpf_disabled",
    ),
    (
        "user.max_user_namespaces",
        c"/proc/sys/user/max_user_namespaces",
    ),
    ("lsm.current", c"/proc/self/attr/current"),
    ("lsm.list", c"/sys/kernel/security/lsm"),
    ("uid_map", c"/proc/self/uid_map"),
    ("gid_map", c"/proc/self/gid_map"),
];

/// Every piece of information, by name.
pub fn gather() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = TEXTS
        .iter()
        .map(|(name, path)| ((*name).to_string(), text(path)))
        .collect();
    found.push(("kallsyms".into(), kallsyms()));
    let folder = c"/sys/devices/system/cpu/vulnerabilities";
    for name in io::list(folder).unwrap_or_default() {
        if let Ok(path) = io::c_path(&format!("/sys/devices/system/cpu/vulnerabilities/{name}")) {
            found.push((format!("cpu.vulnerability.{name}"), text(&path)));
        }
    }
    found
}

fn text(path: &CStr) -> String {
    match io::read_line(path) {
        Ok(text) => text.chars().take(MOST).collect(),
        Err(errno) => format!("unreadable: {}", tki_evidence::errno::name(errno.0)),
    }
}

/// Whether kernel addresses are shown.
fn kallsyms() -> String {
    match io::read_start(c"/proc/kallsyms") {
        Err(errno) => format!("unreadable: {}", tki_evidence::errno::name(errno.0)),
        Ok(start) => match start.lines().next() {
            Some(line) if line.starts_with("0000000000000000") => "addresses hidden".into(),
            Some(_) => "addresses shown".into(),
            None => "empty".into(),
        },
    }
}

/// The prober's descriptors and what each is.
pub fn descriptors() -> String {
    let mut found: Vec<(u32, &str)> = Vec::new();
    for name in io::list(c"/proc/self/fd").unwrap_or_default() {
        // The descriptor that the listing itself needed is gone by now.
        let Ok(target) = io::read_link(&format!("/proc/self/fd/{name}")) else {
            continue;
        };
        let kind = match target.as_str() {
            "/dev/null" => "null",
            target if target.starts_with("pipe:") => "pipe",
            target if target.starts_with("socket:") => "socket",
            _ if is_fifo(&name) => "fifo",
            _ => "other",
        };
        found.push((name.parse().unwrap_or(u32::MAX), kind));
    }
    found.sort_unstable();
    let entries: Vec<String> = found
        .iter()
        .map(|(n, kind)| format!("{n}={kind}"))
        .collect();
    entries.join(",")
}

/// A descriptor is a pipe, whatever its link is called.
fn is_fifo(name: &str) -> bool {
    const S_IFMT: u32 = 0o170000;
    const S_IFIFO: u32 = 0o010000;
    let stat = name.parse().ok().map(sys::stat_descriptor);
    stat.is_some_and(|stat| stat.is_ok_and(|stat| stat.mode & S_IFMT == S_IFIFO))
}

/// The namespaces that the prober is in, one a line.
pub fn namespaces() -> String {
    let kinds = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    let links: Vec<String> = kinds
        .iter()
        .filter_map(|kind| io::read_link(&format!("/proc/self/ns/{kind}")).ok())
        .collect();
    links.join("\n")
}
