use crate::common::evidence_in;
use crate::golden::unpacked;
use oci_image::Image;
use serde_json::Value;
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tki_attest::engine::contract::{Extras, LABEL_DEADLINE};
use tki_attest::engine::{
    Configured, Ended, Engine, EngineError, EngineFacts, GateKind, ImageNames, Launch, Leftover,
    Session, Surroundings,
};
use tki_evidence::evidence::{Evidence, Holdings};

/// Where evidence says that such an engine is: nobody takes it for a run.
pub const AT: &str = "ssh://nobody@recording.invalid";

/// In what a play differs from what was recorded.
#[derive(Clone, Debug, Default)]
pub struct Twist {
    /// Only so many lines come.
    pub lines: Option<usize>,
    /// A line is another one.
    pub instead: Option<(usize, &'static str)>,
    /// One more line comes at the end.
    pub more: Option<&'static str>,
    /// The container ends with this.
    pub status: i64,
    /// It writes this to standard error.
    pub complaint: &'static str,
    /// The containers that all this is about, by the end of their names; the run's own if
    /// empty.
    pub of: &'static str,
    /// The engine has the image in no form, and loading it does not help.
    pub no_image: bool,
    /// The engine refuses to launch anything, with these words.
    pub refuses: Option<&'static str>,
    /// It holds another container afterwards.
    pub newcomer: bool,
}

/// What was recorded, and what was asked of those who play it.
#[derive(Debug)]
pub struct Recording {
    _folders: [tempfile::TempDir; 2],
    artifacts: PathBuf,
    /// What the neighbour said; only a run with controls has one that was recorded.
    neighbour: String,
    evidence: Evidence,
    twist: Twist,
    /// Containers that were launched.
    pub launched: AtomicUsize,
    /// Sessions that came to their end.
    pub finished: AtomicUsize,
}

impl Recording {
    /// The run with controls, to be played with this twist.
    pub fn with(twist: Twist) -> Arc<Self> {
        Self::of("full", twist)
    }

    /// The run without controls.
    pub fn plain(twist: Twist) -> Arc<Self> {
        Self::of("plain", twist)
    }

    fn of(name: &str, twist: Twist) -> Arc<Self> {
        let folders = [unpacked(name), unpacked("full")];
        let [path, full] = [&folders[0], &folders[1]].map(|f| evidence_in(&f.path().join("out")));
        let neighbour = full.with_extension("").join("neighbour.ndjson");
        let mut neighbour = fs::read_to_string(neighbour).unwrap();
        if name != "full" {
            // It is another run's, whose namespaces may have had the numbers of this one's.
            neighbour = neighbour.replace(":[4026", ":[4027");
        }
        Arc::new(Self {
            artifacts: path.with_extension(""),
            evidence: serde_json::from_slice(&fs::read(&path).unwrap()).unwrap(),
            _folders: folders,
            neighbour,
            twist,
            launched: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
        })
    }
}

impl Recording {
    fn read(&self, name: &str) -> String {
        let text = fs::read_to_string(self.artifacts.join(name));
        text.unwrap_or_else(|error| panic!("{name} was not recorded: {error}"))
    }
}

/// An engine that makes no container, and plays what those of a real run said. What names the
/// run is put in anew: its id, its deadline, the nonces, and how long the prober took.
#[derive(Debug)]
pub struct Replay(pub Arc<Recording>);

/// A container that is played.
struct Play<'a> {
    recording: &'a Recording,
    /// It is one of those that the twist is about.
    is_twisted: bool,
    launch: Launch,
    lines: VecDeque<String>,
    /// The nonce that the recorded one was asked with.
    nonce: String,
    said: usize,
}

impl Engine for Replay {
    fn look_around(&mut self, _: &ImageNames) -> Result<Surroundings, EngineError> {
        let evidence = &self.0.evidence;
        let held = evidence.image.engine_reported_id.clone();
        Ok(Surroundings {
            facts: EngineFacts {
                runtime: evidence.runtime.clone(),
                operating_system: evidence.venue_facts.operating_system.clone(),
                host_name: "recorded".into(),
                reached: Some(AT.into()),
                swap_limit: evidence.sandbox.declared.memory_swap_bytes > 0,
                cpus: 2,
                lacks: Vec::new(),
                notes: Vec::new(),
                identity: None,
            },
            holdings: evidence.inventory.before.clone(),
            held: Some(held).filter(|_| !self.0.twist.no_image),
        })
    }

    fn holdings(&mut self) -> Result<Holdings, EngineError> {
        let mut held = self.0.evidence.inventory.after.clone();
        held.modules.clear();
        if self.0.twist.newcomer {
            held.containers.push("f".repeat(64));
        }
        Ok(held)
    }

    fn image_id(&mut self, _: &ImageNames) -> Result<Option<String>, EngineError> {
        Ok(None)
    }

    fn load(&mut self, _: &Image) -> Result<(), EngineError> {
        Ok(())
    }

    fn launch(&mut self, launch: &Launch, _: &Image) -> Result<Box<dyn Session + '_>, EngineError> {
        let recording = &*self.0;
        recording.launched.fetch_add(1, Ordering::Relaxed);
        if let Some(message) = recording.twist.refuses {
            return Err(EngineError::Refused {
                host: AT.into(),
                request: "create a container".into(),
                status: 400,
                message: message.into(),
            });
        }
        assert_eq!(
            launch.extras,
            Extras::default(),
            "Docker has no way to give it"
        );
        // tki-attest-TIME-RANDOM, and after that the control's name.
        let name: Vec<&str> = launch.name.splitn(5, '-').collect();
        let role = name.get(4).copied().unwrap_or_default();
        let text = match role {
            "neighbour" => recording.neighbour.clone(),
            "" => recording.read("transcript.ndjson"),
            control => recording.read(&format!("control-{control}.ndjson")),
        };
        let mut lines: VecDeque<String> = text.lines().map(str::to_owned).collect();
        let mut nonce = String::new();
        if role != "neighbour" {
            // What the host said is recorded as well.
            let asked: Value = serde_json::from_str(&lines.remove(1).unwrap()).unwrap();
            nonce = asked["challenge"]["nonce"].as_str().unwrap().to_owned();
        }
        Ok(Box::new(Play {
            recording,
            is_twisted: role == recording.twist.of,
            launch: launch.clone(),
            lines,
            nonce,
            said: 0,
        }))
    }

    fn makes_volumes(&self) -> bool {
        true
    }

    fn gate_kind(&self) -> GateKind {
        GateKind::Listener
    }

    fn leftovers(&mut self) -> Result<Vec<Leftover>, EngineError> {
        Ok(Vec::new())
    }

    fn remove(&mut self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Play<'_> {
    /// A recorded text with this run's id in the place of the recorded one's.
    fn renamed(&self, text: &str) -> String {
        let own = self
            .launch
            .name
            .splitn(5, '-')
            .take(4)
            .collect::<Vec<_>>()
            .join("-");
        let recorded = format!("tki-attest-{}", self.recording.evidence.run_id);
        text.replace(&recorded, &own).replace(
            &self.recording.evidence.run_id,
            own.trim_start_matches("tki-attest-"),
        )
    }
}

impl Session for Play<'_> {
    fn configured(&mut self) -> Result<Configured, EngineError> {
        let recording = self.recording;
        let text = recording.read("container.json");
        let mut description: Value = serde_json::from_str(&self.renamed(&text)).unwrap();
        let labels = &self.launch.labels;
        let deadline = labels.iter().find(|(name, _)| name == LABEL_DEADLINE);
        let (name, deadline) = deadline.unwrap();
        description["Config"]["Labels"][name] = deadline.clone().into();
        // An engine's description names variables, and their values are left out.
        let mut settings = self.launch.settings.clone();
        for variable in &mut settings.env {
            let name = variable.split_once('=').map(|(name, _)| name.to_owned());
            *variable = name.unwrap_or_default();
        }
        Ok(Configured {
            settings,
            image_id: recording.evidence.image.engine_reported_id.clone(),
            oci_runtime: Some(recording.evidence.runtime.oci_runtime.clone()),
            pid: None,
            group: "0".repeat(64),
            description: serde_json::to_string_pretty(&description).unwrap(),
        })
    }

    fn send(&mut self, line: &[u8]) -> Result<(), EngineError> {
        let asked: Value = serde_json::from_slice(line).unwrap();
        let nonce = asked["challenge"]["nonce"].as_str().unwrap();
        for line in &mut self.lines {
            *line = line.replace(&self.nonce, nonce);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let twist = &self.recording.twist;
        let number = self.said;
        self.said += 1;
        if self.is_twisted {
            if twist.lines.is_some_and(|most| number >= most) {
                return Ok(None);
            }
            if let Some((at, instead)) = twist.instead
                && at == number
            {
                return Ok(Some(instead.into()));
            }
        }
        let Some(line) = self.lines.pop_front() else {
            return Ok(twist.more.filter(|_| self.is_twisted).map(Into::into));
        };
        let mut value: Value = serde_json::from_str(&self.renamed(&line)).unwrap();
        if value["done"].is_object() {
            // Nobody waits as long as the recorded run did.
            value["done"]["elapsed_us"] = 1000.into();
        }
        Ok(Some(value.to_string().into_bytes()))
    }

    fn complaint(&mut self) -> String {
        self.recording.twist.complaint.into()
    }

    fn finish(&mut self) -> Result<Ended, EngineError> {
        self.recording.finished.fetch_add(1, Ordering::Relaxed);
        let status = if self.is_twisted {
            self.recording.twist.status
        } else {
            0
        };
        Ok(Ended {
            status: Some(status),
        })
    }
}
