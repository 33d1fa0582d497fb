//! Manifests for Kubernetes: one pod as a Job, one on every node as a DaemonSet.

use crate::failure::Failure;
use crate::packet::facts::sums;
use crate::packet::template::{cell, fill};
use crate::packet::{Facts, Packet};
use crate::sandbox::profile::USER;
use tki_evidence::catalogue::HOSTNAME;

const TEXT: &str = include_str!("kubernetes.yml");
const POD: &str = include_str!("kubernetes-pod.yml");
const COLLECT: &str = include_str!("kubernetes-collect.sh");

/// Invariants that no pod has: the inspector goes on all the same, and the probe
/// for it says what it finds.
const POD_LACKS: [&str; 1] = ["network-none"];

/// The manifests, whose files lie in `folder`.
pub fn packet(facts: &Facts, folder: &str) -> Result<Packet, Failure> {
    let limits = &facts.profile.limits;
    let challenge = facts.challenge_line(&POD_LACKS)?;
    let (uid, gid) = USER.split_once(':').unwrap_or((USER, USER));
    let pod = fill(
        POD,
        &[
            ("hostname", HOSTNAME.to_owned()),
            ("uid", uid.to_owned()),
            ("gid", gid.to_owned()),
            ("manifest", facts.image.manifest_digest.clone()),
            ("cpu", format!("{}m", limits.cpu_millis)),
            ("memory", limits.memory_bytes.to_string()),
            ("storage", (limits.out_bytes * 2).to_string()),
            ("out_bytes", limits.out_bytes.to_string()),
            ("tmp_bytes", limits.tmp_bytes.to_string()),
        ],
    )?;
    let values = [
        ("id", facts.id.clone()),
        ("version", facts.tool.version.clone()),
        ("manifest", facts.image.manifest_digest.clone()),
        ("seccomp", cell(&facts.profile.seccomp.name)),
        ("seccomp_sha256", facts.profile.seccomp.sha256.clone()),
        ("pids", limits.pids.to_string()),
        ("challenge", challenge.trim_end().to_owned()),
        ("folder", folder.to_owned()),
        ("job_pod", pod.replace("{restart}", "Never")),
        ("daemon_pod", pod.replace("{restart}", "Always")),
    ];
    let mut files = facts.files()?;
    files.retain(|(name, _)| !["challenge.json", "seccomp.bpf"].contains(name));
    let collect = fill(COLLECT, &[("nonce", facts.challenge.nonce.clone())])?;
    files.push(("collect.sh", collect.into_bytes()));
    let sums = sums(&files);
    files.push(("SHA256SUMS", sums.into_bytes()));
    Ok(Packet {
        text: fill(TEXT, &values)?,
        files,
    })
}
