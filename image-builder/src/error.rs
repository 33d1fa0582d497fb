//! Everything that can go wrong between a Dockerfile and an image.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::text::shown;

/// A place in a Dockerfile; line and column count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as the user named it.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", shown(&self.file), self.line, self.column)
    }
}

/// A Dockerfile that cannot become a reproducible image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {instruction}: {why}; {next}")]
pub struct DockerfileError {
    /// A stable code such as `dockerfile.unsupported`.
    pub code: &'static str,
    /// Where in the file.
    pub at: Location,
    /// The instruction, in capitals.
    pub instruction: String,
    /// Why it is refused.
    pub why: String,
    /// What to write instead.
    pub next: String,
}

/// A build context that does not hold what a `COPY` asks for, or holds it in a
/// form that does not go into an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {next}")]
pub struct ContextError {
    /// A stable code such as `context.missing`.
    pub code: &'static str,
    /// What is wrong, with the path.
    pub why: String,
    /// What to do about it.
    pub next: String,
}

impl ContextError {
    pub(crate) fn new(code: &'static str, why: String, next: &str) -> Self {
        let next = next.to_owned();
        Self { code, why, next }
    }
}

/// An OCI layout that cannot be trusted to be the image it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", shown(&path.to_string_lossy()))]
pub struct LayoutError {
    /// A stable code such as `layout.malformed`.
    pub code: &'static str,
    /// The file or directory in question.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
    /// What to do about it.
    pub next: String,
}

impl LayoutError {
    pub(crate) fn new(code: &'static str, path: &Path, why: String, next: &str) -> Self {
        let (path, next) = (path.to_owned(), next.to_owned());
        Self {
            code,
            path,
            why,
            next,
        }
    }
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The Dockerfile is outside the supported subset.
    #[error(transparent)]
    Dockerfile(#[from] Box<DockerfileError>),
    /// A `COPY` or `WORKDIR` step could not be carried out.
    #[error("{at}: {instruction}: {problem}")]
    Step {
        /// The step's place in the Dockerfile.
        at: Location,
        /// The step's instruction.
        instruction: &'static str,
        /// What the context, or the tree built so far, had against it.
        problem: Box<ContextError>,
    },
    /// The context itself is unusable.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// An OCI layout was refused.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A build option is outside what an image can hold.
    #[error("{option} {value}: {why}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value, safe to show.
        value: String,
        /// Why it cannot be used.
        why: &'static str,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", shown(&path.to_string_lossy()))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ImageError {
    pub(crate) fn read(path: &Path, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        Self::Read { path, source }
    }

    /// The stable code that scripts may match.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Dockerfile(error) => error.code,
            Self::Step { problem, .. } => problem.code,
            Self::Context(problem) => problem.code,
            Self::Layout(error) => error.code,
            Self::Option { .. } => "image.option",
            Self::Read { .. } => "image.read",
        }
    }

    /// What happened and where, without the advice.
    pub fn what(&self) -> String {
        match self {
            Self::Dockerfile(error) => {
                format!("{}: {}: {}", error.at, error.instruction, error.why)
            }
            Self::Step {
                at,
                instruction,
                problem,
            } => format!("{at}: {instruction}: {}", problem.why),
            Self::Context(problem) => problem.why.clone(),
            other => other.to_string(),
        }
    }

    /// The next action.
    pub fn next(&self) -> String {
        match self {
            Self::Dockerfile(error) => error.next.clone(),
            Self::Step { problem, .. } => problem.next.clone(),
            Self::Context(problem) => problem.next.clone(),
            Self::Layout(error) => error.next.clone(),
            Self::Option { option, .. } => format!("give another {option}"),
            Self::Read { .. } => "check the path and its permissions".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ContextError, ImageError, Location};

    #[test]
    fn an_error_tells_code_place_and_advice_apart() {
        let at = Location {
            file: "Docker\u{1b}file".into(),
            line: 3,
            column: 6,
        };
        let problem = ContextError::new("context.missing", "`a` is not there".into(), "add it");
        let error = ImageError::Step {
            at,
            instruction: "COPY",
            problem: Box::new(problem),
        };
        assert_eq!(error.code(), "context.missing");
        assert_eq!(
            error.what(),
            "Docker\\u{1b}file:3:6: COPY: `a` is not there"
        );
        assert_eq!(error.next(), "add it");
        assert_eq!(
            error.to_string(),
            format!("{}; {}", error.what(), error.next())
        );
    }

    #[test]
    fn read_errors_name_the_path() {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = ImageError::read("/x/y".as_ref(), source);
        assert_eq!(error.code(), "image.read");
        assert!(error.what().contains("/x/y"), "{}", error.what());
    }
}
