//! Profile → settings: what any engine is asked for.

use crate::sandbox::profile::{Limits, Profile, USER};
use tki_evidence::catalogue::HOSTNAME;
use tki_evidence::controller::Controller;
use tki_evidence::settings::{ADDRESS_SPACE, Bind, CPU_PERIOD_US, Settings, Tmpfs, Ulimit};

/// CPU time in each period.
pub fn cpu_quota_us(limits: &Limits) -> i64 {
    limits.cpu_millis * CPU_PERIOD_US / 1000
}

/// Options of /tmp, which holds so many bytes, and so many files unless that is 0.
pub fn tmp_options(bytes: u64, files: u64) -> String {
    let files = match files {
        0 => String::new(),
        files => format!(",nr_inodes={files}"),
    };
    format!("rw,noexec,nosuid,nodev,size={bytes}{files},mode=1777")
}

/// The size of a core dump at which the kernel writes none and starts no program for one. At
/// 0 it starts the program.
const NO_CORE: i64 = 1;

/// Takes out limits that the engine cannot set. Where a resource limit of the
/// process can carry one, it does: the number of processes, and memory as the
/// size of an address space.
pub fn do_without(settings: &mut Settings, lacks: &[Controller]) {
    for controller in lacks {
        match controller {
            Controller::Pids => {
                let most = std::mem::take(&mut settings.pids_limit);
                for limit in settings.ulimits.iter_mut().filter(|l| l.name == "nproc") {
                    (limit.soft, limit.hard) = (most, most);
                }
            }
            Controller::Memory => {
                let most = std::mem::take(&mut settings.memory_bytes) + ADDRESS_SPACE;
                settings.memory_swap_bytes = 0;
                settings.ulimits.push(Ulimit {
                    name: "as".into(),
                    soft: most,
                    hard: most,
                });
                settings.ulimits.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Controller::Cpu => (settings.cpu_quota_us, settings.cpu_period_us) = (0, 0),
        }
    }
}

/// The container's settings for a profile, with what is /in and /out.
pub fn settings(profile: &Profile, binds: Vec<Bind>, swap_limit: bool) -> Settings {
    let limits = &profile.limits;
    let ulimit = |name: &str, value| Ulimit {
        name: name.into(),
        soft: value,
        hard: value,
    };
    Settings {
        network: "none".into(),
        ipc: "none".into(),
        pid: "private".into(),
        uts: "private".into(),
        userns: "default".into(),
        cgroupns: "private".into(),
        hostname: HOSTNAME.into(),
        privileged: false,
        read_only_rootfs: true,
        user: USER.into(),
        env: Vec::new(),
        binds,
        tmpfs: vec![Tmpfs {
            target: "/tmp".into(),
            options: tmp_options(limits.tmp_bytes, limits.tmp_files),
        }],
        cap_add: Vec::new(),
        cap_drop: vec!["ALL".into()],
        no_new_privileges: true,
        seccomp: profile.seccomp.sha256.clone(),
        security_options: Vec::new(),
        system_paths_masked: true,
        covered_texts: Vec::new(),
        lsm: String::new(),
        working_directory: "/".into(),
        devices: Vec::new(),
        pids_limit: limits.pids,
        memory_bytes: limits.memory_bytes,
        // Some kernels cannot limit swap; engines then drop the setting.
        memory_swap_bytes: if swap_limit { limits.memory_bytes } else { 0 },
        cpu_period_us: CPU_PERIOD_US,
        cpu_quota_us: cpu_quota_us(limits),
        ulimits: vec![
            ulimit("core", NO_CORE),
            ulimit("nofile", limits.nofile),
            ulimit("nproc", limits.nproc),
        ],
        auto_remove: true,
        log_driver: "none".into(),
    }
}
