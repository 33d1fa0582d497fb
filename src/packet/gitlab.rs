//! A pipeline for GitLab CI.

use crate::failure::Failure;
use crate::packet::template::fill;
use crate::packet::{Facts, Packet};

const TEXT: &str = include_str!("gitlab-ci.yml");

/// The pipeline.
pub fn packet(facts: &Facts) -> Result<Packet, Failure> {
    let values = [
        ("id", facts.id.clone()),
        ("version", facts.tool.version.clone()),
        ("tool_sha256", facts.tool.sha256.clone()),
        ("manifest", facts.image.manifest_digest.clone()),
        ("seccomp", facts.profile.seccomp.name.clone()),
        ("seccomp_sha256", facts.profile.seccomp.sha256.clone()),
    ];
    Ok(Packet {
        text: fill(TEXT, &values)?,
        files: Vec::new(),
    })
}
