//! Pipelines for CI systems: the same facts in each one's own form.

use crate::failure::Failure;
use crate::packet::template::{cell, fill};
use crate::packet::{Facts, Packet};

/// A workflow for GitHub Actions.
pub const GITHUB: &str = include_str!("github-actions.yml");
/// A pipeline for GitLab CI.
pub const GITLAB: &str = include_str!("gitlab-ci.yml");

/// The pipeline that a template describes.
pub fn packet(template: &str, facts: &Facts, folder: &str) -> Result<Packet, Failure> {
    let values = [
        ("id", facts.id.clone()),
        ("version", facts.tool.version.clone()),
        ("tool_sha256", facts.tool.sha256.clone()),
        ("manifest", facts.image.manifest_digest.clone()),
        ("run_flags", facts.run_flags(folder)),
        ("seccomp", cell(&facts.profile.seccomp.name)),
        ("seccomp_sha256", facts.profile.seccomp.sha256.clone()),
    ];
    Ok(Packet {
        text: fill(template, &values)?,
        // Beside the executable, in a directory of their own.
        files: facts.run_files(),
    })
}
