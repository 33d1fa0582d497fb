//! What was recorded → evidence and artifacts, derived, stamped, written whole.

use crate::attest::transcript::Heard;
use crate::clock;
use crate::failure::Failure;
use crate::files;
use crate::sandbox::seccomp::Seccomp;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tki_evidence::catalogue::CANONICAL;
use tki_evidence::derive;
use tki_evidence::evidence::{
    Artifact, Evidence, ImageIdentity, Inventory, RawFacts, Runtime, SCHEMA, Sandbox, Status,
    Summary, Tool, VenueFacts, Witness,
};
use tki_evidence::matrix::Matrix;
use tki_evidence::observation::Observation;
use tki_evidence::stamp::{self, sha256_hex};
use tki_evidence::strict;
use tki_evidence::wire::Challenge;
use tki_evidence::witness;

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
    /// What the inspector was asked.
    pub challenge: Challenge,
    /// The engine's description of the container.
    pub container: String,
    /// What the inspector said.
    pub heard: Heard,
}

/// Evidence and artifacts, before they have a name.
#[derive(Debug)]
pub struct Bundle {
    evidence: Evidence,
    artifacts: BTreeMap<String, Vec<u8>>,
    stem: String,
    /// How long the probes took inside, in microseconds.
    pub elapsed_us: u64,
}

/// A bundle on disk.
#[derive(Debug)]
pub struct Written {
    /// The evidence file.
    pub path: PathBuf,
    /// What it says.
    pub evidence: Evidence,
}

impl Bundle {
    /// Derives everything that follows from what was recorded.
    pub fn new(recorded: Recorded) -> Self {
        let matrix = Matrix::rev4();
        let stem = format!(
            "sandbox-attestation-evidence-{}-{}",
            recorded.venue,
            &clock::rfc3339(recorded.started)[..10]
        );
        let elapsed_us = recorded.heard.elapsed_us;
        let mut artifacts = raw_artifacts(&recorded);
        let outside = Witness {
            available: false,
            source: "the host did not look at the container's /proc entries".into(),
            facts: Vec::new(),
        };
        let probes = CANONICAL
            .iter()
            .map(|probe| {
                let seen: Vec<Observation> = recorded
                    .heard
                    .observations
                    .iter()
                    .filter(|(id, _)| id == probe.id)
                    .map(|(_, seen)| seen.clone())
                    .collect();
                let name = format!("{}.json", probe.id);
                artifacts.insert(name.clone(), pretty(&seen));
                derive::probe_result(probe, seen, &recorded.heard.raw, &matrix, name)
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
            request: None,
            image_digest: recorded.image.manifest_digest.clone(),
            image: recorded.image,
            seccomp_sha256: recorded.seccomp.sha256,
            seccomp_profile: recorded.seccomp.name,
            runtime: recorded.runtime,
            witnesses: witness::witnesses(
                &recorded.heard.raw,
                &recorded.sandbox.configured,
                outside,
            ),
            sandbox: recorded.sandbox,
            inventory: recorded.inventory,
            probes,
            controls: Vec::new(),
            matrix: Vec::new(),
            raw: recorded.heard.raw,
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

    /// Writes evidence and artifacts under the first free name. `check` sees
    /// the finished bytes, with the artifacts beside them, before either has a
    /// name; its error means that nothing is written.
    pub fn write(
        self,
        folder: &Path,
        check: impl Fn(&[u8], &Path) -> Result<(), Failure>,
    ) -> Result<Written, Failure> {
        let failed = |error: io::Error| unwritable(folder, &error);
        let staging = tempfile::Builder::new()
            .prefix(".tki-attest-")
            .tempdir_in(folder)
            .map_err(failed)?;
        for number in 1..10_000u32 {
            let stem = match number {
                1 => self.stem.clone(),
                number => format!("{}-{number}", self.stem),
            };
            let (json, files) = (folder.join(format!("{stem}.json")), folder.join(&stem));
            if json.exists() || files.exists() {
                continue;
            }
            let (evidence, bytes) = self.stamped(&stem)?;
            let room = staging.path().join(number.to_string());
            self.stage(&room, &stem, &bytes).map_err(failed)?;
            check(&bytes, &room)?;
            // Neither rename replaces anything. The evidence comes last: where
            // it is, everything is.
            match rename_new(&room.join(&stem), &files) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result.map_err(failed)?,
            }
            match rename_new(&room.join("evidence.json"), &json) {
                Err(error) => {
                    let _ = fs::remove_dir_all(&files);
                    if error.kind() == io::ErrorKind::AlreadyExists {
                        continue;
                    }
                    return Err(failed(error));
                }
                Ok(()) => {
                    let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
                    return Ok(Written {
                        path: json,
                        evidence,
                    });
                }
            }
        }
        Err(Failure::usage(
            "out.full",
            format!("{}: every name for today is taken", folder.display()),
            "give another --out",
        ))
    }

    /// The evidence under a name, with its stamp.
    fn stamped(&self, stem: &str) -> Result<(Evidence, Vec<u8>), Failure> {
        let broken = |why: String| Failure::internal("evidence.stamp", why);
        let mut evidence = self.evidence.clone();
        for probe in &mut evidence.probes {
            probe.artifact_path = format!("{stem}/{}", probe.artifact_path);
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
        let value = strict::parse(&pretty(&evidence)).map_err(|error| broken(error.to_string()))?;
        evidence.evidence_sha256 = stamp::stamp(&value);
        let bytes = pretty(&evidence);
        Ok((evidence, bytes))
    }

    fn stage(&self, room: &Path, stem: &str, bytes: &[u8]) -> io::Result<()> {
        let files = room.join(stem);
        fs::create_dir_all(&files)?;
        for (name, bytes) in &self.artifacts {
            fs::write(files.join(name), bytes)?;
        }
        files::write_synced(&room.join("evidence.json"), bytes)?;
        files::sync_all_below(&files)
    }
}

/// The directory for evidence: made if missing, and writable, before anything
/// is launched.
pub fn prepare_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)
        .and_then(|()| tempfile::tempfile_in(folder).map(drop))
        .map_err(|error| unwritable(folder, &error))
}

fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    Failure::usage(
        "out.unwritable",
        format!("cannot write evidence into {}: {error}", folder.display()),
        "give an --out directory that can be written to and has room",
    )
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

fn raw_artifacts(recorded: &Recorded) -> BTreeMap<String, Vec<u8>> {
    let RawFacts {
        mountinfo,
        env_keyset,
        proc_net_dev,
        proc_self_status,
        proc_self_status_locked,
        ..
    } = &recorded.heard.raw;
    let mut artifacts = BTreeMap::new();
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
    add("challenge.json", pretty(&recorded.challenge));
    add("container.json", recorded.container.clone().into());
    add("transcript.ndjson", recorded.heard.bytes.clone());
    artifacts
}

fn pretty(value: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
