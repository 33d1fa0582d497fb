//! A test per folder of `tests/reject`. In `bundle-*`, `case.toml` says what is done to a
//! good, signed bundle and what must come of it; README.md says why. In `dockerfile-*` lies
//! a Dockerfile, and the exact error that it must give.

/// Running the tool; bundles that a test changes.
#[allow(dead_code, reason = "the rest is for tests that need an engine")]
mod common;
/// Bundles of real runs, recorded by `make golden`.
#[allow(dead_code, reason = "the tests of the recordings use the rest")]
mod golden;

use common::signed::{Base, Copy, keys};
use common::{root, run, tool};
use golden::{full, other, plain};
use libtest_mimic::{Arguments, Failed, Trial};
use oci_image::{BuildOptions, Context, Image, ImageError, Recipe, build};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tki_attest::exit::Exit;
use tki_attest::failure::Failure;
use tki_attest::trust::agent::PATIENCE;
use tki_attest::trust::envelope_file;
use tki_attest::trust::keys::Key;
use tki_evidence::stamp::{self, sha256_hex};
use tki_verify::dsse::Envelope;

/// A case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Which bundle is changed: `plain` or `full` (with controls).
    base: String,
    /// What is done to it, in this order.
    #[serde(default)]
    change: Vec<Change>,
    /// Flags of `verify`; `{signers}`, `{request}` and `{case}` are paths.
    flags: Vec<String>,
    /// What must come of it.
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// The exit code.
    exit: i32,
    /// A step that is FALSE or BLOCKED, or a failure's code.
    code: String,
    /// A text that is printed.
    #[serde(default)]
    says: String,
}

/// One change. A `file` is `evidence`, `envelope`, `request`, `signers` or the
/// name of an artifact.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Change {
    /// Sets a field of a JSON file.
    Set {
        #[serde(default = "evidence")]
        file: String,
        at: String,
        to: Value,
    },
    /// Removes a field or an item.
    Remove {
        #[serde(default = "evidence")]
        file: String,
        at: String,
    },
    /// Exchanges two items of a list.
    Swap {
        at: String,
        first: usize,
        second: usize,
    },
    /// Puts the last item of a list there once more, so many times.
    Repeat {
        #[serde(default = "evidence")]
        file: String,
        at: String,
        times: usize,
    },
    /// Replaces a text, everywhere in the file.
    Replace {
        file: String,
        from: String,
        to: String,
    },
    /// Writes a file anew.
    Write { file: String, text: String },
    /// Writes bytes in hex into a file.
    Bytes { file: String, hex: String },
    /// Adds a text before everything.
    Prepend { file: String, text: String },
    /// Adds a text after everything.
    Append { file: String, text: String },
    /// Cuts the file in half.
    Halve { file: String },
    /// Makes the file as large as that, with nothing in it.
    Grow { file: String, bytes: u64 },
    /// Opens so many brackets.
    Nest { file: String, depth: usize },
    /// Takes a file away.
    Delete { file: String },
    /// Takes the directory of artifacts away.
    DeleteArtifacts {},
    /// Moves a file aside and puts a link to it in its place.
    Link { file: String },
    /// Puts a named pipe in a file's place.
    Pipe { file: String },
    /// Puts a directory in a file's place.
    Directory { file: String },
    /// Exchanges two artifacts.
    SwapFiles { first: String, second: String },
    /// Takes a file from another run.
    FromOther { file: String },
    /// Takes a field from another run.
    FieldFromOther { at: String },
    /// Corrects the digests of the artifacts.
    Relist {},
    /// Makes a new stamp.
    Restamp {},
    /// Signs anew with this key, over what the evidence says now.
    Sign { key: String },
    /// Edits what was signed and signs it anew with the operator's key.
    SignedSet { at: String, to: Value },
    /// Removes something from what was signed, and signs it anew.
    SignedRemove { at: String },
    /// Signs another text.
    SignedText { text: String },
    /// Signs the same bytes under another payload type.
    SignedType { to: String },
}

fn evidence() -> String {
    "evidence".into()
}

fn main() {
    let arguments = Arguments::from_args();
    let entries = fs::read_dir(root().join("tests/reject")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (bundles, dockerfiles) = (count(&folders, "bundle-"), count(&folders, "dockerfile-"));
    let mut trials = vec![
        Trial::test("all_folders_are_found", move || {
            assert!(bundles >= 100, "only {bundles} folders of bundles");
            assert!(
                dockerfiles >= 18,
                "only {dockerfiles} folders of Dockerfiles"
            );
            Ok(())
        }),
        Trial::test("the_bases_are_accepted", || {
            for base in [plain(), full(), other()] {
                let said = base.copy().verify(&[]);
                assert_eq!(said.status, 0, "the base itself: {said:?}");
            }
            Ok(())
        }),
    ];
    trials.extend(folders.into_iter().map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        Trial::test(name.clone(), move || {
            match name.split_once('-') {
                Some(("bundle", _)) => bundle_is_refused(&folder),
                Some(("dockerfile", _)) => dockerfile_is_refused(&folder),
                _ => Err("neither of a bundle nor of a Dockerfile".into()),
            }
            .map_err(Failed::from)
        })
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

fn count(folders: &[PathBuf], start: &str) -> usize {
    let names = folders
        .iter()
        .filter_map(|folder| folder.file_name()?.to_str());
    names.filter(|name| name.starts_with(start)).count()
}

fn bundle_is_refused(folder: &Path) -> Result<(), String> {
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    if readme.len() <= 60 {
        return Err("it has no README.md".into());
    }
    refused(folder)
}

/// Compares the error that a Dockerfile gives with the one that is expected.
fn dockerfile_is_refused(folder: &Path) -> Result<(), String> {
    let bytes = fs::read(folder.join("Dockerfile")).map_err(|e| e.to_string())?;
    let expected = fs::read_to_string(folder.join("expected")).unwrap_or_default();
    let Err(error) = built(&bytes) else {
        return Err("it was built".into());
    };
    if error.to_string() != expected.trim_end() {
        return Err(format!("says {:?}, not {expected:?}", error.to_string()));
    }
    match Failure::from(error).exit {
        Exit::Usage => Ok(()),
        exit => Err(format!("ends with {exit:?}")),
    }
}

fn built(dockerfile: &[u8]) -> Result<Image, ImageError> {
    let recipe = Recipe::parse("Dockerfile", dockerfile)?;
    let files = ["a", "b"].map(|name| (name.to_owned(), Vec::new()));
    let options = BuildOptions {
        epoch: 1_700_000_000,
        tag: "tki-image-test:refusal".into(),
        bases: BTreeMap::new(),
    };
    build(&recipe, &Context::memory(files.into())?, &options)
}

fn refused(folder: &Path) -> Result<(), String> {
    let text = fs::read_to_string(folder.join("case.toml")).map_err(|e| e.to_string())?;
    let case: Case = toml::from_str(&text).map_err(|e| e.to_string())?;
    let base = match case.base.as_str() {
        "plain" => plain(),
        "full" => full(),
        name => return Err(format!("no base {name:?}")),
    };
    let copy = base.copy();
    let list = folder.join("signers");
    if list.exists() {
        let template = fs::read_to_string(list).unwrap();
        fs::write(&copy.signers, keys().list(&template)).unwrap();
    }
    for change in &case.change {
        change.apply(&copy, base);
    }
    let mut command = tool();
    command.arg("verify").arg(&copy.path);
    for flag in &case.flags {
        command.arg(
            flag.replace("{signers}", copy.signers.to_str().unwrap())
                .replace("{request}", copy.request.to_str().unwrap())
                .replace("{case}", folder.to_str().unwrap()),
        );
    }
    let said = run(&mut command);
    let both = format!("{}{}", said.stdout, said.stderr);
    if said.status != case.expect.exit {
        return Err(format!(
            "exit {} instead of {}: {both}",
            said.status, case.expect.exit
        ));
    }
    let bracketed = format!("[{}]", case.expect.code);
    let step = |line: &str| {
        (line.starts_with("FALSE") || line.starts_with("BLOCKED"))
            && line.split_whitespace().nth(1) == Some(case.expect.code.as_str())
    };
    if !said.stderr.contains(&bracketed) && !said.stdout.lines().any(step) {
        return Err(format!("no {}: {both}", case.expect.code));
    }
    if !both.contains(&case.expect.says) {
        return Err(format!("does not say {:?}: {both}", case.expect.says));
    }
    if both.contains("B4_PRIME_ACCEPTED") || both.contains(['\u{1b}', '\u{9b}']) {
        return Err(format!("it says more than it should: {both:?}"));
    }
    if !both.contains("next: ") {
        return Err(format!("it does not say what to do: {both}"));
    }
    Ok(())
}

impl Change {
    fn apply(&self, copy: &Copy, base: &Base) {
        let at = |file: &String| place(copy, file);
        match self {
            Change::Set {
                file,
                at: pointer,
                to,
            } => edit(&at(file), |value| {
                set(value, pointer, to.clone());
            }),
            Change::Remove { file, at: pointer } => edit(&at(file), |value| remove(value, pointer)),
            Change::Swap {
                at: pointer,
                first,
                second,
            } => edit(&copy.path, |value| {
                list(value, pointer).swap(*first, *second);
            }),
            Change::Repeat {
                file,
                at: pointer,
                times,
            } => edit(&at(file), |value| {
                let items = list(value, pointer);
                let last = items.last().unwrap().clone();
                items.extend(std::iter::repeat_n(last, *times));
            }),
            Change::Replace { file, from, to } => {
                let text = fs::read_to_string(at(file)).unwrap();
                assert!(text.contains(from), "{file} does not contain {from:?}");
                fs::write(at(file), text.replace(from, to)).unwrap();
            }
            Change::Write { file, text } => fs::write(at(file), text).unwrap(),
            Change::Bytes { file, hex } => {
                let bytes = (0..hex.len() / 2)
                    .map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap());
                fs::write(at(file), bytes.collect::<Vec<u8>>()).unwrap();
            }
            Change::Prepend { file, text } => {
                let old = fs::read(at(file)).unwrap();
                fs::write(at(file), [text.as_bytes(), &old].concat()).unwrap();
            }
            Change::Append { file, text } => {
                let old = fs::read(at(file)).unwrap();
                fs::write(at(file), [&old, text.as_bytes()].concat()).unwrap();
            }
            Change::Halve { file } => {
                let old = fs::read(at(file)).unwrap();
                fs::write(at(file), &old[..old.len() / 2]).unwrap();
            }
            Change::Grow { file, bytes } => {
                fs::File::create(at(file)).unwrap().set_len(*bytes).unwrap();
            }
            Change::Nest { file, depth } => {
                let text = format!("{{\"schema\":{}", "[".repeat(*depth));
                fs::write(at(file), text).unwrap();
            }
            Change::Delete { file } => fs::remove_file(at(file)).unwrap(),
            Change::DeleteArtifacts {} => {
                fs::remove_dir_all(copy.path.with_extension("")).unwrap();
            }
            Change::Link { file } => {
                let aside = copy.folder.path().join("aside");
                fs::rename(at(file), &aside).unwrap();
                symlink(&aside, at(file)).unwrap();
            }
            Change::Pipe { file } => {
                fs::remove_file(at(file)).unwrap();
                let mut mkfifo = std::process::Command::new("mkfifo");
                crate::common::need("coreutils", mkfifo.arg(at(file)));
            }
            Change::Directory { file } => {
                fs::remove_file(at(file)).unwrap();
                fs::create_dir(at(file)).unwrap();
            }
            Change::SwapFiles { first, second } => {
                let (one, two) = (fs::read(at(first)).unwrap(), fs::read(at(second)).unwrap());
                fs::write(at(first), two).unwrap();
                fs::write(at(second), one).unwrap();
            }
            Change::FromOther { file } => {
                let theirs = other().copy();
                fs::copy(place(&theirs, file), at(file)).unwrap();
            }
            Change::FieldFromOther { at: pointer } => {
                let theirs = other().value.pointer(pointer).unwrap().clone();
                assert_ne!(base.value.pointer(pointer), Some(&theirs), "{pointer}");
                edit(&copy.path, |value| set(value, pointer, theirs));
            }
            Change::Relist {} => relist(copy),
            Change::Restamp {} => edit(&copy.path, |value| {
                value["evidence_sha256"] =
                    stamp::stamp(value.to_string().as_bytes()).unwrap().into();
            }),
            Change::Sign { key } => sign(copy, key),
            Change::SignedSet { at: pointer, to } => signed(copy, |envelope| {
                edit_payload(envelope, |value| set(value, pointer, to.clone()));
            }),
            Change::SignedRemove { at: pointer } => signed(copy, |envelope| {
                edit_payload(envelope, |value| remove(value, pointer));
            }),
            Change::SignedText { text } => signed(copy, |envelope| {
                envelope.payload = text.clone().into_bytes();
            }),
            Change::SignedType { to } => signed(copy, |envelope| {
                envelope.payload_type = to.clone();
            }),
        }
    }
}

fn place(copy: &Copy, file: &str) -> PathBuf {
    match file {
        "evidence" => copy.path.clone(),
        "envelope" => copy.envelope(),
        "request" => copy.request.clone(),
        "signers" => copy.signers.clone(),
        name => copy.artifact(name),
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

fn edit_payload(envelope: &mut Envelope, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&envelope.payload).unwrap();
    change(&mut value);
    envelope.payload = value.to_string().into_bytes();
}

/// The place before the last step of a pointer, and that step.
fn split<'a>(value: &'a mut Value, pointer: &str) -> (&'a mut Value, String) {
    let (above, last) = pointer.rsplit_once('/').unwrap();
    let above = value
        .pointer_mut(above)
        .unwrap_or_else(|| panic!("there is no {above}"));
    (above, last.to_owned())
}

fn set(value: &mut Value, pointer: &str, to: Value) {
    // TOML has no null.
    let to = if to == "NULL" { Value::Null } else { to };
    match split(value, pointer) {
        (Value::Array(items), last) if last == "-" => items.push(to),
        (Value::Array(items), last) => items[last.parse::<usize>().unwrap()] = to,
        (above, last) => above[last] = to,
    }
}

fn remove(value: &mut Value, pointer: &str) {
    match split(value, pointer) {
        (Value::Array(items), last) => drop(items.remove(last.parse().unwrap())),
        (above, last) => {
            let gone = above.as_object_mut().unwrap().remove(&last);
            assert!(gone.is_some(), "there is no {pointer}");
        }
    }
}

fn list<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Vec<Value> {
    value.pointer_mut(pointer).unwrap().as_array_mut().unwrap()
}

/// What a forger who changes artifacts would correct in the evidence.
fn relist(copy: &Copy) {
    let folder = copy.folder.path().to_owned();
    edit(&copy.path, |value| {
        for artifact in value["artifacts"].as_array_mut().unwrap() {
            let bytes = fs::read(folder.join(artifact["path"].as_str().unwrap())).unwrap();
            artifact["bytes"] = bytes.len().into();
            artifact["sha256"] = sha256_hex(&bytes).into();
        }
    });
}

/// Signs as a forger would who does not care whether the evidence is true.
fn sign(copy: &Copy, key: &str) {
    let bytes = fs::read(&copy.path).unwrap();
    let evidence = serde_json::from_slice(&bytes).unwrap();
    let key = Key::open(&keys().private(key), None, PATIENCE).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let line = envelope_file::signed("evidence.json", &bytes, &evidence, &key, deadline);
    fs::write(copy.envelope(), line.unwrap()).unwrap();
}

fn signed(copy: &Copy, change: impl FnOnce(&mut Envelope)) {
    let mut envelope = Envelope::parse(&fs::read(copy.envelope()).unwrap()).unwrap();
    change(&mut envelope);
    envelope.signatures.clear();
    let key = Key::open(&keys().private("operator"), None, PATIENCE).unwrap();
    key.sign(&mut envelope, Instant::now() + PATIENCE).unwrap();
    fs::write(copy.envelope(), envelope.to_line()).unwrap();
}
