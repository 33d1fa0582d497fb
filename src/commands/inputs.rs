//! What the command line names → what a verifier has in hand.

use crate::cli::{AssuranceLevel, VerifyFlags};
use crate::clock;
use crate::failure::Failure;
use crate::files::read_bounded;
use crate::image::{built_in, read_identity};
use crate::sandbox::seccomp::Seccomp;
use crate::trust::signers::{AllowedSigners, MAX_LIST};
use crate::verify::inputs::Clock;
use crate::verify::{Assurance, ImageDigests, Inputs, Known};
use std::path::Path;
use tki_evidence::matrix::Matrix;
use tki_evidence::policy::Policy;
use tki_evidence::request::Request;
use tki_evidence::stamp::sha256_hex;

/// The largest request, policy, matrix or profile that is read, in bytes.
const MAX_INPUT: u64 = 1 << 20;

/// Reads everything that the flags name. The clock is this host's unless an audit
/// gives another time.
pub fn inputs(flags: &VerifyFlags, as_of: Option<u64>) -> Result<Inputs, Failure> {
    let seccomp = flags.seccomp.as_deref();
    let seccomp = seccomp.map(|path| read(path, "seccomp.unreadable", MAX_INPUT));
    Ok(Inputs {
        image: flags.image.as_deref().map(image).transpose()?,
        seccomp_sha256: seccomp.transpose()?.map(|bytes| sha256_hex(&bytes)),
        matrix: flags.matrix.as_deref().map(matrix).transpose()?,
        request: flags.request.as_deref().map(request).transpose()?,
        allowed_signers: flags.allowed_signers.as_deref().map(signers).transpose()?,
        principal: flags.principal.clone(),
        threshold: flags.threshold.unwrap_or(1),
        policy: match &flags.policy {
            Some(path) => Some(policy(path, flags)?),
            None => None,
        },
        require_assurance: flags.require_assurance.map(|level| match level {
            AssuranceLevel::SelfReported => Assurance::SelfReported,
            AssuranceLevel::Signed => Assurance::Signed,
            AssuranceLevel::SignedFresh => Assurance::SignedFresh,
        }),
        max_age: flags.max_age,
        evidence_only: flags.evidence_only,
        clock: match as_of {
            Some(now) => Clock { now, given: true },
            None => Clock {
                now: clock::now(),
                given: false,
            },
        },
        known: known()?,
    })
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

/// The digests of an image in an OCI layout.
fn image(layout: &Path) -> Result<ImageDigests, Failure> {
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

fn signers(path: &Path) -> Result<(AllowedSigners, String), Failure> {
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

fn policy(path: &Path, flags: &VerifyFlags) -> Result<(Policy, String), Failure> {
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
    if !weaknesses.is_empty() && !flags.allow_weaker {
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
