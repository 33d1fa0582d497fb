//! bubblewrap's part of a keeper.

use super::common::{Streams, compiled, private_place, profile_digest, supervise};
use super::error::{KeeperError, at};
use crate::engine::gate::{self, Closed, Forerunner};
use crate::engine::local::binds::read_only_bind;
use crate::engine::local::bubble::{self, Descriptors};
use crate::engine::local::cgroup::Groups;
use crate::engine::local::job::{Job, News};
use crate::engine::local::{filter, limits, rootfs, wire};
use crate::files::Folder;
use crate::host::process::find_program;
use crate::host::system;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, prlimit, setrlimit};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tki_evidence::described::local::Made;
use tki_evidence::settings::{FROZEN, Tmpfs};

/// Has bubblewrap make the container and waits for its end.
pub(super) fn keep(
    job: &Job,
    streams: Streams,
    layers: &[u8],
    socket: &UnixStream,
) -> Result<(i64, Closed), KeeperError> {
    let program = compiled(job)?;
    let place = private_place(job, layers)?;
    let groups = Groups::make(&job.name, &job.settings, &job.support)
        .map_err(at("making control groups"))?;
    let tmpfs = mount_all(&job.settings.tmpfs, &place)?;
    let shown = groups
        .show(&place, false)
        .map_err(at("showing the control group"))?;
    let frozen = if job.settings.system_paths_masked {
        freeze(&place)?
    } else {
        Vec::new()
    };

    let (info, info_end) = std::io::pipe().map_err(at("a pipe"))?;
    let (block_end, mut block) = std::io::pipe().map_err(at("a pipe"))?;
    let seccomp = program.as_deref().map(program_file).transpose()?;
    let extra = match job.extras.descriptor {
        true => Some(File::open("/dev/null").map_err(at("the null device"))?),
        false => None,
    };
    for end in [
        extra.as_ref().map(AsFd::as_fd),
        Some(info_end.as_fd()),
        Some(block_end.as_fd()),
        seccomp.as_ref().map(AsFd::as_fd),
    ]
    .into_iter()
    .flatten()
    {
        fcntl_setfd(end, FdFlags::empty()).map_err(at("passing a descriptor"))?;
    }
    let mut words = vec![job.program.path().to_owned()];
    words.extend(job.arguments.iter().cloned());
    let root = place.join("rootfs");
    mount_points(job, &root, tmpfs.iter().chain(&shown))?;
    let arguments = bubble::arguments(
        &job.settings,
        &words,
        &root,
        &tmpfs,
        &frozen,
        shown.as_ref(),
        Descriptors {
            seccomp: seccomp.as_ref().map(AsRawFd::as_raw_fd),
            info: info_end.as_raw_fd(),
            block: block_end.as_raw_fd(),
        },
    );
    // By its whole path: nothing is searched for under the gate.
    let bwrap = find_program("bwrap").ok_or(KeeperError::NoBwrap)?;
    let mut command = Command::new(bwrap);
    command
        .args(&arguments)
        .stdin(streams.input)
        .stdout(streams.output)
        .stderr(streams.error);
    as_plain_user(&mut command);
    limit(&mut command, job);
    let forerunner = if job.gate {
        Some(gate_before(&mut command)?)
    } else {
        None
    };
    let mut child = command.spawn().map_err(at("starting bwrap"))?;
    drop(command);
    drop((info_end, block_end, seccomp, extra));
    let outer = i32::try_from(child.id()).map_err(io::Error::other);
    let outer = outer.map_err(at("bwrap's process id"))?;
    let made = match first_process(info) {
        Ok(pid) => groups
            .enter(pid)
            .map_err(at("entering the control groups"))
            .map(|()| pid),
        Err(why) => Err(why),
    };
    let made = made.and_then(|pid| limit_inside(pid, job).map(|()| pid));
    let pid = match made {
        Ok(pid) => pid,
        Err(why) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(why);
        }
    };
    if let (Some(forerunner), Ok(first)) = (&forerunner, u32::try_from(pid)) {
        forerunner.expect(first);
    }
    block.write_all(b".").map_err(at("letting bwrap go on"))?;
    drop(block);
    let made = Made {
        config: arguments.into(),
        seccomp: profile_digest(job),
        tmpfs: job.settings.tmpfs.clone(),
        limits: Some(job.support.carried(&job.settings)),
    };
    let news = News::Started {
        pid,
        made: Box::new(made),
    };
    wire::send(socket, &news).map_err(at("telling the tool"))?;
    let kept = supervise(outer, pid, None, socket);
    drop(groups);
    let (status, none) = kept?;
    Ok((status, forerunner.map_or(none, Forerunner::close)))
}

/// Has bubblewrap started with the gate's filter already loaded.
fn gate_before(command: &mut Command) -> Result<Forerunner, KeeperError> {
    let (forerunner, socket) = Forerunner::start().map_err(at("the exec gate"))?;
    let filter = gate::filter();
    // SAFETY: between fork and exec only system calls are made, on values that
    // were made before; nothing is allocated.
    unsafe {
        command.pre_exec(move || gate::hand_over(&socket, &filter));
    }
    Ok(forerunner)
}

/// Memory file systems with the options that bubblewrap cannot set.
fn mount_all(wanted: &[Tmpfs], place: &Path) -> Result<Vec<(String, String)>, KeeperError> {
    let mut mounted = Vec::new();
    for (number, tmpfs) in wanted.iter().enumerate() {
        let source = place.join(format!("tmpfs-{number}"));
        fs::create_dir(&source).map_err(at("a mount point"))?;
        let mut flags = MountFlags::empty();
        let mut data = Vec::new();
        for word in tmpfs.options.split(',') {
            match word {
                "noexec" => flags |= MountFlags::NOEXEC,
                "nosuid" => flags |= MountFlags::NOSUID,
                "nodev" => flags |= MountFlags::NODEV,
                "rw" | "exec" => {}
                other => data.push(other),
            }
        }
        let data = CString::new(data.join(",")).map_err(io::Error::other);
        let data = data.map_err(at("mount options"))?;
        mount("tmpfs", &source, "tmpfs", flags, Some(data.as_c_str()))
            .map_err(at("mounting a memory file system"))?;
        mounted.push((source.to_string_lossy().into_owned(), tmpfs.target.clone()));
    }
    Ok(mounted)
}

/// Paths of /proc, prepared as read-only binds: bubblewrap covers them only
/// where its user could write to them, and would take over the host's flags.
fn freeze(place: &Path) -> Result<Vec<(String, String)>, KeeperError> {
    let mut frozen = Vec::new();
    for (number, path) in FROZEN.iter().enumerate() {
        let Ok(found) = fs::metadata(path) else {
            continue;
        };
        let source = place.join(format!("frozen-{number}"));
        let made = if found.is_dir() {
            fs::create_dir(&source)
        } else {
            File::create(&source).map(drop)
        };
        made.map_err(at("a mount point"))?;
        read_only_bind(Path::new(path), &source).map_err(at("freezing a path of /proc"))?;
        frozen.push((source.to_string_lossy().into_owned(), (*path).to_owned()));
    }
    Ok(frozen)
}

/// What is mounted over must be there before the root becomes read-only.
fn mount_points<'a>(
    job: &Job,
    root: &Path,
    others: impl Iterator<Item = &'a (String, String)>,
) -> Result<(), KeeperError> {
    let root = Folder::open(root).map_err(at("the root directory"))?;
    let binds = job.settings.binds.iter();
    let binds = binds.map(|bind| (bind.source.as_str(), bind.target.as_str()));
    let memory = others.map(|(source, target)| (source.as_str(), target.as_str()));
    let system = [("/proc", "/proc"), ("/dev", "/dev")];
    for (source, target) in system.into_iter().chain(binds).chain(memory) {
        rootfs::mount_point(&root, Path::new(target), Path::new(source).is_dir())
            .map_err(at("a mount point"))?;
    }
    Ok(())
}

/// The compiled program in a file that only lives in memory.
fn program_file(program: &[libc::sock_filter]) -> Result<OwnedFd, KeeperError> {
    let fd = memfd_create("seccomp", MemfdFlags::CLOEXEC).map_err(at("a memory file"))?;
    let mut file = File::from(fd);
    file.write_all(&filter::bytes(program))
        .and_then(|()| file.rewind())
        .map_err(at("the seccomp program"))?;
    Ok(file.into())
}

/// Root of the host is not what the container's user should be behind the
/// scenes: bubblewrap runs as that user from its start.
fn as_plain_user(command: &mut Command) {
    if !system::is_root() {
        return;
    }
    let plain = crate::sandbox::profile::USER;
    let mut ids = plain.split(':').filter_map(|id| id.parse().ok());
    if let (Some(uid), Some(gid)) = (ids.next(), ids.next()) {
        command.uid(uid).gid(gid);
    }
}

/// Resource limits are set in the child, before the exec.
fn limit(command: &mut Command, job: &Job) {
    let limits = limits::wanted(&job.settings, false);
    // SAFETY: between fork and exec only setrlimit is called, on values that
    // were made before.
    unsafe {
        command.pre_exec(move || {
            for (resource, wanted) in &limits {
                setrlimit(*resource, *wanted)?;
            }
            Ok(())
        });
    }
}

/// Sets what only the container may be bound by, once it has a user namespace
/// in which its processes are counted apart.
fn limit_inside(pid: i32, job: &Job) -> Result<(), KeeperError> {
    for (resource, wanted) in limits::wanted(&job.settings, true) {
        prlimit(Pid::from_raw(pid), resource, wanted).map_err(at("setting a resource limit"))?;
    }
    Ok(())
}

/// The container's first process, as bubblewrap tells it.
fn first_process(info: std::io::PipeReader) -> Result<i32, KeeperError> {
    let mut text = String::new();
    info.take(4096)
        .read_to_string(&mut text)
        .map_err(at("bwrap's information"))?;
    let told: serde_json::Value =
        serde_json::from_str(&text).map_err(|_| KeeperError::BwrapEnded)?;
    told["child-pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok())
        .ok_or(KeeperError::BwrapTold)
}
