//! Forgeries that come with the digests, the derived fields and the stamp that go with
//! them.

use super::bundle::{copy_of, write_restamped};
use super::{read_json, verify};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::Evidence;
use tki_evidence::matrix::Matrix;
use tki_evidence::{derive, stamp};

/// A copy of evidence, to be changed and verified.
pub struct Forgery {
    _folder: tempfile::TempDir,
    /// The evidence file.
    pub path: PathBuf,
    /// What it says now.
    pub value: Value,
}

impl Forgery {
    /// A copy of this evidence.
    pub fn of(real: &Path) -> Self {
        let (folder, path) = copy_of(real);
        Self {
            value: read_json(&path),
            path,
            _folder: folder,
        }
    }

    /// What it says of a control.
    pub fn control(&mut self, name: &str) -> &mut Value {
        let controls = self.value["controls"].as_array_mut().unwrap();
        let found = controls.iter_mut().find(|c| c["control"] == name);
        found.unwrap_or_else(|| panic!("{name} is no control"))
    }

    /// An artifact.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.with_extension("").join(name)
    }

    /// The lines of a conversation: greeting, challenge, the rest.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.file(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Writes a conversation and makes its digest again.
    pub fn write(&mut self, name: &str, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.write_file(name, text.as_bytes());
    }

    /// Writes an artifact and makes its digest again.
    pub fn write_file(&mut self, name: &str, bytes: &[u8]) {
        fs::write(self.file(name), bytes).unwrap();
        let artifacts = self.value["artifacts"].as_array_mut().unwrap();
        let entry = artifacts.iter_mut().find(|a| is_called(a, name)).unwrap();
        entry["sha256"] = stamp::sha256_hex(bytes).into();
        entry["bytes"] = bytes.len().into();
    }

    /// Leaves an artifact out.
    pub fn unlist(&mut self, name: &str) {
        let artifacts = self.value["artifacts"].as_array_mut().unwrap();
        artifacts.retain(|artifact| !is_called(artifact, name));
    }

    /// Answers another nonce, at both ends of a conversation.
    pub fn set_nonce(lines: &mut [Value], nonce: &Value) {
        lines[1]["challenge"]["nonce"] = nonce.clone();
        lines.last_mut().unwrap()["done"]["nonce"] = nonce.clone();
    }

    /// Derives everything again, as a forger would.
    pub fn derive(&mut self) {
        let mut evidence: Evidence = serde_json::from_value(self.value.take()).unwrap();
        derive::derive(&mut evidence, &Matrix::rev4());
        self.value = serde_json::to_value(&evidence).unwrap();
    }

    /// EV-CONTROLS, and only it or what follows from it, refuses the forgery.
    #[track_caller]
    pub fn refused(self, status: i32, wanted: &str) {
        self.refused_by("EV-CONTROLS", status, wanted);
    }

    /// This step, and only it or what follows from it, refuses the forgery.
    #[track_caller]
    pub fn refused_by(mut self, code: &str, status: i32, wanted: &str) {
        self.derive();
        write_restamped(&self.path, self.value);
        let said = verify(&self.path, &["--require-artifacts"]);
        assert_eq!(said.status, status, "{said:?}");
        let step = said.stdout.lines().find(|l| l.contains(code));
        let step = step.unwrap();
        let outcome = if status == 1 { "FALSE" } else { "BLOCKED" };
        assert!(
            step.starts_with(outcome) && step.contains(wanted),
            "{wanted}: {step}"
        );
        let others = said
            .stdout
            .lines()
            .filter(|line| line.starts_with("FALSE") && !line.contains(code));
        assert_eq!(others.count(), 0, "{said:?}");
    }
}

fn is_called(artifact: &Value, name: &str) -> bool {
    let path = artifact["path"].as_str().unwrap();
    path.ends_with(&format!("/{name}"))
}

/// The container's description, edited and listed again.
pub fn with_container(mut forged: Forgery, change: impl FnOnce(&mut Value)) -> Forgery {
    let mut described = read_json(&forged.file("container.json"));
    change(&mut described);
    let text = serde_json::to_vec_pretty(&described).unwrap();
    forged.write_file("container.json", &text);
    forged
}

/// Sets what a JSON pointer points to.
pub fn set(value: &mut Value, pointer: &str, to: Value) {
    let (above, last) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(above).unwrap()[last] = to;
}
