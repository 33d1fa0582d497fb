//! Control groups of this host: where they are mounted, which one a process is in, what is in
//! one, and its limits.

use rustix::process::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use tki_evidence::controller::Controller;
use tki_evidence::described::local::GroupLimits;

/// Where control groups are mounted, by convention.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The group of this thread in a hierarchy that carries limits.
pub fn own_group() -> Option<PathBuf> {
    let places = Places::of_this_thread();
    let controllers = Controller::ALL.map(Controller::name);
    controllers
        .into_iter()
        .chain([""])
        .find_map(|controller| places.of(controller))
        .map(|place| place.own)
}

/// What the kernel tells of hierarchies, and of the groups of a thread in them.
#[derive(Debug)]
pub struct Places {
    mounts: String,
    membership: String,
}

impl Places {
    /// Those of this thread.
    pub fn of_this_thread() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            mounts: read("/proc/thread-self/mountinfo"),
            membership: read("/proc/thread-self/cgroup"),
        }
    }

    /// Where this controller's is.
    pub fn of(&self, controller: &str) -> Option<Place> {
        place(controller, &self.mounts, &self.membership)
    }
}

/// Where a controller's hierarchy is mounted, and our own group in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// The hierarchy.
    pub mounted: PathBuf,
    /// The group.
    pub own: PathBuf,
}

/// From the texts of `mountinfo` and `cgroup` in /proc. The hierarchy of
/// version 2 is the one without controllers: its name is empty.
pub fn place(controller: &str, mounts: &str, membership: &str) -> Option<Place> {
    let named = |list: &str| list.split(',').any(|word| word == controller);
    let group = membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        named(controllers).then_some(group)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let is_ours = match system.next()? {
            "cgroup" => !controller.is_empty() && named(system.nth(1)?),
            "cgroup2" => controller.is_empty(),
            _ => false,
        };
        let mut mount = mount.split(' ').skip(3);
        let (top, point) = (mount.next()?, mount.next()?);
        // What is not below the mount's top cannot be seen through it.
        let below = Path::new(group).strip_prefix(top).ok()?;
        is_ours.then(|| Place {
            mounted: point.into(),
            own: Path::new(point).join(below),
        })
    })
}

/// The limits of the groups that a `/proc/PID/cgroup` names.
pub fn group_limits(membership: &str) -> GroupLimits {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let file = |controller: &str, name: &str| {
        let place = place(controller, &mounts, membership)?;
        let text = fs::read_to_string(place.own.join(name)).ok()?;
        Some(text.trim_end().to_owned())
    };
    if Path::new(ROOT).join("cgroup.controllers").exists() {
        of_version_2(|name| file("", name))
    } else {
        of_version_1(file)
    }
}

fn of_version_1(file: impl Fn(&str, &str) -> Option<String>) -> GroupLimits {
    GroupLimits {
        pids: file("pids", "pids.max"),
        memory: file("memory", "memory.limit_in_bytes"),
        memory_swap: file("memory", "memory.memsw.limit_in_bytes"),
        cpu_quota_us: file("cpu", "cpu.cfs_quota_us"),
        cpu_period_us: file("cpu", "cpu.cfs_period_us"),
    }
}

/// One group for everything, which limits swap by itself.
fn of_version_2(file: impl Fn(&str) -> Option<String>) -> GroupLimits {
    let number = |name: &str| file(name)?.parse::<i64>().ok();
    let both = number("memory.max").zip(number("memory.swap.max"));
    let cpu = file("cpu.max");
    let (quota, period) = cpu.as_deref().and_then(|text| text.split_once(' ')).unzip();
    GroupLimits {
        pids: file("pids.max"),
        memory: file("memory.max"),
        memory_swap: both.and_then(|(a, b)| Some(a.checked_add(b)?.to_string())),
        cpu_quota_us: quota.map(str::to_owned),
        cpu_period_us: period.map(str::to_owned),
    }
}

/// The processes in a group.
pub fn members(folder: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let numbers = list.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a host with version 1, and version 2 beside it.
    const HYBRID: &str = "\
24 18 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
25 24 0:23 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
28 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 24 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
33 24 0:31 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
34 24 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
    const IN_HYBRID: &str = "\
9:name=systemd:/
8:pids:/user/48713
4:memory:/process_api/3c37d8
1:cpu:/
0::/";

    /// Two controllers in one hierarchy, as systemd mounts them, seen from a
    /// container that has no namespace for groups.
    const JOINED: &str = "\
40 39 0:30 /docker/4f2 /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct";
    const IN_JOINED: &str = "5:cpu,cpuacct:/docker/4f2/inner";

    /// A session of a user's with systemd on version 2.
    const UNIFIED: &str = "\
26 23 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot";
    const IN_UNIFIED: &str =
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope";

    fn found(controller: &str, mounts: &str, membership: &str) -> Option<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        place(controller, mounts, membership).map(|found| (text(found.mounted), text(found.own)))
    }

    fn pair(mounted: &str, own: &str) -> Option<(String, String)> {
        Some((mounted.into(), own.into()))
    }

    #[test]
    fn own_groups_are_read_from_the_kernels_tables() {
        let hybrid = |controller| found(controller, HYBRID, IN_HYBRID);
        let below = "/sys/fs/cgroup";
        assert_eq!(
            hybrid("pids"),
            pair(
                &format!("{below}/pids"),
                &format!("{below}/pids/user/48713")
            )
        );
        assert_eq!(
            hybrid("memory"),
            pair(
                &format!("{below}/memory"),
                &format!("{below}/memory/process_api/3c37d8")
            )
        );
        assert_eq!(
            hybrid("cpu"),
            pair("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/")
        );
        assert_eq!(hybrid("hugetlb"), None);
        let unified = hybrid("").unwrap();
        assert_eq!(unified.0, "/sys/fs/cgroup/unified");
        assert_eq!(
            found("cpu", JOINED, IN_JOINED),
            pair(
                "/sys/fs/cgroup/cpu,cpuacct",
                "/sys/fs/cgroup/cpu,cpuacct/inner"
            )
        );
        // A group that the mount does not show.
        assert_eq!(found("cpu", JOINED, "5:cpu,cpuacct:/elsewhere"), None);
        let session =
            format!("{below}/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope");
        assert_eq!(found("", UNIFIED, IN_UNIFIED), pair(below, &session));
        for broken in ["", "x", "1:cpu", "0::", "\u{0}:::"] {
            assert_eq!(found("cpu", HYBRID, broken), None, "{broken:?}");
            assert_eq!(found("cpu", broken, IN_HYBRID), None, "{broken:?}");
        }
    }

    #[test]
    fn both_versions_say_the_same() {
        // As they read in a container's group on either kind of host.
        let one = of_version_1(|_, name| {
            let text = match name {
                "pids.max" => "32",
                "memory.limit_in_bytes" | "memory.memsw.limit_in_bytes" => "25165824",
                "cpu.cfs_quota_us" => "1500",
                "cpu.cfs_period_us" => "2000",
                _ => return None,
            };
            Some(text.to_owned())
        });
        let two = of_version_2(|name| {
            let text = match name {
                "pids.max" => "32",
                "memory.max" => "25165824",
                "memory.swap.max" => "0",
                "cpu.max" => "1500 2000",
                _ => return None,
            };
            Some(text.to_owned())
        });
        assert_eq!(one, two);
        let unlimited = of_version_2(|name| {
            Some(
                if name == "cpu.max" {
                    "max 100000"
                } else {
                    "max"
                }
                .to_owned(),
            )
        });
        assert_eq!(unlimited.cpu_quota_us.as_deref(), Some("max"));
        assert_eq!(unlimited.memory_swap, None);
        assert_eq!(of_version_2(|_| None), GroupLimits::default());
    }
}
