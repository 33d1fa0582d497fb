//! Many bundles: which ones, in parallel, in their order. Memory does not grow
//! with their number: a result is handed on as soon as it is its turn.

use crate::disk::BundleError;
use crate::{Bundle, Inputs, Verification, verify};
use alloc::vec::Vec;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use tki_evidence::{binding, matrix, request, strict, verification};

/// How far workers may be ahead of the result that is waited for.
const AHEAD: usize = 64;

/// What one bundle came to.
pub type Verified = Result<Verification, BundleError>;

/// A file that is to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    /// It was found in a directory, and not named itself.
    pub found: bool,
}

/// Documents of ours that people keep beside evidence.
const OTHERS: &[(&str, &str)] = &[
    ("a request", request::SCHEMA),
    ("a verification", verification::SCHEMA),
    ("a binding", binding::SCHEMA),
    ("a matrix", matrix::SCHEMA),
];

/// Evidence files: those that were named, and every `.json` of a directory that
/// was named. A directory without any is an error: nothing would be verified.
pub fn bundles(named: &[PathBuf]) -> Result<Vec<Candidate>, BundleError> {
    let mut candidates = Vec::new();
    for path in named {
        if !path.is_dir() {
            candidates.push(Candidate {
                path: path.clone(),
                found: false,
            });
            continue;
        }
        let mut inside = evidence_in(path).map_err(|source| BundleError::Folder {
            path: path.clone(),
            source,
        })?;
        if inside.is_empty() {
            return Err(BundleError::Nothing { path: path.clone() });
        }
        inside.sort();
        let inside = inside.into_iter();
        candidates.extend(inside.map(|path| Candidate { path, found: true }));
    }
    Ok(candidates)
}

fn evidence_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".");
        let json = Path::new(&name).extension().is_some_and(|e| e == "json");
        if json && !hidden {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Verifies one bundle on disk.
pub fn one(path: &Path, inputs: &Inputs) -> Verified {
    Ok(verify(&Bundle::read(path)?, inputs)?)
}

/// Verifies a file, unless it only lies beside evidence and plainly says that it
/// is something else. Whatever else is in a directory is taken for evidence.
fn candidate(candidate: &Candidate, inputs: &Inputs) -> Verified {
    let bundle = Bundle::read(&candidate.path)?;
    match other(&bundle.evidence).filter(|_| candidate.found) {
        None => Ok(verify(&bundle, inputs)?),
        Some((name, schema)) => Err(BundleError::Other {
            path: candidate.path.clone(),
            name,
            schema,
        }),
    }
}

/// What a document is, if it is whole and one of ours, but not evidence.
fn other(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    // Ours say what they are in their first line or two.
    let start = &bytes[..bytes.len().min(256)];
    let names = |schema: &str| start.windows(schema.len()).any(|s| s == schema.as_bytes());
    let (name, schema) = OTHERS.iter().find(|(_, schema)| names(schema))?;
    let value = strict::parse(bytes).ok()?;
    (value.get("schema")?.as_str()? == *schema).then_some((*name, *schema))
}

/// Verifies bundles, `jobs` at a time, and hands the results on in their order.
pub fn each<E: From<BundleError>>(
    candidates: &[Candidate],
    inputs: &Inputs,
    jobs: usize,
    mut with: impl FnMut(&Path, Verified) -> Result<(), E>,
) -> Result<(), E> {
    let jobs = jobs.clamp(1, candidates.len().max(1));
    if jobs == 1 {
        return candidates
            .iter()
            .try_for_each(|one| with(&one.path, candidate(one, inputs)));
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let waiting = Mutex::new(Waiting::default());
    // Who waits for a result, and who waits until it was taken.
    let (ready, room) = (Condvar::new(), Condvar::new());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(next) = candidates.get(index) else {
                break;
            };
            // A panic in one would otherwise keep everybody waiting for it.
            let result = std::panic::catch_unwind(|| candidate(next, inputs));
            let result = result.unwrap_or_else(|_| {
                let path = next.path.clone();
                Err(BundleError::Panicked { path })
            });
            let Ok(mut waiting) = waiting.lock() else {
                break;
            };
            while index > waiting.turn + AHEAD && !stop.load(Ordering::Relaxed) {
                match room.wait(waiting) {
                    Ok(again) => waiting = again,
                    Err(_) => return,
                }
            }
            waiting.results.insert(index, result);
            if index == waiting.turn {
                ready.notify_one();
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
        let broken = || E::from(BundleError::Worker);
        let mut handed = Ok(());
        for (index, Candidate { path, .. }) in candidates.iter().enumerate() {
            let mut waiting = waiting.lock().map_err(|_| broken())?;
            waiting.turn = index;
            let result = loop {
                match waiting.results.remove(&index) {
                    Some(result) => break result,
                    None => waiting = ready.wait(waiting).map_err(|_| broken())?,
                }
            };
            drop(waiting);
            room.notify_all();
            handed = with(path, result);
            if handed.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        // With the lock held: nobody is between asking and going to sleep.
        drop(waiting.lock());
        room.notify_all();
        handed
    })
}

#[derive(Default)]
struct Waiting {
    turn: usize,
    results: BTreeMap<usize, Verified>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn results_come_in_their_order_and_a_stop_ends_the_workers() {
        let candidates: Vec<Candidate> = (0..500)
            .map(|n| Candidate {
                path: format!("/nonexistent/{n}").into(),
                found: true,
            })
            .collect();
        let mut seen = Vec::new();
        let all = each(&candidates, &Inputs::default(), 4, |path, result| {
            assert!(result.is_err());
            seen.push(path.to_owned());
            Ok::<(), BundleError>(())
        });
        assert!(all.is_ok());
        assert!(seen.iter().eq(candidates.iter().map(|one| &one.path)));
        let mut count = 0;
        let stopped = each(&candidates, &Inputs::default(), 4, |_, _| {
            count += 1;
            if count == 3 {
                return Err(BundleError::Worker);
            }
            Ok(())
        });
        assert_eq!((stopped.is_err(), count), (true, 3));
    }

    #[test]
    fn only_what_plainly_says_so_is_something_else() {
        let request = br#"{"schema":"tki-attest/request/v1","nonce":"x"}"#;
        assert_eq!(other(request).unwrap().0, "a request");
        for evidence in [
            &b""[..],
            b"{}",
            br#"{"schema":"tki-attest/evidence/v1","status":"tki-attest/request/v1"}"#,
            br#"{"schema":"tki-attest/request/v1","schema":"tki-attest/evidence/v1"}"#,
            br#"{"schema":"tki-attest/request/v1""#,
            br#"{"inner":{"schema":"tki-attest/request/v1"}}"#,
            br#"["tki-attest/request/v1"]"#,
        ] {
            assert_eq!(
                other(evidence),
                None,
                "{}",
                String::from_utf8_lossy(evidence)
            );
        }
    }
}
