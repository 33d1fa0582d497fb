//! What the kernel says about a container that runs. A setting that was only
//! handed over, or promised, is read back from here, so that what is reported as
//! configured is what holds.

use super::support;
use std::fs;
use std::path::Path;
use tki_evidence::facts;
use tki_evidence::settings::{Settings, Ulimit};

/// Limits of the control groups of a process, in the kernel's words. What
/// cannot be read is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Processes.
    pub pids: Option<String>,
    /// Memory.
    pub memory: Option<String>,
    /// Memory and swap together.
    pub memory_swap: Option<String>,
    /// CPU time in each period.
    pub cpu_quota_us: Option<String>,
    /// The period.
    pub cpu_period_us: Option<String>,
}

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

/// Replaces, in settings that were handed over, what the kernel can be asked
/// for. `ulimits` are those that are meant to be there. A process that is gone
/// leaves the settings as they are: it has nothing more to say.
pub fn read_back(pid: i32, settings: &mut Settings, ulimits: &[Ulimit]) {
    let process = Path::new("/proc").join(pid.to_string());
    let read = |name: &str| fs::read_to_string(process.join(name));
    let (Ok(status), Ok(limits), Ok(membership)) = (read("status"), read("limits"), read("cgroup"))
    else {
        return;
    };
    settings.no_new_privileges = facts::status_field(&status, "NoNewPrivs") == Some("1");
    settings.ulimits = rlimits(&limits, ulimits);
    let groups = group_limits(&membership);
    // A limit that nobody asked for is the host's own.
    let replace = |promised: &mut i64, found: &Option<String>| {
        if *promised > 0 {
            *promised = found.as_deref().and_then(|n| n.parse().ok()).unwrap_or(0);
        }
    };
    replace(&mut settings.pids_limit, &groups.pids);
    replace(&mut settings.memory_bytes, &groups.memory);
    replace(&mut settings.memory_swap_bytes, &groups.memory_swap);
    replace(&mut settings.cpu_quota_us, &groups.cpu_quota_us);
    replace(&mut settings.cpu_period_us, &groups.cpu_period_us);
    settings.log_driver = if is_pipe(&process, 1) && is_pipe(&process, 2) {
        "none".into()
    } else {
        "unknown".into()
    };
}

/// Output that goes into a pipe of the tool's is written down by nobody else.
fn is_pipe(process: &Path, descriptor: u8) -> bool {
    fs::read_link(process.join("fd").join(descriptor.to_string()))
        .is_ok_and(|target| target.to_string_lossy().starts_with("pipe:"))
}

/// Those of the resource limits that are meant to be there, as they are. One
/// that the kernel does not have is left out.
fn rlimits(limits: &str, wanted: &[Ulimit]) -> Vec<Ulimit> {
    let found = wanted.iter().filter_map(|limit| {
        let row = match limit.name.as_str() {
            "as" => "Max address space",
            "core" => "Max core file size",
            "nofile" => "Max open files",
            "nproc" => "Max processes",
            _ => return None,
        };
        let (soft, hard) = facts::limit(limits, row)?;
        Some(Ulimit {
            name: limit.name.clone(),
            soft: soft.parse().ok()?,
            hard: hard.parse().ok()?,
        })
    });
    found.collect()
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

    /// A limit that is not there, or is another one, is not the one promised.
    #[test]
    fn only_what_the_kernel_has_is_read_back() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units     \n\
Max core file size        0                    0                    bytes     \n\
Max processes             unlimited            unlimited            processes \n\
Max open files            64                   128                  files     \n\
Max address space         58720256             58720256             bytes     \n";
        let limit = |name: &str, soft, hard| Ulimit {
            name: name.into(),
            soft,
            hard,
        };
        let wanted = ["as", "core", "nofile", "nproc", "rss"].map(|name| limit(name, 1, 1));
        assert_eq!(
            rlimits(text, &wanted),
            [
                limit("as", 58_720_256, 58_720_256),
                limit("core", 0, 0),
                limit("nofile", 64, 128)
            ]
        );
    }

    /// This process itself: no promise is kept that the kernel does not confirm.
    #[test]
    fn promises_that_do_not_hold_are_seen() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let profile = crate::sandbox::profile::Profile {
            seccomp: crate::sandbox::seccomp::Seccomp::resolve("deny-by-default").unwrap(),
            limits: crate::sandbox::profile::Limits::default(),
        };
        let (input, output) = (Path::new("/run/x/in"), Path::new("/run/x/out"));
        let promised = crate::sandbox::settings::settings(&profile, input, output, true);
        let mut found = promised.clone();
        read_back(pid, &mut found, &promised.ulimits);
        assert_ne!(found.pids_limit, promised.pids_limit);
        assert_ne!(found.cpu_quota_us, promised.cpu_quota_us);
        assert!(!found.no_new_privileges);
        let mut unknown = promised.clone();
        read_back(i32::MAX, &mut unknown, &promised.ulimits);
        assert_eq!(unknown, promised);
    }
}
