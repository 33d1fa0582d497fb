//! Where Podman is: a service that runs, or one that is started for the run.

use super::cgroups::{Delegated, crun_refuses};
use super::libpod;
use super::service::{Service, make_namespaces};
use crate::engine::api::ping::{Ping, ping};
use crate::engine::api::raw::Raw;
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::engine::recover::monitors::Monitors;
use crate::files::read_bounded;
use crate::host::held::Held;
use crate::host::process::find_program;
use rustix::process::Pid;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// The socket of a service that root runs.
const USUAL_SOCKET: &str = "/run/podman/podman.sock";

/// The longest configuration file that is read.
const LONGEST_CONFIG: u64 = 1 << 20;

/// A service of Podman's, found or started.
#[derive(Debug)]
pub struct Place {
    /// How to talk to it.
    pub raw: Raw,
    /// What it said when it was greeted.
    pub ping: Ping,
    /// What the user should know about the choice.
    pub notes: Vec<String>,
    /// It runs without root.
    pub rootless: bool,
    /// It is known to be this host's: it was started for the run, or is a process of the
    /// program `podman` here, which makes its containers where it runs.
    pub is_here: bool,
    /// What is still to end when everything else is over.
    pub monitors: Monitors,
    /// The groups in which Podman is to make those of containers, once it is known to need
    /// one.
    pub delegated: OnceLock<Delegated>,
    service: Option<Service>,
}

impl Place {
    /// Finds a service: the one at `host`, or at `CONTAINER_HOST`, or at
    /// `DOCKER_HOST` if that is one of Podman's, or at the usual sockets. If
    /// none answers, or none uses a runtime that can be used here, one is
    /// started.
    pub fn find(
        host: Option<&str>,
        runtime: Option<&str>,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        let mut driver = Driver::towards("podman", limit)?;
        let named = host
            .map(str::to_owned)
            .or_else(|| variable("CONTAINER_HOST"));
        if let Some(host) = named {
            return Self::at(&mut driver, &host);
        }
        let refused = crun_refuses(Path::new("/sys/fs/cgroup"));
        let mut notes = Vec::new();
        for (host, is_given) in usual_hosts() {
            let place = match Self::at(&mut driver, &host) {
                Ok(place) => place,
                Err(
                    error @ (EngineError::Interrupted { .. }
                    | EngineError::TimedOut { .. }
                    | EngineError::Flood { .. }),
                ) => {
                    return Err(error);
                }
                Err(error @ EngineError::Peer { .. }) if is_given => return Err(error),
                // A root shell may have kept the runtime directory of the user before.
                Err(error @ EngineError::Peer { .. }) => {
                    notes.push(format!("{error}: it is not used"));
                    continue;
                }
                Err(_) => continue,
            };
            // The question is a slow one, and mostly the answer does not matter.
            if runtime.is_none() && refused.is_none() {
                return Ok(place);
            }
            let own = driver.run("GET /libpod/info", libpod::host(&place.raw))?;
            let own = own.oci_runtime.name;
            let suits = match runtime {
                Some(wanted) => own == wanted,
                None => own != "crun",
            };
            if suits {
                return Ok(place);
            }
            notes.push(format!(
                "the service at {host} uses {own}: a service of our own is used instead"
            ));
        }
        let (runtime, note) = match (runtime, refused) {
            (None, Some(why)) if !runtime_is_configured() => {
                (Some("runc"), Some(format!("{why}: using runc")))
            }
            (runtime, _) => (runtime, None),
        };
        notes.extend(note);
        Self::start(&mut driver, runtime, notes)
    }

    /// The service at an address.
    fn at(driver: &mut Driver, host: &str) -> Result<Self, EngineError> {
        let Some(socket) = host.strip_prefix("unix://") else {
            return Err(EngineError::Address {
                host: host.into(),
                why: "Podman is used through a unix socket of this host, because it reads the \
                      seccomp profile from a file"
                    .into(),
            });
        };
        let raw = Raw::new(socket, host);
        let listener = driver.run("connecting", raw.address.knock(host))?;
        let ping = driver.run("GET /_ping", ping(&raw));
        match ping {
            Ok(Some(ping)) => Ok(Self {
                raw,
                ping,
                notes: Vec::new(),
                rootless: listener.is_none_or(|listener| listener.uid != 0),
                is_here: listener
                    .and_then(|listener| listener.pid)
                    .is_some_and(is_podman),
                monitors: Monitors::default(),
                delegated: OnceLock::new(),
                service: None,
            }),
            Ok(None) => Err(EngineError::Unusable {
                engine: "podman",
                reason: format!("what answers at {host} is not Podman 4 or newer"),
                next: "use --engine docker, or name Podman's socket with --host".into(),
            }),
            // Nothing has ever answered here.
            Err(EngineError::Vanished { host, reason, .. }) => {
                Err(EngineError::Unreachable { host, reason })
            }
            Err(error) => Err(error),
        }
    }

    /// A service of our own.
    fn start(
        driver: &mut Driver,
        runtime: Option<&str>,
        notes: Vec<String>,
    ) -> Result<Self, EngineError> {
        if find_program("podman").is_none() {
            return Err(EngineError::Unusable {
                engine: "podman",
                reason: "no Podman service answers, and there is no program `podman`".into(),
                next: "install podman, or name the socket of its service with --host".into(),
            });
        }
        if !rustix::process::geteuid().is_root() {
            driver.run("podman unshare", make_namespaces())?;
        }
        let service = Service::start(runtime)?;
        let raw = Raw::new(&service.path(), "the Podman service of this run");
        match driver.run("GET /_ping", ping(&raw)) {
            Ok(Some(ping)) => Ok(Self {
                raw,
                ping,
                notes,
                rootless: !rustix::process::geteuid().is_root(),
                is_here: true,
                monitors: Monitors::default(),
                delegated: OnceLock::new(),
                service: Some(service),
            }),
            Err(error @ (EngineError::Interrupted { .. } | EngineError::TimedOut { .. })) => {
                Err(error)
            }
            _ => Err(service.explain()),
        }
    }

    /// Has the service see a directory as this process does.
    pub fn show(&self, folder: &Path) -> Result<(), EngineError> {
        let shown = self.service.as_ref().map(|service| service.show(folder));
        shown.unwrap_or(Ok(()))
    }

    /// Nothing more will be launched: what monitors have started for containers that
    /// are gone need not go on. Nobody may end it among mounts that others use.
    pub fn call_off(&self) {
        if self.service.as_ref().is_some_and(Service::is_sheltered) {
            self.monitors.call_off();
        }
    }
}

/// The process is Podman's program, in this host's namespaces.
fn is_podman(pid: i32) -> bool {
    let held = Pid::from_raw(pid).and_then(Held::of);
    held.is_some_and(|held| held.is_part(|name| name == "podman"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Addresses at which a service may run, and whether the address itself was given.
fn usual_hosts() -> Vec<(String, bool)> {
    let in_runtime_folder =
        variable("XDG_RUNTIME_DIR").map(|folder| format!("unix://{folder}/podman/podman.sock"));
    let found = in_runtime_folder
        .into_iter()
        .chain([format!("unix://{USUAL_SOCKET}")])
        .map(|host| (host, false));
    let given = variable("DOCKER_HOST").map(|host| (host, true));
    given.into_iter().chain(found).collect()
}

/// A runtime was chosen for this host, and it stays chosen.
fn runtime_is_configured() -> bool {
    let own = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".config")))
        .map(|folder| folder.join("containers/containers.conf"));
    let files = [
        variable("CONTAINERS_CONF").map(PathBuf::from),
        own,
        Some("/etc/containers/containers.conf".into()),
    ];
    files.into_iter().flatten().any(|file| {
        let text = read_bounded(&file, LONGEST_CONFIG).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().any(|line| {
            let name = line.split('=').next().unwrap_or_default();
            line.contains('=') && name.trim() == "runtime"
        })
    })
}
