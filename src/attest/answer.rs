//! A run as the answer to a verifying party's request.

use crate::clock;
use crate::failure::Failure;
use crate::image::Image;
use crate::sandbox::profile::Profile;
use crate::verify::brought;
use crate::verify::error::BroughtError;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::RequestBinding;

/// Why a run cannot answer a request.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It is none.
    #[error(transparent)]
    Brought(#[from] BroughtError),
    /// It asks for another run.
    #[error("{}: it asks for {what} {asked}, and here it is {here}", .path.display())]
    Other {
        /// The request.
        path: PathBuf,
        /// What is another one.
        what: &'static str,
        /// What it asks for.
        asked: String,
        /// What the run has.
        here: String,
    },
    /// Its time is over.
    #[error("{}: answers counted until {not_after}", .path.display())]
    Stale {
        /// The request.
        path: PathBuf,
        /// When it ended.
        not_after: String,
    },
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        let what = error.to_string();
        match error {
            AnswerError::Brought(error) => error.into(),
            AnswerError::Other { .. } => Failure::blocked(
                "request.other",
                what,
                "run what it asks for, or ask for another request",
            ),
            AnswerError::Stale { .. } => Failure::blocked(
                "request.stale",
                what,
                "ask the verifying party for a new request",
            ),
        }
    }
}

/// The request in this file, if the run can answer it. What could not be accepted later is
/// not begun.
pub fn binding(
    path: &Path,
    venue: &str,
    profile: &Profile,
    image: &Image,
) -> Result<RequestBinding, AnswerError> {
    let (request, sha256) = brought::request(path)?;
    for (what, asked, here) in [
        ("venue", request.venue.as_str(), venue),
        ("image", &request.image_digest, &image.manifest_digest),
        (
            "seccomp profile",
            &request.seccomp_sha256,
            &profile.seccomp.sha256,
        ),
    ] {
        if asked != here {
            return Err(AnswerError::Other {
                path: path.to_owned(),
                what,
                asked: asked.to_owned(),
                here: here.to_owned(),
            });
        }
    }
    if clock::parse_rfc3339(&request.not_after).is_none_or(|end| end < clock::now()) {
        return Err(AnswerError::Stale {
            path: path.to_owned(),
            not_after: request.not_after,
        });
    }
    Ok(RequestBinding {
        sha256,
        nonce: request.nonce,
    })
}
