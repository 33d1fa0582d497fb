//! The file systems that an engine puts around the image: flags, masks, frozen
//! paths, cgroups, devices, descriptors.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys::{self, Errno, O_DIRECTORY, O_NOFOLLOW, O_RDONLY, O_WRONLY};
use crate::walk::{self, Kind};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::CStr;
use tki_evidence::catalogue::TEXTS;
use tki_evidence::facts::{self, Mount};
use tki_inside::io;

/// XP-FS-FLAGS.
pub const FLAGS: &[Operation] = &[("mount-flags", |_| {
    with_mounts(|mounts| Outcome::fact(facts::flags_summary(mounts)))
})];

/// XP-FS-MASKED.
pub const MASKED: &[Operation] = &[
    ("masked(/proc/acpi)", |_| masked("/proc/acpi")),
    ("masked(/proc/asound)", |_| masked("/proc/asound")),
    ("masked(/proc/kcore)", |_| masked("/proc/kcore")),
    ("masked(/proc/keys)", |_| masked("/proc/keys")),
    ("masked(/proc/latency_stats)", |_| {
        masked("/proc/latency_stats")
    }),
    ("masked(/proc/sched_debug)", |_| masked("/proc/sched_debug")),
    ("masked(/proc/scsi)", |_| masked("/proc/scsi")),
    ("masked(/proc/timer_list)", |_| masked("/proc/timer_list")),
    ("masked(/proc/timer_stats)", |_| masked("/proc/timer_stats")),
    ("masked(/proc/interrupts)", |_| masked("/proc/interrupts")),
    ("masked(/sys/firmware)", |_| masked("/sys/firmware")),
    ("masked(/sys/devices/virtual/powercap)", |_| {
        masked("/sys/devices/virtual/powercap")
    }),
    ("masked(thermal_throttle of each CPU)", |_| thermal()),
];

/// XP-FS-PROC-RO.
pub const FROZEN: &[Operation] = &[
    ("read-only(/proc/bus)", |_| frozen("/proc/bus")),
    ("read-only(/proc/fs)", |_| frozen("/proc/fs")),
    ("read-only(/proc/irq)", |_| frozen("/proc/irq")),
    ("read-only(/proc/sys)", |_| frozen("/proc/sys")),
    ("read-only(/proc/sysrq-trigger)", |_| {
        frozen("/proc/sysrq-trigger")
    }),
    ("open(/proc/sys/kernel/core_pattern)", |_| {
        open_for_writing(c"/proc/sys/kernel/core_pattern")
    }),
    ("open(/proc/sys/kernel/modprobe)", |_| {
        open_for_writing(c"/proc/sys/kernel/modprobe")
    }),
    ("open(/proc/sysrq-trigger)", |_| {
        open_for_writing(c"/proc/sysrq-trigger")
    }),
    ("open(/sys/kernel/uevent_helper)", |_| {
        open_for_writing(c"/sys/kernel/uevent_helper")
    }),
    ("open(/proc/sys/fs/binfmt_misc/register)", |_| {
        open_for_writing(c"/proc/sys/fs/binfmt_misc/register")
    }),
];

/// XP-FS-CGROUP.
pub const CGROUP: &[Operation] = &[
    ("mkdir(cgroup)", |_| {
        in_cgroup("tki-probe", |path| {
            let result = sys::mkdir(path, 0o700);
            if result.is_ok() {
                let _ = sys::rmdir(path);
            }
            Outcome::attempt(result, &[])
        })
    }),
    ("open(cgroup.procs)", |_| {
        in_cgroup("cgroup.procs", open_for_writing)
    }),
    ("open(release_agent)", |_| {
        in_cgroup("release_agent", open_for_writing)
    }),
];

/// XP-FS-DEVICES.
pub const DEVICES: &[Operation] = &[
    ("devices", |_| match io::list(c"/dev") {
        Ok(names) => Outcome::fact(names.join(",")),
        Err(errno) => Outcome::unreadable(errno),
    }),
    ("device-numbers", device_numbers),
    ("mknod(/out)", |_| mknod(c"/out/tki-probe-node")),
    ("mknod(/tmp)", |_| mknod(c"/tmp/tki-probe-node")),
];

/// What the nodes are that every container has: a name alone may lead to anything.
fn device_numbers(_: &Context) -> Outcome {
    const S_IFMT: u32 = 0o170000;
    const S_IFCHR: u32 = 0o020000;
    let number = |name: &str| {
        let path = io::c_path(&format!("/dev/{name}"))?;
        let found = sys::stat(&path)?;
        let (major, minor) = (found.device >> 8 & 0xfff, found.device & 0xff);
        Ok(match found.mode & S_IFMT {
            S_IFCHR => format!("{name}={major}:{minor}"),
            _ => format!("{name}=other"),
        })
    };
    let names = ["full", "null", "random", "tty", "urandom", "zero"];
    let mut found = Vec::new();
    for name in names {
        match number(name) {
            Ok(entry) => found.push(entry),
            Err(Errno::ENOENT) => {}
            Err(errno) => return Outcome::unreadable(errno),
        }
    }
    Outcome::fact(found.join(" "))
}

/// XP-FS-REOPEN.
pub const REOPEN: &[Operation] = &[
    ("reopen(/in for writing)", reopen_input),
    ("open(/proc/self/root/../../etc/shadow)", |_| {
        open(c"/proc/self/root/../../etc/shadow")
    }),
    ("open(/proc/1/root/etc/shadow)", |_| {
        open(c"/proc/1/root/etc/shadow")
    }),
];

/// XP-FS-CWD.
pub const WORKING_DIRECTORY: &[Operation] = &[
    ("cwd", working_directory),
    ("open(../../../../etc/shadow)", |_| {
        open(c"../../../../etc/shadow")
    }),
];

/// `/` if that is what `.` is, by its number on its file system: a name could be anything.
fn working_directory(_: &Context) -> Outcome {
    match (sys::stat(c"."), sys::stat(c"/")) {
        (Ok(here), Ok(root)) if here.identity == root.identity => Outcome::fact("/".into()),
        (Ok(_), Ok(_)) => Outcome::fact("another directory".into()),
        (Err(errno), _) | (_, Err(errno)) => Outcome::unreadable(errno),
    }
}

/// XP-FS-REALPROC.
pub const REAL_PROC: &[Operation] = &[
    ("fstatfs(/proc)", |_| {
        match in_folder(c"/proc", sys::file_system) {
            Ok(kind) => Outcome::fact(format!("{kind:#x}")),
            Err(errno) => Outcome::unreadable(errno),
        }
    }),
    ("openat2(texts)", real_texts),
];

/// Every text that evidence rests on, opened below /proc without crossing a mount. Engines
/// bind /proc/sys onto itself, to be read only: what is below that is opened from there.
fn real_texts(_: &Context) -> Outcome {
    let entries: Vec<String> = TEXTS
        .iter()
        .map(|text| {
            let answer = match (beneath(c"/proc", text), text.strip_prefix("sys/")) {
                (Err(Errno::EXDEV), Some(rest)) => beneath(c"/proc/sys", rest),
                (answer, _) => answer,
            };
            let answer = match answer {
                Ok(sys::PROC) => "ok".into(),
                Ok(_) => "other".into(),
                Err(errno) => tki_evidence::errno::name(errno.0),
            };
            format!("{text}={answer}")
        })
        .collect();
    Outcome::fact(entries.join(" "))
}

/// The kind of the file system that a file is on, which is found below a directory of the
/// same mount.
fn beneath(folder: &CStr, text: &str) -> sys::Result<u64> {
    let path = io::c_path(text)?;
    in_folder(folder, |fd| {
        if sys::file_system(fd)? != sys::PROC {
            return Ok(0);
        }
        let file = sys::open_beneath(fd, &path)?;
        let kind = sys::file_system(file);
        sys::close(file);
        kind
    })
}

fn in_folder<T>(folder: &CStr, look: impl Fn(i32) -> sys::Result<T>) -> sys::Result<T> {
    let fd = sys::open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)?;
    let seen = look(fd);
    sys::close(fd);
    seen
}

/// XP-FS-SPECIAL.
pub const SPECIAL: &[Operation] = &[
    ("mkfifo(/out)", |_| {
        const PIPE: &CStr = c"/out/tki-probe-pipe";
        and_remove(PIPE, sys::mkfifo(PIPE))
    }),
    ("link(/in to /out)", |_| {
        const LINK: &CStr = c"/out/tki-probe-second-name";
        and_remove(LINK, sys::link(c"/in/tki-probe-target", LINK))
    }),
];

/// What came of making something, which goes again.
fn and_remove(path: &CStr, made: sys::Result) -> Outcome {
    if made.is_ok() {
        let _ = sys::unlink(path);
    }
    Outcome::attempt(made, &[])
}

/// XP-FS-CANARY.
pub const CANARY: &[Operation] = &[("open(host canary)", |context| {
    match io::c_path(&context.host_canary) {
        Ok(path) if !context.host_canary.is_empty() => open(&path),
        _ => Outcome::error("the launcher made no canary"),
    }
})];

/// XP-FS-FILES.
pub const FILES: &[Operation] = &[("files", |context| {
    let elsewhere = |path: &str| {
        !["/in/", "/out/", "/dev/"]
            .iter()
            .any(|own| path.starts_with(own))
    };
    walk::find(context.tree(), |path, kind| {
        kind == Kind::File && elsewhere(path)
    })
})];

/// XP-FD.
pub const DESCRIPTORS: &[Operation] = &[("descriptors", |context| {
    Outcome::fact(context.descriptors.clone())
})];

fn with_mounts(use_them: impl Fn(&[Mount]) -> Outcome) -> Outcome {
    match io::read_text(c"/proc/self/mountinfo") {
        Err(errno) => Outcome::unreadable(errno),
        Ok(text) => match facts::mounts(&text) {
            Ok(mounts) => use_them(&mounts),
            Err(line) => Outcome::error(format!("mount table, line {}", line.0)),
        },
    }
}

/// What a path is that should be masked. A name that looks masked proves
/// nothing: it must be the null device itself, or a mount of nothing.
fn masked(path: &str) -> Outcome {
    const S_IFMT: u32 = 0o170000;
    const S_IFCHR: u32 = 0o020000;
    const S_IFDIR: u32 = 0o040000;
    const NULL_DEVICE: u64 = 1 << 8 | 3;
    let Ok(name) = io::c_path(path) else {
        return Outcome::error("not a path");
    };
    let stat = match sys::stat(&name) {
        Err(Errno::ENOENT) => return Outcome::fact("absent".into()),
        Err(errno) => return Outcome::unreadable(errno),
        Ok(stat) => stat,
    };
    match stat.mode & S_IFMT {
        S_IFCHR if stat.device == NULL_DEVICE => Outcome::fact("null".into()),
        S_IFDIR => with_mounts(|mounts| {
            let own = mounts.iter().rev().find(|mount| mount.mount_point == path);
            let empty = io::list(&name).is_ok_and(|names| names.is_empty());
            let masked = empty && own.is_some_and(Mount::is_read_only);
            Outcome::fact(if masked { "empty" } else { "a directory" }.into())
        }),
        _ => Outcome::fact("a file".into()),
    }
}

/// What stands at the place where each processor tells how hot it gets: the first that is
/// not masked, or what the last one is.
fn thermal() -> Outcome {
    let names = match io::list(c"/sys/devices/system/cpu") {
        Ok(names) => names,
        Err(Errno::ENOENT) => return Outcome::fact("absent".into()),
        Err(errno) => return Outcome::unreadable(errno),
    };
    let is_cpu = |name: &&String| {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut last = Outcome::fact("absent".into());
    for name in names.iter().filter(is_cpu) {
        last = masked(&format!("/sys/devices/system/cpu/{name}/thermal_throttle"));
        let word = last.value().unwrap_or_default();
        if !["absent", "null", "empty"].contains(&word) {
            break;
        }
    }
    last
}

/// Whether a path lies on a mount of its own that is read-only. File modes do
/// not count: they are the same for a container that is not frozen.
fn frozen(path: &str) -> Outcome {
    match io::c_path(path).and_then(|name| sys::stat(&name)) {
        Err(Errno::ENOENT) => return Outcome::fact("absent".into()),
        Err(errno) => return Outcome::unreadable(errno),
        Ok(_) => {}
    }
    with_mounts(|mounts| {
        let covering = mounts.iter().rev().find(|mount| {
            let point = mount.mount_point.as_ref();
            path == point
                || path
                    .strip_prefix(point)
                    .is_some_and(|rest| rest.starts_with('/'))
        });
        let read_only = covering.is_some_and(Mount::is_read_only);
        Outcome::fact(if read_only { "ro" } else { "rw" }.into())
    })
}

/// Opens and writes nothing: the permission is the proof.
fn open_for_writing(path: &CStr) -> Outcome {
    let result = sys::open(path, O_WRONLY, 0);
    if let Ok(fd) = result {
        sys::close(fd);
    }
    Outcome::attempt(result, &[])
}

fn open(path: &CStr) -> Outcome {
    let result = sys::open(path, O_RDONLY, 0);
    if let Ok(fd) = result {
        sys::close(fd);
    }
    Outcome::attempt(result, &[])
}

/// Version 1 has a directory per controller, version 2 a single one.
fn in_cgroup(name: &str, attempt: impl Fn(&CStr) -> Outcome) -> Outcome {
    let folder = match sys::stat(c"/sys/fs/cgroup/memory") {
        Ok(_) => "/sys/fs/cgroup/memory",
        Err(_) => "/sys/fs/cgroup",
    };
    match io::c_path(&format!("{folder}/{name}")) {
        Ok(path) => attempt(&path),
        Err(errno) => Outcome::unreadable(errno),
    }
}

fn mknod(path: &CStr) -> Outcome {
    and_remove(path, sys::mknod_null(path))
}

fn reopen_input(_: &Context) -> Outcome {
    let fd = match sys::open(c"/in/tki-probe-target", O_RDONLY, 0) {
        Ok(fd) => fd,
        Err(errno) => return Outcome::not_reached("open", errno),
    };
    let outcome = match io::c_path(&format!("/proc/self/fd/{fd}")) {
        Ok(path) => open_for_writing(&path),
        Err(errno) => Outcome::not_reached("open", errno),
    };
    sys::close(fd);
    outcome
}
