//! What a verifier brings along, read from the files that hold it.

use crate::clock;
use crate::failure::Failure;
use crate::files::read_bounded;
use crate::image::{built_in, read_identity};
use crate::sandbox::seccomp::Seccomp;
use crate::verify::inputs::Clock;
use crate::verify::{ImageDigests, Known};
use std::path::Path;
use tki_evidence::matrix::Matrix;
use tki_evidence::policy::Policy;
use tki_evidence::request::Request;
use tki_evidence::stamp::sha256_hex;
use tki_verify::signers::{AllowedSigners, MAX_LIST};

/// The largest request, policy, matrix or profile that is read, in bytes.
const MAX_INPUT: u64 = 1 << 20;

/// The time, by this host's clock.
pub fn now() -> Clock {
    Clock {
        now: clock::now(),
        given: false,
    }
}

/// Digests that this tool itself vouches for.
pub fn known() -> Result<Known, Failure> {
    let own = built_in::image()?;
    let mut known = Known {
        image: Some(ImageDigests {
            manifest_digest: own.manifest_digest,
            config_digest: own.config_digest,
            diff_ids: own.diff_ids,
        }),
        seccomp: Vec::new(),
    };
    for name in ["targeted-deny", "deny-by-default"] {
        known.seccomp.push((Seccomp::resolve(name)?.sha256, name));
    }
    Ok(known)
}

/// The SHA-256 of a seccomp profile's file.
pub fn seccomp_sha256(path: &Path) -> Result<String, Failure> {
    let bytes = read(path, "seccomp.unreadable", MAX_INPUT)?;
    Ok(sha256_hex(&bytes))
}

/// The digests of an image in an OCI layout.
pub fn image(layout: &Path) -> Result<ImageDigests, Failure> {
    let found = read_identity(layout)?;
    Ok(ImageDigests {
        manifest_digest: found.manifest_digest,
        config_digest: found.config_digest,
        diff_ids: found.diff_ids,
    })
}

fn read(path: &Path, code: &'static str, most: u64) -> Result<Vec<u8>, Failure> {
    read_bounded(path, most).map_err(|error| {
        Failure::usage(
            code,
            format!("{}: {error}", path.display()),
            "give a file that can be read",
        )
    })
}

/// A matrix and the SHA-256 of its file.
pub fn matrix(path: &Path) -> Result<(Matrix, String), Failure> {
    let bytes = read(path, "matrix.unreadable", MAX_INPUT)?;
    let matrix = Matrix::parse(&bytes).map_err(|error| {
        Failure::usage(
            "matrix.malformed",
            format!("{}: {error}", path.display()),
            "evidence-schema/matrix.v1.schema.json describes the form",
        )
    })?;
    Ok((matrix, sha256_hex(&bytes)))
}

/// A request and the SHA-256 of its file.
pub fn request(path: &Path) -> Result<(Request, String), Failure> {
    let bytes = read(path, "request.unreadable", MAX_INPUT)?;
    Request::parse(&bytes).map_err(|error| {
        Failure::usage(
            "request.malformed",
            format!("{}: {error}", path.display()),
            "give the file as `tki-attest request` wrote it",
        )
    })
}

/// Who may sign, and the SHA-256 of the list's file.
pub fn signers(path: &Path) -> Result<(AllowedSigners, String), Failure> {
    let bytes = read(path, "signers.unreadable", MAX_LIST)?;
    let list = AllowedSigners::parse(&bytes).map_err(|error| {
        Failure::usage(
            "signers.malformed",
            format!("{}: {error}", path.display()),
            "write lines as in ssh-keygen(1), ALLOWED SIGNERS: principal, options, ssh-ed25519 key",
        )
    })?;
    Ok((list, sha256_hex(&bytes)))
}

/// A policy and the SHA-256 of its file. One that asks for less than the built-in bar is
/// refused unless that is allowed.
pub fn policy(path: &Path, allow_weaker: bool) -> Result<(Policy, String), Failure> {
    let bytes = read(path, "policy.unreadable", MAX_INPUT)?;
    let malformed = |why: String| {
        Failure::usage(
            "policy.malformed",
            format!("{}: {why}", path.display()),
            "docs/policy.md explains every field",
        )
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| malformed("it is not text".into()))?;
    let policy: Policy = toml::from_str(text).map_err(|error| malformed(error.to_string()))?;
    policy
        .check()
        .map_err(|error| malformed(error.to_string()))?;
    let weaknesses = policy.weaknesses();
    if !weaknesses.is_empty() && !allow_weaker {
        return Err(Failure::usage(
            "policy.weaker",
            format!(
                "{}: it asks for less than the built-in bar: {}",
                path.display(),
                weaknesses.join("; ")
            ),
            "take that out, or say --allow-weaker; the decision will repeat it",
        ));
    }
    Ok((policy, sha256_hex(&bytes)))
}
