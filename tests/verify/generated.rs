//! Edits that come from a generator over the bundle itself. Each is made consistently, in
//! the evidence, in the artifact that repeats it and in the conversations, and everything
//! derived, every digest and the stamp are made again. Each is refused, or rests on the
//! venue's word and is told to (`tki_evidence::fields`, `not_proven`).

use super::{controls, default_inputs, restamp};
use crate::common::{attest, evidence_in, read_json};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tki_attest::verify::artifacts::Source;
use tki_attest::verify::pipeline::{Opened, conclude, open};
use tki_attest::verify::{Bundle, Decision, Inputs, Outcome, Verification, VerifyError, verify};
use tki_evidence::command_line::{Client, command_line};
use tki_evidence::evidence::{Evidence, OutsideFacts, RawFacts};
use tki_evidence::matrix::Matrix;
use tki_evidence::observation::State;
use tki_evidence::request::control_nonce;
use tki_evidence::{derive, facts, fields, remembered, stamp};

/// How many fields of one kind are edited, and how many lines of one text.
const SAMPLES: usize = 8;
const LINES: usize = 24;

/// Observations are many, and of many kinds.
const OBSERVATIONS: usize = 40;

/// A way through the document.
type Path = Vec<Step>;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// One edit: a field, which of its lines, and its new value.
#[derive(Clone, Debug)]
struct Edit {
    path: Path,
    kind: String,
    line: Option<String>,
    value: Value,
}

fn at<'a>(document: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Index(index) => &mut value[index],
    })
}

/// A field's path as the table has it: places in lists do not count.
fn generic(path: &[Step]) -> String {
    let mut name = String::new();
    for step in path {
        match step {
            Step::Key(key) if name.is_empty() => name += key,
            Step::Key(key) => name += &format!(".{key}"),
            Step::Index(_) => name += "[]",
        }
    }
    name
}

/// Every value of a document, lists and leaves, with its path.
fn values(document: &Value) -> Vec<(Path, &Value)> {
    let mut found = Vec::new();
    let mut pending = vec![(Path::new(), document)];
    while let Some((path, value)) = pending.pop() {
        let below = |step| [&path[..], &[step]].concat();
        match value {
            Value::Object(map) => {
                pending.extend(map.iter().map(|(k, v)| (below(Step::Key(k.clone())), v)));
                continue;
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                pending.extend(items.map(|(n, v)| (below(Step::Index(n)), v)));
            }
            _ => {}
        }
        found.push((path, value));
    }
    found.sort_by_key(|(path, _)| format!("{path:?}"));
    found
}

/// Of many things, some that are spread evenly.
fn sample<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most).max(1);
    all.iter().step_by(step).cloned().collect()
}

/// What a text looks like: two of the same look may stand for each other.
fn look(text: &str) -> String {
    let digit = |c: char| match c {
        'a'..='f' | '0'..='9' if text.len() >= 32 => 'h',
        '0'..='9' => '0',
        'A'..='Z' => 'A',
        'a'..='z' => 'a',
        other => other,
    };
    let mut look: Vec<char> = text.chars().map(digit).collect();
    look.dedup();
    look.into_iter().collect()
}

/// The last number of a line is another one.
fn other_number(line: &str) -> Option<String> {
    let last = line.rfind(|c: char| c.is_ascii_digit())?;
    let digit = line[last..].chars().next()?.to_digit(10)?;
    let mut other = line.to_owned();
    other.replace_range(last..=last, &((digit + 1) % 10).to_string());
    Some(other)
}

/// Every edit of a value.
fn edits_of(path: &Path, value: &Value, other: Option<&Value>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut add = |kind: &str, line: Option<&str>, value: Value| {
        edits.push(Edit {
            path: path.clone(),
            kind: kind.into(),
            line: line.map(str::to_owned),
            value,
        });
    };
    match value {
        Value::Null | Value::Object(_) => {}
        Value::Bool(flag) => add("flipped", None, (!flag).into()),
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(0);
            add("increased", None, (number + 1).into());
            add("zero", None, 0.into());
            add("huge", None, u32::MAX.into());
        }
        Value::String(text) if text.lines().count() > 1 => {
            let lines: Vec<&str> = text.lines().collect();
            let places: Vec<usize> = (0..lines.len()).collect();
            for place in sample(&places, LINES) {
                let with = |replaced: Vec<String>| -> Value {
                    let (before, after) = (&lines[..place], &lines[place + 1..]);
                    let all = before.iter().map(|l| (*l).to_owned()).chain(replaced);
                    let all = all.chain(after.iter().map(|l| (*l).to_owned()));
                    let mut text = all.collect::<Vec<_>>().join("\n");
                    text.push('\n');
                    text.into()
                };
                let line = lines[place];
                add("line dropped", Some(line), with(Vec::new()));
                add(
                    "line doubled",
                    Some(line),
                    with(vec![line.into(), line.into()]),
                );
                if let Some(other) = other_number(line) {
                    add("number changed", Some(line), with(vec![other]));
                }
            }
            add("emptied", None, "".into());
        }
        Value::String(text) => {
            add("extended", None, format!("{text}x").into());
            add("escaped", None, format!("{text}\u{1b}[2J").into());
            if !text.is_empty() {
                add("emptied", None, "".into());
            }
            if let Some(other) = other_number(text) {
                add("number changed", None, other.into());
            }
            if let Some(other) = other {
                add("taken from elsewhere", None, other.clone());
            }
        }
        Value::Array(items) => {
            if let Some(last) = items.last() {
                add(
                    "grown",
                    None,
                    [&items[..], std::slice::from_ref(last)].concat().into(),
                );
                add("shortened", None, items[..items.len() - 1].to_vec().into());
                add("emptied", None, Vec::<Value>::new().into());
            }
            if items.first() != items.last() {
                add(
                    "reversed",
                    None,
                    items.iter().rev().cloned().collect::<Vec<_>>().into(),
                );
            }
        }
    }
    edits
}

/// Every edit of a document, of each kind of field a sample.
fn edits(document: &Value) -> Vec<Edit> {
    let mut kinds: BTreeMap<String, Vec<(Path, &Value)>> = BTreeMap::new();
    let mut looks: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for (path, value) in values(document) {
        if let Value::String(text) = value
            && text.len() < 200
        {
            looks.entry(look(text)).or_default().push(value);
        }
        kinds.entry(generic(&path)).or_default().push((path, value));
    }
    let mut found = Vec::new();
    for (name, own) in &kinds {
        let most = match name.starts_with("probes[].observations[]") {
            true => OBSERVATIONS,
            false => SAMPLES,
        };
        for (path, value) in sample(own, most) {
            let text = value.as_str().unwrap_or_default();
            let alike = looks.get(&look(text)).into_iter().flatten();
            let mut others = own.iter().map(|(_, other)| other).chain(alike);
            let other = others.find(|other| **other != value && other.is_string());
            found.extend(edits_of(&path, value, other.copied()));
        }
    }
    found
}

/// A bundle in memory, taken apart.
struct Taken {
    document: Value,
    artifacts: BTreeMap<String, Vec<u8>>,
    inputs: Inputs,
    opened: Opened,
    /// Steps that are not good without the artifacts.
    usual: BTreeSet<&'static str>,
}

fn is_refusal(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::False | Outcome::Blocked)
}

impl Taken {
    fn new(path: &std::path::Path) -> Self {
        let document = read_json(path);
        let folder = path.with_extension("");
        let stem = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let names = crate::common::names_in(&folder);
        let artifacts = names.iter().map(|name| {
            let bytes = fs::read(folder.join(name)).unwrap();
            (format!("{stem}/{name}"), bytes)
        });
        let artifacts: BTreeMap<String, Vec<u8>> = artifacts.collect();
        let inputs = default_inputs();
        let bundle = Bundle {
            name: "real".into(),
            evidence: fs::read(path).unwrap(),
            envelope: None,
            artifacts: Source::Memory(artifacts.clone()),
        };
        let opened = open(&bundle, &inputs).unwrap();
        let alone = conclude(&opened, &Source::Memory(BTreeMap::new()), &inputs);
        let usual = alone.steps.iter().filter(|step| is_refusal(step.outcome));
        let usual = usual.map(|step| step.code).collect();
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
        let step = steps.find(|s| is_refusal(s.outcome) && !self.usual.contains(s.code));
        step.map(|step| step.code)
    }

    /// The whole of `verify` on evidence with a new stamp.
    fn found(
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
    fn verified(
        &self,
        evidence: &Evidence,
        artifacts: BTreeMap<String, Vec<u8>>,
    ) -> Result<(), String> {
        match self.found(evidence, artifacts) {
            Err(error) => Err(error.code().to_string()),
            Ok(found) if found.decision == Decision::B4PrimeAccepted => Ok(()),
            Ok(found) => {
                let step = found.steps.iter().find(|step| is_refusal(step.outcome));
                Err(step.map_or("?", |step| step.code).into())
            }
        }
    }

    /// The artifacts that go with edited evidence, whose digests are made again.
    fn consistent(&self, evidence: &mut Evidence) -> BTreeMap<String, Vec<u8>> {
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
fn relist(evidence: &mut Evidence, artifacts: &BTreeMap<String, Vec<u8>>) {
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
fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn written(lines: &[Value]) -> Vec<u8> {
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
fn on_all<T: Sync, R: Send>(all: &[T], with: impl Fn(&T) -> R + Sync) -> Vec<R> {
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

#[test]
fn every_consistent_edit_is_refused_or_rests_on_a_word_that_is_told() {
    every_edit_is_refused_or_told(controls::real());
}

/// The same where a gate stands, and the engine has no daemon.
#[test]
fn every_consistent_edit_of_a_gated_run_is_refused_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--venue",
        "vps",
        "--engine",
        "embedded",
        "--controls",
        "safe",
    ];
    attest(folder.path(), &arguments).succeeded();
    every_edit_is_refused_or_told(&evidence_in(folder.path()));
}

fn every_edit_is_refused_or_told(path: &std::path::Path) {
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

/// What every inspector of a run is told alike.
const SHARED: &[&str] = &[
    "protocol",
    "phases",
    "probe_deadline_ms",
    "env_canary",
    "host_canary",
    "limits",
];

impl Taken {
    /// Verifies with an edited greeting, challenge or end in the run's conversation, and
    /// in those of the controls where they say the same.
    fn said(&self, number: usize, edit: &Edit) -> Result<(), String> {
        let mut evidence = self.opened.evidence.clone().unwrap();
        let mut artifacts = self.artifacts.clone();
        let nonce = matches!(edit.path.last(), Some(Step::Key(key)) if key == "nonce");
        let shared = match edit.path.as_slice() {
            [Step::Key(message), Step::Key(key), ..] => {
                message == "hello" || SHARED.contains(&key.as_str())
            }
            _ => false,
        };
        for (path, bytes) in &mut artifacts {
            let name = path.rsplit('/').next().unwrap().to_owned();
            let control = name
                .strip_prefix("control-")
                .and_then(|n| n.strip_suffix(".ndjson"));
            if name != "transcript.ndjson" && (control.is_none() || !(shared || nonce)) {
                continue;
            }
            let mut all = lines(bytes);
            if nonce {
                let new = edit.value.as_str().unwrap_or_default();
                let new = control.map_or(new.to_owned(), |name| control_nonce(new, name));
                all[1]["challenge"]["nonce"] = new.clone().into();
                all.last_mut().unwrap()["done"]["nonce"] = new.into();
            } else {
                let number = number.min(all.len() - 1);
                *at(&mut all[number], &edit.path) = edit.value.clone();
            }
            *bytes = written(&all);
        }
        relist(&mut evidence, &artifacts);
        self.verified(&evidence, artifacts)
    }
}

#[test]
fn every_edit_of_greeting_challenge_and_end_is_refused_or_rests_on_a_word_that_is_told() {
    let taken = Taken::new(controls::real());
    let mut transcripts = taken.artifacts.iter();
    let (_, bytes) = transcripts
        .find(|(path, _)| path.ends_with("/transcript.ndjson"))
        .unwrap();
    let all = lines(bytes);
    let made = [
        (0, &all[0]),
        (1, &all[1]),
        (usize::MAX, all.last().unwrap()),
    ];
    let made = made
        .into_iter()
        .flat_map(|(number, line)| edits(line).into_iter().map(move |edit| (number, edit)));
    let made: Vec<(usize, Edit)> = made.collect();
    assert!(made.len() > 80, "{}", made.len());
    let outcomes = on_all(&made, |(number, edit)| taken.said(*number, edit));
    let accepted = made
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.is_ok());
    let accepted = accepted.filter_map(|((_, edit), _)| {
        let name = generic(&edit.path);
        let told = fields::rests_on_word_in_conversation(&name);
        (!told).then(|| format!("{name} {}: {}", edit.kind, edit.value))
    });
    let accepted: BTreeSet<String> = accepted.collect();
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

/// A lie, made consistently in the whole bundle by whoever knows how.
type Lie = fn(&mut Evidence);

/// Lies that no single field gives away, and the step that refuses each.
const LIES: &[(&str, &str, Lie)] = &[
    ("namespaces of the host", "EV-TEXTS", |evidence| {
        evidence.raw.namespaces = evidence.raw.host_namespaces.clone();
        evidence.raw.outside.namespaces = evidence.raw.host_namespaces.clone();
    }),
    ("57 threads, everywhere", "EV-TEXTS", |evidence| {
        each_status(evidence, |text| {
            text.replace("Threads:\t1\n", "Threads:\t57\n")
        });
    }),
    (
        "root and all capabilities after the lock",
        "EV-TEXTS",
        |evidence| {
            let text = &mut evidence.raw.proc_self_status_locked;
            *text = text.replace("58713", "0");
            *text = text.replace("CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff");
        },
    ),
    (
        "a kernel that does not count its filters",
        "EV-TEXTS",
        |evidence| {
            each_status(evidence, |text| {
                let lines = text
                    .lines()
                    .filter(|line| !line.starts_with("Seccomp_filters"));
                lines.map(|line| format!("{line}\n")).collect()
            });
        },
    ),
    ("WSL2, and nobody says so", "EV-VENUE", |evidence| {
        let version = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc) #1 SMP\n";
        evidence.raw.proc_version = version.into();
    }),
    ("a kernel 99, in all descriptions", "EV-TEXTS", |evidence| {
        evidence.runtime.kernel = "99.0.0".into();
        evidence.venue_facts.kernel = "99.0.0".into();
    }),
    ("another engine", "EV-TEXTS", |evidence| {
        evidence.runtime.engine = "embedded".into();
        let version = &evidence.runtime.engine_version;
        evidence.venue_facts.engine = format!("embedded {version}");
    }),
    ("an image that was removed", "EV-INVENTORY", |evidence| {
        let image = format!("sha256:{}", "f".repeat(64));
        evidence.inventory.before.images.push(image.clone());
        evidence.inventory.own_images.push(image);
    }),
    (
        "a removed image, and nothing about it",
        "EV-INVENTORY",
        |evidence| {
            let image = format!("sha256:{}", "f".repeat(64));
            evidence.inventory.before.images.push(image);
        },
    ),
    (
        "a view from outside without a fact",
        "EV-OUTSIDE",
        |evidence| {
            evidence.raw.outside = OutsideFacts {
                descriptors: evidence.raw.outside.descriptors.clone(),
                ..OutsideFacts::default()
            };
        },
    ),
    ("root on the host, by a map", "EV-OUTSIDE", |evidence| {
        let outside = &mut evidence.raw.outside;
        outside.status = outside.status.replace("58713", "0");
        outside.uid_map = "     58713          0          1\n".into();
        outside.gid_map = outside.uid_map.clone();
    }),
    ("/etc/shadow open", "EV-OUTSIDE", |evidence| {
        evidence.raw.outside.descriptors += ",3=/etc/shadow";
    }),
    ("the process of sshd", "EV-OUTSIDE", |evidence| {
        let status = &mut evidence.raw.outside.status;
        *status = status.replace("tki-prober", "sshd");
    }),
    (
        "/in and /out from the root of a disk",
        "EV-TEXTS",
        |evidence| {
            each_mountinfo(evidence, |line| {
                let fields: Vec<&str> = line.split(' ').collect();
                match fields[4] {
                    "/in" | "/out" => {
                        let own = format!("{} {} 254:0 / {}", fields[0], fields[1], fields[4]);
                        Some(format!("{own} {} - ext4 /dev/vda rw", fields[5]))
                    }
                    _ => Some(line.into()),
                }
            });
        },
    ),
    ("/in from another volume", "EV-TEXTS", |evidence| {
        let own = format!("/tki-attest-{}/_data", evidence.run_id);
        let raw = &mut evidence.raw;
        for table in [&mut raw.mountinfo, &mut raw.outside.mountinfo] {
            assert!(table.contains(&own), "{table}");
            *table = table.replace(&own, "/production/_data");
        }
    }),
    ("/out that this tool has made", "EV-TEXTS", |evidence| {
        evidence.sandbox.out_backing.maker = "launcher".into();
    }),
    ("a sweep that denies write", "EV-VERDICT", |evidence| {
        let mut probes = evidence.probes.iter_mut();
        let sweep = probes
            .find(|probe| probe.probe_id == derive::SWEEP)
            .unwrap();
        let value = sweep.observations[0].value.as_mut().unwrap();
        *value = value.replacen(" 1=EBADF ", " 1=EPERM ", 1);
    }),
    ("a mount table without /proc", "EV-TEXTS", |evidence| {
        each_mountinfo(evidence, |line| {
            (!line.contains(" /proc")).then(|| line.into())
        });
    }),
    (
        "a tmpfs behind /out of another size",
        "EV-TEXTS",
        |evidence| {
            evidence.sandbox.out_backing.reason = "noexec,nosuid,nodev,size=4096".into();
        },
    ),
    ("a gate that was not tried", "EV-TEXTS", |evidence| {
        evidence.sandbox.gate.reason = "not tried".into();
    }),
    (
        "a gate that was refused after the run",
        "EV-TEXTS",
        |evidence| {
            let reason = remembered::reason("listenerPath is not set", 4_102_444_799);
            evidence.sandbox.gate.reason = reason;
        },
    ),
    ("a gate that refused nothing", "EV-TEXTS", |evidence| {
        let gate = &mut evidence.sandbox.gate;
        (gate.active, gate.allowed, gate.refused) = (true, 1, 0);
        gate.reason = "a filter of the keeper's own asks it".into();
        let exec = evidence
            .probes
            .iter_mut()
            .find(|probe| probe.probe_id == "PR-EXEC-1");
        for seen in &mut exec.unwrap().observations {
            seen.state = State::Denied;
            seen.returned = Some(-1);
            seen.errno = Some("EPERM".into());
        }
    }),
];

fn each_status(evidence: &mut Evidence, change: impl Fn(&str) -> String) {
    let raw = &mut evidence.raw;
    for text in [
        &mut raw.proc_self_status,
        &mut raw.proc_self_status_locked,
        &mut raw.outside.status,
    ] {
        *text = change(text);
    }
}

/// Changes or drops lines of both mount tables, and what the probes read of them.
fn each_mountinfo(evidence: &mut Evidence, change: impl Fn(&str) -> Option<String>) {
    let raw = &mut evidence.raw;
    for text in [&mut raw.mountinfo, &mut raw.outside.mountinfo] {
        let lines = text.lines().filter_map(&change);
        *text = lines.map(|line| format!("{line}\n")).collect();
    }
    let mounts = facts::mounts(&raw.mountinfo).unwrap();
    let (table, flags) = (facts::mount_summary(&mounts), facts::flags_summary(&mounts));
    let probes = evidence.probes.iter_mut();
    for seen in probes.flat_map(|probe| &mut probe.observations) {
        match seen.operation.as_str() {
            "mount-table" => seen.value = Some(table.clone()),
            "mount-flags" => seen.value = Some(flags.clone()),
            _ => {}
        }
    }
}

#[test]
fn lies_in_many_fields_are_refused_by_the_step_that_reads_them() {
    let taken = Taken::new(controls::real());
    for (name, step, lie) in LIES {
        let mut evidence = taken.opened.evidence.clone().unwrap();
        lie(&mut evidence);
        derive::derive(&mut evidence, &Matrix::rev4());
        let artifacts = taken.consistent(&mut evidence);
        let found = taken.found(&evidence, artifacts).unwrap();
        assert_ne!(found.decision, Decision::B4PrimeAccepted, "{name}");
        let mut steps = found.steps.iter();
        let refuses = steps.any(|own| own.code == *step && is_refusal(own.outcome));
        assert!(refuses, "{name}: {:#?}", found.steps);
    }
}

/// Probes that are named again and again, beside a mount table without end: what is held
/// against each other is looked through once.
#[test]
fn a_bundle_of_any_size_is_held_against_itself() {
    let mut evidence: Evidence = serde_json::from_value(read_json(controls::real())).unwrap();
    let mut probes = evidence.probes.iter();
    let masked = probes.find(|probe| probe.probe_id == "XP-FS-MASKED");
    evidence.probes = vec![masked.unwrap().clone(); 20_000];
    let table = "1 2 0:1 / /x rw - ext4 /dev/vda rw\n".repeat(100_000);
    evidence.raw.outside.mountinfo.clone_from(&table);
    evidence.raw.mountinfo = table;
    assert!(!tki_evidence::coherent::texts(&evidence).is_empty());
    tki_evidence::coherent::outside(&evidence);
}
