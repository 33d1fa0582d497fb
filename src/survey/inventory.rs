//! Everything side by side, and the verdict.

use crate::clock;
use crate::image::built_in::TAG;
use crate::survey::conditions::Conditions;
use crate::survey::error::SurveyError;
use crate::survey::surface::{Answer, Decision, Obstacle, Surface};
use crate::survey::{ci, docker, host, local, podman, ssh};
use serde::Serialize;
use std::path::PathBuf;
use tki_evidence::evidence::VenueFacts;

/// The form of a survey.
pub const SCHEMA: &str = "tki-attest/survey/v1";

/// Nothing here can run the sandbox where evidence may come from.
pub const ACTION_REQUIRED: &str = "B4_PRIME_OPERATOR_ACTION_REQUIRED";

/// Something can.
pub const ROUTE_AVAILABLE: &str = "ROUTE_AVAILABLE";

/// What is to be surveyed.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Addresses that the user lists.
    pub hosts: Vec<String>,
    /// Look at no other engine than those.
    pub only_hosts: bool,
    /// What ssh is told to use instead of the user's configuration.
    pub ssh_config: Option<PathBuf>,
}

/// The route to use.
#[derive(Clone, Debug, Serialize)]
pub struct Recommended {
    /// The surface's id.
    pub surface: String,
    /// The engine.
    pub engine: &'static str,
    /// The claim.
    pub venue: &'static str,
    /// What to run.
    pub command: String,
}

/// A survey of this host.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// `tki-attest/survey/v1`
    pub schema: &'static str,
    /// When, RFC 3339 UTC.
    pub surveyed: String,
    /// `ROUTE_AVAILABLE` or `B4_PRIME_OPERATOR_ACTION_REQUIRED`.
    pub verdict: &'static str,
    /// The route to use, if there is one.
    pub route: Option<Recommended>,
    /// The shortest next action.
    pub next: String,
    /// What can be seen of this host.
    pub venue_facts: VenueFacts,
    /// Every surface.
    pub surfaces: Vec<Surface>,
    /// What was not done.
    pub not_done: Vec<String>,
}

/// Asks every surface at the same time.
pub fn survey(scope: &Scope, conditions: &Conditions) -> Result<Survey, SurveyError> {
    type Job<'a> = Box<dyn FnOnce() -> Vec<Surface> + Send + 'a>;
    let (far, near): (Vec<String>, Vec<String>) = scope
        .hosts
        .iter()
        .cloned()
        .partition(|url| url.starts_with("ssh://"));
    let mut jobs: Vec<Job> = Vec::new();
    for candidate in docker::candidates(&near, scope.only_hosts) {
        jobs.push(Box::new(move || {
            vec![docker::survey(&candidate, conditions)]
        }));
    }
    if !scope.only_hosts {
        jobs.push(Box::new(|| vec![podman::own(conditions)]));
        jobs.push(Box::new(|| podman::others(conditions)));
        jobs.push(Box::new(|| vec![local::embedded(conditions)]));
        jobs.push(Box::new(|| vec![local::bwrap(conditions)]));
        jobs.push(Box::new(|| vec![host::containerd(conditions)]));
        jobs.push(Box::new(|| vec![host::runtimes(conditions)]));
    }
    for url in far {
        let config = scope.ssh_config.as_deref();
        jobs.push(Box::new(move || {
            vec![ssh::survey(&url, config, conditions)]
        }));
    }
    jobs.push(Box::new(|| {
        vec![host::here(conditions), ci::here(conditions)]
    }));
    jobs.push(Box::new(ci::elsewhere));
    let mut surfaces: Vec<Surface> = Vec::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        for thread in running {
            let found = thread.join();
            surfaces.extend(found.map_err(|_| SurveyError::Panicked("a surface"))?);
        }
        Ok::<(), SurveyError>(())
    })?;
    if let Some(signal) = conditions.deadline.interrupted() {
        return Err(SurveyError::Surfaces(signal));
    }
    for (place, surface) in surfaces.iter_mut().enumerate() {
        surface.id = format!("S{}", place + 1);
    }
    Ok(conclude(surfaces, conditions))
}

fn conclude(surfaces: Vec<Surface>, conditions: &Conditions) -> Survey {
    let route = surfaces.iter().find_map(|surface| {
        let usable = surface.usable_as.as_ref()?;
        let venue = usable.venue.filter(|_| surface.decision == Decision::Use)?;
        let host = usable.host.as_ref();
        let host = host.map_or(String::new(), |host| format!(" --host {host}"));
        Some(Recommended {
            surface: surface.id.clone(),
            engine: usable.engine,
            venue,
            command: format!(
                "tki-attest run --venue {venue} --engine {}{host} --out reports",
                usable.engine
            ),
        })
    });
    let next = match &route {
        Some(route) => route.command.clone(),
        None => shortest(&surfaces),
    };
    Survey {
        schema: SCHEMA,
        surveyed: clock::rfc3339(clock::now()),
        verdict: match route {
            Some(_) => ROUTE_AVAILABLE,
            None => ACTION_REQUIRED,
        },
        route,
        next,
        venue_facts: conditions.host.clone(),
        not_done: not_done(&surfaces, conditions.create.is_ok()),
        surfaces,
    }
}

/// What would help soonest, when nothing can be used.
fn shortest(surfaces: &[Surface]) -> String {
    let packet = "`tki-attest packet --for operator --out packet.md` writes what to hand over";
    let behind = |obstacle| surfaces.iter().find(|s| s.obstacle == obstacle);
    let developer = surfaces
        .iter()
        .find(|s| s.decision == Decision::DevelopmentOnly);
    let read_only = behind(Obstacle::ReadOnly);
    let permission = behind(Obstacle::Permission);
    let untried = behind(Obstacle::NotPermitted);
    match (read_only, developer, permission, untried) {
        (Some(surface), ..) => format!(
            "{}: an operator who may create containers there must run the packet; {packet}",
            surface.id
        ),
        (_, Some(surface), ..) => format!(
            "{}: run on the VPS or on the approved CI runner instead of here; {packet}",
            surface.id
        ),
        (_, _, Some(surface), _) => {
            format!("{}: {}; or {packet}", surface.id, surface.permission_gap)
        }
        (_, _, _, Some(_)) => "leave out --read-only, so that a container may be created".into(),
        _ => format!("start Docker or Podman, or run as root; or {packet}"),
    }
}

fn not_done(surfaces: &[Surface], create: bool) -> Vec<String> {
    let mut lines = vec![
        "No probe of the sandbox was attested: a survey is no evidence, B4′ stays as it is."
            .to_owned(),
        "No container was started on a container engine; existing containers, networks and \
         volumes were not touched."
            .to_owned(),
    ];
    if !create {
        lines.push("No container was created (--read-only).".to_owned());
    }
    for surface in surfaces.iter().filter(|surface| surface.loaded) {
        lines.push(format!(
            "The image {TAG} was loaded into {} and not taken away: a run uses it.",
            surface.surface
        ));
    }
    for surface in surfaces {
        let here = surface.decision != Decision::Prepare;
        if here && surface.can_run.answer == Answer::NotTried {
            lines.push(format!(
                "{} was not tried: {}.",
                surface.surface, surface.can_run.why
            ));
        }
    }
    lines
}
