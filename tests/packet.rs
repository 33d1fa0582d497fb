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
