//! The embedded engine's part of a keeper: libcontainer.

use super::common::{Streams, compiled, private_place, profile_digest, supervise};
use super::error::{KeeperError, at, libcontainer_at};
use crate::engine::gate::{self, Closed};
use crate::engine::local::cgroup::{self, Groups};
use crate::engine::local::job::{Job, News};
use crate::engine::local::oci::Way;
use crate::engine::local::{limits, loopback, oci, orphans, own, wire};
use crate::host::descriptors;
use crate::host::groups::ROOT;
use crate::host::namespaces::unshare;
use crate::host::system;
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::syscall::syscall::SyscallType;
use libcontainer::workload::{
    Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount, mount_remount};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use rustix::thread::CapabilitySet;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use tki_evidence::described::local::Made;
use tki_evidence::settings::Settings;

/// Makes the container and waits for its end.
pub(super) fn keep(
    job: &Job,
    streams: Streams,
    layers: &[u8],
    socket: &UnixStream,
) -> Result<(i64, Closed), KeeperError> {
    let program = compiled(job)?;
    let place = private_place(job, layers)?;
    let mut arguments = vec![job.program.path().to_owned()];
    arguments.extend(job.arguments.iter().cloned());
    let (way, groups) = way(job, &place)?;
    let config = oci::config(&job.settings, &arguments, &way);
    let text = serde_json::to_string_pretty(&config).map_err(at("the configuration"))?;
    fs::write(place.join("config.json"), &text).map_err(at("the configuration"))?;
    let state = place.join("state");
    fs::create_dir(&state).map_err(at("the state directory"))?;

    let (ours, theirs) = UnixStream::pair().map_err(at("the gate's socket"))?;
    let executor = Starter {
        filter: program,
        gate: job.gate.then(|| theirs.as_raw_fd()),
        becomes: (!way.root).then(|| User::of(&job.settings)),
        limits: limits::wanted(&job.settings, true),
        descriptor: job.extras.descriptor,
    };
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
    let mut container = built.map_err(libcontainer_at("creating the container"))?;
    drop(theirs);
    let kept = keep_embedded(job, &mut container, &groups, &text, &ours, socket);
    let _ = container.delete(true);
    drop(groups);
    kept
}

fn keep_embedded(
    job: &Job,
    container: &mut Container,
    groups: &OurGroups,
    config: &str,
    gate: &UnixStream,
    socket: &UnixStream,
) -> Result<(i64, Closed), KeeperError> {
    let pid = container.pid().ok_or(KeeperError::NoFirst)?.as_raw();
    if let OurGroups::Delegated { groups, .. } = groups {
        groups
            .enter(pid)
            .map_err(at("entering the control groups"))?;
    }
    if job.extras.own_group {
        give_group(job)?;
    }
    loopback::bring_up(pid).map_err(at("bringing lo up"))?;
    container
        .start()
        .map_err(libcontainer_at("starting the container"))?;
    let delegated = matches!(groups, OurGroups::Delegated { .. });
    let made = Made {
        config: serde_json::from_str(config).map_err(at("the configuration"))?,
        seccomp: profile_digest(job),
        tmpfs: Vec::new(),
        limits: delegated.then(|| job.support.carried(&job.settings)),
    };
    let news = News::Started {
        pid,
        made: Box::new(made),
    };
    wire::send(socket, &news).map_err(at("telling the tool"))?;
    supervise(pid, pid, job.gate.then_some(gate), socket)
}

/// Gives the container's user the group that is shown to the container.
/// Without root that is who has made it.
fn give_group(job: &Job) -> Result<(), KeeperError> {
    if !system::is_root() {
        return Ok(());
    }
    let (uid, gid) = oci::ids(&job.settings.user);
    let group = cgroup::counters(&job.name);
    chown(&group, Some(uid), Some(gid)).map_err(at("giving the control group away"))
}

/// How to go about it. For root libcontainer makes the control groups itself. In
/// groups that were delegated it fails: with version 1 it insists on one in every
/// hierarchy, and on rules for devices, which are root's to set. There the keeper
/// makes them, and libcontainer is shown none.
fn way<'a>(job: &'a Job, place: &Path) -> Result<(Way, OurGroups<'a>), KeeperError> {
    if system::is_root() {
        let limited = job.settings.cpu_quota_us > 0;
        let way = Way {
            cpus: system::processors(),
            group: format!("/{}", job.name),
            counters: limited.then(|| cgroup::counters(&job.name)),
            writable: job.extras.own_group,
            root: true,
            unified: job.support.version == 2,
        };
        return Ok((way, OurGroups::Named(job)));
    }
    let hidden = job.support.version == 1;
    let (support, held) = if hidden {
        job.support.held().map_err(at("delegated control groups"))?
    } else {
        (job.support.clone(), Vec::new())
    };
    let groups =
        Groups::make(&job.name, &job.settings, &support).map_err(at("making control groups"))?;
    let shown = groups
        .show(place, job.extras.own_group)
        .map_err(at("showing the control group"))?;
    if hidden {
        hide_groups()?;
    }
    let way = Way {
        cpus: system::processors(),
        // One that is there already is entered, one that cannot be made is left.
        group: match groups.counters().map(|group| group.strip_prefix(ROOT)) {
            Some(Ok(below)) => format!("/{}", below.display()),
            _ => format!("/{}", job.name),
        },
        counters: shown.map(|(source, _)| source),
        writable: job.extras.own_group,
        root: false,
        unified: !hidden,
    };
    let groups = OurGroups::Delegated {
        groups,
        _held: held,
    };
    Ok((way, groups))
}

/// Covers the groups of version 1, for this process alone, with a view of
/// version 2 that can only be read: there libcontainer goes without a group.
fn hide_groups() -> Result<(), KeeperError> {
    unshare(libc::CLONE_NEWCGROUP).map_err(at("a namespace of control groups"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("cgroup2", ROOT, "cgroup2", flags, None::<&CStr>)
        .and_then(|()| mount_remount(ROOT, flags | MountFlags::BIND | MountFlags::RDONLY, ""))
        .map_err(at("hiding the control groups"))
}

/// The container's control groups, gone when dropped.
enum OurGroups<'a> {
    /// Made by libcontainer, by the container's name.
    Named(&'a Job),
    /// Made by the keeper, and what leads to them.
    Delegated { groups: Groups, _held: Vec<OwnedFd> },
}

impl Drop for OurGroups<'_> {
    fn drop(&mut self) {
        if let Self::Named(job) = self {
            orphans::end(|_| true);
            cgroup::remove_all(&cgroup::named(&job.name, &job.support));
        }
    }
}

/// The user that the container has in a user namespace of its own.
#[derive(Clone)]
struct User {
    uid: u32,
    gid: u32,
    in_reach: CapabilitySet,
}

impl User {
    fn of(settings: &Settings) -> Self {
        let (uid, gid) = oci::ids(&settings.user);
        let names = settings.cap_add.iter();
        Self {
            uid,
            gid,
            in_reach: names
                .filter_map(|name| CapabilitySet::from_name(name))
                .collect(),
        }
    }
}

/// The last steps in the container's first process, right before the exec.
#[derive(Clone)]
struct Starter {
    filter: Option<Vec<libc::sock_filter>>,
    /// Where the gate's listener goes.
    gate: Option<i32>,
    /// Who it becomes, if it is not that user already.
    becomes: Option<User>,
    /// Resource limits that stand in for control groups.
    limits: Vec<(Resource, Rlimit)>,
    /// Leave the null device open for the program.
    descriptor: bool,
}

impl Starter {
    fn start(&self, spec: &Spec) -> std::io::Result<()> {
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
        if let Some(user) = &self.becomes {
            own::become_user(user.uid, user.gid, user.in_reach)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        for (resource, wanted) in &self.limits {
            setrlimit(*resource, *wanted)?;
        }
        if self.descriptor {
            // Not to be closed on exec, and kept by nobody here.
            let null = open(c"/dev/null", OFlags::RDONLY, Mode::empty())?;
            let _ = null.into_raw_fd();
        }
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
        eprintln!("cannot start the program: {error}");
        Err(ExecutorError::Other(error.to_string()))
    }

    /// Called before the wait for the start. Should the keeper be killed from
    /// here on, the container goes too.
    fn validate(&self, _: &Spec) -> Result<(), ExecutorValidationError> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| ExecutorValidationError::ArgValidationError(error.to_string()))
    }

    /// The environment is made anew at the exec.
    fn setup_envs(&self, _: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        Ok(())
    }
}
