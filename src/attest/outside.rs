//! The outside witness: while the inspector waits for its go, the host reads
//! what the kernel says about the container's first process.

use crate::attest::first::First;
use crate::attest::visitor::{self, Errand};
use crate::engine::group_limits;
use std::fs;
use std::path::Path;
use tki_evidence::evidence::OutsideFacts;

/// Kinds of namespaces.
const KINDS: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// What the host saw, or why it could not look.
pub fn look(first: &First) -> Result<OutsideFacts, String> {
    let proc = first.folder();
    let read = |name: &str| {
        fs::read_to_string(proc.join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let facts = OutsideFacts {
        status: read("status")?,
        mountinfo: read("mountinfo")?,
        net_dev: read("net/dev")?,
        limits: read("limits")?,
        uid_map: read("uid_map")?,
        gid_map: read("gid_map")?,
        namespaces: namespaces(&proc)?,
        descriptors: if visitor::is_needed() {
            visitor::send(Errand::Descriptors, first).map_err(|error| format!("fd: {error}"))?
        } else {
            descriptors(&proc)?
        },
        cgroup: cgroup_limits(&read("cgroup")?),
    };
    // Otherwise another process could have had its number meanwhile.
    match first.is_there() {
        true => Ok(facts),
        false => Err("the container's process ended while it was looked at".into()),
    }
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

/// What a process holds open, in one line.
pub fn descriptors(proc: &Path) -> Result<String, String> {
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
    let limits = group_limits(membership);
    [
        ("pids", limits.pids),
        ("memory", limits.memory),
        ("cpu_quota_us", limits.cpu_quota_us),
        ("cpu_period_us", limits.cpu_period_us),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
    .collect()
}
