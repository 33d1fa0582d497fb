//! Podman: as root and as this user, through a service that runs or one that
//! is started for the question, and services of other users.

use crate::engine::api::dial::Address;
use crate::engine::podman::Place;
use crate::survey::call::Call;
use crate::survey::conditions::Conditions;
use crate::survey::docker::describe;
use crate::survey::engine_api::look;
use crate::survey::local::program_version;
use crate::survey::program::find;
use crate::survey::surface::{Can, Decision, Obstacle, Surface, Use};
use std::path::PathBuf;
use std::time::Duration;

/// The most users whose services are looked for.
const MOST_USERS: usize = 64;

/// The socket of a service that root runs.
const ROOTS: &str = "/run/podman/podman.sock";

/// This user's Podman.
pub fn own(conditions: &Conditions) -> Surface {
    let rootless = !rustix::process::geteuid().is_root();
    let kind = if rootless { "rootless" } else { "rootful" };
    let name = format!("Podman, {kind} (this user's)");
    let socket = match rootless {
        true => std::env::var("XDG_RUNTIME_DIR")
            .map(|folder| PathBuf::from(folder).join("podman/podman.sock"))
            .ok(),
        false => Some(PathBuf::from(ROOTS)),
    };
    if let Some(path) = socket.filter(|path| path.exists()) {
        let url = format!("unix://{}", path.display());
        let look = look(
            &Address::Unix(path),
            conditions.create,
            conditions.image,
            conditions.deadline,
        );
        if look.greeted {
            return describe(name, look, Use::of("podman", Some(url)), conditions);
        }
    }
    let Some(program) = find("podman") else {
        let call = Call::new("look for podman in PATH", "no such program, and no socket");
        return Surface::absent(name, vec![call]);
    };
    if let Err(why) = conditions.create {
        let call = program_version(&program, conditions);
        return Surface {
            can_run: Can::not_tried(why),
            can_write_files: Can::not_tried(why),
            can_collect_logs: Can::not_tried(why),
            permission_gap: "no service listens, and none is started".into(),
            decision: Decision::InspectOnly,
            obstacle: Obstacle::NotPermitted,
            ..Surface::absent(name, vec![call])
        };
    }
    let started = Call::new(
        format!(
            "{} system service (for the time of this survey)",
            program.display()
        ),
        "no service listens at the usual socket, so one is started",
    );
    let limit = match conditions.deadline.left() {
        Ok(left) => left,
        Err(stopped) => {
            return Surface::absent(name, vec![Call::new(started.call, stopped.to_string())]);
        }
    };
    match Place::find(None, None, limit.max(Duration::from_secs(1))) {
        Ok(place) => {
            let address = Address::Unix(place.raw.socket.clone().into());
            let mut look = look(
                &address,
                conditions.create,
                conditions.image,
                conditions.deadline,
            );
            // The socket of our own service has no name to look at.
            look.calls.retain(|call| !call.call.starts_with("stat,"));
            look.calls.insert(0, started);
            describe(name, look, Use::of("podman", None), conditions)
        }
        Err(error) => {
            let mut surface =
                Surface::absent(name, vec![Call::new(started.call, error.to_string())]);
            surface.decision = Decision::Reject;
            surface.can_run = Can::no(error.to_string());
            surface.can_write_files = Can::no("it does not answer");
            surface.can_collect_logs = Can::no("it does not answer");
            surface.permission_gap = "Podman must be able to start its service".into();
            surface
        }
    }
}

/// Services of other users: greeted, never asked to make anything.
pub fn others(conditions: &Conditions) -> Vec<Surface> {
    let own = rustix::process::geteuid();
    let mut sockets: Vec<PathBuf> = std::fs::read_dir("/run/user")
        .into_iter()
        .flatten()
        .flatten()
        .take(MOST_USERS)
        .filter(|entry| entry.file_name().to_str() != Some(&own.as_raw().to_string()))
        .map(|entry| entry.path().join("podman/podman.sock"))
        .collect();
    if !own.is_root() {
        sockets.push(ROOTS.into());
    }
    sockets.sort();
    let there = sockets.into_iter().filter(|path| path.exists());
    there
        .map(|path| {
            let name = format!("Podman at unix://{} (another user's)", path.display());
            let nothing = Err("another user's: nothing is made there");
            let look = look(
                &Address::Unix(path),
                nothing,
                conditions.image,
                conditions.deadline,
            );
            let mut surface = describe(name, look, Use::of("podman", None), conditions);
            surface.permission_gap = "that user must run the survey".into();
            surface
        })
        .collect()
}
