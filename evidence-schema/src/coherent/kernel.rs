//! One kernel: what `/proc/version` says, what the engine and the venue say of it.

use super::{Found, number, shown};
use crate::controller::Controller;
use crate::engine_kind::EngineKind;
use crate::evidence::Evidence;
use crate::facts::{self, Mount};
use crate::kernel::is_boot_id;
use crate::policy::kernel_version;
use crate::venue;
use alloc::collections::BTreeSet;
use alloc::format;

/// The OCI runtime of an engine that has only one.
fn only_runtime(engine: EngineKind) -> Option<&'static str> {
    match engine {
        EngineKind::Docker | EngineKind::Podman => None,
        EngineKind::Embedded => Some("libcontainer"),
        EngineKind::Bwrap => Some("bwrap"),
    }
}

/// Controllers of version 1 that a mount names.
const CONTROLLERS: &[&str] = &[
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "net_cls",
    "net_prio",
    "perf_event",
    "hugetlb",
    "rdma",
    "misc",
    "name=systemd",
];

/// The release that `/proc/version` names.
pub fn release(proc_version: &str) -> Option<&str> {
    let (release, _) = proc_version
        .strip_prefix("Linux version ")?
        .split_once(" (")?;
    let plain = |c: char| c.is_ascii_graphic();
    (!release.is_empty() && release.chars().all(plain)).then_some(release)
}

/// A release's first two numbers.
pub fn version(release: &str) -> Option<(u32, u32)> {
    kernel_version(release).map(|(major, minor, _)| (major, minor))
}

pub fn check(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    let (raw, runtime) = (&evidence.raw, &evidence.runtime);
    const TEXT: &str = "raw.proc_version";
    let one_line = raw.proc_version.matches('\n').count() == 1 && raw.proc_version.ends_with('\n');
    let release = release(&raw.proc_version).filter(|_| one_line);
    found.must(release.is_some(), TEXT, || shown(&raw.proc_version));
    let release = release.unwrap_or_default();
    found.same(release, &runtime.kernel, "raw.proc_version, runtime.kernel");
    let told = |name: &str| evidence.information.iter().find(|one| one.name == name);
    if let Some(told) = told("kernel.osrelease") {
        let good = told.value == release || told.value.starts_with("unreadable: ");
        found.must(good, "information, raw.proc_version", || shown(&told.value));
    }
    control_groups(found, evidence, mounts);
}

/// What is said of the host's kernel and of the engine, whichever kernel the container has.
pub fn host(found: &mut Found, evidence: &Evidence) {
    let (raw, runtime) = (&evidence.raw, &evidence.runtime);
    let boot_id = raw.boot_id.strip_suffix('\n').unwrap_or(&raw.boot_id);
    found.must(is_boot_id(boot_id), "raw.boot_id", || shown(&raw.boot_id));
    let is_here = venue::is_here(&evidence.venue_facts)
        || evidence.witnesses.outside.available
        || is_local(runtime.kind());
    if is_here {
        let fields = "runtime.kernel, venue_facts.kernel";
        found.same(&runtime.kernel, &evidence.venue_facts.kernel, fields);
    }
    found.same(&runtime.os, "linux", "runtime.os");
    found.same(&runtime.arch, "x86_64", "runtime.arch");
    engine(found, evidence);
}

/// The engine that is part of this tool, or that it drives by itself.
pub fn is_local(engine: Option<EngineKind>) -> bool {
    engine.is_some_and(EngineKind::has_keepers)
}

/// What the engine is called, and what goes with that.
fn engine(found: &mut Found, evidence: &Evidence) {
    let runtime = &evidence.runtime;
    let known = runtime.kind();
    found.must(known.is_some(), "runtime.engine", || shown(&runtime.engine));
    let called = format!("{} {}", runtime.engine, runtime.engine_version);
    let venue = &evidence.venue_facts.engine;
    found.same(
        &called,
        venue,
        "runtime.engine, runtime.engine_version, venue_facts.engine",
    );
    if let Some(only) = known.and_then(only_runtime) {
        found.same(&runtime.oci_runtime, only, "runtime.oci_runtime");
        found.same(&runtime.api_version, "", "runtime.api_version");
        found.must(
            runtime.security_options.is_empty(),
            "runtime.security_options",
            || "this engine has none".into(),
        );
    } else {
        let parts = runtime.api_version.split_once('.');
        let good = parts.is_some_and(|(a, b)| number(a).is_some() && number(b).is_some());
        found.must(good, "runtime.api_version", || shown(&runtime.api_version));
        let said = runtime
            .security_options
            .iter()
            .any(|one| one == "name=rootless");
        found.must(
            said == runtime.rootless,
            "runtime.rootless, runtime.security_options",
            || format!("{} and {said}", runtime.rootless),
        );
    }
    if known == Some(EngineKind::Embedded) {
        let fields = "runtime.engine_version, tool.version";
        found.same(&runtime.engine_version, &evidence.tool.version, fields);
    }
}

/// The groups of the process.
#[derive(Default)]
struct Groups<'a> {
    /// Controllers of version 1.
    first: BTreeSet<&'a str>,
    /// There is a group of version 2.
    second: bool,
}

/// `/proc/self/cgroup`: hierarchies from the last one down, each controller once.
fn groups<'a>(found: &mut Found, text: &'a str) -> Groups<'a> {
    let (mut groups, mut above) = (Groups::default(), u64::MAX);
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let place = parts.next().and_then(number).filter(|place| *place < above);
        let (names, path) = (parts.next(), parts.next());
        let good = match (place, names) {
            (Some(0), Some("")) => !core::mem::replace(&mut groups.second, true),
            (Some(1..), Some(names)) => {
                facts::parts(names, b',').all(|name| !name.is_empty() && groups.first.insert(name))
            }
            _ => false,
        };
        let good = good && path.is_some_and(|path| path.starts_with('/'));
        found.must(good, "raw.proc_self_cgroup", || shown(line));
        above = place.unwrap_or(above);
    }
    groups
}

/// The version of control groups, where the texts tell: hosts may have both, and
/// then the limits are those of the first.
fn control_groups(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    let (raw, version) = (&evidence.raw, evidence.runtime.cgroup_version.as_str());
    let groups = groups(found, &raw.proc_self_cgroup);
    let has_limits = Controller::ALL
        .iter()
        .any(|one| groups.first.contains(one.name()));
    let good = match version {
        "1" => !groups.first.is_empty(),
        "2" => groups.second && !has_limits,
        // No group could be had, and so no limit by one.
        "none" => no_limits(evidence),
        // Docker before 20.10 does not tell.
        "" => self::version(&evidence.runtime.api_version).is_some_and(|api| api < (1, 41)),
        _ => false,
    };
    found.must(good, "runtime.cgroup_version, raw.proc_self_cgroup", || {
        format!("version {}", shown(version))
    });
    let wrong = match version {
        "1" => "cgroup2",
        "2" => "cgroup",
        _ => "",
    };
    for mount in mounts {
        let is_wrong = mount.mount_point == "/sys/fs/cgroup" && mount.fs_type == wrong;
        found.must(!is_wrong, "runtime.cgroup_version, raw.mountinfo", || {
            format!("version {version} and {wrong}")
        });
        let is_known = |name: &str| !CONTROLLERS.contains(&name) || groups.first.contains(name);
        let good =
            mount.fs_type != "cgroup" || facts::parts(mount.super_options, b',').all(is_known);
        found.must(good, "raw.proc_self_cgroup, raw.mountinfo", || {
            format!(
                "the process is in no group of {}",
                shown(&mount.mount_point)
            )
        });
    }
}

fn no_limits(evidence: &Evidence) -> bool {
    let set = &evidence.sandbox.configured;
    [set.pids_limit, set.memory_bytes, set.cpu_quota_us] == [0; 3]
}
