//! Manifests for Kubernetes: one pod as a Job, one on every node as a DaemonSet.

use crate::packet::error::PacketError;
use crate::packet::facts::sums;
use crate::packet::template::{Slot, fill_safely};
use crate::packet::{Facts, Packet};
use crate::sandbox::profile::USER;
use tki_evidence::catalogue::HOSTNAME;

const TEXT: &str = include_str!("kubernetes.yml");
const POD: &str = include_str!("kubernetes-pod.yml");
const COLLECT: &str = include_str!("kubernetes-collect.sh");

/// Invariants that no pod has: the prober goes on all the same, and the probe
/// for it says what it finds.
const POD_LACKS: [&str; 1] = ["network-none"];

/// The manifests, whose files lie in `folder`.
pub fn packet(facts: &Facts, folder: &str) -> Result<Packet, PacketError> {
    let limits = &facts.profile.limits;
    let challenge = facts.challenge_line(&POD_LACKS)?;
    let (uid, gid) = USER.split_once(':').unwrap_or((USER, USER));
    let word = |text: &dyn ToString| Slot::Word(text.to_string());
    let pod = fill_safely(
        POD,
        vec![
            ("hostname", word(&HOSTNAME)),
            ("uid", word(&uid)),
            ("gid", word(&gid)),
            ("manifest", word(&facts.image.manifest_digest)),
            ("cpu", word(&format!("{}m", limits.cpu_millis))),
            ("memory", word(&limits.memory_bytes)),
            ("storage", word(&(limits.out_bytes * 2))),
            ("out_bytes", word(&limits.out_bytes)),
            ("tmp_bytes", word(&limits.tmp_bytes)),
        ],
    )?;
    let values = vec![
        ("id", word(&facts.id)),
        ("version", word(&facts.tool.version)),
        ("manifest", word(&facts.image.manifest_digest)),
        ("seccomp", Slot::Name(facts.profile.seccomp.name.clone())),
        ("seccomp_sha256", word(&facts.profile.seccomp.sha256)),
        ("pids", word(&limits.pids)),
        ("challenge", Slot::Json(challenge.trim_end().to_owned())),
        ("folder", Slot::Name(folder.to_owned())),
        ("job_pod", Slot::Block(pod.replace("{restart}", "Never"))),
        (
            "daemon_pod",
            Slot::Block(pod.replace("{restart}", "Always")),
        ),
    ];
    let mut files = facts.files()?;
    files.retain(|(name, _)| !["challenge.json", "seccomp.bpf"].contains(name));
    let collect = fill_safely(COLLECT, vec![("nonce", word(&facts.challenge.nonce))])?;
    files.push(("collect.sh", collect.into_bytes()));
    let sums = sums(&files);
    files.push(("SHA256SUMS", sums.into_bytes()));
    Ok(Packet {
        text: fill_safely(TEXT, values)?,
        files,
    })
}
