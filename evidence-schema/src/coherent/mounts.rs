//! The mount table: one tree, with /proc and /dev, and with /in and /out from the
//! run's own directory, or from volumes that the engine made for it.

use super::{Found, mounted_at, number, shown};
use crate::evidence::Evidence;
use crate::facts::{self, Mount};
use crate::settings::{Bind, BindKind};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const TABLE: &str = "raw.mountinfo";

/// What the run calls its own file systems.
const OWN: &str = "tki-attest";

/// So many are looked for; a run asks for one.
const MOST_TMPFS: usize = 4;

pub fn check(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    for (point, fs_type) in [("/proc", "proc"), ("/dev", "tmpfs")] {
        let good = mounted_at(mounts, point)
            .is_some_and(|mount| mount.fs_type == fs_type && mount.root == "/");
        found.must(good, TABLE, || {
            format!("there is not one {point} of type {fs_type}")
        });
    }
    tree(found, mounts);
    for point in ["/in", "/out"] {
        let mut binds = evidence.sandbox.declared.binds.iter();
        let bind = binds.find(|bind| bind.target == point);
        let Some((mount, bind)) = mounted_at(mounts, point).zip(bind) else {
            continue;
        };
        match bind.kind {
            BindKind::Bind => from_scratch(found, evidence, bind, mount),
            BindKind::Volume => from_volume(found, evidence, bind, mount),
        }
    }
    out_backing(found, evidence, mounts);
    for tmpfs in evidence.sandbox.declared.tmpfs.iter().take(MOST_TMPFS) {
        let mount = mounted_at(mounts, &tmpfs.target);
        let wanted = size(&tmpfs.options);
        let good = mount.is_some_and(|mount| mount.fs_type == "tmpfs" && mount.root == "/");
        found.must(
            good && mount.and_then(|mount| size(mount.super_options)) == wanted
                && mount.and_then(|mount| files(mount.super_options)) == files(&tmpfs.options),
            "raw.mountinfo, sandbox.declared.tmpfs",
            || format!("{} is not as it was asked for", shown(&tmpfs.target)),
        );
    }
}

/// Numbers are unique, and every mount but the root is mounted on another one of the
/// table, at a path below it. One file system has one type.
fn tree(found: &mut Found, mounts: &[Mount]) {
    let mut by_number: BTreeMap<u64, &Mount> = BTreeMap::new();
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    for mount in mounts {
        let point = &mount.mount_point;
        let unique = number(mount.id).is_some_and(|id| by_number.insert(id, mount).is_none());
        found.must(unique, TABLE, || {
            format!("{} has no number of its own", shown(point))
        });
        let device = mount.device.split_once(':');
        let good = device.is_some_and(|(a, b)| number(a).is_some() && number(b).is_some());
        found.must(good, TABLE, || format!("{} is of no device", shown(point)));
        let known = *types.entry(mount.device).or_insert(mount.fs_type);
        found.must(known == mount.fs_type, TABLE, || {
            format!("{} is {known} and {}", mount.device, mount.fs_type)
        });
        let access = facts::parts(mount.options, b',').next();
        found.must(matches!(access, Some("ro" | "rw")), TABLE, || {
            format!("{} is neither ro nor rw", shown(point))
        });
    }
    for mount in mounts {
        let point = mount.mount_point.as_ref();
        let on = number(mount.parent).and_then(|parent| by_number.get(&parent));
        let good = match on {
            Some(on) => on.id != mount.id && is_below(point, &on.mount_point),
            None => point == "/" && number(mount.parent).is_some(),
        };
        found.must(good, TABLE, || {
            format!("{} is mounted on nothing", shown(point))
        });
    }
}

/// A path is the other one or lies below it.
fn is_below(path: &str, parent: &str) -> bool {
    let rest = path.strip_prefix(parent.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A bind comes from the directory that the run made: that of a file system of its
/// own, or one that has the run's id in its name.
fn from_scratch(found: &mut Found, evidence: &Evidence, bind: &Bind, mount: &Mount) {
    let ending = format!("/{OWN}-{}{}", evidence.run_id, bind.target);
    let fields = "raw.mountinfo, sandbox.declared.binds, run_id";
    found.must(bind.source.ends_with(&ending), fields, || {
        format!("{} is not of this run", shown(&bind.source))
    });
    let good = is_own(mount, &bind.target) || mount.root.ends_with(&ending);
    found.must(good, fields, || {
        format!(
            "{} comes from {} of {}",
            bind.target,
            shown(&mount.root),
            mount.fs_type
        )
    });
}

/// /in is the volume that has the run's name, which the kernel shows as part of its
/// directory. /out is a memory file system, which has no name.
fn from_volume(found: &mut Found, evidence: &Evidence, bind: &Bind, mount: &Mount) {
    let fields = "raw.mountinfo, sandbox.declared.binds, run_id";
    let (name, good) = match bind.target.as_str() {
        "/in" => {
            let name = format!("{OWN}-{}", evidence.run_id);
            let good = mount.root.ends_with(&format!("/{name}/_data"));
            (name, good)
        }
        _ => (String::new(), is_memory(mount)),
    };
    found.must(bind.source == name, fields, || {
        format!("{} is not of this run", shown(&bind.source))
    });
    found.must(good, fields, || {
        format!(
            "{} comes from {} of {}",
            bind.target,
            shown(&mount.root),
            mount.fs_type
        )
    });
}

/// A whole memory file system, as an engine mounts one.
fn is_memory(mount: &Mount) -> bool {
    mount.fs_type == "tmpfs" && mount.source == "tmpfs" && mount.root == "/"
}

/// A directory of the run's own file system.
fn is_own(mount: &Mount, root: &str) -> bool {
    mount.fs_type == "tmpfs" && mount.source == OWN && mount.root == root
}

/// What is said to stand behind /out does.
fn out_backing(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    let said = &evidence.sandbox.out_backing;
    let Some(mount) = mounted_at(mounts, "/out") else {
        return;
    };
    let mut binds = evidence.sandbox.declared.binds.iter();
    let bind = binds.find(|bind| bind.target == "/out");
    let by_engine = bind.is_some_and(|bind| bind.kind == BindKind::Volume);
    let maker = said.maker.split(':').next().unwrap_or_default();
    let maker_good = match by_engine {
        true => said.maker == "engine",
        false => maker == "launcher",
    };
    found.must(maker_good, "sandbox.out_backing.maker", || {
        shown(&said.maker)
    });
    let is_there = |mount: &Mount| match by_engine {
        true => is_memory(mount),
        false => is_own(mount, "/out"),
    };
    let good = match said.kind.as_str() {
        "tmpfs" => {
            let flags: Vec<&str> = said.reason.split(',').collect();
            let (has, sized) = (|flag: &&&str| mount.has(flag), size(&said.reason));
            is_there(mount)
                && flags.len() == 5
                && flags[..3] == ["noexec", "nosuid", "nodev"]
                && flags[..3].iter().filter(has).count() == 3
                && sized.is_some()
                && sized == size(mount.super_options)
                && files(&said.reason).is_some()
                && files(&said.reason) == files(mount.super_options)
        }
        "directory" => !by_engine && !is_own(mount, "/out") && !said.reason.is_empty(),
        _ => false,
    };
    found.must(good, "sandbox.out_backing, raw.mountinfo", || {
        format!("{} ({})", shown(&said.kind), shown(&said.reason))
    });
}

/// How many files options leave room for.
fn files(options: &str) -> Option<u64> {
    let mut options = facts::parts(options, b',');
    number(options.find_map(|option| option.strip_prefix("nr_inodes="))?)
}

/// The size that options name, in bytes, as the kernel rounds it.
fn size(options: &str) -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = facts::parts(options, b',').find_map(|option| option.strip_prefix("size="))?;
    let bytes = match text.strip_suffix('k') {
        Some(thousands) => number(thousands)?.checked_mul(1024)?,
        None => number(text)?,
    };
    bytes.div_ceil(PAGE).checked_mul(PAGE)
}
