//! Why another operator has to run it.

use crate::failure::Failure;
use crate::survey::inventory::Survey;
use crate::survey::routes::RouteSurvey;

/// The reason, and what was found out.
#[derive(Clone, Debug, Default)]
pub struct Why {
    /// In a line.
    pub reason: String,
    /// The shortest next action.
    pub next: String,
    /// Surfaces or routes and what became of each, as Markdown table rows.
    pub rows: Vec<[String; 4]>,
}

impl Why {
    /// A run that was BLOCKED.
    pub fn from_failure(failure: &Failure) -> Self {
        Self {
            reason: format!("[{}] {}", failure.code, failure.message),
            next: failure.next.clone(),
            rows: Vec::new(),
        }
    }

    /// A run that has evidence, in which something stayed unproven.
    pub fn from_partial_run() -> Self {
        Self {
            reason: "the run was BLOCKED: not every probe was proven".into(),
            next: "see the evidence that was written".into(),
            rows: Vec::new(),
        }
    }

    /// A survey that found nothing to use.
    pub fn from_survey(survey: &Survey) -> Self {
        let rows = survey.surfaces.iter().map(|surface| {
            [
                format!("{} {}", surface.id, surface.surface),
                format!("{}: {}", surface.can_run.answer.name(), surface.can_run.why),
                surface.permission_gap.clone(),
                surface.decision.name().to_owned(),
            ]
        });
        Self {
            reason: survey.verdict.to_owned(),
            next: survey.next.clone(),
            rows: rows.collect(),
        }
    }

    /// A survey of routes that found none.
    pub fn from_routes(survey: &RouteSurvey) -> Self {
        let rows = survey.routes.iter().map(|route| {
            [
                format!("{} {}", route.id, route.route),
                route.answer.name().to_owned(),
                route.block.clone(),
                route.proves.clone(),
            ]
        });
        Self {
            reason: survey.verdict.clone(),
            next: survey.next.clone(),
            rows: rows.collect(),
        }
    }
}
