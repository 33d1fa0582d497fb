//! Pipelines for CI systems: the same facts in each one's own form.

use crate::packet::error::PacketError;
use crate::packet::template::{Slot, fill_safely};
use crate::packet::{Facts, Packet};

/// A workflow for GitHub Actions.
pub const GITHUB: &str = include_str!("github-actions.yml");
/// A pipeline for GitLab CI.
pub const GITLAB: &str = include_str!("gitlab-ci.yml");

/// The pipeline that a template describes.
pub fn packet(template: &str, facts: &Facts, folder: &str) -> Result<Packet, PacketError> {
    let values = vec![
        ("id", Slot::Word(facts.id.clone())),
        ("version", Slot::Word(facts.tool.version.clone())),
        ("tool_sha256", Slot::Word(facts.tool.sha256.clone())),
        ("manifest", Slot::Word(facts.image.manifest_digest.clone())),
        ("run_flags", Slot::Command(facts.run_words(folder))),
        ("verify_flags", Slot::Command(facts.verify_words(folder))),
        ("seccomp", Slot::Name(facts.profile.seccomp.name.clone())),
        (
            "seccomp_sha256",
            Slot::Word(facts.profile.seccomp.sha256.clone()),
        ),
    ];
    Ok(Packet {
        text: fill_safely(template, values)?,
        // Beside the executable, in a directory of their own.
        files: facts.run_files(),
    })
}
