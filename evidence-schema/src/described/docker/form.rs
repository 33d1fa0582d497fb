//! The parts of Docker's description that settings are read from. What is left out or null is
//! what the engine does by default.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// `GET /containers/ID/json`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Container {
    pub name: Option<String>,
    /// The program, without its arguments.
    pub path: Option<String>,
    pub args: Option<Vec<String>>,
    /// The image's id.
    pub image: Option<String>,
    pub state: Option<State>,
    pub config: Option<Config>,
    pub host_config: Option<HostConfig>,
    /// What is mounted.
    pub mounts: Option<Vec<MountPoint>>,
    pub app_armor_profile: Option<String>,
    /// SELinux's label.
    pub process_label: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct State {
    pub pid: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Config {
    pub hostname: Option<String>,
    pub user: Option<String>,
    pub env: Option<Vec<String>>,
    pub working_dir: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct HostConfig {
    pub network_mode: Option<String>,
    pub ipc_mode: Option<String>,
    pub pid_mode: Option<String>,
    #[serde(rename = "UTSMode")]
    pub uts_mode: Option<String>,
    pub userns_mode: Option<String>,
    pub cgroupns_mode: Option<String>,
    pub privileged: Option<bool>,
    pub readonly_rootfs: Option<bool>,
    pub auto_remove: Option<bool>,
    pub publish_all_ports: Option<bool>,
    pub oom_kill_disable: Option<bool>,
    pub cap_add: Option<Vec<String>>,
    pub cap_drop: Option<Vec<String>>,
    pub security_opt: Option<Vec<String>>,
    pub group_add: Option<Vec<String>>,
    pub device_cgroup_rules: Option<Vec<String>>,
    pub volumes_from: Option<Vec<String>>,
    pub masked_paths: Option<Vec<String>>,
    pub readonly_paths: Option<Vec<String>>,
    pub device_requests: Option<Vec<IgnoredAny>>,
    pub port_bindings: Option<BTreeMap<String, IgnoredAny>>,
    pub sysctls: Option<BTreeMap<String, String>>,
    pub tmpfs: Option<BTreeMap<String, String>>,
    pub devices: Option<Vec<Device>>,
    pub ulimits: Option<Vec<Limit>>,
    /// What was asked to be mounted.
    pub mounts: Option<Vec<Mount>>,
    pub pids_limit: Option<i64>,
    pub memory: Option<i64>,
    pub memory_swap: Option<i64>,
    pub cpu_period: Option<i64>,
    pub cpu_quota: Option<i64>,
    /// The OCI runtime.
    pub runtime: Option<String>,
    pub log_config: Option<LogConfig>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Device {
    pub path_on_host: Option<String>,
    pub path_in_container: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Limit {
    pub name: Option<String>,
    pub soft: Option<i64>,
    pub hard: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct LogConfig {
    #[serde(rename = "Type")]
    pub typ: Option<String>,
}

/// Something that was asked to be mounted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Mount {
    #[serde(rename = "Type")]
    pub typ: Option<String>,
    pub source: Option<String>,
    pub target: Option<String>,
    pub read_only: Option<bool>,
    pub volume_options: Option<VolumeOptions>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct VolumeOptions {
    pub driver_config: Option<Driver>,
}

/// What a volume is made by.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Driver {
    pub name: Option<String>,
    pub options: Option<BTreeMap<String, String>>,
}

/// Something that is mounted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct MountPoint {
    #[serde(rename = "Type")]
    pub typ: Option<String>,
    /// The volume's name.
    pub name: Option<String>,
    pub source: Option<String>,
    pub destination: Option<String>,
    #[serde(rename = "RW")]
    pub rw: Option<bool>,
    pub propagation: Option<String>,
}
