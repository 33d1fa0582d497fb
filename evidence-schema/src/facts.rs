//! Parsers for the kernel texts that evidence keeps verbatim. Inspector, `run`
//! and `verify` read them with the same functions. All input is hostile.

use alloc::string::String;
use alloc::vec::Vec;

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The path within the mounted file system that is its root here.
    pub root: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Options of this mount.
    pub options: Vec<String>,
    /// The file system's type.
    pub fs_type: String,
    /// Options of the file system.
    pub super_options: Vec<String>,
    /// Mounts below it appear elsewhere too.
    pub shared: bool,
}

impl Mount {
    /// Nothing can be written through this mount.
    pub fn is_read_only(&self) -> bool {
        self.has("ro") || self.super_options.iter().any(|option| option == "ro")
    }

    /// This mount carries the option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }
}

/// The number (from 1) of the line that is not in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine(pub usize);

/// Parses a mount table.
pub fn mounts(mountinfo: &str) -> Result<Vec<Mount>, BadLine> {
    let mut mounts = Vec::new();
    for (index, line) in mountinfo.lines().enumerate() {
        mounts.push(mount(line).ok_or(BadLine(index + 1))?);
    }
    if mounts.is_empty() {
        return Err(BadLine(1));
    }
    Ok(mounts)
}

fn mount(line: &str) -> Option<Mount> {
    let (own, file_system) = line.split_once(" - ")?;
    let own: Vec<&str> = own.split(' ').collect();
    let file_system: Vec<&str> = file_system.split(' ').collect();
    if own.len() < 6 || file_system.len() < 3 {
        return None;
    }
    let list = |text: &str| text.split(',').map(String::from).collect();
    Some(Mount {
        root: unescape(own[3])?,
        mount_point: unescape(own[4])?,
        options: list(own[5]),
        fs_type: file_system[0].into(),
        super_options: list(file_system[2]),
        shared: own[6..].iter().any(|field| field.starts_with("shared:")),
    })
}

/// The kernel writes space, tab, newline and backslash as `\ooo`.
fn unescape(field: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = u8::from_str_radix(rest.get(at + 1..at + 4)?, 8).ok()?;
        out.push(code as char);
        rest = &rest[at + 4..];
    }
    out.push_str(rest);
    Some(out)
}

/// A mount table in one line: mount point, access and type of each.
pub fn mount_summary(mounts: &[Mount]) -> String {
    let words: Vec<String> = mounts
        .iter()
        .map(|mount| {
            let access = if mount.is_read_only() { "ro" } else { "rw" };
            alloc::format!("{} {access} {}", mount.mount_point, mount.fs_type)
        })
        .collect();
    words.join("; ")
}

/// A mount table's flags in one line: those that bear on safety.
pub fn flags_summary(mounts: &[Mount]) -> String {
    let words: Vec<String> = mounts
        .iter()
        .map(|mount| {
            let mut flags: Vec<&str> = ["ro", "nosuid", "nodev", "noexec"]
                .into_iter()
                .filter(|flag| mount.has(flag))
                .collect();
            if mount.shared {
                flags.push("shared");
            }
            alloc::format!("{} {}", mount.mount_point, flags.join(","))
        })
        .collect();
    words.join("; ")
}

/// The interfaces that `/proc/net/dev` names.
pub fn interfaces(net_dev: &str) -> Vec<&str> {
    net_dev
        .lines()
        .skip(2)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .collect()
}

/// The devices of the IPv4 routes in `/proc/net/route`.
pub fn ipv4_routes(route: &str) -> Vec<&str> {
    route
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// The devices of the IPv6 routes in `/proc/net/ipv6_route`. The kernel lists
/// its own entries for `lo` even in an empty network namespace.
pub fn ipv6_routes(route: &str) -> Vec<&str> {
    route
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect()
}

/// A field of `/proc/self/status`.
pub fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then_some(value.trim())
    })
}

/// User ids, group ids and supplementary groups of a status, in one line.
pub fn identity(status: &str) -> Option<String> {
    let field = |name: &str| -> Option<String> {
        let words: Vec<&str> = status_field(status, name)?.split_whitespace().collect();
        Some(words.join(" "))
    };
    Some(alloc::format!(
        "uid {} gid {} groups {}",
        field("Uid")?,
        field("Gid")?,
        field("Groups")?
    ))
}

/// The five capability sets of a process.
pub const CAPABILITY_SETS: &[&str] = &["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

/// The soft and hard limit of a row of `/proc/self/limits`.
pub fn limit<'a>(limits: &'a str, row: &str) -> Option<(&'a str, &'a str)> {
    let rest = limits.lines().find_map(|line| line.strip_prefix(row))?;
    let mut words = rest.split_whitespace();
    Some((words.next()?, words.next()?))
}

/// A row of a cgroup's `*.stat` file.
pub fn stat_row(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "86 69 254:0 /tmp/a\\040b /in ro,nosuid,relatime master:1 - ext4 /dev/vda rw,discard";

    #[test]
    fn a_mount_line_is_read() {
        let mounts = mounts(LINE).unwrap();
        assert_eq!(mounts[0].root, "/tmp/a b");
        assert_eq!(mounts[0].mount_point, "/in");
        assert_eq!(mounts[0].fs_type, "ext4");
        assert!(mounts[0].is_read_only());
        assert!(mounts[0].has("nosuid"));
        assert_eq!(mount_summary(&mounts), "/in ro ext4");
    }

    #[test]
    fn broken_mount_lines_are_refused() {
        for text in [
            "",
            "x",
            "1 2 3 4 - 5",
            "86 69 254:0 /a\\04 /in ro - ext4 /dev/vda rw",
            "86 69 254:0 /a\\9 /in ro - ext4 /dev/vda rw",
        ] {
            assert!(mounts(text).is_err(), "{text:?}");
        }
        assert_eq!(mounts(&alloc::format!("{LINE}\nx")), Err(BadLine(2)));
    }

    #[test]
    fn network_tables_are_read() {
        let dev = "Inter-|  Receive\n face |bytes\n    lo: 0 0\n  eth0: 1 2\n";
        assert_eq!(interfaces(dev), ["lo", "eth0"]);
        assert_eq!(ipv4_routes("Iface\tDestination\neth0\t0000\n"), ["eth0"]);
        assert!(ipv4_routes("Iface\tDestination\n").is_empty());
        assert_eq!(ipv6_routes("00 00 00 00200200       lo\n"), ["lo"]);
    }

    #[test]
    fn status_and_limits_are_read() {
        let status = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert_eq!(status_field(status, "Seccomp"), Some("2"));
        assert_eq!(status_field(status, "Seccomp_filters"), Some("1"));
        assert_eq!(status_field(status, "NoNewPrivs"), None);
        let limits = "Limit  Soft\nMax open files            64     128      files\n";
        assert_eq!(limit(limits, "Max open files"), Some(("64", "128")));
    }
}
