//! How the inspector is compiled. Included by the build script, which embeds
//! the result, and by the test that compiles it in two places and compares.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The one target that the inspector is written for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The cargo call that compiles the inspector, and where the result will be.
///
/// The binary is freestanding: no C library, no start files, not relocated, and
/// free of every path of the machine that compiled it.
pub fn compile(cargo: &str, workspace: &Path, target_dir: &Path) -> (Command, PathBuf) {
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Crelocation-model=static".to_owned(),
        "-Clink-arg=-nostartfiles".to_owned(),
        "-Clink-arg=-nostdlib".to_owned(),
        "-Clink-arg=-static".to_owned(),
        "-Clink-arg=-Wl,--build-id=none".to_owned(),
        format!("--remap-path-prefix={}=/workspace", workspace.display()),
        format!("--remap-path-prefix={}=/cargo", cargo_home.display()),
        format!("--remap-path-prefix={}=/target", target_dir.display()),
    ];
    // The registry's own directory has a name that depends on its address; of
    // several prefixes that fit, the last one given counts.
    let registry = cargo_home.join("registry/src");
    for entry in std::fs::read_dir(registry).into_iter().flatten().flatten() {
        let path = entry.path();
        flags.push(format!("--remap-path-prefix={}=/registry", path.display()));
    }
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace)
        .args(["build", "--quiet", "--locked", "--package", "tki-inspector"])
        .args(["--features", "freestanding", "--profile", "inspector"])
        .args(["--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // A linter or cache that wraps the outer build has no say in this one.
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let binary = target_dir.join(TARGET).join("inspector/tki-inspector");
    (command, binary)
}
