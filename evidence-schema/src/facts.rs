//! Parsers for the kernel texts that evidence keeps verbatim. Prober, `run`
//! and `verify` read them with the same functions. All input is hostile.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Where a byte stands first. Short as fields are, a plain loop is the fastest.
fn find(byte: u8, text: &str) -> Option<usize> {
    text.bytes().position(|own| own == byte)
}

/// Where the first line of a text ends.
fn find_end(text: &str) -> Option<usize> {
    #[cfg(feature = "judge")]
    return memchr::memchr(b'\n', text.as_bytes());
    #[cfg(not(feature = "judge"))]
    find(b'\n', text)
}

/// The parts of a text that an ASCII character divides.
pub(crate) fn parts(text: &str, by: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = find(by, text) else {
            return rest.take();
        };
        rest = Some(&text[at + 1..]);
        Some(&text[..at])
    })
}

/// The lines of a text, as [`str::lines`] gives them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(at) = find_end(rest) else {
            return Some(core::mem::take(&mut rest));
        };
        let line = &rest[..at];
        rest = &rest[at + 1..];
        Some(line.strip_suffix('\r').unwrap_or(line))
    })
}

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Its number.
    pub id: &'a str,
    /// The number of the mount that it is mounted on.
    pub parent: &'a str,
    /// The device of its file system, `major:minor`.
    pub device: &'a str,
    /// What was mounted: a device, or any name.
    pub source: &'a str,
    /// The path within the mounted file system that is its root here.
    pub root: Cow<'a, str>,
    /// Where it is mounted.
    pub mount_point: Cow<'a, str>,
    /// Options of this mount, comma-separated.
    pub options: &'a str,
    /// The file system's type.
    pub fs_type: &'a str,
    /// Options of the file system, comma-separated.
    pub super_options: &'a str,
    /// Mounts below it appear elsewhere too.
    pub shared: bool,
    /// Which of [`FLAGS`] are among its options.
    flags: [bool; FLAGS.len()],
    read_only: bool,
}

/// Options that bear on safety.
const FLAGS: [&str; 4] = ["ro", "nosuid", "nodev", "noexec"];

impl Mount<'_> {
    /// Nothing can be written through this mount.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// This mount carries the option.
    pub fn has(&self, option: &str) -> bool {
        match FLAGS.iter().position(|flag| *flag == option) {
            Some(flag) => self.flags[flag],
            None => parts(self.options, b',').any(|own| own == option),
        }
    }
}

/// The number (from 1) of the line that is not in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine(pub usize);

/// Parses a mount table.
pub fn mounts(mountinfo: &str) -> Result<Vec<Mount<'_>>, BadLine> {
    let mut mounts = Vec::with_capacity(32);
    for (index, line) in lines(mountinfo).enumerate() {
        mounts.push(mount(line).ok_or(BadLine(index + 1))?);
    }
    if mounts.is_empty() {
        return Err(BadLine(1));
    }
    Ok(mounts)
}

fn mount(line: &str) -> Option<Mount<'_>> {
    // A lone hyphen ends the mount's own fields, of which there are at least six.
    let mut fields = parts(line, b' ');
    let id = fields.next()?;
    let mut own = || fields.next().filter(|field| *field != "-");
    let (parent, device) = (own()?, own()?);
    let (root, mount_point, options) = (unescape(own()?)?, unescape(own()?)?, own()?);
    let mut shared = false;
    loop {
        match fields.next()? {
            "-" => break,
            field => shared |= field.starts_with("shared:"),
        }
    }
    let (fs_type, source, super_options) = (fields.next()?, fields.next()?, fields.next()?);
    let mut flags = [false; FLAGS.len()];
    for option in parts(options, b',') {
        if let Some(flag) = FLAGS.iter().position(|flag| *flag == option) {
            flags[flag] = true;
        }
    }
    Some(Mount {
        id,
        parent,
        device,
        source,
        root,
        mount_point,
        options,
        fs_type,
        super_options,
        shared,
        flags,
        read_only: flags[0] || parts(super_options, b',').any(|option| option == "ro"),
    })
}

/// The kernel writes space, tab, newline and backslash as `\ooo`.
fn unescape(field: &str) -> Option<Cow<'_, str>> {
    if find(b'\\', field).is_none() {
        return Some(Cow::Borrowed(field));
    }
    let mut out = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = u8::from_str_radix(rest.get(at + 1..at + 4)?, 8).ok()?;
        out.push(code as char);
        rest = &rest[at + 4..];
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// Words in one text, with this between any two.
fn joined<'a>(parts: impl Iterator<Item = &'a str>, between: &str, out: &mut String) {
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push_str(between);
        }
        out.push_str(part);
    }
}

/// A mount table in one line: mount point, access and type of each.
pub fn mount_summary(mounts: &[Mount]) -> String {
    let mut out = String::with_capacity(mounts.len() * 32);
    for (index, mount) in mounts.iter().enumerate() {
        if index > 0 {
            out.push_str("; ");
        }
        let access = if mount.is_read_only() { "ro" } else { "rw" };
        joined(
            [&mount.mount_point, access, mount.fs_type].into_iter(),
            " ",
            &mut out,
        );
    }
    out
}

/// A mount table's flags in one line: those that bear on safety.
pub fn flags_summary(mounts: &[Mount]) -> String {
    let mut out = String::with_capacity(mounts.len() * 48);
    for (index, mount) in mounts.iter().enumerate() {
        if index > 0 {
            out.push_str("; ");
        }
        out.push_str(&mount.mount_point);
        out.push(' ');
        let flags = FLAGS.into_iter().zip(mount.flags);
        let flags = flags.filter_map(|(flag, is_set)| is_set.then_some(flag));
        joined(flags.chain(mount.shared.then_some("shared")), ",", &mut out);
    }
    out
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

/// The gateway of the first default route in `/proc/net/route`, which has addresses in
/// hexadecimal and in the order of this machine's memory.
pub fn ipv4_gateway(route: &str) -> Option<[u8; 4]> {
    route.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (destination, gateway) = (words.next()?, words.next()?);
        let address = u32::from_str_radix(gateway, 16).ok()?;
        (destination == "00000000" && address != 0).then(|| address.to_ne_bytes())
    })
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
    lines(status).find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        Some(value.trim())
    })
}

/// Every field of `/proc/self/status`, in its order.
pub fn status_fields(status: &str) -> Vec<(&str, &str)> {
    let mut fields = Vec::with_capacity(64);
    fields.extend(lines(status).filter_map(|line| {
        let at = find(b':', line)?;
        Some((&line[..at], line[at + 1..].trim()))
    }));
    fields
}

/// User ids, group ids and supplementary groups of a status, in one line.
pub fn identity(status: &str) -> Option<String> {
    identity_of(|name| status_field(status, name))
}

/// The same of a status whose fields are at hand.
pub fn identity_of<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let mut out = String::new();
    for (word, name) in [("uid", "Uid"), (" gid", "Gid"), (" groups", "Groups")] {
        out.push_str(word);
        out.push(' ');
        joined(field(name)?.split_whitespace(), " ", &mut out);
    }
    Some(out)
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
    fn flags_are_those_of_the_mount_and_ro_also_of_the_file_system() {
        for (own, file_system, read_only, summary) in [
            ("ro,nosuid", "rw", true, "/in ro,nosuid"),
            ("rw,noexec,nodev", "ro,x", true, "/in nodev,noexec"),
            ("rw,xro,ro2,nosuidx", "rw,errors=remount-ro", false, "/in "),
        ] {
            let line = alloc::format!("1 2 0:1 / /in {own} shared:7 - ext4 /dev/vda {file_system}");
            let mounts = mounts(&line).unwrap();
            assert_eq!(mounts[0].is_read_only(), read_only, "{line}");
            let comma = if summary.ends_with(' ') { "" } else { "," };
            let shown = alloc::format!("{summary}{comma}shared");
            assert_eq!(flags_summary(&mounts), shown);
            for option in ["ro", "nosuid", "nodev", "noexec", "rw", "xro"] {
                let wanted = own.split(',').any(|own| own == option);
                assert_eq!(mounts[0].has(option), wanted, "{line}: {option}");
            }
        }
    }

    #[test]
    fn lines_and_parts_are_those_of_the_standard_library() {
        for text in [
            "",
            "\n",
            "a",
            "a\n",
            "a\r\nb\r",
            "\n\na\n\n",
            "\r\n",
            "é\nß",
        ] {
            assert!(lines(text).eq(text.lines()), "{text:?}");
            assert!(parts(text, b'a').eq(text.split('a')), "{text:?}");
        }
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
        // A hyphen among the first fields ends them too early, and one at the end
        // of a line ends nothing.
        let fields: Vec<&str> = LINE.split(' ').collect();
        for place in 1..6 {
            let mut early = fields.clone();
            early[place] = "-";
            assert!(mounts(&early.join(" ")).is_err(), "{place}");
        }
        assert!(mounts("- 69 254:0 /a /in ro - ext4 /dev/vda rw").is_ok());
        assert!(mounts("86 69 254:0 /a /in ro master:1 -").is_err());
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
