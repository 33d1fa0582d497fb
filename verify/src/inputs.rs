//! What a verifier has in hand besides the bundle. Trust comes from here and
//! never from the bundle.

use crate::signers::AllowedSigners;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::matrix::Matrix;
use tki_evidence::policy::Policy;
use tki_evidence::request::Request;
use tki_evidence::verification::Assurance;

/// What a verifier has in hand besides the bundle.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The image that should have been used.
    pub image: Option<ImageDigests>,
    /// SHA-256 (hex) of the profile that should have been used.
    pub seccomp_sha256: Option<String>,
    /// Another matrix than the compiled-in one, and SHA-256 (hex) of its file.
    pub matrix: Option<(Matrix, String)>,
    /// The request that should have been answered, and SHA-256 (hex) of its
    /// file.
    pub request: Option<(Request, String)>,
    /// Who may sign, and SHA-256 (hex) of the list.
    pub allowed_signers: Option<(AllowedSigners, String)>,
    /// Only signers that match this principal count.
    pub principal: Option<String>,
    /// How many different signers are needed; 0 counts as 1.
    pub threshold: u32,
    /// What else is demanded, and SHA-256 (hex) of the file.
    pub policy: Option<(Policy, String)>,
    /// The least assurance.
    pub require_assurance: Option<Assurance>,
    /// How old the run may be, in seconds.
    pub max_age: Option<u64>,
    /// A bundle without its artifacts is enough.
    pub evidence_only: bool,
    /// The moment that the checks refer to.
    pub clock: Clock,
    /// Digests that the verifying program itself vouches for.
    pub known: Known,
}

/// The moment that the checks refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Seconds since 1970.
    pub now: u64,
    /// Given by a person instead of the clock.
    pub given: bool,
}

/// What pins an image, whichever engine reports on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageDigests {
    /// The manifest's digest, `sha256:…`.
    pub manifest_digest: String,
    /// The configuration's digest, `sha256:…`.
    pub config_digest: String,
    /// The digests of the layers before compression, `sha256:…`.
    pub diff_ids: Vec<String>,
}

/// Digests that the verifying program itself vouches for.
#[derive(Debug, Default)]
pub struct Known {
    /// An image.
    pub image: Option<ImageDigests>,
    /// SHA-256 (hex) and name of seccomp profiles.
    pub seccomp: Vec<(String, &'static str)>,
}

impl Inputs {
    /// The matrix that is applied.
    pub fn matrix(&self) -> &Matrix {
        match &self.matrix {
            Some((matrix, _)) => matrix,
            None => Matrix::built_in(),
        }
    }

    /// SHA-256 (hex) of the matrix that is applied.
    pub fn matrix_sha256(&self) -> String {
        match &self.matrix {
            Some((_, sha256)) => sha256.clone(),
            None => tki_evidence::request::built_in_matrix_sha256(),
        }
    }

    /// The policy, if there is one.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref().map(|(policy, _)| policy)
    }

    /// How many different signers are needed.
    pub fn threshold(&self) -> usize {
        let demanded = self.policy().and_then(|policy| policy.threshold);
        let most = self.threshold.max(demanded.unwrap_or(1)).max(1);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// How old the run may be, in seconds: the stricter of flag and policy.
    pub fn max_age(&self) -> Option<u64> {
        let age = self.policy().and_then(|policy| policy.max_age.as_deref());
        let demanded = age.and_then(tki_evidence::time::parse_span);
        self.max_age.into_iter().chain(demanded).min()
    }

    /// The least assurance: the stricter of flag and policy.
    pub fn assurance(&self) -> Option<Assurance> {
        let demanded = self.policy().and_then(|policy| policy.assurance);
        self.require_assurance.max(demanded)
    }

    /// A bundle without its artifacts is enough, and no policy says otherwise.
    pub fn evidence_only(&self) -> bool {
        self.evidence_only && !self.policy().is_some_and(|policy| policy.require_artifacts)
    }

    /// The verifier named this profile: in a request or in a policy.
    pub fn names_profile(&self, sha256: &str) -> bool {
        let asked = self.request.as_ref();
        let asked = asked.map(|(request, _)| request.seccomp_sha256.as_str());
        let listed = self
            .policy()
            .map_or(&[][..], |policy| &policy.seccomp_sha256);
        asked == Some(sha256) || listed.iter().any(|listed| listed == sha256)
    }
}
