//! Compiles the programs inside and embeds them, so that one copied file is all that an
//! operator needs.

use std::path::PathBuf;

#[path = "build/freestanding.rs"]
mod freestanding;

fn main() {
    for path in [
        "build.rs",
        "build/freestanding.rs",
        "rust-toolchain.toml",
        "inside",
        "inspector",
        "probes",
        "text",
        "verify/src",
        "verify/Cargo.toml",
        "evidence-schema/src",
        "evidence-schema/Cargo.toml",
        "evidence-schema/matrix-rev4.json",
        "seccomp",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    let variable = |name: &str| std::env::var(name).expect("cargo sets it for build scripts");
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    // A target directory of its own: the outer cargo holds the lock of its.
    let target_dir = PathBuf::from(variable("OUT_DIR")).join("inside");
    for (file, setting) in freestanding::not_overruled(&workspace, &freestanding::cargo_home()) {
        let file = file.display();
        println!("cargo::warning={file}: its `{setting}` may change the image's digest");
    }
    for (program, name) in [
        ("tki-prober", "TKI_PROBER"),
        ("tki-inspector", "TKI_INSPECTOR"),
    ] {
        let (mut command, binary) =
            freestanding::compile(program, &variable("CARGO"), &workspace, &target_dir);
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("compiling {program} failed: {status}"),
            Err(error) => panic!("compiling {program} failed: {error}"),
        }
        println!("cargo::rustc-env={name}={}", binary.display());
    }
}
