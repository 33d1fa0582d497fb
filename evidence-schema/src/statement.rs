//! What a signature is about: an in-toto Statement v1 with the predicate
//! `test-result`. Its subjects are the image and the evidence file; the rest
//! repeats the evidence and is compared with it.

use crate::evidence::{Evidence, Status, Verdict};
use crate::stamp::sha256_hex;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The value of `_type`.
pub const TYPE: &str = "https://in-toto.io/Statement/v1";

/// The value of `predicateType`.
pub const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// The predicate type of a signed verification.
pub const VERIFICATION_RESULT: &str = "https://in-toto.io/attestation/svr/v0.1";

/// DSSE's payload type for every in-toto statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// A statement over test results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Statement<P> {
    /// Always in-toto's Statement v1.
    #[serde(rename = "_type")]
    pub kind: String,
    /// What it is about.
    pub subject: Vec<Resource>,
    /// What the predicate is.
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// What is said about the subjects.
    pub predicate: P,
}

/// Something by name and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Its name, for people.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
}

/// A digest in in-toto's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Digest {
    /// SHA-256 in hex.
    pub sha256: String,
}

/// The predicate `test-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TestResult {
    /// `PASSED` if the sandbox is attested, else `FAILED`.
    pub result: String,
    /// What the run was configured with: the seccomp profile, the tool and the
    /// request, if there was one.
    pub configuration: Vec<Resource>,
    /// Probes that passed.
    pub passed_tests: Vec<String>,
    /// Always empty: in-toto means tests that passed with a warning, and what is
    /// not proven did not pass.
    pub warned_tests: Vec<String>,
    /// Probes that failed or are not proven; the evidence says which.
    pub failed_tests: Vec<String>,
}

/// The predicate of a signed verification: in-toto's simple verification result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct VerificationResult {
    /// Who verified.
    pub verifier: Verifier,
    /// When; RFC 3339, UTC.
    pub time_created: String,
    /// What holds: the decision and the assurance.
    pub properties: Vec<String>,
}

/// Who verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Verifier {
    /// The tool and its version, as a URI.
    pub id: String,
}

fn resource(name: impl Into<String>, sha256: &str) -> Resource {
    Resource {
        name: name.into(),
        digest: Digest {
            sha256: sha256.into(),
        },
    }
}

/// The hex part of `sha256:…`.
fn bare(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}

/// The statement that follows from an evidence file: its name, its bytes, and
/// what they say.
pub fn of_evidence(name: &str, bytes: &[u8], evidence: &Evidence) -> Statement<TestResult> {
    Statement {
        kind: TYPE.into(),
        subject: vec![
            resource("tki-inspector", bare(&evidence.image_digest)),
            resource(name, &sha256_hex(bytes)),
        ],
        predicate_type: TEST_RESULT.into(),
        predicate: predicate(evidence),
    }
}

/// What the predicate must say about this evidence.
pub fn predicate(evidence: &Evidence) -> TestResult {
    let with = |passed: bool| {
        let probes = evidence.probes.iter();
        let probes = probes.filter(|probe| (probe.verdict == Verdict::Pass) == passed);
        probes.map(|probe| probe.probe_id.clone()).collect()
    };
    let mut configuration = vec![
        resource("seccomp", &evidence.seccomp_sha256),
        resource(evidence.tool.name.as_str(), &evidence.tool.sha256),
    ];
    if let Some(request) = &evidence.request {
        configuration.push(resource("request", &request.sha256));
    }
    TestResult {
        result: match evidence.status {
            Status::SandboxAttested => "PASSED",
            Status::SandboxAttestationPartial | Status::SandboxAttestationFailed => "FAILED",
        }
        .into(),
        configuration,
        passed_tests: with(true),
        warned_tests: Vec::new(),
        failed_tests: with(false),
    }
}

/// The statement over a verification: its subjects are the evidence file, the
/// image, and the verification's own file.
pub fn of_verification(
    subjects: &[(&str, &str)],
    verifier: &str,
    time: &str,
    properties: Vec<String>,
) -> Statement<VerificationResult> {
    Statement {
        kind: TYPE.into(),
        subject: subjects
            .iter()
            .map(|(name, sha256)| resource(*name, bare(sha256)))
            .collect(),
        predicate_type: VERIFICATION_RESULT.into(),
        predicate: VerificationResult {
            verifier: Verifier {
                id: verifier.into(),
            },
            time_created: time.into(),
            properties,
        },
    }
}
