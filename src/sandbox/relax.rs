//! A control's relaxations, applied to everything they touch: settings, the
//! host's side, the challenge.

use crate::attest::scratch::Scratch;
use crate::sandbox::profile::Limits;
use crate::sandbox::settings::{bind, tmp_options};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use tki_evidence::controls::Relaxation;
use tki_evidence::settings::Settings;
use tki_evidence::stamp::sha256_hex;

/// How much larger a relaxed limit is. Probes try up to twice the limit.
const FACTOR: i64 = 4;

/// Limits of the file systems that a control needs before anything is made.
pub fn limits(relaxations: &[Relaxation], mut limits: Limits) -> Limits {
    if relaxations.contains(&Relaxation::OutSize) {
        limits.out_bytes *= FACTOR as u64;
    }
    limits
}

/// Applies what concerns the container's settings and the host's directories.
/// `canary` is the file of the host that must not be reachable.
pub fn apply(
    relaxations: &[Relaxation],
    settings: &mut Settings,
    scratch: &Scratch,
    env_canary: &str,
    canary: &Path,
) -> std::io::Result<()> {
    for relaxation in relaxations {
        match relaxation {
            Relaxation::SeccompOff => settings.seccomp = "unconfined".into(),
            Relaxation::RootfsWritable => settings.read_only_rootfs = false,
            Relaxation::InWritable => settings.binds[0].read_only = false,
            Relaxation::OutReadOnly => settings.binds[1].read_only = true,
            Relaxation::EnvCanary => settings.env.push(format!("{env_canary}=visible")),
            Relaxation::DecoySocket => {
                // The listener goes at once; the file stays and answers nobody.
                drop(UnixListener::bind(scratch.input().join("docker.sock"))?);
            }
            Relaxation::ExtraBind => {
                let folder = scratch.base().join("extra");
                std::fs::create_dir(&folder)?;
                settings.binds.push(bind(&folder, "/host", true));
            }
            Relaxation::CanaryBind => {
                settings
                    .binds
                    .push(bind(canary, &canary.to_string_lossy(), true));
            }
            Relaxation::Capability => settings.cap_add.push("NET_BIND_SERVICE".into()),
            Relaxation::NewPrivileges => settings.no_new_privileges = false,
            Relaxation::RootUser => settings.user = "0:0".into(),
            Relaxation::ExecTmpfs => {
                for tmpfs in &mut settings.tmpfs {
                    tmpfs.options = tmpfs.options.replace("noexec", "exec");
                }
            }
            Relaxation::SuidDecoy => {
                let file = scratch.input().join("suid-decoy");
                std::fs::write(&file, "not a program\n")?;
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4444))?;
            }
            Relaxation::Hostname => settings.hostname = "relaxed".into(),
            Relaxation::SystemPaths => settings.system_paths_masked = false,
            Relaxation::Device => settings.devices.push("/dev/null:/dev/tki-extra".into()),
            Relaxation::PidsLimit => settings.pids_limit *= FACTOR,
            Relaxation::MemoryLimit => {
                settings.memory_bytes *= FACTOR;
                settings.memory_swap_bytes *= FACTOR;
            }
            Relaxation::TmpSize => {
                for tmpfs in &mut settings.tmpfs {
                    let size = |word: &str| word.strip_prefix("size=")?.parse::<u64>().ok();
                    if let Some(bytes) = tmpfs.options.split(',').find_map(size) {
                        tmpfs.options = tmp_options(bytes * FACTOR as u64);
                    }
                }
            }
            Relaxation::NofileLimit => {
                for limit in settings.ulimits.iter_mut().filter(|l| l.name == "nofile") {
                    limit.soft *= FACTOR;
                    limit.hard *= FACTOR;
                }
            }
            Relaxation::CpuQuota => settings.cpu_quota_us *= FACTOR,
            Relaxation::TargetedDeny => {
                settings.seccomp = sha256_hex(tki_evidence::TARGETED_DENY.as_bytes());
            }
            // These concern the host's side or the challenge, elsewhere.
            Relaxation::OutSize | Relaxation::Interface | Relaxation::LockOff => {}
        }
    }
    Ok(())
}
