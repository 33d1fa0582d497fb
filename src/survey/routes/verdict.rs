//! Every route at the same time, the questions, the verdict.

use super::form::Routes;
use super::kinds::Route;
use super::questions::{self, Question};
use super::result::{Finding, Permit, RouteResult};
use super::{command, docker, file, http, postgres};
use crate::clock;
use crate::deadline::Deadline;
use crate::image::Image;
use crate::survey::error::SurveyError;
use crate::survey::mistake::RoutesError;
use crate::survey::redact::Redactor;
use crate::survey::surface::Answer;
use serde::Serialize;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The form of a survey of routes.
pub const SCHEMA: &str = "tki-attest/route-survey/v1";

/// How the verdict ends when no route will do.
pub const HOLD: &str = "HOLD_NO_GOVERNED_WRITE_CHANNEL";

/// How it ends when one will.
pub const CHANNEL: &str = "GOVERNED_WRITE_CHANNEL_AVAILABLE";

/// A survey of routes.
#[derive(Clone, Debug, Serialize)]
pub struct RouteSurvey {
    /// `tki-attest/route-survey/v1`
    pub schema: &'static str,
    /// When, RFC 3339 UTC.
    pub surveyed: String,
    /// `…_HOLD_NO_GOVERNED_WRITE_CHANNEL` or `…_GOVERNED_WRITE_CHANNEL_AVAILABLE`.
    pub verdict: String,
    /// The route to use, by name.
    pub usable: Option<String>,
    /// The shortest next action.
    pub next: String,
    /// The questions.
    pub questions: Vec<Question>,
    /// The routes.
    pub routes: Vec<RouteResult>,
    /// What was not done.
    pub not_done: Vec<String>,
}

/// Probes every route of a file.
pub fn survey(
    file: &Path,
    permit: &Permit,
    image: &Image,
    deadline: &Deadline,
) -> Result<RouteSurvey, SurveyError> {
    let form = Routes::read(file)?;
    let known = |name: &&String| form.routes.iter().any(|r| r.about().name == **name);
    if let Some(name) = permit.names.iter().find(|name| !known(name)) {
        return Err(RoutesError::Unknown {
            file: file.to_owned(),
            name: name.clone(),
        }
        .into());
    }
    let mut results: Vec<RouteResult> = std::thread::scope(|scope| {
        let running: Vec<_> = form
            .routes
            .iter()
            .map(|route| scope.spawn(|| probe(route, permit, image, deadline)))
            .collect();
        let ended = running.into_iter().map(|thread| thread.join());
        let ended: Result<Vec<_>, _> = ended.collect();
        ended.map_err(|_| SurveyError::Panicked("a route"))
    })?;
    if let Some(signal) = deadline.interrupted() {
        return Err(SurveyError::RoutesStopped(signal));
    }
    for (place, result) in results.iter_mut().enumerate() {
        result.id = format!("E{}", place + 1);
    }
    Ok(conclude(&form, results))
}

/// Probes one route. Whatever came back goes through one redactor that knows all
/// secrets of the route, and is cut only after that.
fn probe(route: &Route, permit: &Permit, image: &Image, deadline: &Deadline) -> RouteResult {
    let about = route.about();
    let permitted = permit.covers(about.name);
    let finding = Finding::new(about);
    let finding = match route {
        Route::File(route) => file::probe(route, finding, permitted, deadline),
        Route::Http(route) => http::probe(route, finding, permitted, deadline),
        Route::Postgres(route) => postgres::probe(route, finding, permitted, deadline),
        Route::Docker(route) => docker::probe(route, finding, permitted, image, deadline),
        Route::Command(route) => command::probe(route, finding, permitted, deadline),
    };
    finding.redacted(&redactor(route))
}

fn redactor(route: &Route) -> Redactor {
    let variables = route.secret_variables();
    let values = variables.iter().filter_map(std::env::var_os);
    let redactor = Redactor::new(values.map(OsStringExt::into_vec));
    match variables.is_empty() || route.about().show_answers {
        true => redactor,
        false => redactor.hiding_words(),
    }
}

fn conclude(form: &Routes, results: Vec<RouteResult>) -> RouteSurvey {
    let usable = questions::usable(form, &results).map(|route| route.route.clone());
    let untried: Vec<&str> = results
        .iter()
        .filter(|route| route.answer == Answer::NotTried)
        .map(|route| route.route.as_str())
        .collect();
    let next = match (&usable, untried.is_empty()) {
        (Some(name), _) => format!("use route {name}"),
        (None, false) => format!(
            "try what was not permitted ({}), or ask the owner for a governed, isolated channel",
            untried
                .iter()
                .map(|name| format!("--allow-writes {name}"))
                .collect::<Vec<_>>()
                .join(" ")
        ),
        (None, true) => {
            "the owner must grant a governed channel that is apart from production".to_owned()
        }
    };
    let mut not_done: Vec<String> = results
        .iter()
        .filter_map(|route| {
            let left = route.left.as_ref()?;
            Some(format!("{} was NOT cleaned up: {left}.", route.route))
        })
        .collect();
    if not_done.is_empty() {
        not_done.push(
            "No probe file, container, table or function was left; requests and programs that \
             were permitted did what the file says."
                .to_owned(),
        );
    }
    for name in untried {
        not_done.push(format!(
            "Nothing was changed on {name}: it was not permitted."
        ));
    }
    RouteSurvey {
        schema: SCHEMA,
        surveyed: clock::rfc3339(clock::now()),
        verdict: match usable {
            Some(_) => format!("{}_{CHANNEL}", form.subject),
            None => format!("{}_{HOLD}", form.subject),
        },
        usable,
        next,
        questions: questions::answer(form, &results),
        routes: results,
        not_done,
    }
}
