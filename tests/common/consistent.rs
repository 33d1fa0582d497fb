//! A bundle in memory whose edits are made consistently: in the evidence, in the artifact
//! that repeats it and in the conversations, and everything derived, every digest and the
//! stamp are made again.

use super::bundle::{default_inputs, restamp};
use super::edits::{Edit, Path, Step, at, edits, generic};
use super::read_json;
use super::sweep::stride;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tki_attest::verify::artifacts::Source;
use tki_attest::verify::pipeline::{Opened, conclude, open};
use tki_attest::verify::{Bundle, Decision, Inputs, Outcome, Verification, VerifyError, verify};
use tki_evidence::command_line::{Client, command_line};
use tki_evidence::evidence::{Evidence, RawFacts};
use tki_evidence::matrix::Matrix;
use tki_evidence::request::Request;
use tki_evidence::{derive, fields, stamp};

/// A bundle in memory, taken apart.
pub struct Taken {
    /// What the evidence says.
    pub document: Value,
    /// The files beside it, by their paths.
    pub artifacts: BTreeMap<String, Vec<u8>>,
    inputs: Inputs,
    /// The evidence as `verify` reads it.
    pub opened: Opened,
    /// Steps that are not good without the artifacts.
    usual: BTreeSet<&'static str>,
}

/// Whether a step with this outcome keeps a bundle from being accepted.
pub fn is_refusal(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::False | Outcome::Blocked)
}

impl Taken {
    /// Takes the bundle at this path apart.
    pub fn new(path: &std::path::Path) -> Self {
        let document = read_json(path);
        let folder = path.with_extension("");
        let stem = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let names = crate::common::names_in(&folder);
        let artifacts = names.iter().map(|name| {
            let bytes = fs::read(folder.join(name)).unwrap();
            (format!("{stem}/{name}"), bytes)
        });
        let artifacts: BTreeMap<String, Vec<u8>> = artifacts.collect();
        let mut inputs = default_inputs();
        // What was asked is the verifier's to say, where anything was.
        if document["request"].is_object() {
            let asked = path.ancestors().nth(2).unwrap().join("request.json");
            let asked = fs::read(asked).unwrap();
            inputs.request = Some(Request::parse(&asked).unwrap());
        }
        let bundle = Bundle {
            name: "real".into(),
            evidence: fs::read(path).unwrap(),
            envelope: None,
            artifacts: Source::Memory(artifacts.clone()),
        };
        let opened = open(&bundle, &inputs).unwrap();
        let alone = conclude(&opened, &Source::Memory(BTreeMap::new()), &inputs);
        let usual = alone.steps.iter().filter(|step| is_refusal(step.outcome));
        let usual = usual.map(|step| step.code.name()).collect();
        let mut evidence = opened.evidence.clone().unwrap();
        let mut taken = Self {
            usual,
            document,
            artifacts,
            inputs,
            opened,
        };
        // Written as this test writes, so that what is not edited stays the same.
        for (path, bytes) in &mut taken.artifacts {
            if path.ends_with(".ndjson") {
                *bytes = written(&lines(bytes));
            }
        }
        relist(&mut evidence, &taken.artifacts);
        taken.document = serde_json::to_value(&evidence).unwrap();
        taken.opened.evidence = Some(evidence);
        taken
    }

    /// Verifies edited evidence; `None` if the edit left nothing changed.
    fn outcome(&self, edit: &Edit) -> Option<Result<(), String>> {
        let mut document = self.document.clone();
        *at(&mut document, &edit.path) = edit.value.clone();
        twins(&mut document, &edit.path, &edit.value);
        let Ok(mut evidence) = serde_json::from_value::<Evidence>(document) else {
            return Some(Err("EV-FORM".into()));
        };
        let original = self.opened.evidence.as_ref().unwrap();
        derive::derive(&mut evidence, &Matrix::rev4());
        if evidence == *original {
            return None;
        }
        // Whatever the evidence alone gives away is refused, with artifacts as well.
        let mut opened = self.opened.clone();
        opened.evidence = Some(evidence.clone());
        let alone = conclude(&opened, &Source::Memory(BTreeMap::new()), &self.inputs);
        if let Some(code) = self.refusal(&alone) {
            return Some(Err(code.into()));
        }
        let artifacts = self.consistent(&mut evidence);
        evidence
            .evidence_sha256
            .clone_from(&original.evidence_sha256);
        if evidence == *original {
            return None;
        }
        Some(self.verified(&evidence, artifacts))
    }

    fn refusal(&self, found: &Verification) -> Option<&'static str> {
        let mut steps = found.steps.iter();
        let step = steps.find(|s| is_refusal(s.outcome) && !self.usual.contains(s.code.name()));
        step.map(|step| step.code.name())
    }

    /// The whole of `verify` on evidence with a new stamp.
    pub fn found(
        &self,
        evidence: &Evidence,
        artifacts: BTreeMap<String, Vec<u8>>,
    ) -> Result<Verification, VerifyError> {
        let mut document = serde_json::to_value(evidence).unwrap();
        restamp(&mut document);
        let bundle = Bundle {
            name: "edited".into(),
            evidence: document.to_string().into_bytes(),
            envelope: None,
            artifacts: Source::Memory(artifacts),
        };
        verify(&bundle, &self.inputs)
    }

    /// The step that refuses it, if one does.
    pub fn verified(
        &self,
        evidence: &Evidence,
        artifacts: BTreeMap<String, Vec<u8>>,
    ) -> Result<(), String> {
        match self.found(evidence, artifacts) {
            Err(failure) => Err(failure.code().to_string()),
            Ok(found) if found.decision == Decision::B4PrimeAccepted => Ok(()),
            Ok(found) => {
                let step = found.steps.iter().find(|step| is_refusal(step.outcome));
                Err(step.map_or("?", |step| step.code.name()).into())
            }
        }
    }

    /// The artifacts that go with edited evidence, whose digests are made again.
    pub fn consistent(&self, evidence: &mut Evidence) -> BTreeMap<String, Vec<u8>> {
        let mut artifacts = self.artifacts.clone();
        let original = self.opened.evidence.as_ref().unwrap();
        let raw = &evidence.raw;
        let is_other_kernel = raw.proc_version != original.raw.proc_version;
        for (path, bytes) in &mut artifacts {
            let name = path.rsplit('/').next().unwrap();
            match name {
                "mountinfo.txt" => *bytes = raw.mountinfo.clone().into(),
                "env_keyset.txt" => *bytes = raw.env_keyset.join("\n").into(),
                "proc_net_dev.txt" => *bytes = raw.proc_net_dev.clone().into(),
                "proc_self_status.txt" => *bytes = raw.proc_self_status.clone().into(),
                "proc_self_status_locked.txt" => {
                    *bytes = raw.proc_self_status_locked.clone().into();
                }
                "seccomp.json" => *bytes = raw.seccomp_profile.clone().into(),
                "container.json" => *bytes = described(bytes, original, evidence),
                "transcript.ndjson" => *bytes = told_again(bytes, original, evidence),
                name if name.starts_with("control-") && is_other_kernel => {
                    // All containers ran on one host.
                    let mut all = lines(bytes);
                    for line in &mut all {
                        tell_raw(line, raw, &["proc_version"]);
                    }
                    *bytes = written(&all);
                }
                _ => {}
            }
        }
        evidence.sandbox.command_line = typed(original, evidence);
        let described = |path: &&String| path.ends_with("/container.json");
        let path = artifacts.keys().find(described).unwrap();
        if artifacts[path] != self.artifacts[path] {
            let mut entries = evidence.artifacts.iter_mut();
            let entry = entries.find(|entry| entry.path == *path).unwrap();
            entry.sha256 = stamp::sha256_hex(&artifacts[path]);
            entry.bytes = artifacts[path].len() as u64;
        }
        relist(evidence, &artifacts);
        artifacts
    }
}

/// Docker's description of a container with other settings, as far as it names them.
fn described(bytes: &[u8], original: &Evidence, evidence: &Evidence) -> Vec<u8> {
    let settings =
        |evidence: &Evidence| serde_json::to_value(&evidence.sandbox.configured).unwrap();
    let (was, is) = (settings(original), settings(evidence));
    let mut container: Value = serde_json::from_slice(bytes).unwrap();
    if was == is || !container["HostConfig"].is_object() {
        return bytes.to_vec();
    }
    let places = [
        ("network", "/HostConfig/NetworkMode"),
        ("ipc", "/HostConfig/IpcMode"),
        ("pid", "/HostConfig/PidMode"),
        ("uts", "/HostConfig/UTSMode"),
        ("userns", "/HostConfig/UsernsMode"),
        ("cgroupns", "/HostConfig/CgroupnsMode"),
        ("hostname", "/Config/Hostname"),
        ("privileged", "/HostConfig/Privileged"),
        ("read_only_rootfs", "/HostConfig/ReadonlyRootfs"),
        ("user", "/Config/User"),
        ("cap_add", "/HostConfig/CapAdd"),
        ("cap_drop", "/HostConfig/CapDrop"),
        ("pids_limit", "/HostConfig/PidsLimit"),
        ("memory_bytes", "/HostConfig/Memory"),
        ("memory_swap_bytes", "/HostConfig/MemorySwap"),
        ("cpu_period_us", "/HostConfig/CpuPeriod"),
        ("cpu_quota_us", "/HostConfig/CpuQuota"),
        ("auto_remove", "/HostConfig/AutoRemove"),
        ("log_driver", "/HostConfig/LogConfig/Type"),
    ];
    for (name, place) in places {
        if was[name] != is[name] {
            *container.pointer_mut(place).unwrap() = is[name].clone();
        }
    }
    let items = |name: &str| is[name].as_array().unwrap().clone();
    let host = &mut container["HostConfig"];
    let limit = |own: Value| json!({"Name": own["name"], "Soft": own["soft"], "Hard": own["hard"]});
    host["Ulimits"] = items("ulimits").into_iter().map(limit).collect();
    let tmpfs = items("tmpfs").into_iter();
    let tmpfs = tmpfs.map(|own| {
        (
            own["target"].as_str().unwrap().to_owned(),
            own["options"].clone(),
        )
    });
    host["Tmpfs"] = Value::Object(tmpfs.collect());
    let asked = |own: Value| {
        json!({"Type": "bind", "Source": own["source"], "Target": own["target"],
               "ReadOnly": own["read_only"], "BindOptions": {"Propagation": "rprivate"}})
    };
    host["Mounts"] = items("binds").into_iter().map(asked).collect();
    let there = |own: Value| {
        json!({"Type": "bind", "Source": own["source"], "Destination": own["target"], "Mode": "",
               "RW": own["read_only"] == false, "Propagation": "rprivate"})
    };
    container["Mounts"] = items("binds").into_iter().map(there).collect();
    serde_json::to_vec_pretty(&container).unwrap()
}

/// The command line that goes with other settings.
fn typed(original: &Evidence, evidence: &Evidence) -> Vec<String> {
    let said = &evidence.sandbox.command_line;
    let same = |evidence: &Evidence| {
        let engine = (
            evidence.runtime.engine.clone(),
            evidence.runtime.oci_runtime.clone(),
        );
        (
            evidence.sandbox.declared.clone(),
            evidence.run_id.clone(),
            engine,
        )
    };
    if same(original) == same(evidence) {
        return said.clone();
    }
    let mut labels = Vec::new();
    for word in said {
        let label = word
            .strip_prefix("--label=")
            .and_then(|label| label.split_once('='));
        labels.extend(label.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    for (_, value) in labels.iter_mut().filter(|(name, _)| name.ends_with(".run")) {
        value.clone_from(&evidence.run_id);
    }
    let client = match evidence.runtime.engine.as_str() {
        "podman" => Client::Podman(&evidence.runtime.oci_runtime),
        _ => Client::Docker,
    };
    let name = format!("tki-attest-{}", evidence.run_id);
    let image = &said[said.len() - 2];
    command_line(
        client,
        &evidence.sandbox.declared,
        &name,
        &labels,
        "seccomp.json",
        image,
    )
}

/// A field that says the same as another one says it after the edit as well.
fn twins(document: &mut Value, path: &Path, value: &Value) {
    let twin = |from: &str, to: &str| {
        let mut other = path.clone();
        let found = other
            .iter_mut()
            .find(|step| **step == Step::Key(from.into()))?;
        *found = Step::Key(to.into());
        Some(other)
    };
    if path.first() == Some(&Step::Key("sandbox".into())) {
        let other = twin("declared", "configured").or_else(|| twin("configured", "declared"));
        if let Some(other) = other {
            *at(document, &other) = value.clone();
        }
    }
}

/// Digests and sizes that are those of the artifacts.
pub fn relist(evidence: &mut Evidence, artifacts: &BTreeMap<String, Vec<u8>>) {
    let original = |path: &str| artifacts.get(path);
    for entry in &mut evidence.artifacts {
        if let Some(bytes) = original(&entry.path)
            && !matches!(entry.path.rsplit('/').next(), Some("container.json"))
        {
            entry.sha256 = stamp::sha256_hex(bytes);
            entry.bytes = bytes.len() as u64;
        }
    }
}

/// The lines of a conversation.
pub fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A conversation of these lines.
pub fn written(lines: &[Value]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    text.into()
}

/// A kernel text as the evidence has it now.
fn tell_raw(line: &mut Value, raw: &RawFacts, only: &[&str]) {
    let Some(name) = line["raw"]["name"].as_str().map(str::to_owned) else {
        return;
    };
    if !only.is_empty() && !only.contains(&name.as_str()) {
        return;
    }
    let all = serde_json::to_value(raw).unwrap();
    line["raw"]["text"] = match &all[&name] {
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            items.join("\n").into()
        }
        text => text.clone(),
    };
}

/// The run's conversation as edited evidence has it. Observations stand where those of
/// the original stood.
fn told_again(bytes: &[u8], original: &Evidence, evidence: &Evidence) -> Vec<u8> {
    let observation = |probe: usize, place: usize| {
        let probe = evidence.probes.get(probe)?;
        let seen = probe.observations.get(place)?;
        Some(json!({"observation": {"probe": probe.probe_id, "seen": seen}}))
    };
    let place = |id: &Value| {
        original
            .probes
            .iter()
            .position(|probe| *id == probe.probe_id)
    };
    let mut told = Vec::new();
    let (mut information, mut places) = (false, vec![0; original.probes.len()]);
    for mut line in lines(bytes) {
        tell_raw(&mut line, &evidence.raw, &[]);
        if line["info"].is_object() {
            if !std::mem::replace(&mut information, true) {
                let all = evidence.information.iter();
                told.extend(all.map(|one| json!({"info": {"name": one.name, "text": one.value}})));
            }
        } else if line["observation"].is_object() {
            let probe = place(&line["observation"]["probe"]).unwrap();
            told.extend(observation(probe, places[probe]));
            places[probe] += 1;
            // What was added comes after the last one.
            if places[probe] == original.probes[probe].observations.len() {
                let more = (places[probe]..).map_while(|place| observation(probe, place));
                told.extend(more);
            }
        } else {
            told.push(line);
        }
    }
    let count = told
        .iter()
        .filter(|line| line["observation"].is_object())
        .count();
    told.last_mut().unwrap()["done"]["observations"] = count.into();
    written(&told)
}

/// Calls `with` for each, on every processor.
pub fn on_all<T: Sync, R: Send>(all: &[T], with: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let count = std::thread::available_parallelism().map_or(2, usize::from);
    let part = all.len().div_ceil(count).max(1);
    let with = &with;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .chunks(part)
            .map(|own| scope.spawn(move || own.iter().map(with).collect::<Vec<R>>()))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.flatten().collect()
    })
}

/// An edit that was accepted rests on the venue's word, and `not_proven` says so.
fn is_told(name: &str, line: Option<&str>) -> bool {
    fields::rests_on_word(name, line)
}

/// Each edit of this bundle is refused, or rests on a word that `not_proven` tells.
#[track_caller]
pub fn every_edit_is_refused_or_told(path: &std::path::Path) {
    let taken = Taken::new(path);
    let document = &taken.document;
    assert!(
        taken
            .verified(
                taken.opened.evidence.as_ref().unwrap(),
                taken.artifacts.clone()
            )
            .is_ok()
    );
    let edits = edits(document);
    assert!(edits.len() > 1000, "{}", edits.len());
    let edits: Vec<Edit> = edits.into_iter().step_by(stride()).collect();
    let outcomes = on_all(&edits, |edit| taken.outcome(edit));
    let (mut accepted, mut refused) = (BTreeSet::new(), 0);
    for (edit, outcome) in edits.iter().zip(outcomes) {
        let name = generic(&edit.path);
        match outcome {
            None => {}
            Some(Err(_)) => refused += 1,
            Some(Ok(())) if is_told(&name, edit.line.as_deref()) => {}
            Some(Ok(())) => {
                let mut place = taken.document.clone();
                let above = at(&mut place, &edit.path[..edit.path.len() - 1]);
                let about = above.get("operation").map(Value::to_string);
                let line = edit.line.clone().or(about).unwrap_or_default();
                let value = edit.value.to_string();
                accepted.insert(format!("{name} {}: {line} -> {value:.60}", edit.kind));
            }
        }
    }
    println!("{} edits, {refused} refused", edits.len());
    let shown: Vec<&String> = accepted.iter().collect();
    assert!(shown.is_empty(), "{} accepted: {shown:#?}", shown.len());
}
