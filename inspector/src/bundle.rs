//! The bundle judge: evidence of tki-attest in a packet is verified again, here, by the same
//! core as `tki-attest verify`, at the packet's moment and with what the launcher brought.
//! Nothing that a packet holds says whom to trust.

use crate::guard::{FileError, Files, Guard, launcher_file};
use crate::packet::{DocumentType, Packet};
use crate::provenance::Standing;
use crate::reader::Read;
use crate::report::{Brought, BundleResult, BundleStep};
use crate::wire::{EXPECTED, Expected, ExpectedImage, POLICY, REQUEST, SIGNERS};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tki_evidence::evidence::{Evidence, MatrixRow, Status};
use tki_evidence::policy::{Policy, PolicyError};
use tki_evidence::request::{Request, RequestError};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::step_code::StepCode;
use tki_evidence::strict::{self, StrictError};
use tki_evidence::verification::{Assurance, Decision, Outcome, Step};
use tki_text::printable;
use tki_verify::artifacts::Source;
use tki_verify::inputs::Clock;
use tki_verify::signers::{AllowedSigners, ListError};
use tki_verify::{Bundle, ImageDigests, Inputs, Known, verify};

/// What the launcher brought.
#[derive(Debug, Default)]
pub struct Launcher {
    expected: Expected,
    /// Who may sign items and bundles.
    pub signers: Option<AllowedSigners>,
    signers_sha256: String,
    request: Option<(Request, String)>,
    policy: Option<(Policy, String)>,
    /// All of it, by name and digest.
    pub brought: Vec<Brought>,
}

/// Why what the launcher brought cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LauncherError {
    /// A file of it cannot be read.
    #[error("the launcher's {name} cannot be read: {error}")]
    File {
        /// Which.
        name: &'static str,
        /// Why.
        error: FileError,
    },
    /// A file of it is not what it should be.
    #[error("the launcher's {name}: {}", printable(&problem.to_string(), 300))]
    Form {
        /// Which.
        name: &'static str,
        /// What is wrong.
        problem: FormError,
    },
}

/// What is wrong with a file of the launcher's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It is not strict JSON of its form.
    #[error(transparent)]
    Json(#[from] StrictError),
    /// It is no list of signers.
    #[error(transparent)]
    Signers(#[from] ListError),
    /// It is no request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It is not text.
    #[error("it is not text")]
    Binary,
    /// It is not TOML of a policy's form.
    #[error("{}", .0.message())]
    Toml(#[from] toml::de::Error),
    /// It demands something that there is not.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// It asks for less than the built-in bar.
    #[error("it asks for less than the built-in bar, which nobody can allow here")]
    Weaker,
}

impl Launcher {
    /// Reads all of it.
    pub fn read<F: Files>(guard: &mut Guard<F>) -> Result<Self, LauncherError> {
        let mut launcher = Self::default();
        for name in [EXPECTED, SIGNERS, REQUEST, POLICY] {
            let bytes = launcher_file(guard, name);
            let bytes = bytes.map_err(|error| LauncherError::File { name, error })?;
            let Some(bytes) = bytes else { continue };
            let sha256 = sha256_hex(&bytes);
            let problem = launcher.take(name, bytes, &sha256);
            problem.map_err(|problem| LauncherError::Form { name, problem })?;
            launcher.brought.push(Brought {
                name: name.to_owned(),
                sha256,
            });
        }
        Ok(launcher)
    }

    fn take(&mut self, name: &str, bytes: Vec<u8>, sha256: &str) -> Result<(), FormError> {
        match name {
            EXPECTED => self.expected = strict::parse_as(&bytes)?,
            SIGNERS => {
                self.signers = Some(AllowedSigners::parse(&bytes)?);
                self.signers_sha256 = sha256.to_owned();
            }
            REQUEST => self.request = Some(Request::parse(&bytes)?),
            _ => self.policy = Some((policy(&bytes)?, sha256.to_owned())),
        }
        Ok(())
    }

    /// What a bundle is held against, at this moment.
    fn inputs(&self, now: u64) -> Inputs {
        let digests = |image: &ExpectedImage| ImageDigests {
            manifest_digest: image.manifest_digest.clone(),
            config_digest: image.config_digest.clone(),
            diff_ids: image.diff_ids.clone(),
        };
        let known = &self.expected.known_image;
        let list = self.signers.as_ref();
        Inputs {
            image: self.expected.image.as_ref().map(digests),
            seccomp_sha256: Some(self.expected.seccomp_sha256.clone())
                .filter(|sha256| !sha256.is_empty()),
            request: self.request.clone(),
            allowed_signers: list.map(|list| (list.clone(), self.signers_sha256.clone())),
            policy: self.policy.clone(),
            require_assurance: assurance(&self.expected.assurance),
            clock: Clock { now, given: true },
            known: Known {
                image: (!known.manifest_digest.is_empty()).then(|| digests(known)),
                seccomp: [
                    (tki_evidence::TARGETED_DENY, "targeted-deny"),
                    (tki_evidence::DENY_BY_DEFAULT, "deny-by-default"),
                ]
                .map(|(text, name)| (sha256_hex(text.as_bytes()), name))
                .into(),
            },
            ..Inputs::default()
        }
    }
}

fn assurance(name: &str) -> Option<Assurance> {
    let all = [
        Assurance::SelfReported,
        Assurance::Signed,
        Assurance::SignedFresh,
    ];
    all.into_iter().find(|assurance| assurance.name() == name)
}

/// A policy that demands no less than the built-in bar.
fn policy(bytes: &[u8]) -> Result<Policy, FormError> {
    let text = core::str::from_utf8(bytes).map_err(|_| FormError::Binary)?;
    let policy: Policy = toml::from_str(text)?;
    policy.check()?;
    match policy.weaknesses().is_empty() {
        true => Ok(policy),
        false => Err(FormError::Weaker),
    }
}

/// What a bundle came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// For the report.
    pub result: BundleResult,
    /// The decision; `None` if it is no evidence.
    pub decision: Option<Decision>,
    /// The acceptance tests that it is bound to.
    pub matrix: Vec<MatrixRow>,
    /// It claims that the sandbox was attested.
    pub says_attested: bool,
    /// It would be accepted if it were younger.
    pub only_old: bool,
    /// It would be accepted on an approved venue.
    pub only_venue: bool,
}

/// Verifies every bundle of a packet that stands, by the item's place in it.
pub fn judge(
    packet: &Packet,
    reads: &[Read],
    standings: &[Standing],
    launcher: &Launcher,
) -> BTreeMap<usize, Judged> {
    let mut judged = BTreeMap::new();
    for (index, item) in packet.items.iter().enumerate() {
        let is_one = item.document_type == DocumentType::EvidenceBundle;
        if is_one && standings[index].usable {
            judged.insert(index, one(packet, reads, standings, launcher, index));
        }
    }
    judged
}

fn one(
    packet: &Packet,
    reads: &[Read],
    standings: &[Standing],
    launcher: &Launcher,
    index: usize,
) -> Judged {
    let item = &packet.items[index];
    let (folder, name) = match item.path.rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), item.path.as_str()),
    };
    let stem = name.strip_suffix(".json").unwrap_or(name);
    let beside = format!("{folder}{stem}/");
    let seal = format!("{folder}{stem}.intoto.jsonl");
    let (mut artifacts, mut envelope) = (BTreeMap::new(), None);
    for ((other, read), standing) in packet.items.iter().zip(reads).zip(standings) {
        let Some(bytes) = read.held.as_ref().filter(|_| standing.usable) else {
            continue;
        };
        if other.path == seal {
            envelope = Some(bytes.clone());
        } else if other.path.starts_with(&beside) {
            // As the evidence names it: from the directory that the evidence is in.
            artifacts.insert(other.path[folder.len()..].to_owned(), bytes.clone());
        }
    }
    let evidence = reads[index].held.clone().unwrap_or_default();
    let facts: Option<Evidence> = strict::parse_as(&evidence).ok();
    let bundle = Bundle {
        name: name.to_owned(),
        evidence,
        envelope,
        artifacts: Source::Memory(artifacts),
    };
    let venue = facts
        .as_ref()
        .map(|facts| facts.venue.clone())
        .unwrap_or_default();
    let says_attested = facts.is_some_and(|facts| facts.status == Status::SandboxAttested);
    let mut result = BundleResult {
        item: item.id.clone(),
        decision: "UNREADABLE".to_owned(),
        assurance: None,
        venue: printable(&venue, 40),
        open: Vec::new(),
    };
    let found = match verify(&bundle, &launcher.inputs(packet.as_of())) {
        Ok(found) => found,
        Err(error) => {
            result.open.push(BundleStep {
                code: error.code().to_owned(),
                outcome: "false".to_owned(),
                got: printable(&error.to_string(), 300),
            });
            return Judged {
                result,
                decision: None,
                matrix: Vec::new(),
                says_attested: false,
                only_old: false,
                only_venue: false,
            };
        }
    };
    let open: Vec<&Step> = found.steps.iter().filter(is_open).collect();
    let is_blocked = found.decision == Decision::B4PrimeBlocked && !open.is_empty();
    let only = |code: StepCode| is_blocked && open.iter().all(|step| step.code == code);
    let (only_old, only_venue) = (only(StepCode::Age), only(StepCode::Venue));
    let steps = open.iter().map(|step| BundleStep {
        code: step.code.to_string(),
        outcome: BundleStep::outcome_name(step.outcome).to_owned(),
        got: printable(&step.got, 300),
    });
    result.open = steps.collect();
    result.decision = found.decision.name().to_owned();
    result.assurance = Some(found.assurance);
    Judged {
        decision: Some(found.decision),
        matrix: found.matrix,
        says_attested,
        only_old,
        only_venue,
        result,
    }
}

fn is_open(step: &&Step) -> bool {
    matches!(step.outcome, Outcome::Blocked | Outcome::False)
}
