//! What the kernel says about a container that runs. A setting that was only
//! handed over, or promised, is read back from here, so that what is reported as
//! configured is what holds.

use super::support;
use std::fs;
use std::path::Path;
use tki_evidence::described::local::{GroupLimits, Kernel};

/// The limits of the groups that a `/proc/PID/cgroup` names.
pub fn group_limits(membership: &str) -> GroupLimits {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let file = |controller: &str, name: &str| {
        let place = support::place(controller, &mounts, membership)?;
        let text = fs::read_to_string(place.own.join(name)).ok()?;
        Some(text.trim_end().to_owned())
    };
    if Path::new(support::ROOT).join("cgroup.controllers").exists() {
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

/// What the kernel says about a process; `None` if it is gone.
pub fn ask(pid: i32) -> Option<Kernel> {
    let process = Path::new("/proc").join(pid.to_string());
    let read = |name: &str| fs::read_to_string(process.join(name)).ok();
    let output = |descriptor: &str| {
        let target = fs::read_link(process.join("fd").join(descriptor));
        target.map_or_else(
            |_| String::new(),
            |target| target.to_string_lossy().into_owned(),
        )
    };
    Some(Kernel {
        status: read("status")?,
        limits: read("limits")?,
        groups: group_limits(&read("cgroup")?),
        output: ["1", "2"].map(output).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
