//! For a person with root or engine rights: Markdown.

use crate::clock;
use crate::packet::error::PacketError;
use crate::packet::facts::sums;
use crate::packet::template::{cell, fill, shell};
use crate::packet::{Facts, Packet, Why};
use std::fmt::Write as _;
use tki_evidence::catalogue::{CANONICAL, HOSTNAME};
use tki_evidence::command_line::{Client, command_line};
use tki_evidence::controls::CONTROLS;
use tki_evidence::described::names::{LABEL_ROLE, LABEL_RUN};
use tki_evidence::matrix::Matrix;
use tki_evidence::settings::MASKED;
use tki_evidence::stamp::sha256_hex;

const TEXT: &str = include_str!("operator.md");

/// The packet, whose files lie in `folder`.
pub fn packet(facts: &Facts, why: Option<&Why>, folder: &str) -> Result<Packet, PacketError> {
    let mut files = facts.files()?;
    let sums = sums(&files);
    let image = &facts.image;
    let layers = image.layers();
    let layer = layers
        .first()
        .map_or_else(String::new, |layer| sha256_hex(layer.bytes));
    let values = [
        ("date", clock::rfc3339(clock::now())),
        ("id", facts.id.clone()),
        ("version", facts.tool.version.clone()),
        ("tool_sha256", facts.tool.sha256.clone()),
        ("manifest", image.manifest_digest.clone()),
        ("config", image.config_digest.clone()),
        ("diff_ids", image.diff_ids.join(", ")),
        ("tag", image.tag.clone()),
        ("layer", layer),
        ("hostname", HOSTNAME.to_owned()),
        ("masked", masked()),
        ("profile", cell(&facts.profile.seccomp.name)),
        ("seccomp_sha256", facts.profile.seccomp.sha256.clone()),
        ("run_flags", facts.run_flags(folder)),
        ("verify_flags", shell(&facts.verify_words(folder))),
        ("folder", folder.to_owned()),
        ("sums", sums.clone()),
        ("why", why.map_or_else(String::new, reason)),
        ("probes", probes()),
        ("docker", engine_line(facts, Client::Docker)),
        ("podman", engine_line(facts, Client::Podman(""))),
        ("volume", format!("tki-attest-{}", facts.id)),
        ("out_bytes", facts.profile.limits.out_bytes.to_string()),
        ("out_files", facts.profile.limits.out_files.to_string()),
        ("tmp_files", facts.profile.limits.tmp_files.to_string()),
        ("tmp_bytes", facts.profile.limits.tmp_bytes.to_string()),
        ("pids", facts.profile.limits.pids.to_string()),
        ("memory", facts.profile.limits.memory_bytes.to_string()),
        ("controls", CONTROLS.len().to_string()),
        ("nofile", facts.profile.limits.nofile.to_string()),
        ("label", LABEL_RUN.to_owned()),
        ("nonce", facts.challenge.nonce.clone()),
    ];
    let text = fill(TEXT, &values)?;
    files.push(("SHA256SUMS", sums.into_bytes()));
    Ok(Packet { text, files })
}

/// What engines hide of /proc; bubblewrap has to be told.
fn masked() -> String {
    let paths = MASKED.iter().filter(|path| path.starts_with("/proc/"));
    paths.copied().collect::<Vec<_>>().join(" ")
}

/// Why it is needed, as a section.
fn reason(why: &Why) -> String {
    let mut text = format!(
        "\n## Why it is needed\n\n**{}**\n\nShortest next action: {}\n",
        cell(&why.reason),
        cell(&why.next)
    );
    if !why.rows.is_empty() {
        text += "\n| surface | can run | gap | decision |\n|---|---|---|---|\n";
        for [surface, can, gap, decision] in &why.rows {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                cell(surface),
                cell(can),
                cell(gap),
                cell(decision)
            );
        }
    }
    text
}

/// The twelve probes and what must come back.
fn probes() -> String {
    let matrix = Matrix::rev4();
    let mut text = String::new();
    for probe in CANONICAL {
        let tests: Vec<String> = matrix
            .tests_of(probe.id)
            .iter()
            .map(|test| format!("#{test}"))
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            probe.id,
            cell(probe.operation),
            cell(probe.expected),
            probe.requirements.join(" "),
            tests.join(" ")
        );
    }
    text
}

/// `docker run` or `podman run`, for a shell in the directory of the files.
fn engine_line(facts: &Facts, client: Client) -> String {
    let labels = [
        (LABEL_RUN.to_owned(), facts.id.clone()),
        (LABEL_ROLE.to_owned(), "probe".to_owned()),
    ];
    let mut words = command_line(
        client,
        &facts.settings,
        &format!("tki-attest-{}", facts.id),
        &labels,
        "seccomp.json",
        &facts.image.config_digest,
    );
    match client {
        Client::Docker => {
            // Found before the variable goes by which it is found.
            for word in words.iter_mut().filter(|word| *word == "docker") {
                *word = "$docker".into();
            }
            shell(&words)
        }
        Client::Podman(_) => shell(&words).replacen("podman ", "podman \"$@\" ", 1),
    }
}
