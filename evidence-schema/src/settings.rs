//! The sandbox's settings in one form, whichever party states them: what we asked for
//! (`declared`) and what the engine says it set (`configured`).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The period of the CPU quota, in microseconds. Engines have a default of a tenth of a
/// second; a short period shows sooner that the quota holds.
pub const CPU_PERIOD_US: i64 = 2_000;

/// Addresses that the prober reserves and mostly never touches: its arena,
/// its code, its stack.
pub const ADDRESS_SPACE: i64 = 32 * 1024 * 1024;

/// Everything about a container that bears on what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Network mode (`none`).
    pub network: String,
    /// IPC mode (`none`: private and without /dev/shm).
    pub ipc: String,
    /// PID mode (`private`).
    pub pid: String,
    /// UTS mode (`private`).
    pub uts: String,
    /// User namespace mode (`default` is the engine's own).
    pub userns: String,
    /// Cgroup namespace mode (`private`).
    pub cgroupns: String,
    /// The host name inside.
    pub hostname: String,
    /// Privileged container.
    pub privileged: bool,
    /// Root file system read-only.
    pub read_only_rootfs: bool,
    /// `uid:gid`.
    pub user: String,
    /// Names of environment variables set on purpose.
    pub env: Vec<String>,
    /// Directories of the host and volumes of the engine.
    pub binds: Vec<Bind>,
    /// tmpfs mounts.
    pub tmpfs: Vec<Tmpfs>,
    /// Capabilities added.
    pub cap_add: Vec<String>,
    /// Capabilities dropped.
    pub cap_drop: Vec<String>,
    /// The no-new-privileges bit.
    pub no_new_privileges: bool,
    /// SHA-256 of the seccomp profile's bytes; `unconfined` or `default` if it
    /// is one of these, `several` if more than one was named.
    pub seccomp: String,
    /// Security options beside one `seccomp` and one `no-new-privileges`: none. A
    /// second of either stands here too.
    pub security_options: Vec<String>,
    /// All of [`MASKED`] and [`FROZEN`] are masked and frozen.
    pub system_paths_masked: bool,
    /// Texts of /proc that evidence rests on and that something lies over: none.
    pub covered_texts: Vec<String>,
    /// The label of a security module, as the engine says it gave it; empty if it says
    /// nothing of one. Nobody asks for a certain one.
    pub lsm: String,
    /// The directory that the first process starts in (`/`).
    pub working_directory: String,
    /// Host devices passed in.
    pub devices: Vec<String>,
    /// Most processes.
    pub pids_limit: i64,
    /// Most memory, in bytes.
    pub memory_bytes: i64,
    /// Memory and swap, in bytes; equal to `memory_bytes` means no swap.
    pub memory_swap_bytes: i64,
    /// Period of the CPU quota, in microseconds.
    pub cpu_period_us: i64,
    /// CPU time in each period, in microseconds.
    pub cpu_quota_us: i64,
    /// Resource limits.
    pub ulimits: Vec<Ulimit>,
    /// The engine removes the container when it ends.
    pub auto_remove: bool,
    /// Where the engine keeps the container's output (`none`).
    pub log_driver: String,
}

/// Something from outside of the container that is visible inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// What it is.
    pub kind: BindKind,
    /// The host's path, or the volume's name. A volume without a name of its own goes
    /// with the container.
    pub source: String,
    /// The path inside.
    pub target: String,
    /// Not writable inside.
    pub read_only: bool,
    /// The options of the volume's driver, [`memory`] or empty: what the engine makes
    /// the volume of.
    pub options: String,
}

/// What is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BindKind {
    /// A directory or file of the host.
    Bind,
    /// A volume of the engine's.
    Volume,
}

impl Bind {
    /// A directory or file of the host.
    pub fn of_host(source: &str, target: &str, read_only: bool) -> Self {
        Self {
            kind: BindKind::Bind,
            source: source.into(),
            target: target.into(),
            read_only,
            options: String::new(),
        }
    }

    /// A volume of the engine's.
    pub fn of_engine(name: &str, target: &str, read_only: bool) -> Self {
        Self {
            kind: BindKind::Volume,
            ..Self::of_host(name, target, read_only)
        }
    }
}

/// Paths of /proc and /sys that nobody inside is to read.
pub const MASKED: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];

/// Paths of /proc that nobody inside is to write to.
pub const FROZEN: &[&str] = &[
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// What tells how hot a processor gets. There is one for each.
fn thermal_path(cpu: i64) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle")
}

/// More processors than any kernel of this architecture knows.
pub const MOST_CPUS: i64 = 8192;

/// Everything that is to be masked on a host with so many processors. A runtime passes over
/// what is not there.
pub fn masked_paths(settings: &Settings, cpus: i64) -> Vec<String> {
    // How many there are is the engine's word.
    let cpus = cpus.min(MOST_CPUS);
    let ours = MASKED.iter().map(|path| (*path).to_owned());
    let ours = ours.chain((0..cpus).map(thermal_path));
    let ours = ours.filter(|_| settings.system_paths_masked);
    ours.chain(settings.covered_texts.iter().cloned()).collect()
}

/// What is to be frozen.
pub fn frozen_paths(settings: &Settings) -> Vec<String> {
    let ours = FROZEN.iter().filter(|_| settings.system_paths_masked);
    ours.map(|path| (*path).to_owned()).collect()
}

/// Whether an engine's lists of masked and of read-only paths hold ours.
pub fn are_system_paths_masked(masked: &[String], frozen: &[String]) -> bool {
    let holds = |list: &[String], path: &&str| list.iter().any(|own| own == path);
    MASKED.iter().all(|path| holds(masked, path)) && FROZEN.iter().all(|path| holds(frozen, path))
}

/// Those of an engine's masked paths that lie over a text of /proc which evidence rests on.
pub fn covered_texts(masked: &[String]) -> Vec<String> {
    let is_text = |path: &&String| {
        let text = path.strip_prefix("/proc/");
        text.is_some_and(|text| crate::catalogue::TEXTS.contains(&text))
    };
    masked.iter().filter(is_text).cloned().collect()
}

/// How much a memory file system may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes.
    pub bytes: u64,
    /// Files, directories and whatever else has a name.
    pub files: u64,
}

/// How the options of a volume in memory begin; its size follows.
const MEMORY: &str = "type=tmpfs,device=tmpfs,o=noexec,nosuid,nodev,size=";

/// The options of a volume in memory that holds so much and executes nothing.
pub fn memory(Memory { bytes, files }: Memory) -> String {
    format!("{MEMORY}{bytes},nr_inodes={files}")
}

/// How much a volume with these options holds, if it is one in memory.
pub fn memory_of(options: &str) -> Option<Memory> {
    let (bytes, files) = options.strip_prefix(MEMORY)?.split_once(",nr_inodes=")?;
    let found = Memory {
        bytes: bytes.parse().ok()?,
        files: files.parse().ok()?,
    };
    (options == memory(found)).then_some(found)
}

/// A memory file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tmpfs {
    /// The path inside.
    pub target: String,
    /// Mount options, comma-separated.
    pub options: String,
}

/// A resource limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ulimit {
    /// `nofile`, `nproc`, …
    pub name: String,
    /// Soft limit.
    pub soft: i64,
    /// Hard limit.
    pub hard: i64,
}

/// One setting that the engine did not take as it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The setting's name.
    pub setting: String,
    /// What was asked for.
    pub declared: String,
    /// What the engine says it set.
    pub configured: String,
}

/// Every setting in which the two differ, by name.
pub fn deviations(declared: &Settings, configured: &Settings) -> Vec<Deviation> {
    let mut found = Vec::new();
    // Taken apart by name, so that a new setting cannot be forgotten here.
    macro_rules! compare {
        ($($name:ident),* $(,)?) => {
            let Settings { lsm, $($name),* } = declared;
            if !lsm.is_empty() && *lsm != configured.lsm {
                found.push(Deviation {
                    setting: "lsm".into(),
                    declared: shown(lsm),
                    configured: shown(&configured.lsm),
                });
            }
            $(if *$name != configured.$name {
                found.push(Deviation {
                    setting: stringify!($name).into(),
                    declared: shown($name),
                    configured: shown(&configured.$name),
                });
            })*
        };
    }
    compare!(
        auto_remove,
        binds,
        cap_add,
        cap_drop,
        cgroupns,
        covered_texts,
        cpu_period_us,
        cpu_quota_us,
        devices,
        env,
        hostname,
        ipc,
        log_driver,
        memory_bytes,
        memory_swap_bytes,
        network,
        no_new_privileges,
        pid,
        pids_limit,
        privileged,
        read_only_rootfs,
        seccomp,
        security_options,
        system_paths_masked,
        tmpfs,
        ulimits,
        user,
        userns,
        uts,
        working_directory,
    );
    found
}

/// A setting as JSON, its keys sorted.
fn shown(setting: &impl Serialize) -> String {
    let value = serde_json::to_value(setting);
    let text = value.and_then(|value| serde_json::to_string(&value));
    text.unwrap_or_default()
}

/// Where settings fall short of the sandbox that the requirements describe,
/// one line each. No limit's exact size matters here, only that it stands.
pub fn shortfalls(settings: &Settings) -> Vec<String> {
    let mut short = Vec::new();
    let mut require = |holds: bool, what: &str| {
        if !holds {
            short.push(what.to_owned());
        }
    };
    require(settings.network == "none", "the network is not `none`");
    for (name, mode, own) in [
        ("ipc", &settings.ipc, "none"),
        ("pid", &settings.pid, "private"),
        ("uts", &settings.uts, "private"),
        ("userns", &settings.userns, "default"),
        ("cgroupns", &settings.cgroupns, "private"),
    ] {
        require(mode == own, &format!("the {name} namespace is not its own"));
    }
    require(!settings.privileged, "the container is privileged");
    require(
        settings.read_only_rootfs,
        "the root file system is writable",
    );
    require(
        settings
            .user
            .split(':')
            .all(|id| id != "0" && !id.is_empty() && id != "root"),
        "the user is root",
    );
    require(settings.env.is_empty(), "environment variables are set");
    let mut binds: Vec<(&str, bool)> = settings
        .binds
        .iter()
        .map(|bind| (bind.target.as_str(), bind.read_only))
        .collect();
    binds.sort_unstable();
    require(
        binds == [("/in", true), ("/out", false)],
        "the binds are not exactly /in read-only and /out",
    );
    let volumes = settings
        .binds
        .iter()
        .filter(|bind| bind.kind == BindKind::Volume && !bind.read_only);
    require(
        volumes
            .map(|bind| memory_of(&bind.options))
            .all(|size| size.is_some()),
        "a volume that can be written to lacks noexec, nosuid, nodev, a size or a number of files",
    );
    require(
        settings.tmpfs.iter().all(|tmpfs| {
            let options: Vec<&str> = tmpfs.options.split(',').collect();
            ["noexec", "nosuid", "nodev"]
                .iter()
                .all(|option| options.contains(option))
                && ["size=", "nr_inodes="]
                    .iter()
                    .all(|limit| options.iter().any(|option| option.starts_with(limit)))
        }),
        "a tmpfs lacks noexec, nosuid, nodev, a size or a number of files",
    );
    require(
        settings.cap_drop == ["ALL"],
        "not all capabilities are dropped",
    );
    require(settings.cap_add.is_empty(), "capabilities are added");
    require(settings.no_new_privileges, "no-new-privileges is off");
    require(
        settings.seccomp.len() == 64,
        "there is no seccomp profile of our own",
    );
    require(
        settings.security_options.is_empty(),
        "there are security options that nobody asked for",
    );
    require(settings.devices.is_empty(), "host devices are passed in");
    // Without control groups, resource limits of the process may stand in.
    let carried = |name: &str, most: i64| {
        settings
            .ulimits
            .iter()
            .any(|limit| limit.name == name && (1..=most).contains(&limit.hard))
    };
    require(
        settings.pids_limit > 0 || carried("nproc", 1024),
        "there is no pids limit",
    );
    require(
        settings.memory_bytes > 0 || carried("as", 1 << 33),
        "there is no memory limit",
    );
    require(
        settings.cpu_quota_us > 0 && settings.cpu_period_us > 0,
        "there is no CPU limit",
    );
    require(
        settings.system_paths_masked,
        "paths of /proc and /sys are not masked",
    );
    require(
        settings.covered_texts.is_empty(),
        "something lies over texts of /proc",
    );
    require(
        settings.working_directory == "/",
        "the working directory is not the root",
    );
    for name in ["nofile", "nproc"] {
        require(
            settings
                .ulimits
                .iter()
                .any(|limit| limit.name == name && limit.hard > 0),
            &format!("there is no {name} limit"),
        );
    }
    require(
        settings.auto_remove,
        "the container is not removed by itself",
    );
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many processors there are is the engine's word, and costs nothing.
    #[test]
    fn no_number_of_processors_makes_an_endless_list() {
        let text = r#"{"network":"","ipc":"","pid":"","uts":"","userns":"","cgroupns":"",
            "hostname":"","privileged":false,"read_only_rootfs":true,"user":"","env":[],"binds":[],
            "tmpfs":[],"cap_add":[],"cap_drop":[],"no_new_privileges":true,"seccomp":"",
            "security_options":[],"system_paths_masked":true,"covered_texts":["/proc/x"],"lsm":"",
            "working_directory":"/","devices":[],"pids_limit":1,"memory_bytes":1,
            "memory_swap_bytes":1,"cpu_period_us":1,"cpu_quota_us":1,"ulimits":[],
            "auto_remove":true,"log_driver":""}"#;
        let mut settings: Settings = serde_json::from_str(text).unwrap();
        let most = MASKED.len() + 8192 + 1;
        assert_eq!(masked_paths(&settings, i64::MAX).len(), most);
        assert_eq!(masked_paths(&settings, i64::MIN).len(), MASKED.len() + 1);
        let two = masked_paths(&settings, 2);
        assert_eq!(two[two.len() - 1], "/proc/x");
        assert!(two[two.len() - 2].ends_with("/cpu1/thermal_throttle"));
        settings.system_paths_masked = false;
        assert_eq!(masked_paths(&settings, 2), ["/proc/x"]);
        assert!(frozen_paths(&settings).is_empty());
    }
}
