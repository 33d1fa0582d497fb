//! What was recorded → evidence and artifacts, derived, stamped, written whole.

use crate::attest::controls::ControlOutcome;
use crate::attest::error::AttestError;
use crate::attest::neighbour::Known;
use crate::attest::trial::Outcome;
use crate::clock;
use crate::files::{self, Folder, Stage};
use crate::host::outside::View;
use crate::sandbox::seccomp::Seccomp;
use crate::trust::envelope_file;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tki_evidence::calibrate::{self, NotPassed};
use tki_evidence::catalogue;
use tki_evidence::controls::Relaxation;
use tki_evidence::derive;
use tki_evidence::evidence::{
    Artifact, ControlResult, Evidence, ImageIdentity, Inventory, OutsideFacts, ProbeResult,
    RawFacts, RequestBinding, Runtime, SCHEMA, Sandbox, SentryFacts, Status, Summary,
    SyscallLayers, Tool, VenueFacts, Verdict, Witness,
};
use tki_evidence::judge::{Sweeps, Texts};
use tki_evidence::kernel;
use tki_evidence::matrix::Matrix;
use tki_evidence::relaxation::Names;
use tki_evidence::seccomp;
use tki_evidence::stamp::{self, sha256_hex};
use tki_evidence::transcript;
use tki_evidence::witness;

/// The conversation in which every observation was made.
const TRANSCRIPT: &str = "transcript.ndjson";

/// What the neighbour said.
const NEIGHBOUR: &str = "neighbour.ndjson";

/// Everything that a run recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The run's id.
    pub run_id: String,
    /// Seconds since 1970.
    pub started: u64,
    /// Seconds since 1970.
    pub finished: u64,
    /// This tool.
    pub tool: Tool,
    /// The claimed venue.
    pub venue: String,
    /// What was observed about it.
    pub venue_facts: VenueFacts,
    /// What others signed about it, as artifacts by name.
    pub proofs: Vec<(String, Vec<u8>)>,
    /// The image.
    pub image: ImageIdentity,
    /// The seccomp profile.
    pub seccomp: Seccomp,
    /// The engine.
    pub runtime: Runtime,
    /// The container's settings.
    pub sandbox: Sandbox,
    /// What else the engine held.
    pub inventory: Inventory,
    /// The namespaces of this tool.
    pub host_namespaces: Vec<String>,
    /// The neighbour, if there was one.
    pub neighbour: Option<Known>,
    /// The container.
    pub outcome: Outcome,
    /// Its controls.
    pub controls: Vec<ControlOutcome>,
    /// The request that it answers.
    pub request: Option<RequestBinding>,
}

/// Evidence and artifacts, before they have a name.
#[derive(Debug)]
pub struct Draft {
    evidence: Evidence,
    artifacts: BTreeMap<String, Vec<u8>>,
    stem: String,
    /// How long the probes took inside, in microseconds.
    pub elapsed_us: u64,
}

/// Makes the envelope of new evidence: its file's name, its bytes, what it says.
pub type Sign<'a, E> = dyn Fn(&str, &[u8], &Evidence) -> Result<Vec<u8>, E> + 'a;

/// A bundle on disk.
#[derive(Debug)]
pub struct Written {
    /// The evidence file.
    pub path: PathBuf,
    /// What it says.
    pub evidence: Evidence,
}

impl Draft {
    /// Derives everything that follows from what was recorded.
    pub fn new(recorded: Recorded) -> Self {
        let matrix = Matrix::rev4();
        let stem = format!(
            "sandbox-attestation-evidence-{}-{}",
            recorded.venue,
            &clock::rfc3339(recorded.started)[..10]
        );
        let heard = &recorded.outcome.heard;
        let elapsed_us = heard.elapsed_us;
        let mut artifacts = raw_artifacts(&recorded);
        let (outside, view) = match &recorded.outcome.outside {
            Ok(view) => {
                let source = view.source().into();
                let witness = Witness {
                    available: true,
                    source,
                    facts: Vec::new(),
                };
                (witness, view.clone())
            }
            Err(why) => (
                Witness {
                    available: false,
                    source: why.to_string(),
                    facts: Vec::new(),
                },
                View::First(OutsideFacts::default()),
            ),
        };
        let (outside_facts, sentry) = match view {
            View::First(facts) => (facts, SentryFacts::default()),
            View::Sentry(facts) => (OutsideFacts::default(), facts),
        };
        let raw = RawFacts {
            host_namespaces: recorded.host_namespaces.clone(),
            neighbour_namespaces: match &recorded.neighbour {
                Some(known) => known.namespaces.clone(),
                None => Vec::new(),
            },
            outside: outside_facts,
            sentry,
            seccomp_profile: recorded.seccomp.text.clone(),
            marked_sweep: marked_sweep(&recorded.controls),
            ..heard.raw.clone()
        };
        let sweeps = Sweeps::default();
        let label = recorded.sandbox.configured.lsm.as_str();
        let kind = kernel::by_prober(&raw, &recorded.runtime, &recorded.venue_facts);
        let own = kernel::own_as(kind, &raw, &recorded.runtime);
        let mut texts = Texts::of_run(&raw, &sweeps).on(own);
        texts.label = label;
        let asked = &recorded.outcome.challenge.probes;
        let probes = catalogue::all()
            .filter(|probe| asked.iter().any(|id| id == probe.id))
            .map(|probe| {
                let seen = heard.observations_of(probe.id);
                derive::probe_result(probe, seen, &texts, &matrix, TRANSCRIPT.into())
            })
            .collect();
        // Controls have no gate, and so not the profile that it extended.
        let mut ungated = recorded.sandbox.configured.clone();
        let plain = match recorded.sandbox.gate.plain_profile.as_str() {
            "" => &raw.seccomp_profile,
            plain => {
                ungated.seccomp = sha256_hex(plain.as_bytes());
                plain
            }
        };
        let marked = sha256_hex(seccomp::marked(plain).unwrap_or_default().as_bytes());
        let controls = recorded
            .controls
            .iter()
            .map(|(control, outcome)| {
                let name = format!("control-{}.ndjson", control.name);
                artifacts.insert(name.clone(), conversation(outcome));
                let names = Names {
                    scratch: &outcome.scratch,
                    neighbour: &outcome.neighbour,
                    variable: &outcome.challenge.env_canary,
                    file: &outcome.challenge.host_canary,
                    marked: &marked,
                };
                let texts =
                    calibrate::texts(control, &outcome.heard, &raw, label, plain, &sweeps, own);
                let NotPassed { flipped, unproven } =
                    calibrate::not_passed(control, &outcome.heard, &texts);
                ControlResult {
                    control: control.name.into(),
                    relaxed: String::new(),
                    layers: Vec::new(),
                    instrument: false,
                    probes: Vec::new(),
                    must_flip: Vec::new(),
                    may_flip: Vec::new(),
                    blinds: Vec::new(),
                    flipped,
                    unproven,
                    changed: calibrate::changed(&ungated, &outcome.configured.settings, names),
                    holds: false,
                    artifact_path: name,
                }
            })
            .collect();
        let mut evidence = Evidence {
            schema: SCHEMA.into(),
            run_id: recorded.run_id,
            status: Status::SandboxAttestationPartial,
            started: clock::rfc3339(recorded.started),
            finished: clock::rfc3339(recorded.finished),
            tool: recorded.tool,
            venue: recorded.venue,
            venue_facts: recorded.venue_facts,
            request: recorded.request,
            image_digest: recorded.image.manifest_digest.clone(),
            image: recorded.image,
            seccomp_sha256: recorded.seccomp.sha256,
            seccomp_profile: recorded.seccomp.name,
            runtime: recorded.runtime,
            witnesses: witness::witnesses(&raw, &recorded.sandbox.configured, &outside, kind),
            sandbox: recorded.sandbox,
            inventory: recorded.inventory,
            probes,
            controls,
            matrix: Vec::new(),
            syscalls: SyscallLayers::default(),
            raw,
            information: heard.information.iter().map(|i| (**i).clone()).collect(),
            artifacts: Vec::new(),
            summary: Summary {
                required: 0,
                passed: 0,
                failed: 0,
                unproven: 0,
            },
            not_proven: Vec::new(),
            evidence_sha256: String::new(),
        };
        derive::derive(&mut evidence, &matrix);
        Self {
            evidence,
            artifacts,
            stem,
            elapsed_us,
        }
    }

    /// What it will say.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Every required probe passed.
    pub fn all_passed(&self) -> bool {
        let passed = |probe: &ProbeResult| probe.verdict == Verdict::Pass;
        self.evidence.probes.iter().all(passed)
            && self.evidence.summary.passed == self.evidence.summary.required
    }

    /// Writes evidence, artifacts and envelope under the first free name.
    /// `check` sees the finished bytes, with the artifacts beside them, before
    /// either has a name; its error means that nothing is written.
    pub fn write<E: From<AttestError>>(
        self,
        folder: &Folder,
        sign: Option<&Sign<E>>,
        check: impl Fn(&[u8], &Path) -> Result<(), E>,
    ) -> Result<Written, E> {
        let failed = |error| E::from(unwritable(folder.path(), error));
        let staging = Stage::new(folder, ".tki-attest-").map_err(failed)?;
        for number in 1..10_000u32 {
            let stem = match number {
                1 => self.stem.clone(),
                number => format!("{}-{number}", self.stem),
            };
            let names = FileNames::of(&stem);
            if names.are_taken(folder).map_err(failed)? {
                continue;
            }
            let room = staging.folder().make(number.to_string()).map_err(failed)?;
            let (evidence, bytes) = self.stage(&room, &stem, failed, &check)?;
            let envelope = match sign {
                Some(sign) => Some(sign(&names.evidence, &bytes, &evidence)?),
                None => None,
            };
            match names.give(&room, envelope.as_deref(), folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result.map_err(failed)?,
            }
            let _ = folder.sync();
            return Ok(Written {
                path: folder.path().join(&names.evidence),
                evidence,
            });
        }
        let folder = folder.path().to_owned();
        Err(AttestError::Full { folder }.into())
    }

    /// The evidence under a name, with its stamp.
    fn stamped(&self, stem: &str) -> Result<(Evidence, Vec<u8>), AttestError> {
        let mut evidence = self.evidence.clone();
        let probes = evidence
            .probes
            .iter_mut()
            .map(|probe| &mut probe.artifact_path);
        let controls = evidence
            .controls
            .iter_mut()
            .map(|control| &mut control.artifact_path);
        for path in probes.chain(controls) {
            *path = format!("{stem}/{path}");
        }
        evidence.artifacts = self
            .artifacts
            .iter()
            .map(|(name, bytes)| Artifact {
                path: format!("{stem}/{name}"),
                sha256: sha256_hex(bytes),
                bytes: bytes.len() as u64,
            })
            .collect();
        // The stamp is of what is said, not of how it is laid out.
        let compact = serde_json::to_vec(&evidence).unwrap_or_default();
        evidence.evidence_sha256 = stamp::stamp(&compact).map_err(AttestError::Stamp)?;
        let bytes = pretty(&evidence);
        Ok((evidence, bytes))
    }

    /// Evidence and artifacts in a directory of their own, checked and on their
    /// device. The device takes as long as the stamp and the check.
    fn stage<E: From<AttestError>>(
        &self,
        room: &Folder,
        stem: &str,
        failed: impl Fn(io::Error) -> E,
        check: impl Fn(&[u8], &Path) -> Result<(), E>,
    ) -> Result<(Evidence, Vec<u8>), E> {
        let folder = room.make(stem).map_err(&failed)?;
        let mut artifacts = Vec::new();
        for (name, bytes) in &self.artifacts {
            let file = folder.write(name, bytes, files::READABLE);
            artifacts.push(file.map_err(&failed)?);
        }
        folder.set_mode(files::OPEN).map_err(&failed)?;
        let joined = |synced: std::thread::Result<io::Result<()>>| {
            synced.unwrap_or_else(|_| Err(io::Error::other("syncing panicked")))
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| files::sync_all(&artifacts).and_then(|()| folder.sync()));
            let (evidence, bytes) = self.stamped(stem)?;
            let json = room.write(EVIDENCE, &bytes, files::READABLE);
            let json = json.map_err(&failed)?;
            let second = scope.spawn(move || json.sync_all());
            // By descriptor: what is checked is what was written, whichever user owns the names.
            check(&bytes, &room.alias())?;
            joined(first.join()).map_err(&failed)?;
            joined(second.join()).map_err(&failed)?;
            room.sync().map_err(&failed)?;
            Ok((evidence, bytes))
        })
    }
}

/// What the parts of a bundle are called in the staging directory.
const EVIDENCE: &str = "evidence.json";
const ENVELOPE: &str = "envelope";

/// The names of a bundle's parts in the output directory.
struct FileNames<'a> {
    artifacts: &'a str,
    evidence: String,
    envelope: String,
}

impl<'a> FileNames<'a> {
    fn of(stem: &'a str) -> Self {
        let evidence = format!("{stem}.json");
        let envelope = envelope_file::beside(Path::new(&evidence));
        Self {
            artifacts: stem,
            envelope: envelope.to_string_lossy().into_owned(),
            evidence,
        }
    }

    fn are_taken(&self, folder: &Folder) -> io::Result<bool> {
        for name in [self.artifacts, &self.evidence, &self.envelope] {
            if folder.look(name)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives what was staged these names. No rename replaces anything. The evidence
    /// comes last: where it is, everything is. If one fails, those before it are undone.
    fn give(&self, room: &Folder, envelope: Option<&[u8]>, folder: &Folder) -> io::Result<()> {
        let artifacts = room.enter(self.artifacts)?;
        room.rename_new(self.artifacts, folder, self.artifacts)?;
        let signed = match envelope {
            Some(line) => room
                .write(ENVELOPE, line, files::READABLE)
                .and_then(|file| file.sync_all())
                .and_then(|()| room.rename_new(ENVELOPE, folder, &self.envelope)),
            None => Ok(()),
        };
        signed
            .and_then(|()| {
                let named = room.rename_new(EVIDENCE, folder, &self.evidence);
                named.inspect_err(|_| {
                    if envelope.is_some() {
                        let _ = folder.remove_file(&self.envelope);
                    }
                })
            })
            .inspect_err(|_| {
                let _ = artifacts.clear();
                let _ = folder.remove_folder(self.artifacts);
            })
    }
}

/// The directory for evidence: made if missing, and writable, before anything
/// is launched. It is held from then on.
pub fn prepare_folder(path: &Path) -> Result<Folder, AttestError> {
    let prepared = Folder::open_or_make(path).and_then(|folder| {
        drop(Stage::new(&folder, ".tki-attest-")?);
        Ok(folder)
    });
    prepared.map_err(|error| unwritable(path, error))
}

fn unwritable(folder: &Path, error: io::Error) -> AttestError {
    AttestError::Unwritable {
        folder: folder.to_owned(),
        error,
    }
}

fn raw_artifacts(recorded: &Recorded) -> BTreeMap<String, Vec<u8>> {
    let RawFacts {
        mountinfo,
        env_keyset,
        proc_net_dev,
        proc_self_status,
        proc_self_status_locked,
        ..
    } = &recorded.outcome.heard.raw;
    let mut artifacts: BTreeMap<String, Vec<u8>> = recorded.proofs.iter().cloned().collect();
    let mut add = |name: &str, bytes: Vec<u8>| artifacts.insert(name.to_owned(), bytes);
    add("mountinfo.txt", mountinfo.clone().into());
    add("env_keyset.txt", env_keyset.join("\n").into());
    add("proc_net_dev.txt", proc_net_dev.clone().into());
    add("proc_self_status.txt", proc_self_status.clone().into());
    add(
        "proc_self_status_locked.txt",
        proc_self_status_locked.clone().into(),
    );
    add("seccomp.json", recorded.seccomp.text.clone().into());
    add(
        "container.json",
        recorded.outcome.configured.description.clone().into(),
    );
    add(TRANSCRIPT, conversation(&recorded.outcome));
    if let Some(known) = &recorded.neighbour {
        add(NEIGHBOUR, known.words.clone());
    }
    artifacts
}

/// What the sweep gave in the control whose denials carry marks; empty if there was none.
fn marked_sweep(controls: &[ControlOutcome]) -> String {
    let marks = |(control, _): &&ControlOutcome| control.relaxations.contains(&Relaxation::Marks);
    let marked = controls.iter().find(marks);
    let seen = marked.map(|(_, outcome)| outcome.heard.observations_of(derive::SWEEP));
    let sweep = seen.into_iter().flatten().next();
    sweep.and_then(|seen| seen.value).unwrap_or_default()
}

/// Both sides of a conversation, in their order.
fn conversation(outcome: &Outcome) -> Vec<u8> {
    transcript::write(&outcome.challenge, &outcome.heard)
}

fn pretty(value: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
