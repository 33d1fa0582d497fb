//! How the programs inside are compiled. Included by the build script, which embeds
//! the results, and by the tests that compile them elsewhere and compare.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The one target that they are written for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Variables that the nested build may see: where programs and crates are, and how
/// crates are fetched. Every other one stays outside, because any could change the
/// bytes: profiles, flags, wrappers, linkers, search paths.
const KEPT: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "CARGO_HOME",
    "CARGO_MAKEFLAGS",
    "MAKEFLAGS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// The same by how they begin.
const KEPT_FAMILIES: &[&str] = &[
    // Which toolchain is used, and that rustup fetches none by itself.
    "RUSTUP_",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    // Which toolchain it is, and that none is to be installed.
    "RUSTUP_",
];

/// Settings of a configuration file that nothing on the command line can take back
/// without a change of the bytes.
const NOT_OVERRULED: &[&str] = &[
    "rustc-workspace-wrapper",
    "build-override",
    "codegen-backend",
    ".package",
    "[env",
    "[unstable",
];

/// The whole profile `inside`, once more. A configuration file above the workspace
/// or in cargo's home could set any of it; what the command line says outranks both
/// files and variables. That the values are those of Cargo.toml, and cargo's defaults
/// elsewhere, is checked by the digest that a test compares.
const PROFILE: &[(&str, &str)] = &[
    ("lto", "\"fat\""),
    ("codegen-units", "1"),
    ("panic", "\"abort\""),
    ("strip", "true"),
    ("debug", "0"),
    ("debug-assertions", "false"),
    ("overflow-checks", "false"),
    ("incremental", "false"),
    ("rpath", "false"),
];

/// The cargo call that compiles a program, the package of that name, and where the result will be.
/// Each has a call of its own: in a common one the features of both would be those of either.
///
/// The binary is freestanding: no C library, no start files, not relocated, and
/// free of every path of the machine that compiled it. It follows the sources and the
/// compiler, and nothing that this machine or its user has configured.
pub fn compile(
    program: &str,
    cargo: &str,
    workspace: &Path,
    target_dir: &Path,
) -> (Command, PathBuf) {
    let cargo_home = cargo_home();
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Crelocation-model=static".to_owned(),
        "-Clink-arg=-nostartfiles".to_owned(),
        "-Clink-arg=-nostdlib".to_owned(),
        "-Clink-arg=-static".to_owned(),
        "-Clink-arg=-Wl,--build-id=none".to_owned(),
        // Nothing unwinds: the tables for it are left out.
        "-Cforce-unwind-tables=no".to_owned(),
        "-Clink-arg=-Wl,--no-eh-frame-hdr".to_owned(),
        "-Clink-arg=-Wl,-T,build/discard.ld".to_owned(),
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
        .args(["build", "--quiet", "--locked", "--package", program])
        .args(["--features", "freestanding", "--profile", "inside"])
        .args(["--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir);
    // The inspector holds a whole verifier: size before speed.
    let level = match program {
        "tki-inspector" => "\"z\"",
        _ => "\"s\"",
    };
    // Each byte of a packet goes through this one.
    let digest = ("package.sha2.opt-level", "3");
    for (key, value) in PROFILE.iter().chain(&[("opt-level", level), digest]) {
        command.args(["--config", &format!("profile.inside.{key}={value}")]);
    }
    command
        .args(["--config", &format!("target.{TARGET}.linker=\"cc\"")])
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| is_kept(name)))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // An empty name is no wrapper, whatever a configuration file names.
        .env("RUSTC_WRAPPER", "");
    // The compiler that belongs to this cargo, and not one that the user's variables name.
    let rustc = Path::new(cargo).with_file_name("rustc");
    if rustc.is_absolute() && rustc.exists() {
        command.env("RUSTC", rustc);
    }
    let binary = target_dir.join(TARGET).join("inside").join(program);
    (command, binary)
}

/// Where cargo keeps crates and its own configuration.
pub fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    )
}

/// Configuration files of cargo that may change the bytes all the same, each with the
/// setting that may.
pub fn not_overruled(workspace: &Path, cargo_home: &Path) -> Vec<(PathBuf, &'static str)> {
    let folders = workspace.ancestors().map(|folder| folder.join(".cargo"));
    let mut found = Vec::new();
    for folder in folders.chain([cargo_home.to_owned()]) {
        for name in ["config.toml", "config"] {
            let path = folder.join(name);
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines = text
                .lines()
                .map(|line| line.split('#').next().unwrap_or_default());
            let text: Vec<&str> = lines.collect();
            let text = text.join("\n");
            let settings = NOT_OVERRULED
                .iter()
                .filter(|setting| text.contains(**setting));
            found.extend(settings.map(|setting| (path.clone(), *setting)));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn is_kept(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    KEPT.contains(&&*name) || KEPT_FAMILIES.iter().any(|start| name.starts_with(start))
}
