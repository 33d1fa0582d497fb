//! What a control changes about the sandbox: as names, and as a function from
//! settings to settings. `run` applies it before it launches a control; `derive`
//! applies it to the run's own settings and so knows what may have changed.

/// What a control changes about the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relaxation {
    /// No seccomp profile.
    SeccompOff,
    /// A pair of virtual interfaces that lead to each other, with an address.
    Interface,
    /// The IPC namespace of the neighbour, which has shared memory.
    JoinIpc,
    /// The process id namespace of the neighbour.
    JoinPid,
    /// The root file system is writable.
    RootfsWritable,
    /// /in is writable.
    InWritable,
    /// /out is read-only.
    OutReadOnly,
    /// A variable in the environment.
    EnvCanary,
    /// A socket called docker.sock in /in, which nobody serves.
    DecoySocket,
    /// One more directory, at /host.
    ExtraBind,
    /// Something at the path of the launcher's own executable.
    CanaryBind,
    /// A capability in the bounding set.
    Capability,
    /// The no-new-privileges bit is not set.
    NewPrivileges,
    /// The targeted-deny profile, whichever the run uses. Without
    /// no-new-privileges an engine loads the filter while it still has to
    /// change its user, which an allow-list made for the prober forbids.
    TargetedDeny,
    /// The run's profile, whose denials carry an errno of their own.
    Marks,
    /// The user is root, without capabilities.
    RootUser,
    /// /tmp without noexec.
    ExecTmpfs,
    /// A file with the set-user-id bit in /in.
    SuidDecoy,
    /// Another host name.
    Hostname,
    /// Paths of /proc and /sys are neither masked nor frozen.
    SystemPaths,
    /// The null device under another name.
    Device,
    /// Four times as many processes.
    PidsLimit,
    /// Four times as much memory.
    MemoryLimit,
    /// A file system behind /out four times as large.
    OutSize,
    /// A /tmp four times as large.
    TmpSize,
    /// Room for four times as many files behind /out and in /tmp.
    Inodes,
    /// Four times the size of a core dump.
    CoreSize,
    /// Four times as many open files.
    NofileLimit,
    /// A CPU quota beyond what two processes use.
    CpuQuota,
    /// The prober does not stack its own filter.
    LockOff,
    /// One more descriptor, of the null device.
    Descriptor,
    /// The container's own control group, writable and its user's.
    CgroupWritable,
    /// The prober starts a second thread, which does nothing.
    Thread,
    /// The working directory is /in.
    WorkingDirectory,
    /// The null device over one text of /proc.
    CoveredText,
    /// No label of a security module.
    Unconfined,
}

impl Relaxation {
    /// The kind of namespace that is the neighbour's, where there is one.
    pub fn joins(self) -> Option<&'static str> {
        match self {
            Self::Interface => Some("net"),
            Self::JoinIpc => Some("ipc"),
            Self::JoinPid => Some("pid"),
            _ => None,
        }
    }
}

#[cfg(feature = "judge")]
pub use on_settings::*;

#[cfg(feature = "judge")]
mod on_settings {
    use super::Relaxation;
    use crate::catalogue::COVERED_TEXT;
    use crate::settings::{Bind, BindKind, Memory, Settings, Tmpfs, memory, memory_of};
    use crate::stamp::sha256_hex;
    use alloc::borrow::ToOwned;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    /// How much larger a relaxed limit is. Probes try up to twice the limit.
    pub const FACTOR: i64 = 4;

    /// What is called differently in every run.
    #[derive(Clone, Copy, Debug)]
    pub struct Names<'a> {
        /// The directory that holds the host's side of /in and /out, or the volume that
        /// is /in.
        pub scratch: &'a str,
        /// The container whose network some controls join, by the engine's id.
        pub neighbour: &'a str,
        /// The variable that only a control sees.
        pub variable: &'a str,
        /// The file of the host that only a control sees.
        pub file: &'a str,
        /// SHA-256 (hex) of the run's profile with marks.
        pub marked: &'a str,
    }

    /// The names by which settings of different containers are compared.
    pub const SAME: Names<'static> = Names {
        scratch: "SCRATCH",
        neighbour: "NEIGHBOUR",
        variable: "CANARY",
        file: "CANARY",
        marked: "MARKED",
    };

    fn raise(settings: &mut Settings, name: &str) {
        for limit in settings.ulimits.iter_mut().filter(|l| l.name == name) {
            limit.soft *= FACTOR;
            limit.hard *= FACTOR;
        }
    }

    /// The volume that is /in, where the engine makes what is bound.
    pub fn volume(settings: &Settings) -> Option<&Bind> {
        let mut binds = settings.binds.iter();
        binds.find(|bind| bind.target == "/in" && bind.kind == BindKind::Volume)
    }

    /// What is /out.
    fn out(settings: &Settings) -> Option<&Bind> {
        settings.binds.iter().find(|bind| bind.target == "/out")
    }

    /// The same volume once more, somewhere else, to be read.
    fn once_more(settings: &Settings, target: &str) -> Option<Bind> {
        let volume = volume(settings)?;
        Some(Bind::of_engine(&volume.source, target, true))
    }

    /// Changes settings as a relaxation says. Those that concern the host's
    /// side or the challenge change none.
    pub fn relax(relaxation: Relaxation, settings: &mut Settings, names: Names) {
        match relaxation {
            Relaxation::SeccompOff => settings.seccomp = "unconfined".into(),
            Relaxation::TargetedDeny => {
                settings.seccomp = sha256_hex(crate::TARGETED_DENY.as_bytes());
            }
            Relaxation::Marks => settings.seccomp = names.marked.into(),
            Relaxation::RootfsWritable => settings.read_only_rootfs = false,
            Relaxation::InWritable => set_read_only(settings, "/in", false),
            Relaxation::OutReadOnly => read_only_out(settings),
            Relaxation::EnvCanary => settings.env.push(names.variable.into()),
            Relaxation::ExtraBind => {
                let folder = format!("{}/extra", names.scratch);
                let extra = match volume(settings).and(out(settings)) {
                    // An empty one, as /out is.
                    Some(out) => Bind {
                        target: "/host".into(),
                        ..out.clone()
                    },
                    None => Bind::of_host(&folder, "/host", true),
                };
                settings.binds.push(extra);
            }
            Relaxation::CanaryBind => {
                let file = once_more(settings, names.file);
                let file = file.unwrap_or_else(|| Bind::of_host(names.file, names.file, true));
                settings.binds.push(file);
            }
            Relaxation::Capability => settings.cap_add.push("NET_BIND_SERVICE".into()),
            Relaxation::NewPrivileges => settings.no_new_privileges = false,
            Relaxation::RootUser => settings.user = "0:0".into(),
            Relaxation::ExecTmpfs => {
                for tmpfs in &mut settings.tmpfs {
                    tmpfs.options = tmpfs.options.replace("noexec", "exec");
                }
            }
            Relaxation::Hostname => settings.hostname = "relaxed".into(),
            Relaxation::SystemPaths => settings.system_paths_masked = false,
            Relaxation::Device => settings.devices.push("/dev/null:/dev/tki-extra".into()),
            // Where control groups carry no limit, a resource limit does.
            Relaxation::PidsLimit if settings.pids_limit == 0 => raise(settings, "nproc"),
            Relaxation::PidsLimit => settings.pids_limit *= FACTOR,
            Relaxation::MemoryLimit if settings.memory_bytes == 0 => raise(settings, "as"),
            Relaxation::MemoryLimit => {
                settings.memory_bytes *= FACTOR;
                settings.memory_swap_bytes *= FACTOR;
            }
            Relaxation::TmpSize => settings.tmpfs.iter_mut().for_each(enlarge),
            Relaxation::NofileLimit => raise(settings, "nofile"),
            Relaxation::CoreSize => raise(settings, "core"),
            Relaxation::Inodes => {
                settings.binds.iter_mut().for_each(more_files_behind);
                settings.tmpfs.iter_mut().for_each(|tmpfs| {
                    multiply(&mut tmpfs.options, FILES);
                });
            }
            Relaxation::WorkingDirectory => settings.working_directory = "/in".into(),
            Relaxation::CoveredText => settings.covered_texts.push(COVERED_TEXT.into()),
            Relaxation::Unconfined => {
                settings.security_options.push(UNCONFINED.into());
                settings.lsm.clear();
            }
            // Far beyond: on a busy machine a period may last for several.
            Relaxation::CpuQuota => settings.cpu_quota_us *= 16 * FACTOR,
            // Where there are no volumes, the launcher makes both.
            Relaxation::Interface if volume(settings).is_some() => {
                settings.network = format!("container:{}", names.neighbour);
            }
            Relaxation::JoinIpc => settings.ipc = format!("container:{}", names.neighbour),
            Relaxation::JoinPid => settings.pid = format!("container:{}", names.neighbour),
            Relaxation::OutSize => settings.binds.iter_mut().for_each(enlarge_volume),
            Relaxation::Interface
            | Relaxation::DecoySocket
            | Relaxation::SuidDecoy
            | Relaxation::Descriptor
            | Relaxation::CgroupWritable
            | Relaxation::Thread
            | Relaxation::LockOff => {}
        }
    }

    fn set_read_only(settings: &mut Settings, target: &str, read_only: bool) {
        for bind in settings.binds.iter_mut().filter(|b| b.target == target) {
            bind.read_only = read_only;
        }
    }

    /// A volume without a name cannot be read-only: the one that is /in is /out as well.
    fn read_only_out(settings: &mut Settings) {
        match once_more(settings, "/out") {
            Some(volume) => {
                let mut binds = settings.binds.iter_mut();
                if let Some(out) = binds.find(|bind| bind.target == "/out") {
                    *out = volume;
                }
            }
            None => set_read_only(settings, "/out", true),
        }
    }

    fn enlarge_volume(bind: &mut Bind) {
        if let Some(Memory { bytes, files }) = memory_of(&bind.options) {
            let bytes = bytes.saturating_mul(FACTOR.unsigned_abs());
            bind.options = memory(Memory { bytes, files });
        }
    }

    fn more_files_behind(bind: &mut Bind) {
        if let Some(Memory { bytes, files }) = memory_of(&bind.options) {
            let files = files.saturating_mul(FACTOR.unsigned_abs());
            bind.options = memory(Memory { bytes, files });
        }
    }

    fn enlarge(tmpfs: &mut Tmpfs) {
        multiply(&mut tmpfs.options, "size=");
    }

    /// How the option of a memory file system begins that says how many files it may hold.
    const FILES: &str = "nr_inodes=";

    /// An option of a mount, larger.
    fn multiply(options: &mut String, name: &str) {
        let larger = |word: &str| match word.strip_prefix(name).map(str::parse::<i64>) {
            Some(Ok(value)) => format!("{name}{}", value.saturating_mul(FACTOR)),
            _ => word.to_owned(),
        };
        let words: Vec<String> = options.split(',').map(larger).collect();
        *options = words.join(",");
    }

    /// The security option that asks Docker and Podman for no label of AppArmor's.
    pub const UNCONFINED: &str = "apparmor=unconfined";

    /// Settings as an engine reports them, with the names of [`SAME`] in place
    /// of the container's own, in an order that does not depend on either.
    pub fn comparable(settings: Settings, names: Names) -> Settings {
        let mut out = settings;
        let below = format!("{}/", names.scratch);
        for bind in &mut out.binds {
            if bind.source == names.scratch {
                bind.source = SAME.scratch.into();
            } else if let Some(rest) = bind.source.strip_prefix(&below) {
                bind.source = format!("{}/{rest}", SAME.scratch);
            }
            for path in [&mut bind.source, &mut bind.target] {
                if path == names.file {
                    *path = SAME.file.into();
                }
            }
        }
        for mode in [&mut out.network, &mut out.ipc, &mut out.pid] {
            if mode.strip_prefix("container:") == Some(names.neighbour) {
                *mode = format!("container:{}", SAME.neighbour);
            }
        }
        // Engines speak of no label, or of one of this name.
        if out.lsm == "unconfined" {
            out.lsm.clear();
        }
        if out.seccomp == names.marked {
            out.seccomp = SAME.marked.into();
        }
        for variable in &mut out.env {
            if variable == names.variable {
                *variable = SAME.variable.into();
            }
        }
        // Engines report a capability with or without its prefix.
        for capability in &mut out.cap_add {
            if let Some(name) = capability.strip_prefix("CAP_") {
                *capability = name.to_owned();
            }
        }
        out.binds.sort_by(|a, b| a.target.cmp(&b.target));
        out.env.sort();
        out
    }
}
