//! Podman's description of a container. It leaves out or rewrites some settings, so
//! what it handed to the runtime counts, which it names in the description: the OCI
//! configuration. Both are kept, with the profile that Podman was given as a file.

use super::names::is_id;
use super::oci::{Config, Mount, Whose, bare};
use super::options::{Named, Options};
use super::{Described, DescribedError, unique};
use crate::catalogue::ENGINE_FILES;
use crate::relaxation::UNCONFINED;
use crate::seccomp::{Action, Argument, Place, Reading, Rules};
use crate::settings::{Bind, Settings, Tmpfs, memory_of};
use crate::stamp::sha256_hex;
use crate::syscalls;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that the settings are read from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Podman's description of the container.
    pub inspect: Value,
    /// What it handed to the runtime.
    pub oci_config: Value,
    /// The profile that it was given; null if it was given none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub profile: Option<Profile>,
}

/// A seccomp profile in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The path that Podman was given.
    pub path: String,
    /// What stood there after the start.
    pub text: String,
}

/// Reads what was written down of a container.
pub(super) fn read(bytes: &[u8]) -> Result<Described, DescribedError> {
    let document: Document = unique::read(bytes)?;
    let described = description(&document.inspect)?;
    described_by(&document, &described)
}

/// Podman's description in its parts.
pub fn description(inspect: &Value) -> Result<Description, DescribedError> {
    Ok(Description::deserialize(inspect)?)
}

/// What a description says; `described` are its parts.
pub fn described_by(
    document: &Document,
    described: &Description,
) -> Result<Described, DescribedError> {
    let oci = Config::deserialize(&document.oci_config)?;
    let profile = document.profile.as_ref();
    let profile = profile.map(|profile| (profile.path.as_str(), profile.text.as_bytes()));
    Ok(Described {
        settings: settings(described, &oci, profile),
        name: described.name.clone(),
        labels: described.config.labels.clone().unwrap_or_default(),
        image_id: digest(&described.image),
        program: oci.process.args.clone(),
        oci_runtime: Some(described.oci_runtime.clone()),
        pid: i32::try_from(described.state.pid)
            .ok()
            .filter(|pid| *pid > 1),
    })
}

/// Podman writes an image's id without the name of the hash.
pub fn digest(id: &str) -> String {
    match id.contains(':') {
        true => id.to_owned(),
        false => format!("sha256:{id}"),
    }
}

/// Podman's description of a container.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Description {
    /// The container's name.
    #[serde(default)]
    name: String,
    #[serde(default)]
    config: Labelled,
    /// The image's id.
    pub image: String,
    /// The OCI runtime's name.
    #[serde(rename = "OCIRuntime")]
    pub oci_runtime: String,
    /// Where the OCI configuration is.
    #[serde(rename = "OCIConfigPath")]
    pub oci_config_path: String,
    /// Its state.
    pub state: State,
    host_config: HostConfig,
    #[serde(default)]
    mounts: Vec<Mounted>,
}

/// Something that is mounted, as Podman describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Mounted {
    r#type: String,
    name: String,
    source: String,
    destination: String,
    options: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Labelled {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// A container's state.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct State {
    /// Its first process.
    pub pid: i64,
    /// The process that watches over it.
    #[serde(default)]
    pub conmon_pid: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostConfig {
    network_mode: String,
    #[serde(default)]
    ipc_mode: String,
    #[serde(default)]
    pid_mode: String,
    userns_mode: String,
    privileged: bool,
    auto_remove: bool,
    log_config: LogConfig,
    security_opt: Option<Vec<String>>,
    devices: Option<Vec<PassedDevice>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LogConfig {
    r#type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PassedDevice {
    path_on_host: String,
    path_in_container: String,
}

impl Description {
    /// Its security options. Where SELinux is off, or a host's configuration turns its
    /// labels off, Podman says so of every container.
    fn options(&self) -> Options<'_> {
        let options = self.host_config.security_opt.as_deref();
        let mut options = Options::of(options.unwrap_or_default());
        options.others.retain(|option| option != "label=disable");
        options
    }
}

/// A namespace by the path that the runtime was given, or by the container whose it is, if
/// Podman says so.
fn joined(found: &str, mode: &str) -> String {
    match found.starts_with("ns:") && mode.starts_with("container:") {
        true => mode.to_owned(),
        false => found.to_owned(),
    }
}

/// Both in the common form. `profile` is what stands in the file that was
/// handed over, with its path.
fn settings(described: &Description, oci: &Config, profile: Option<(&str, &[u8])>) -> Settings {
    let host = &described.host_config;
    let namespace = |kind: &str| match oci.namespace(kind) {
        Whose::Host => "host".to_owned(),
        Whose::Own => "private".to_owned(),
        Whose::At(path) => format!("ns:{path}"),
    };
    let settings = oci.settings();
    Settings {
        network: match namespace("network").as_str() {
            "private" => host.network_mode.clone(),
            other => joined(other, &host.network_mode),
        },
        ipc: match namespace("ipc").as_str() {
            "private" if !oci.has_shm() => "none".into(),
            other => joined(other, &host.ipc_mode),
        },
        pid: joined(&namespace("pid"), &host.pid_mode),
        uts: namespace("uts"),
        userns: match host.userns_mode.as_str() {
            "" => settings.userns,
            mode => mode.to_owned(),
        },
        cgroupns: namespace("cgroup"),
        privileged: host.privileged,
        env: variables(oci),
        binds: binds(oci, &described.mounts, &host.ipc_mode),
        tmpfs: tmpfs(oci),
        cap_add: capabilities(oci),
        seccomp: seccomp(described, oci, profile),
        security_options: [security_options(described, oci), settings.security_options].concat(),
        devices: host
            .devices
            .iter()
            .flatten()
            .map(|device| format!("{}:{}", device.path_on_host, device.path_in_container))
            .chain(bound_devices(oci))
            .collect(),
        auto_remove: host.auto_remove,
        log_driver: host.log_config.r#type.clone(),
        ..settings
    }
}

/// Security options that nobody asks for. Podman does not name one that it turned into a
/// setting of the runtime's.
fn security_options(described: &Description, oci: &Config) -> Vec<String> {
    let mut others = described.options().others;
    if oci.process.apparmor_profile == "unconfined" && !others.iter().any(|one| one == UNCONFINED) {
        others.push(UNCONFINED.into());
    }
    others
}

/// Names of variables set on purpose. Podman cannot be kept from telling the
/// container its own host name.
fn variables(oci: &Config) -> Vec<String> {
    let entries = oci.process.env.iter().map(|entry| {
        let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
        (name, value)
    });
    entries
        .filter(|(name, value)| *name != "HOSTNAME" || *value != oci.hostname)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Every bind but the files that engines add by themselves. They are read-only
/// where the root is, and only then. A volume is bound from the directory in which
/// Podman keeps it, and its name is in the description.
fn binds(oci: &Config, described: &[Mounted], ipc_mode: &str) -> Vec<Bind> {
    // A container that joins an IPC namespace gets the shared memory of the container whose it is.
    let joined = ipc_mode.strip_prefix("container:");
    let joined = joined.map(|id| format!("/{id}/userdata/shm"));
    let is_joined = |mount: &Mount| {
        let is_its = |end: &String| mount.source.ends_with(end.as_str());
        mount.destination == "/dev/shm" && joined.as_ref().is_some_and(is_its)
    };
    let engine_file = |mount: &Mount| {
        ENGINE_FILES.contains(&mount.destination.as_str()) && mount.has("ro") == oci.root.readonly
    };
    let mut binds: Vec<Bind> = oci
        .mounts
        .iter()
        .filter(|mount| mount.r#type == "bind" || mount.has("bind") || mount.has("rbind"))
        .filter(|mount| !engine_file(mount) && !is_device(mount) && !is_joined(mount))
        .map(|mount| {
            let is_it = |one: &&Mounted| {
                one.r#type == "volume"
                    && one.destination == mount.destination
                    && one.source == mount.source
            };
            match described.iter().find(is_it) {
                Some(volume) => volume.bind(mount.has("ro")),
                None => Bind::of_host(&mount.source, &mount.destination, mount.has("ro")),
            }
        })
        .collect();
    binds.sort_by(|a, b| a.target.cmp(&b.target));
    binds
}

impl Mounted {
    /// The volume. One without a name of its own has a random one, and is made of what
    /// was asked for with the container.
    fn bind(&self, read_only: bool) -> Bind {
        let words = self.options.iter().flatten();
        let mut given: Vec<&str> = Vec::new();
        // Podman repeats them.
        for word in words.filter_map(|word| word.strip_prefix("volume-opt=")) {
            if !given.contains(&word) {
                given.push(word);
            }
        }
        let name = match given.is_empty() {
            false if is_id(&self.name) => "",
            _ => self.name.as_str(),
        };
        Bind {
            options: in_bytes(&given.join(",")),
            ..Bind::of_engine(name, &self.destination, read_only)
        }
    }
}

/// Options of a volume with its size in bytes: Podman takes a size for a quota on a disk,
/// so that it is asked for pages.
fn in_bytes(options: &str) -> String {
    let Some((before, rest)) = options.rsplit_once(PAGES) else {
        return options.to_owned();
    };
    let (pages, after) = match rest.split_once(',') {
        Some((pages, after)) => (pages, format!(",{after}")),
        None => (rest, String::new()),
    };
    let pages = pages.parse::<u64>().ok();
    match pages.and_then(|pages| pages.checked_mul(PAGE)) {
        Some(bytes) => format!("{before}size={bytes}{after}"),
        None => options.to_owned(),
    }
}

/// The same the other way round.
pub fn in_pages(options: &str) -> String {
    match memory_of(options) {
        Some(size) => {
            let pages = format!("{PAGES}{}", size.bytes.div_ceil(PAGE));
            options.replace(&format!("size={}", size.bytes), &pages)
        }
        None => options.to_owned(),
    }
}

/// The kernel's word for the size of a memory file system in pages.
const PAGES: &str = "nr_blocks=";

/// The size of a page on the machines that this tool knows.
const PAGE: u64 = 4096;

/// Without root Podman binds a device, because nobody else may make a node of it.
fn is_device(mount: &Mount) -> bool {
    mount.source.starts_with("/dev/") && mount.destination.starts_with("/dev/")
}

/// Devices that are binds.
fn bound_devices(oci: &Config) -> impl Iterator<Item = String> {
    let devices = oci.mounts.iter().filter(|mount| is_device(mount));
    devices.map(|mount| format!("{}:{}", mount.source, mount.destination))
}

/// Every memory file system but /dev, which each container has.
fn tmpfs(oci: &Config) -> Vec<Tmpfs> {
    let mut found: Vec<Tmpfs> = oci
        .memory()
        .map(|mount| {
            // No mount of a container's is shared if nobody asks for it: Podman
            // says so, Docker does not.
            let options = mount.options.iter().filter(|option| *option != "rprivate");
            Tmpfs {
                target: mount.destination.clone(),
                options: options.cloned().collect::<Vec<_>>().join(","),
            }
        })
        .collect();
    found.sort_by(|a, b| a.target.cmp(&b.target));
    found
}

/// Capabilities in any set, without the prefix that Docker leaves out.
fn capabilities(oci: &Config) -> Vec<String> {
    let Some(sets) = &oci.process.capabilities else {
        return Vec::new();
    };
    let mut names: Vec<String> = [
        &sets.bounding,
        &sets.effective,
        &sets.inheritable,
        &sets.permitted,
        &sets.ambient,
    ]
    .into_iter()
    .flatten()
    .map(|name| bare(name))
    .collect();
    names.sort();
    names.dedup();
    names
}

/// The profile's digest, if the path that Podman names is that of the profile
/// and the runtime got the same rules.
fn seccomp(described: &Description, oci: &Config, profile: Option<(&str, &[u8])>) -> String {
    let Some(loaded) = &oci.linux.seccomp else {
        return "unconfined".into();
    };
    match (described.options().seccomp, profile) {
        (Named::Several, _) => "several".into(),
        (Named::One(named), Some((path, bytes))) if named == path => {
            if same_rules(bytes, loaded) {
                sha256_hex(bytes)
            } else {
                "another".into()
            }
        }
        _ => "default".into(),
    }
}

/// A profile and what the runtime got have the same rules for every call: Podman itself
/// decides which of them concern this container, and what it decided is written there.
fn same_rules(profile: &[u8], loaded: &serde_json::Value) -> bool {
    let loaded = Rules::parse(loaded.to_string().as_bytes());
    let (Ok(written), Ok(loaded)) = (Rules::parse(profile), loaded) else {
        return false;
    };
    // Taken apart once: a profile may name calls without end.
    let place = Place::default();
    let (by_written, by_loaded) = (written.read_for(place), loaded.read_for(place));
    let default = |rules: &Rules| (rules.default_action, rules.default_errno_number());
    let otherwise = default(&written);
    // What does as the default does may be left out.
    let said = |reading: &Reading, name: &str| -> BTreeSet<(Action, u32, Vec<Argument>)> {
        let rules = reading.rules_for(name);
        let said = rules.map(|rule| {
            let mut args = rule.args.clone();
            args.sort();
            (rule.action, rule.errno_number(), args)
        });
        let differs = |(action, errno, _): &(Action, u32, _)| (*action, *errno) != otherwise;
        said.filter(differs).collect()
    };
    let mut names = (0..syscalls::BEYOND).filter_map(syscalls::name);
    otherwise == default(&loaded)
        && names.all(|name| said(&by_written, name) == said(&by_loaded, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{FROZEN, MASKED};
    use serde_json::json;

    const PATH: &str = "/run/x/seccomp.json";
    const PROFILE: &str = crate::TARGETED_DENY;

    fn description() -> Value {
        json!({
            "Image": "ab", "OCIRuntime": "runc", "OCIConfigPath": "/c", "State": {"Pid": 7},
            "HostConfig": {
                "NetworkMode": "none", "UsernsMode": "", "Privileged": false,
                "AutoRemove": true, "LogConfig": {"Type": "none"}, "Devices": [],
                "SecurityOpt": ["no-new-privileges", format!("seccomp={PATH}")],
            },
        })
    }

    fn oci() -> Value {
        let profile: Value = serde_json::from_str(PROFILE).unwrap();
        let own = ["pid", "network", "ipc", "uts", "mount", "cgroup"];
        json!({
            "process": {
                "user": {"uid": 1, "gid": 2}, "env": ["HOSTNAME=h"], "capabilities": {},
                "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 3, "hard": 4}],
                "noNewPrivileges": true,
            },
            "root": {"path": "/", "readonly": true},
            "hostname": "h",
            "mounts": [
                {"destination": "/out", "type": "bind", "source": "/o", "options": ["rbind", "rw"]},
                {"destination": "/in", "type": "bind", "source": "/i", "options": ["rbind", "ro"]},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
                 "options": ["rw", "noexec", "rprivate"]},
                {"destination": "/etc/hostname", "type": "bind", "source": "/h",
                 "options": ["bind", "ro"]},
            ],
            "linux": {
                "namespaces": own.map(|kind| json!({"type": kind})),
                "resources": {"pids": {"limit": 5}, "cpu": {"quota": 6}},
                "seccomp": profile,
                "maskedPaths": MASKED, "readonlyPaths": FROZEN,
            },
        })
    }

    fn read(description: Value, oci: Value) -> Settings {
        let document = Document {
            inspect: description,
            oci_config: oci,
            profile: Some(Profile {
                path: PATH.into(),
                text: PROFILE.into(),
            }),
        };
        let bytes = serde_json::to_vec(&document).unwrap();
        super::read(&bytes).unwrap().settings
    }

    #[test]
    fn what_the_runtime_got_is_what_is_said() {
        let found = read(description(), oci());
        let modes = [&found.network, &found.ipc, &found.pid, &found.uts];
        assert_eq!(modes, ["none", "none", "private", "private"]);
        assert_eq!(found.seccomp, sha256_hex(PROFILE.as_bytes()));
        assert_eq!((found.user.as_str(), found.env.len()), ("1:2", 0));
        assert_eq!(found.tmpfs[0].options, "rw,noexec");
        assert_eq!((found.cap_add.len(), found.cap_drop.len()), (0, 1));
        assert_eq!((found.pids_limit, found.cpu_quota_us), (5, 6));
        assert_eq!((found.memory_bytes, found.memory_swap_bytes), (0, 0));
        assert_eq!(found.ulimits[0].name, "nofile");
        let binds: Vec<_> = found
            .binds
            .iter()
            .map(|b| (&*b.target, b.read_only))
            .collect();
        assert_eq!(binds, [("/in", true), ("/out", false)]);
    }

    /// Nothing is filled in: each thing that the runtime was told otherwise shows.
    #[test]
    fn every_weakness_shows() {
        let sound = read(description(), oci());
        type Change = (&'static str, fn(&mut Value));
        let changes: [Change; 18] = [
            ("security_options", |c| {
                c["linux"]["namespaces"][4]["type"] = json!("x")
            }),
            ("security_options", |c| {
                c["process"]["user"]["additionalGids"] = json!([2, 999])
            }),
            ("security_options", |c| {
                c["linux"]["resources"]["devices"] = json!([{"allow": true, "access": "rwm"}])
            }),
            ("network", |c| {
                c["linux"]["namespaces"][1]["path"] = json!("/n")
            }),
            ("ipc", |c| c["mounts"][2]["destination"] = json!("/dev/shm")),
            ("pid", |c| c["linux"]["namespaces"][0]["type"] = json!("x")),
            ("cgroupns", |c| {
                c["linux"]["namespaces"][5]["type"] = json!("x")
            }),
            ("read_only_rootfs", |c| c["root"] = json!({})),
            ("user", |c| c["process"]["user"]["uid"] = json!(0)),
            ("env", |c| c["process"]["env"] = json!(["HOSTNAME=other"])),
            ("binds", |c| c["mounts"][4]["options"] = json!(["bind"])),
            ("devices", |c| {
                let device =
                    json!({"destination": "/dev/x", "type": "bind", "source": "/dev/null"});
                c["mounts"].as_array_mut().unwrap().push(device);
            }),
            ("tmpfs", |c| c["mounts"][3]["options"] = json!(["rw"])),
            ("cap_add", |c| {
                c["process"]["capabilities"]["ambient"] = json!(["CAP_KILL"])
            }),
            ("no_new_privileges", |c| {
                c["process"]["noNewPrivileges"] = json!(false)
            }),
            ("system_paths_masked", |c| {
                c["linux"]["maskedPaths"] = json!([])
            }),
            ("seccomp", |c| c["linux"]["seccomp"]["syscalls"] = json!([])),
            ("pids_limit", |c| c["linux"]["resources"] = json!({})),
        ];
        for (name, change) in changes {
            let mut changed = oci();
            change(&mut changed);
            let found = read(description(), changed);
            let differing = crate::settings::deviations(&sound, &found);
            assert!(differing.iter().any(|row| row.setting == name), "{name}");
        }
    }

    #[test]
    fn a_profile_counts_only_if_podman_names_it_and_loaded_it() {
        let with = |options: Value, filter: Option<Value>| {
            let (mut described, mut config) = (description(), oci());
            described["HostConfig"]["SecurityOpt"] = options;
            config["linux"]["seccomp"] = filter.unwrap_or(Value::Null);
            read(described, config).seccomp
        };
        let loaded = || Some(oci()["linux"]["seccomp"].clone());
        let named = json!([format!("seccomp={PATH}")]);
        assert_eq!(with(named.clone(), loaded()).len(), 64);
        assert_eq!(with(named.clone(), None), "unconfined");
        assert_eq!(with(Value::Null, loaded()), "default");
        assert_eq!(with(json!(["seccomp=/other"]), loaded()), "default");
        let twice = json!([format!("seccomp={PATH}"), "seccomp=unconfined"]);
        assert_eq!(with(twice, loaded()), "several");
        let allows = json!({"defaultAction": "SCMP_ACT_ALLOW"});
        assert_eq!(with(named, Some(allows)), "another");
    }
}
