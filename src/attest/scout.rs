//! The scout: a container before the run's own, where the OCI runtime is not one that is known
//! to share the host's kernel. The prober is asked nothing there; it tells which kernel it
//! is on. Such a kernel is a program with threads and memory of its own, which the limits of
//! a sandbox on a shared kernel would starve. The scout decides which limits are set, and
//! nothing of it is concluded: what the run's own container saw is in the evidence.

use crate::attest::container;
use crate::attest::error::AttestError;
use crate::attest::trial::{SCOUT, Trial};
use crate::engine::Engine;
use crate::engine::gate::GateChoice;
use crate::sandbox::limit::Limit;
use crate::sandbox::profile::Limits;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::{Runtime, VenueFacts};
use tki_evidence::kernel::{self, KernelKind};
use tki_evidence::request::control_nonce;

/// OCI runtimes that make containers on the host's kernel.
const SHARING: [&str; 8] = [
    "runc",
    "crun",
    "youki",
    "nvidia",
    "nvidia-container-runtime",
    "sysbox-runc",
    "libcontainer",
    "bwrap",
];

/// How the names of containerd's runtimes are made; version and maker are around the name.
const SHIM: &str = "io.containerd.";

/// Whether a container with the runtime that was asked for, or else the engine's own, may
/// have another kernel than the host's. Podman tells its own choice too late; it is one that
/// shares the kernel unless `containers.conf` names another.
pub fn is_needed(asked: Option<&str>, default: &str) -> bool {
    let name = asked.unwrap_or(default);
    let base = name.rsplit('/').next().unwrap_or(name);
    let base = match base.strip_prefix(SHIM) {
        Some(shim) => shim.split('.').next().unwrap_or(shim),
        None => base,
    };
    !base.is_empty() && !SHARING.contains(&base)
}

/// The limits with which a kernel of its own starts and the probes run: those that the user
/// chose stay as they are. The way in which Podman is told how many files /tmp may hold is not
/// understood there: it is told nothing.
pub fn roomy(limits: Limits, chosen: &[Limit], engine: Option<EngineKind>) -> Limits {
    const PIDS: i64 = 512;
    const MEMORY: i64 = 1 << 30;
    const NOFILE: i64 = 4096;
    let larger = |limit, value: i64, least: i64| match chosen.contains(&limit) {
        true => value,
        false => value.max(least),
    };
    Limits {
        pids: larger(Limit::Pids, limits.pids, PIDS),
        memory_bytes: larger(Limit::MemoryBytes, limits.memory_bytes, MEMORY),
        nofile: larger(Limit::Nofile, limits.nofile, NOFILE),
        tmp_files: match engine {
            Some(EngineKind::Podman) => 0,
            _ => limits.tmp_files,
        },
        ..limits
    }
}

/// What a person is told of such a kernel.
pub fn note(kernel: KernelKind, limits: &Limits) -> String {
    format!(
        "the container has a kernel of its own ({}), which needs room: {} processes, {} MiB of \
         memory, {} open files",
        kernel.name(),
        limits.pids,
        limits.memory_bytes >> 20,
        limits.nofile
    )
}

/// Launches the scout; gives the kernel that it is on. `template` is the trial of the run
/// itself, with limits that starve no kernel.
pub fn look(
    engine: &mut dyn Engine,
    template: &Trial,
    runtime: &Runtime,
    venue: &VenueFacts,
) -> Result<KernelKind, AttestError> {
    let trial = Trial {
        control: Some(SCOUT),
        probes: Vec::new(),
        nonce: control_nonce(&template.nonce, SCOUT),
        gate: GateChoice::Off,
        ..*template
    };
    let outcome = container::run(engine, &trial, &mut ());
    let outcome = outcome.map_err(|error| match error.is_about_volumes() {
        true => error,
        false => AttestError::Scout(Box::new(error)),
    })?;
    Ok(kernel::by_prober(&outcome.heard.raw, runtime, venue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_is_not_known_is_looked_at() {
        for (asked, default) in [
            (None, "runc"),
            (None, ""),
            (Some("crun"), "runsc"),
            (Some("/usr/bin/runc"), ""),
            (None, "io.containerd.runc.v2"),
            (None, "libcontainer"),
        ] {
            assert!(!is_needed(asked, default), "{asked:?} {default}");
        }
        for (asked, default) in [
            (Some("runsc"), "runc"),
            (None, "kata"),
            (Some("/opt/runsc-wrapper"), ""),
            (None, "io.containerd.runsc.v1"),
            (Some("io.containerd.kata.v2"), "runc"),
            (Some("runc-but-not"), "runc"),
        ] {
            assert!(is_needed(asked, default), "{asked:?} {default}");
        }
    }

    #[test]
    fn limits_that_were_chosen_win() {
        let limits = Limits::default();
        let all = roomy(limits, &[], Some(EngineKind::Docker));
        assert_eq!(all.tmp_files, limits.tmp_files);
        assert_eq!(roomy(limits, &[], Some(EngineKind::Podman)).tmp_files, 0);
        assert_eq!(
            (all.pids, all.memory_bytes, all.nofile),
            (512, 1 << 30, 4096)
        );
        assert_eq!((all.out_bytes, all.nproc), (limits.out_bytes, limits.nproc));
        let some = roomy(
            limits,
            &[Limit::Pids, Limit::Nofile],
            Some(EngineKind::Docker),
        );
        assert_eq!(
            (some.pids, some.memory_bytes, some.nofile),
            (32, 1 << 30, 64)
        );
        let more = roomy(
            Limits {
                memory_bytes: 1 << 32,
                ..limits
            },
            &[],
            Some(EngineKind::Docker),
        );
        assert_eq!(more.memory_bytes, 1 << 32);
    }
}
