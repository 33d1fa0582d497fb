//! What ends a survey.

use crate::failure::Failure;
use crate::survey::mistake::RoutesError;

/// Why there is no survey.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The file of routes is not used.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// A thread of this tool panicked: `a surface`, `a route`.
    #[error("{0} panicked")]
    Panicked(&'static str),
    /// Ctrl-C or SIGTERM, while surfaces were asked.
    #[error("interrupted by {0} during the survey")]
    Surfaces(&'static str),
    /// The same while routes were.
    #[error("interrupted by {0} during the survey")]
    RoutesStopped(&'static str),
}

impl From<SurveyError> for Failure {
    fn from(error: SurveyError) -> Self {
        let message = error.to_string();
        match error {
            SurveyError::Routes(error) => error.into(),
            SurveyError::Panicked(_) => Self::internal("survey.panic", message),
            SurveyError::Surfaces(_) => Self::blocked(
                "run.interrupted",
                message,
                "run again; should an engine have been too slow to remove a container, \
                 `tki-attest clean` does it",
            ),
            SurveyError::RoutesStopped(_) => Self::blocked("run.interrupted", message, "run again"),
        }
    }
}

impl From<RoutesError> for Failure {
    fn from(error: RoutesError) -> Self {
        let (code, next) = match error {
            RoutesError::Unreadable { .. } | RoutesError::NotText(_) => (
                "routes.unreadable",
                "docs/survey.md shows the form of the file",
            ),
            RoutesError::Malformed { .. } => (
                "routes.malformed",
                "docs/survey.md shows the form of the file",
            ),
            RoutesError::Unknown { .. } => ("routes.unknown", "name a route of the file"),
        };
        Self::usage(code, error.to_string(), next)
    }
}
