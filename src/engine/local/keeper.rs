//! The keeper: this tool, executed again as a process of its own that makes one
//! container, waits for its end and takes everything away. It is single-threaded
//! because making a container forks; it has a mount namespace of its own, so
//! that what it mounts goes when it goes; and it ends the container as soon as
//! the tool is gone.

use super::bubble::{self, Descriptors, SetByKeeper};
use super::cgroup::{self, Groups, Support};
use super::job::{Job, Maker, News};
use super::{filter, loopback, oci, rootfs, wire};
use crate::engine::descriptors;
use crate::engine::gate::{self, Forerunner, Gate};
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::syscall::syscall::SyscallType;
use libcontainer::workload::{Executor, ExecutorError, ExecutorValidationError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, unmount,
};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, pidfd_open,
    pidfd_send_signal, prlimit, set_parent_process_death_signal, setrlimit, setsid, waitid,
};
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tki_evidence::evidence::GateReport;
use tki_evidence::settings::{Tmpfs, Ulimit};
use tki_evidence::stamp::sha256_hex;

/// The first argument that makes this tool a keeper. Not for people.
pub const ARGUMENT: &str = "internal-keeper";

/// The program inside.
const PROGRAM: &str = "/tki-inspector";

/// Descriptors that come with a job.
struct Streams {
    input: OwnedFd,
    output: OwnedFd,
    error: OwnedFd,
}

/// The keeper's whole life. Standard input is the socket to the tool.
pub fn main() -> ExitCode {
    let Ok(socket) = rustix::stdio::stdin().try_clone_to_owned() else {
        return ExitCode::from(2);
    };
    let socket = UnixStream::from(socket);
    // Ctrl-C is for the tool, which then hangs up.
    let _ = setsid();
    // Nothing that the tool's caller left open may reach a container.
    // SAFETY: a system call on this process's own descriptors.
    let closed = unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) };
    if closed != 0 {
        return ExitCode::from(2);
    }
    let Ok((job, streams, layers)) = receive(&socket) else {
        return ExitCode::from(2);
    };
    let kept = match job.maker {
        Maker::Embedded => embedded(&job, streams, &layers, &socket),
        Maker::Bwrap => bwrap(&job, streams, &layers, &socket),
    };
    let news = match kept {
        Ok((status, gate)) => News::Ended { status, gate },
        Err(reason) => News::Failed { reason },
    };
    let _ = wire::send(&socket, &news);
    ExitCode::SUCCESS
}

fn receive(socket: &UnixStream) -> std::io::Result<(Job, Streams, Vec<u8>)> {
    let (_, descriptors) = descriptors::receive(socket, 1)?;
    let [input, output, error, layers] =
        <[OwnedFd; 4]>::try_from(descriptors).map_err(|_| std::io::ErrorKind::InvalidData)?;
    let job = wire::receive(socket)?;
    let mut content = Vec::new();
    let mut file = File::from(layers);
    file.rewind()?;
    file.take(rootfs::MAX_BYTES).read_to_end(&mut content)?;
    let streams = Streams {
        input,
        output,
        error,
    };
    Ok((job, streams, content))
}

/// An error with what failed.
fn at<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// A mount namespace of our own, with a memory file system that holds
/// everything and goes with us. Gives its place, with the image unpacked.
fn private_place(job: &Job, layers: &[u8]) -> Result<PathBuf, String> {
    // SAFETY: the process has one thread and shares nothing by file-system
    // attributes with another.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(at("a mount namespace")(std::io::Error::last_os_error()));
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(at("making mounts private"))?;
    let bind = job.settings.binds.first().ok_or("there is no /in")?;
    let base = Path::new(&bind.source)
        .parent()
        .ok_or("/in has no parent")?;
    let place = base.join("keeper");
    fs::create_dir(&place).map_err(at("the keeper's directory"))?;
    let options = CString::new(format!("size={},mode=0711", rootfs::MAX_BYTES)).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(
        "tki-attest",
        &place,
        "tmpfs",
        flags,
        Some(options.as_c_str()),
    )
    .map_err(at("a memory file system"))?;
    let root = place.join("rootfs");
    rustix::fs::mkdir(&root, Mode::from_raw_mode(0o755)).map_err(at("the root directory"))?;
    rootfs::unpack(layers, &job.layers, &root).map_err(at("unpacking the image"))?;
    Ok(place)
}

/// The profile as a program; none if the container has no profile.
fn compiled(job: &Job) -> Result<Option<Vec<libc::sock_filter>>, String> {
    if job.settings.seccomp == "unconfined" {
        return Ok(None);
    }
    if sha256_hex(job.seccomp.as_bytes()) != job.settings.seccomp {
        return Err("the profile is not the one that its digest names".into());
    }
    let program = filter::compile(&job.seccomp).map_err(at("the seccomp profile"))?;
    Ok(Some(program))
}

/// What the profile that was compiled is called afterwards.
fn profile_digest(job: &Job) -> String {
    match job.settings.seccomp.as_str() {
        "unconfined" => "unconfined".into(),
        _ => sha256_hex(job.seccomp.as_bytes()),
    }
}

// ---- the embedded engine ----

fn embedded(
    job: &Job,
    streams: Streams,
    layers: &[u8],
    socket: &UnixStream,
) -> Result<(i64, GateReport), String> {
    let program = compiled(job)?;
    let place = private_place(job, layers)?;
    let mut arguments = vec![PROGRAM.to_owned()];
    arguments.extend(job.arguments.iter().cloned());
    let config = oci::config(&job.settings, &arguments, &job.name, None);
    let text = serde_json::to_string_pretty(&config).map_err(at("the configuration"))?;
    fs::write(place.join("config.json"), &text).map_err(at("the configuration"))?;
    let state = place.join("state");
    fs::create_dir(&state).map_err(at("the state directory"))?;

    let (ours, theirs) = UnixStream::pair().map_err(at("the gate's socket"))?;
    let executor = Starter {
        filter: program,
        gate: job.gate.then(|| theirs.as_raw_fd()),
    };
    let groups = GroupsByName(&job.name);
    let built = ContainerBuilder::new(job.name.clone(), SyscallType::Linux)
        .with_executor(executor)
        .with_stdin(streams.input)
        .with_stdout(streams.output)
        .with_stderr(streams.error)
        .with_root_path(&state)
        .map(|builder| {
            builder
                .as_init(&place)
                .with_systemd(false)
                .with_detach(true)
        })
        .and_then(|builder| builder.build());
    let mut container = built.map_err(|error| at("creating the container")(chain(&error)))?;
    drop(theirs);
    let kept = keep_embedded(job, &mut container, &text, &ours, socket);
    let _ = container.delete(true);
    drop(groups);
    kept
}

fn keep_embedded(
    job: &Job,
    container: &mut Container,
    config: &str,
    gate: &UnixStream,
    socket: &UnixStream,
) -> Result<(i64, GateReport), String> {
    let pid = container
        .pid()
        .ok_or("the container has no process")?
        .as_raw();
    loopback::bring_up(pid).map_err(at("bringing lo up"))?;
    container
        .start()
        .map_err(|error| at("starting the container")(chain(&error)))?;
    let parsed = serde_json::from_str(config).map_err(at("the configuration"))?;
    let news = News::Started {
        pid,
        settings: Box::new(oci::configured(&parsed, &profile_digest(job))),
        description: config.to_owned(),
    };
    wire::send(socket, &news).map_err(at("telling the tool"))?;
    supervise(pid, pid, job.gate.then_some(gate), socket)
}

/// An error with everything that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Groups that libcontainer makes by this name, gone when dropped.
struct GroupsByName<'a>(&'a str);

impl Drop for GroupsByName<'_> {
    fn drop(&mut self) {
        cgroup::remove_all(&cgroup::named(self.0));
    }
}

/// The last steps in the container's first process, right before the exec.
#[derive(Clone)]
struct Starter {
    filter: Option<Vec<libc::sock_filter>>,
    /// Where the gate's listener goes.
    gate: Option<i32>,
}

impl Starter {
    fn start(&self, spec: &Spec) -> std::io::Result<()> {
        // Should the keeper be killed, the container goes too.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let process = spec
            .process()
            .as_ref()
            .ok_or(std::io::ErrorKind::NotFound)?;
        let arguments = process.args().clone().unwrap_or_default();
        if arguments.is_empty() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        // Prepared before the filters, which allow little but the exec itself.
        let words = Words::new(&arguments)?;
        let entries = Words::new(process.env().as_deref().unwrap_or_default())?;
        let (arguments, variables) = (words.pointers(), entries.pointers());
        // The gate's filter first: the profile may forbid to send its listener.
        if let Some(socket) = self.gate
            && let Some(listener) = gate::load(&gate::filter(), true)?
        {
            // SAFETY: the keeper made this descriptor and keeps it open across
            // the forks that led here.
            let socket = unsafe { BorrowedFd::borrow_raw(socket) };
            descriptors::send(socket, &[listener.as_fd()])?;
        }
        if let Some(filter) = &self.filter {
            gate::load(filter, false)?;
        }
        // SAFETY: both are lists of C strings that end with a null pointer, and
        // the first argument is the program's path.
        unsafe { libc::execve(arguments[0], arguments.as_ptr(), variables.as_ptr()) };
        Err(std::io::Error::last_os_error())
    }
}

/// Strings as execve wants them.
struct Words(Vec<CString>);

impl Words {
    fn new(words: &[String]) -> std::io::Result<Self> {
        let words = words.iter().map(|word| CString::new(word.as_str()));
        Ok(Self(words.collect::<Result<_, _>>()?))
    }

    fn pointers(&self) -> Vec<*const libc::c_char> {
        let words = self.0.iter().map(|word| word.as_ptr());
        words.chain([std::ptr::null()]).collect()
    }
}

impl Executor for Starter {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let error = match self.start(spec) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        eprintln!("cannot start the inspector: {error}");
        Err(ExecutorError::Other(error.to_string()))
    }

    fn validate(&self, _: &Spec) -> Result<(), ExecutorValidationError> {
        Ok(())
    }

    /// The environment is made anew at the exec.
    fn setup_envs(
        &self,
        _: HashMap<String, String>,
    ) -> Result<(), libcontainer::workload::ExecutorSetEnvsError> {
        Ok(())
    }
}

// ---- bubblewrap ----

fn bwrap(
    job: &Job,
    streams: Streams,
    layers: &[u8],
    socket: &UnixStream,
) -> Result<(i64, GateReport), String> {
    let program = compiled(job)?;
    let place = private_place(job, layers)?;
    let support = if job.cgroups {
        Support::here()
    } else {
        Support::default()
    };
    let groups =
        Groups::make(&job.name, &job.settings, support).map_err(at("making control groups"))?;
    let tmpfs = mount_all(&job.settings.tmpfs, &place)?;
    let shown = groups.show(&place)?;
    let frozen = if job.settings.system_paths_masked {
        freeze(&place)?
    } else {
        Vec::new()
    };

    let (info, info_end) = std::io::pipe().map_err(at("a pipe"))?;
    let (block_end, mut block) = std::io::pipe().map_err(at("a pipe"))?;
    let seccomp = program.as_deref().map(program_file).transpose()?;
    for end in [
        Some(info_end.as_fd()),
        Some(block_end.as_fd()),
        seccomp.as_ref().map(AsFd::as_fd),
    ]
    .into_iter()
    .flatten()
    {
        fcntl_setfd(end, FdFlags::empty()).map_err(at("passing a descriptor"))?;
    }
    let mut words = vec![PROGRAM.to_owned()];
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
    // By its whole path: the gate lets one exec pass, not a search for it.
    let bwrap = super::find_program("bwrap").ok_or("bwrap is not installed")?;
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
    drop((info_end, block_end, seccomp));
    let outer = i32::try_from(child.id()).map_err(at("bwrap's process id"))?;
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
    let settings = &job.settings;
    let carried = |can: bool, value: i64| if can { value } else { 0 };
    let rest = SetByKeeper {
        tmpfs: settings.tmpfs.clone(),
        seccomp: profile_digest(job),
        pids_limit: carried(support.pids, settings.pids_limit),
        memory_bytes: carried(support.memory, settings.memory_bytes),
        memory_swap_bytes: carried(support.swap, settings.memory_swap_bytes),
        cpu_period_us: carried(support.cpu, settings.cpu_period_us),
        cpu_quota_us: carried(support.cpu, settings.cpu_quota_us),
        ulimits: settings.ulimits.clone(),
    };
    let news = News::Started {
        pid,
        settings: Box::new(bubble::configured(&arguments, &rest)),
        description: serde_json::to_string_pretty(&arguments).unwrap_or_default(),
    };
    wire::send(socket, &news).map_err(at("telling the tool"))?;
    let kept = supervise(outer, pid, None, socket);
    drop(groups);
    let (status, none) = kept?;
    Ok((status, forerunner.map_or(none, Forerunner::close)))
}

/// Has bubblewrap started with the gate's filter already loaded.
fn gate_before(command: &mut Command) -> Result<Forerunner, String> {
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
fn mount_all(wanted: &[Tmpfs], place: &Path) -> Result<Vec<(String, String)>, String> {
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
        let data = CString::new(data.join(",")).map_err(at("mount options"))?;
        mount("tmpfs", &source, "tmpfs", flags, Some(data.as_c_str()))
            .map_err(at("mounting a memory file system"))?;
        mounted.push((source.to_string_lossy().into_owned(), tmpfs.target.clone()));
    }
    Ok(mounted)
}

/// Paths of /proc, prepared as read-only binds: bubblewrap covers them only
/// where its user could write to them, and would take over the host's flags.
fn freeze(place: &Path) -> Result<Vec<(String, String)>, String> {
    let mut frozen = Vec::new();
    for (number, path) in oci::FROZEN.iter().enumerate() {
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

/// A bind of a pseudo file system that can only be read.
pub(super) fn read_only_bind(path: &Path, at: &Path) -> rustix::io::Result<()> {
    mount_bind(path, at)?;
    let flags = MountFlags::BIND
        | MountFlags::RDONLY
        | MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC;
    mount_remount(at, flags, "")
}

/// What is mounted over must be there before the root becomes read-only.
fn mount_points<'a>(
    job: &Job,
    root: &Path,
    others: impl Iterator<Item = &'a (String, String)>,
) -> Result<(), String> {
    let binds = job.settings.binds.iter();
    let binds = binds.map(|bind| (bind.source.as_str(), bind.target.as_str()));
    let memory = others.map(|(source, target)| (source.as_str(), target.as_str()));
    let system = [("/proc", "/proc"), ("/dev", "/dev")];
    for (source, target) in system.into_iter().chain(binds).chain(memory) {
        let place = root.join(target.trim_start_matches('/'));
        let made = if Path::new(source).is_dir() {
            fs::create_dir_all(&place)
        } else {
            let parent = place.parent().unwrap_or(root);
            fs::create_dir_all(parent).and_then(|()| File::create(&place).map(drop))
        };
        made.map_err(at("a mount point"))?;
    }
    Ok(())
}

/// The compiled program in a file that only lives in memory.
fn program_file(program: &[libc::sock_filter]) -> Result<OwnedFd, String> {
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
    if !rustix::process::geteuid().is_root() || !super::host::in_first_user_namespace() {
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
    let limits: Vec<(Resource, Rlimit)> = job
        .settings
        .ulimits
        .iter()
        .filter_map(|limit| match limit.name.as_str() {
            "core" => Some((Resource::Core, rlimit(limit))),
            "nofile" => Some((Resource::Nofile, rlimit(limit))),
            "nproc" if !is_tight(job) => Some((Resource::Nproc, rlimit(limit))),
            _ => None,
        })
        .collect();
    // SAFETY: between fork and exec only setrlimit is called, on values that
    // were made before.
    unsafe {
        command.pre_exec(move || {
            for (resource, wanted) in &limits {
                setrlimit(
                    match resource {
                        Resource::Core => Resource::Core,
                        Resource::Nofile => Resource::Nofile,
                        _ => Resource::Nproc,
                    },
                    *wanted,
                )?;
            }
            Ok(())
        });
    }
}

fn rlimit(limit: &Ulimit) -> Rlimit {
    Rlimit {
        current: u64::try_from(limit.soft).ok(),
        maximum: u64::try_from(limit.hard).ok(),
    }
}

/// Resource limits stand in for control groups: too tight for bubblewrap
/// itself, which shares its user's count with everything else of that user.
fn is_tight(job: &Job) -> bool {
    job.settings.pids_limit == 0
}

/// Sets what only the container may be bound by, once it has a user namespace
/// in which its processes are counted apart.
fn limit_inside(pid: i32, job: &Job) -> Result<(), String> {
    let pid = Pid::from_raw(pid);
    for limit in &job.settings.ulimits {
        let resource = match limit.name.as_str() {
            "nproc" if is_tight(job) => Resource::Nproc,
            "as" => Resource::As,
            _ => continue,
        };
        prlimit(pid, resource, rlimit(limit)).map_err(at("setting a resource limit"))?;
    }
    Ok(())
}

/// The container's first process, as bubblewrap tells it.
fn first_process(info: std::io::PipeReader) -> Result<i32, String> {
    let mut text = String::new();
    info.take(4096)
        .read_to_string(&mut text)
        .map_err(at("bwrap's information"))?;
    let told: serde_json::Value =
        serde_json::from_str(&text).map_err(|_| "bwrap ended before it made a container")?;
    told["child-pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok())
        .ok_or_else(|| "bwrap told no process id".into())
}

// ---- both ----

/// Waits for the end, answers the gate's questions, and ends everything when
/// the tool is gone. `child` is our own child, `first` the container's process 1.
fn supervise(
    child: i32,
    first: i32,
    gate_socket: Option<&UnixStream>,
    socket: &UnixStream,
) -> Result<(i64, GateReport), String> {
    let pid = Pid::from_raw(child).ok_or("no process")?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(at("watching the container"))?;
    let mut gate: Option<Gate> = None;
    let mut waiting_for_gate = gate_socket;
    let mut tool_is_there = true;
    loop {
        let mut fds = vec![PollFd::new(&process, PollFlags::IN)];
        let listener = gate.as_ref().map(|gate| gate.listener());
        let places = [
            tool_is_there.then(|| socket.as_fd()),
            waiting_for_gate.map(|socket| socket.as_fd()),
            listener,
        ];
        fds.extend(
            places
                .iter()
                .flatten()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(at("waiting")(error)),
        }
        let mut events = fds
            .iter()
            .map(|fd| !fd.revents().is_empty())
            .collect::<Vec<_>>()
            .into_iter();
        let ended = events.next().unwrap_or(false);
        let mut ready = places.map(|place| place.is_some() && events.next().unwrap_or(false));
        drop(fds);
        if ended {
            break;
        }
        if ready[0] {
            // The tool never speaks a second time: it has hung up.
            tool_is_there = false;
            let _ = pidfd_send_signal(&process, Signal::KILL);
            if let Some(first) = Pid::from_raw(first) {
                let _ = rustix::process::kill_process(first, Signal::KILL);
            }
        }
        if std::mem::take(&mut ready[1]) {
            let received = waiting_for_gate
                .take()
                .map(|socket| descriptors::receive(socket, 1));
            if let Some(Ok((_, mut found))) = received
                && let (Some(listener), Ok(first)) = (found.pop(), u32::try_from(first))
            {
                gate = Some(Gate::new(listener, first));
            }
        } else if ready[2]
            && let Some(watching) = &mut gate
            && !watching.answer()
        {
            break;
        }
    }
    let found =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).map_err(at("the container's end"))?;
    let status = found.as_ref().map_or(-1, |found| {
        let killed = found
            .terminating_signal()
            .map(|signal| 128 + i64::from(signal));
        let ended = found.exit_status().map(i64::from);
        killed.or(ended).unwrap_or(-1)
    });
    let report = match (&gate, gate_socket) {
        (Some(gate), _) => gate.report("a filter of the keeper's own asks it"),
        (None, Some(_)) => GateReport {
            reason: "the container ended before the gate stood".into(),
            ..GateReport::default()
        },
        (None, None) => GateReport {
            reason: "no gate was asked for".into(),
            ..GateReport::default()
        },
    };
    Ok((status, report))
}

/// Takes away what a keeper that was killed has left on the host.
pub fn clean_after(name: &str) {
    cgroup::remove_all(&cgroup::named(name));
}

/// Detaches a directory's mount; used where a tool died before its keeper.
pub fn detach(base: &Path) {
    let _ = unmount(base, UnmountFlags::DETACH);
}
