//! Packets are what they say: their digests are this build's, their command
//! lines are executed as they stand, other tools accept their workflows and
//! manifests.

/// The workflows and manifests against their schemas, shellcheck and Podman.
mod manifests;
/// The operator's packet, executed.
mod operator;

use crate::common::{Said, need, run, tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use tki_evidence::catalogue::CANONICAL;
use tki_evidence::derive::probe_result;
use tki_evidence::evidence::ProbeResult;
use tki_evidence::judge::{Sweeps, Texts};
use tki_evidence::matrix::Matrix;
use tki_evidence::transcript::Transcript;
use tki_evidence::wire::Challenge;

/// Writes a packet; gives its path.
fn packet(folder: &Path, audience: &str, name: &str) -> PathBuf {
    let path = folder.join(name);
    run(tool()
        .args(["packet", "--for", audience, "--out"])
        .arg(&path))
    .succeeded();
    path
}

/// shellcheck on a script.
fn shellcheck(shell: &str, script: &Path) -> Said {
    let mut command = Command::new("shellcheck");
    need("shellcheck", command.args(["--shell", shell]).arg(script))
}

/// What a transcript comes to, by the judge of `run` and `verify`: invariants that
/// were missing, and the twelve probes.
fn judge(bytes: &[u8], challenge: &Challenge) -> (Vec<String>, Vec<ProbeResult>) {
    let mut transcript = Transcript::new();
    let mut lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let missing = transcript.hear_hello(lines.next().unwrap()).unwrap();
    for line in lines {
        transcript.hear(line, challenge).unwrap();
    }
    let heard = transcript.end().expect("it came to its end");
    let sweeps = Sweeps::default();
    let texts = Texts::of_run(&heard.raw, &sweeps);
    let results = CANONICAL.iter().map(|probe| {
        let seen = heard.observations_of(probe.id);
        probe_result(probe, seen, &texts, &Matrix::rev4(), String::new())
    });
    (missing, results.collect())
}
