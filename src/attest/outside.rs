//! The outside witness: while the inspector waits for its go, the host reads
//! what the kernel says about the container's first process.

use std::fs;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::OutsideFacts;

/// Kinds of namespaces.
const KINDS: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// What the host saw, or why it could not look.
pub fn look(pid: Option<i32>) -> Result<OutsideFacts, String> {
    let pid = pid.ok_or("the engine does not tell the container's process id")?;
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let read = |name: &str| {
        fs::read_to_string(proc.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    // Another process could have this id where the engine is another machine's.
    if read("comm")
        .map(|name| name.trim_end() != "tki-inspector")
        .unwrap_or(true)
    {
        return Err("the container's process is not one of this host's".into());
    }
    Ok(OutsideFacts {
        status: read("status")?,
        mountinfo: read("mountinfo")?,
        net_dev: read("net/dev")?,
        limits: read("limits")?,
        uid_map: read("uid_map")?,
        gid_map: read("gid_map")?,
        namespaces: namespaces(&proc)?,
        descriptors: descriptors(&proc)?,
        cgroup: cgroup_limits(&read("cgroup")?),
    })
}

/// The namespaces that this tool itself is in.
pub fn own_namespaces() -> Vec<String> {
    namespaces(Path::new("/proc/self")).unwrap_or_default()
}

fn namespaces(proc: &Path) -> Result<Vec<String>, String> {
    let links = KINDS.iter().filter_map(|kind| {
        let path = proc.join("ns").join(kind);
        match fs::read_link(&path) {
            Ok(target) => Some(Ok(target.to_string_lossy().into_owned())),
            // Older kernels lack some kinds.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(format!("ns/{kind}: {error}"))),
        }
    });
    links.collect()
}

fn descriptors(proc: &Path) -> Result<String, String> {
    let entries = fs::read_dir(proc.join("fd")).map_err(|error| format!("fd: {error}"))?;
    let mut found: Vec<(u32, String)> = Vec::new();
    for entry in entries.flatten() {
        let number = entry
            .file_name()
            .to_string_lossy()
            .parse()
            .unwrap_or(u32::MAX);
        let target = fs::read_link(entry.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        let kind = target.split(':').next().unwrap_or_default();
        let kind = if kind.starts_with('/') {
            &*target
        } else {
            kind
        };
        found.push((number, format!("{number}={kind}")));
    }
    found.sort();
    let words: Vec<String> = found.into_iter().map(|(_, word)| word).collect();
    Ok(words.join(","))
}

/// Limits of the process's cgroup, under the names that the engine's own
/// settings have. A limit that cannot be read is left out.
fn cgroup_limits(membership: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            found.push(format!("{name}={value}"));
        }
    };
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let path = path.trim_start_matches('/');
        // Version 2 has one unnamed hierarchy.
        if controllers.is_empty() {
            let file = |name: &str| read_one(&Path::new("/sys/fs/cgroup").join(path).join(name));
            add("pids", file("pids.max"));
            add("memory", file("memory.max"));
            if let Some((quota, period)) = file("cpu.max")
                .as_deref()
                .and_then(|text| text.split_once(' '))
            {
                add("cpu_quota_us", Some(quota.to_owned()));
                add("cpu_period_us", Some(period.to_owned()));
            }
            continue;
        }
        let file = |name: &str| {
            read_one(
                &Path::new("/sys/fs/cgroup")
                    .join(controllers)
                    .join(path)
                    .join(name),
            )
        };
        for controller in controllers.split(',') {
            match controller {
                "pids" => add("pids", file("pids.max")),
                "memory" => add("memory", file("memory.limit_in_bytes")),
                "cpu" => {
                    add("cpu_quota_us", file("cpu.cfs_quota_us"));
                    add("cpu_period_us", file("cpu.cfs_period_us"));
                }
                _ => {}
            }
        }
    }
    found
}

fn read_one(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}
