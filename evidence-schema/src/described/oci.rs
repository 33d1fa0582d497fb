//! An OCI runtime configuration, as far as it bears on what a container may do: what Podman
//! hands to its runtime, and what the embedded engine gives to libcontainer. What is not there
//! is off.
//!
//! `oci-spec` has a type for all of it, and needs the standard library, which this crate's core
//! does without.

use crate::settings::{Settings, Ulimit, are_system_paths_masked, covered_texts};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::Deserialize;
use serde_json::Value;

/// The configuration.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Config {
    pub process: Process,
    pub root: Root,
    #[serde(default)]
    pub hostname: String,
    #[serde(default)]
    pub mounts: Vec<Mount>,
    pub linux: Linux,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Process {
    pub user: User,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: Vec<String>,
    #[serde(default)]
    pub capabilities: Option<Capabilities>,
    #[serde(default)]
    rlimits: Vec<Rlimit>,
    #[serde(default)]
    no_new_privileges: bool,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    pub apparmor_profile: String,
    #[serde(default)]
    selinux_label: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct User {
    uid: u32,
    gid: u32,
    #[serde(default)]
    additional_gids: Vec<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Capabilities {
    pub bounding: Vec<String>,
    pub effective: Vec<String>,
    pub inheritable: Vec<String>,
    pub permitted: Vec<String>,
    pub ambient: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Rlimit {
    r#type: String,
    soft: i64,
    hard: i64,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Root {
    #[serde(default)]
    pub readonly: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mount {
    pub destination: String,
    #[serde(default)]
    pub r#type: String,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub options: Vec<String>,
}

impl Mount {
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Linux {
    #[serde(default)]
    namespaces: Vec<Namespace>,
    #[serde(default)]
    resources: Resources,
    #[serde(default)]
    pub devices: Vec<Device>,
    #[serde(default)]
    pub seccomp: Option<Value>,
    #[serde(default)]
    masked_paths: Vec<String>,
    #[serde(default)]
    readonly_paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Namespace {
    r#type: String,
    #[serde(default)]
    path: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Device {
    #[serde(default)]
    pub path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    memory: Memory,
    cpu: Cpu,
    pids: Pids,
    devices: Vec<DeviceRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Memory {
    limit: i64,
    swap: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cpu {
    quota: i64,
    period: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pids {
    limit: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeviceRule {
    allow: bool,
    major: Option<i64>,
}

/// Whose a namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose<'a> {
    /// The host's.
    Host,
    /// The container's own.
    Own,
    /// The one at this path.
    At(&'a str),
}

impl Config {
    /// Whose namespace of a kind it is.
    pub fn namespace(&self, kind: &str) -> Whose<'_> {
        let found = self.linux.namespaces.iter().find(|ns| ns.r#type == kind);
        match found {
            None => Whose::Host,
            Some(namespace) if namespace.path.is_empty() => Whose::Own,
            Some(namespace) => Whose::At(&namespace.path),
        }
    }

    /// It has shared memory of its own at /dev/shm, or another container's.
    pub fn has_shm(&self) -> bool {
        self.mounts.iter().any(|m| m.destination == "/dev/shm")
    }

    /// Every memory file system but /dev, which each container has.
    pub fn memory(&self) -> impl Iterator<Item = &Mount> {
        let mounts = self.mounts.iter();
        mounts.filter(|mount| mount.r#type == "tmpfs" && mount.destination != "/dev")
    }

    /// What it says by itself, in the common form. Namespaces, mounts, capabilities and what
    /// else an engine describes in its own way are that engine's to add.
    pub fn settings(&self) -> Settings {
        let (process, linux) = (&self.process, &self.linux);
        let resources = &linux.resources;
        Settings {
            network: String::new(),
            ipc: String::new(),
            pid: String::new(),
            uts: String::new(),
            userns: "default".into(),
            cgroupns: String::new(),
            hostname: self.hostname.clone(),
            privileged: false,
            read_only_rootfs: self.root.readonly,
            user: format!("{}:{}", process.user.uid, process.user.gid),
            env: Vec::new(),
            binds: Vec::new(),
            tmpfs: Vec::new(),
            cap_add: Vec::new(),
            // What is in no set has been dropped; the others are named.
            cap_drop: vec!["ALL".into()],
            no_new_privileges: process.no_new_privileges,
            seccomp: "unconfined".into(),
            security_options: self.beyond(),
            system_paths_masked: are_system_paths_masked(
                &linux.masked_paths,
                &linux.readonly_paths,
            ),
            covered_texts: covered_texts(&linux.masked_paths),
            lsm: process.label(),
            working_directory: process.cwd.clone(),
            devices: Vec::new(),
            pids_limit: resources.pids.limit,
            memory_bytes: resources.memory.limit,
            memory_swap_bytes: resources.memory.swap,
            cpu_period_us: resources.cpu.period,
            cpu_quota_us: resources.cpu.quota,
            ulimits: process.ulimits(),
            auto_remove: false,
            log_driver: String::new(),
        }
    }

    /// What gives a container more than it has by itself and has no setting of its own,
    /// in the form of security options: a mount namespace that is not its own, groups of
    /// others, and rules that allow devices of every number.
    fn beyond(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.namespace("mount") != Whose::Own {
            found.push("mount-namespace=host".to_owned());
        }
        let user = &self.process.user;
        let groups = user.additional_gids.iter();
        let others = groups.filter(|group| **group != user.gid);
        found.extend(others.map(|group| format!("group-add={group}")));
        let mut rules = self.linux.resources.devices.iter();
        if rules.any(|rule| rule.allow && rule.major.is_none()) {
            found.push("device-cgroup-rule=a".to_owned());
        }
        found
    }
}

impl Process {
    /// The label of a security module: one of AppArmor's or one of SELinux's.
    fn label(&self) -> String {
        match self.apparmor_profile.as_str() {
            "" => self.selinux_label.clone(),
            profile => profile.to_owned(),
        }
    }

    fn ulimits(&self) -> Vec<Ulimit> {
        let limits = self.rlimits.iter().map(|limit| Ulimit {
            name: limit.r#type.trim_start_matches("RLIMIT_").to_lowercase(),
            soft: limit.soft,
            hard: limit.hard,
        });
        let mut limits: Vec<Ulimit> = limits.collect();
        limits.sort_by(|a, b| a.name.cmp(&b.name));
        limits
    }
}

/// A capability without the prefix that Docker leaves out.
pub(super) fn bare(capability: &str) -> String {
    let name = capability.strip_prefix("CAP_").unwrap_or(capability);
    name.to_owned()
}
