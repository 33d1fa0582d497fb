//! What a verifier brings along, read from the files that hold it.

use crate::clock;
use crate::files::read_bounded;
use crate::image::{built_in, read_identity};
use crate::sandbox::seccomp::Seccomp;
use crate::verify::error::{BroughtError, Input};
use crate::verify::inputs::Clock;
use crate::verify::{ImageDigests, Known};
use std::path::Path;
use tki_evidence::matrix::Matrix;
use tki_evidence::policy::Policy;
use tki_evidence::request::Request;
use tki_evidence::stamp::sha256_hex;
use tki_verify::error::is_inspection;
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
pub fn known() -> Result<Known, BroughtError> {
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
pub fn seccomp_sha256(path: &Path) -> Result<String, BroughtError> {
    let bytes = read(path, Input::Seccomp)?;
    Ok(sha256_hex(&bytes))
}

/// The digests of an image in an OCI layout.
pub fn image(layout: &Path) -> Result<ImageDigests, BroughtError> {
    let found = read_identity(layout)?;
    Ok(ImageDigests {
        manifest_digest: found.manifest_digest,
        config_digest: found.config_digest,
        diff_ids: found.diff_ids,
    })
}

/// Reads a file that a verifier brings along. The report of an inspection is none, whatever it
/// is brought as.
pub fn read(path: &Path, input: Input) -> Result<Vec<u8>, BroughtError> {
    let most = match input {
        Input::Signers => MAX_LIST,
        _ => MAX_INPUT,
    };
    match read_bounded(path, most) {
        Ok(bytes) if is_inspection(&bytes) => Err(BroughtError::Inspection {
            path: path.to_owned(),
        }),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(BroughtError::Unreadable {
            input,
            path: path.to_owned(),
            error,
        }),
    }
}

/// A matrix and the SHA-256 of its file.
pub fn matrix(path: &Path) -> Result<(Matrix, String), BroughtError> {
    let bytes = read(path, Input::Matrix)?;
    let matrix = Matrix::parse(&bytes).map_err(|error| BroughtError::Matrix {
        path: path.to_owned(),
        error,
    })?;
    Ok((matrix, sha256_hex(&bytes)))
}

/// A request and the SHA-256 of its file.
pub fn request(path: &Path) -> Result<(Request, String), BroughtError> {
    request_in(path, &read(path, Input::Request)?)
}

/// The same of the file's bytes.
pub fn request_in(path: &Path, bytes: &[u8]) -> Result<(Request, String), BroughtError> {
    Request::parse(bytes).map_err(|error| BroughtError::Request {
        path: path.to_owned(),
        error,
    })
}

/// Who may sign, and the SHA-256 of the list's file.
pub fn signers(path: &Path) -> Result<(AllowedSigners, String), BroughtError> {
    signers_in(path, &read(path, Input::Signers)?)
}

/// The same of the file's bytes.
pub fn signers_in(path: &Path, bytes: &[u8]) -> Result<(AllowedSigners, String), BroughtError> {
    let list = AllowedSigners::parse(bytes).map_err(|error| BroughtError::Signers {
        path: path.to_owned(),
        error,
    })?;
    Ok((list, sha256_hex(bytes)))
}

/// A policy and the SHA-256 of its file. One that asks for less than the built-in bar is
/// refused unless that is allowed.
pub fn policy(path: &Path, allow_weaker: bool) -> Result<(Policy, String), BroughtError> {
    policy_in(path, &read(path, Input::Policy)?, allow_weaker)
}

/// The same of the file's bytes.
pub fn policy_in(
    path: &Path,
    bytes: &[u8],
    allow_weaker: bool,
) -> Result<(Policy, String), BroughtError> {
    let path = path.to_owned();
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(BroughtError::BinaryPolicy { path });
    };
    let policy: Policy = match toml::from_str(text) {
        Ok(policy) => policy,
        Err(error) => {
            let error = Box::new(error);
            return Err(BroughtError::PolicyForm { path, error });
        }
    };
    if let Err(error) = policy.check() {
        return Err(BroughtError::Policy { path, error });
    }
    let weaknesses = policy.weaknesses();
    if !weaknesses.is_empty() && !allow_weaker {
        return Err(BroughtError::Weaker { path, weaknesses });
    }
    Ok((policy, sha256_hex(bytes)))
}
