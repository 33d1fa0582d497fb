//! The embedded engine's part of a keeper: libcontainer.

use super::{PROGRAM, Streams, at, compiled, private_place, profile_digest, supervise};
use crate::engine::descriptors;
use crate::engine::gate;
use crate::engine::local::job::{Job, News};
use crate::engine::local::{cgroup, loopback, oci, wire};
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::oci_spec::runtime::Spec;
use libcontainer::syscall::syscall::SyscallType;
use libcontainer::workload::{
    Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use tki_evidence::evidence::GateReport;

/// Makes the container and waits for its end.
pub(super) fn keep(
    job: &Job,
    streams: Streams,
    layers: &[u8],
    socket: &UnixStream,
) -> Result<(i64, GateReport), String> {
    let program = compiled(job)?;
    let place = private_place(job, layers)?;
    let mut arguments = vec![PROGRAM.to_owned()];
    arguments.extend(job.arguments.iter().cloned());
    let config = oci::config(&job.settings, &arguments, &job.name);
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
