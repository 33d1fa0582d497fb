//! The OCI configuration that libcontainer was given.

use super::oci::{Capabilities, Config, Mount, Whose, bare};
use crate::settings::{Bind, Settings, Tmpfs};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;
use serde_json::Value;

/// Who the container's user is, if it becomes that in a user namespace of its own
/// right before the exec: libcontainer must be root to the last.
pub const BECOMES: &str = "dev.tki.attest.user";

/// A bind that stands for a device node.
fn is_device(mount: &Mount) -> bool {
    mount.r#type == "bind" && mount.source == "/dev/null"
}

/// What a configuration says, in the common form; one of another form says nothing, so that
/// everything in it is off. `seccomp` is the digest of the profile that was compiled and
/// loaded, or `unconfined`.
pub fn configured(config: &Value, seccomp: &str) -> Settings {
    let config = Config::deserialize(config).unwrap_or_default();
    let becomes = config.annotations.get(BECOMES);
    let own = |kind: &str| match config.namespace(kind) {
        Whose::Own => "private".to_owned(),
        Whose::Host | Whose::At(_) => "host".to_owned(),
    };
    let capabilities = config.process.capabilities.as_ref();
    let settings = config.settings();
    Settings {
        network: match config.namespace("network") {
            Whose::Own => "none".into(),
            Whose::Host | Whose::At(_) => "host".into(),
        },
        ipc: match config.namespace("ipc") {
            Whose::Own if !config.has_shm() => "none".into(),
            _ => own("ipc"),
        },
        pid: own("pid"),
        uts: own("uts"),
        cgroupns: own("cgroup"),
        user: becomes.cloned().unwrap_or(settings.user),
        env: variables(&config),
        binds: binds(&config),
        tmpfs: config
            .memory()
            .map(|mount| Tmpfs {
                target: mount.destination.clone(),
                options: mount.options.join(","),
            })
            .collect(),
        cap_add: capabilities
            .map(|sets| held(sets, becomes.is_some()))
            .unwrap_or_default(),
        // Sets that are not named are left as they are.
        cap_drop: capabilities.map_or(Vec::new(), |_| settings.cap_drop),
        seccomp: seccomp.into(),
        devices: devices(&config),
        // The keeper holds both promises: it removes what it made, and keeps
        // no output.
        auto_remove: true,
        log_driver: "none".into(),
        ..settings
    }
}

/// Capabilities in the order of the sets. A process that becomes another user has lost its own
/// by then.
fn held(sets: &Capabilities, becomes: bool) -> Vec<String> {
    let kept = [&sets.bounding, &sets.inheritable, &sets.ambient];
    let own = [&sets.effective, &sets.permitted];
    let own = own.into_iter().filter(|_| !becomes);
    let names = kept.into_iter().chain(own).flatten();
    names.map(|name| bare(name)).collect()
}

/// Names of variables.
fn variables(config: &Config) -> Vec<String> {
    let entries = config.process.env.iter();
    let names = entries.filter_map(|entry| Some(entry.split_once('=')?.0.to_owned()));
    names.collect()
}

fn binds(config: &Config) -> Vec<Bind> {
    let mounts = config.mounts.iter();
    let mut binds: Vec<Bind> = mounts
        .filter(|mount| mount.r#type == "bind" && mount.destination != "/sys/fs/cgroup")
        .filter(|mount| !is_device(mount))
        .map(|mount| Bind::of_host(&mount.source, &mount.destination, mount.has("ro")))
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    binds
}

/// Device nodes, and binds that stand for one.
fn devices(config: &Config) -> Vec<String> {
    let nodes = config.linux.devices.iter().map(|device| &device.path);
    let mounts = config.mounts.iter().filter(|mount| is_device(mount));
    let binds = mounts.map(|mount| &mount.destination);
    let all = nodes.chain(binds);
    all.map(|path| format!("/dev/null:{path}")).collect()
}
