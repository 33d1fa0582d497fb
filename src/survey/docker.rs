//! Docker Engines: the usual sockets, `DOCKER_HOST`, contexts, and addresses
//! that the user lists.

use crate::engine::api::dial::Address;
use crate::files::read_bounded;
use crate::host::venue;
use crate::survey::call::Call;
use crate::survey::conditions::Conditions;
use crate::survey::engine_api::{Created, Look, look};
use crate::survey::http::parse_address;
use crate::survey::redact::Redactor;
use crate::survey::surface::{Can, Decision, Obstacle, Surface, Use};
use std::path::{Path, PathBuf};
use tki_evidence::evidence::VenueFacts;
use tki_evidence::venue::ANOTHER_MACHINE;

/// The most contexts that are read, and the most bytes of one.
const MOST_CONTEXTS: usize = 64;
const MOST_BYTES: u64 = 64 * 1024;

/// What to do about an engine on another host.
pub const ELSEWHERE: &str =
    "copy tki-attest there and run `tki-attest survey`, or hand over the packet";

/// An address and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// `DOCKER_HOST`, `context x`, `usual socket`, `--host`.
    pub from: String,
    /// As it stands there.
    pub url: String,
    /// It was named by the user, so it may be another host.
    pub named: bool,
}

/// Every address at which a Docker Engine may be.
pub fn candidates(hosts: &[String], only: bool) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |from: &str, url: String, named: bool| {
        let real = resolved(&url);
        if !found.iter().any(|known| resolved(&known.url) == real) {
            found.push(Candidate {
                from: from.into(),
                url,
                named,
            });
        }
    };
    for url in hosts {
        add("--host", url.clone(), true);
    }
    if only {
        return found;
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(url) = variable("DOCKER_HOST") {
        add("DOCKER_HOST", url, true);
    }
    add("usual socket", "unix:///var/run/docker.sock".into(), false);
    let home = variable("HOME").map(PathBuf::from);
    let in_home = [
        ".docker/run/docker.sock",
        ".docker/desktop/docker.sock",
        ".colima/default/docker.sock",
        ".orbstack/run/docker.sock",
        ".rd/docker.sock",
        ".lima/docker/sock/docker.sock",
    ];
    let run = variable("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("docker.sock"));
    let rest = in_home
        .iter()
        .filter_map(|name| home.as_ref().map(|home| home.join(name)))
        .chain(run);
    for path in rest.filter(|path| path.exists()) {
        add("usual socket", format!("unix://{}", path.display()), false);
    }
    let config = variable("DOCKER_CONFIG")
        .map(PathBuf::from)
        .or_else(|| home.map(|home| home.join(".docker")));
    for (name, url) in config.map(|folder| contexts(&folder)).unwrap_or_default() {
        add(&format!("context {name}"), url, false);
    }
    found
}

/// The socket behind a link is the same one.
fn resolved(url: &str) -> String {
    let path = url.strip_prefix("unix://").map(Path::new);
    match path.and_then(|path| path.canonicalize().ok()) {
        Some(real) => format!("unix://{}", real.display()),
        None => url.to_owned(),
    }
}

/// Contexts of the Docker client, by name.
fn contexts(config: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(config.join("contexts/meta")) else {
        return Vec::new();
    };
    let mut found: Vec<(String, String)> = entries
        .flatten()
        .take(MOST_CONTEXTS)
        .filter_map(|entry| {
            let bytes = read_bounded(&entry.path().join("meta.json"), MOST_BYTES).ok()?;
            let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
            let url = value["Endpoints"]["docker"]["Host"].as_str()?;
            Some((value["Name"].as_str()?.to_owned(), url.to_owned()))
        })
        .collect();
    found.sort();
    found
}

/// Asks the engine at an address.
pub fn survey(candidate: &Candidate, conditions: &Conditions) -> Surface {
    // A user may have put a password into an address.
    let url = Redactor::default().clean(&candidate.url, 200);
    let surface = format!("Docker Engine at {url} ({})", candidate.from);
    let Some(address) = parse_address(&candidate.url) else {
        let call = Call::new(
            format!("read {}", candidate.from),
            "not an address that is spoken to here: unix://, tcp:// or ssh:// with --host",
        );
        return unreached(Surface::absent(surface, vec![call]), candidate);
    };
    if !candidate.named && matches!(address, Address::Tcp { .. }) {
        let call = Call::new(
            format!("read {}", candidate.from),
            "another host: not contacted, because nobody listed it",
        );
        return unreached(Surface::absent(surface, vec![call]), candidate);
    }
    let create = match address.is_here() {
        true => conditions.create,
        false => Err("nothing is made on another host from here"),
    };
    let look = look(&address, create, conditions.image, conditions.deadline);
    // Podman's socket is asked as Podman's.
    let engine = if look.podman { "podman" } else { "docker" };
    let name = match look.podman {
        true => format!("Podman at {url} ({})", candidate.from),
        false => surface,
    };
    let usual = candidate.from == "usual socket" && candidate.url.ends_with("/var/run/docker.sock");
    let host = (!usual).then(|| candidate.url.clone());
    let mut surface = describe(name, look, Use::of(engine, host), conditions);
    if !address.is_here() {
        surface.venue_type = "another host";
        if surface.decision == Decision::InspectOnly {
            surface.decision = Decision::Prepare;
            surface.decision_note = ELSEWHERE.into();
            surface.permission_gap = "tki-attest must be run over there".into();
        }
    }
    surface
}

fn unreached(mut surface: Surface, candidate: &Candidate) -> Surface {
    surface.decision = Decision::Reject;
    surface.venue_type = "another host";
    surface.can_run = Can::not_tried("it was not contacted");
    surface.can_write_files = Can::not_tried("it was not contacted");
    surface.can_collect_logs = Can::not_tried("it was not contacted");
    let url = Redactor::default().clean(&candidate.url, 200);
    surface.permission_gap = format!("list it: survey --host {url}");
    surface.decision_note = "not contacted".into();
    surface
}

/// What can be seen from here of the host that an engine says it runs on.
fn seen_of(look: &Look, conditions: &Conditions) -> VenueFacts {
    let host = conditions.host;
    let is_silent = look.host_name.is_empty() && look.kernel.is_empty();
    let is_here = look.host_name == host.host_name && look.kernel == host.kernel;
    match is_silent || is_here {
        true => host.clone(),
        false => venue::unseen(ANOTHER_MACHINE),
    }
}

/// What an engine answered, as a surface.
pub fn describe(name: String, look: Look, usable: Use, conditions: &Conditions) -> Surface {
    let mut surface = Surface::absent(name, Vec::new());
    surface.evidence = look.calls.clone();
    surface.loaded = look.loaded;
    if !look.greeted {
        let there = look.permission || !look.problem.starts_with("connect: No such file");
        surface.can_run = Can::no(look.problem.clone());
        surface.can_write_files = Can::no("it does not answer");
        surface.can_collect_logs = Can::no("it does not answer");
        if there {
            surface.decision = Decision::Reject;
            surface.production_risk = "unknown: it does not answer".into();
        }
        if look.permission {
            surface.obstacle = Obstacle::Permission;
        }
        surface.permission_gap = match look.permission {
            true => "the socket is not for this user: run as root or as a member of the group \
                     that owns it"
                .into(),
            false => format!("nobody answers: {}", look.problem),
        };
        return surface;
    }
    let facts = VenueFacts {
        operating_system: look.operating_system.clone(),
        host_name: look.host_name.clone(),
        engine: format!("{} {}", usable.engine, look.version),
        ..seen_of(&look, conditions)
    };
    let plausible = conditions.claim(&facts, &look.kernel);
    surface.approved = conditions.approved(&plausible);
    surface.production_risk = match look.containers {
        Some(0) => "none: it holds no container".into(),
        Some(count) => {
            format!("low: it holds {count} containers of others, which a run does not touch")
        }
        None => "unknown: it does not list its containers".into(),
    };
    surface.obstacle = match &look.created {
        Created::Forbidden(_) => Obstacle::ReadOnly,
        Created::NotTried(_) if conditions.create.is_err() => Obstacle::NotPermitted,
        _ => Obstacle::Other,
    };
    let (can, gap) = match &look.created {
        Created::Yes => (
            Can::yes("create answered 201; the container was removed, never started"),
            "none".to_owned(),
        ),
        Created::Left(what) => (
            Can::no(format!(
                "create worked, and {what} could NOT be removed: `tki-attest clean` in a minute"
            )),
            "a client that may create containers here must also be able to remove them".into(),
        ),
        Created::Forbidden(status) => (
            Can::no(format!(
                "create answered {status}: the socket is for reading"
            )),
            "an operator who may create containers must run it on that host".into(),
        ),
        Created::Refused(status) => (
            Can::no(format!("create answered {status}")),
            "what the engine says about it must be corrected first".into(),
        ),
        Created::Lost(why) => (
            Can::no(format!("create was not answered: {why}")),
            "the engine must answer; should it have made the container after all, `tki-attest \
             clean` removes it"
                .into(),
        ),
        Created::NotTried(why) => (Can::not_tried(*why), "unknown".into()),
    };
    surface.permission_gap = gap;
    surface.can_run = can;
    if surface.can_run.is_yes() {
        surface.can_write_files = Can::yes("/out is a volume in memory that the engine makes");
        surface.can_collect_logs = Can::yes("through the engine's attach call");
        conditions.decide(&mut surface, usable, &plausible);
    } else {
        let answer = surface.can_run.answer;
        surface.can_write_files = Can::with(answer, "without a container there is no /out");
        surface.can_collect_logs = Can::with(answer, "without a container nothing is said");
        surface.decision = Decision::InspectOnly;
        surface.decision_note = "cannot attest: it can be looked at, and no more".into();
    }
    surface
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read_and_rubbish_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let meta = folder.path().join("contexts/meta");
        for (name, text) in [
            (
                "a",
                r#"{"Name":"far","Endpoints":{"docker":{"Host":"ssh://x@y"}}}"#,
            ),
            ("b", "{"),
            ("c", r#"{"Name":1}"#),
        ] {
            std::fs::create_dir_all(meta.join(name)).unwrap();
            std::fs::write(meta.join(name).join("meta.json"), text).unwrap();
        }
        assert_eq!(
            contexts(folder.path()),
            [("far".to_owned(), "ssh://x@y".to_owned())]
        );
        assert!(contexts(&folder.path().join("nowhere")).is_empty());
    }
}
