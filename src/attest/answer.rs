//! A run as the answer to a verifying party's request.

use crate::clock;
use crate::failure::Failure;
use crate::image::Image;
use crate::sandbox::profile::Profile;
use crate::verify::brought;
use std::path::Path;
use tki_evidence::evidence::RequestBinding;

/// The request in this file, if the run can answer it. What could not be accepted later is
/// not begun.
pub fn binding(
    path: &Path,
    venue: &str,
    profile: &Profile,
    image: &Image,
) -> Result<RequestBinding, Failure> {
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
            return Err(Failure::blocked(
                "request.other",
                format!(
                    "{}: it asks for {what} {asked}, and here it is {here}",
                    path.display()
                ),
                "run what it asks for, or ask for another request",
            ));
        }
    }
    if clock::parse_rfc3339(&request.not_after).is_none_or(|end| end < clock::now()) {
        return Err(Failure::blocked(
            "request.stale",
            format!(
                "{}: answers counted until {}",
                path.display(),
                request.not_after
            ),
            "ask the verifying party for a new request",
        ));
    }
    Ok(RequestBinding {
        sha256,
        nonce: request.nonce,
    })
}
