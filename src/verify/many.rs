//! Many bundles: which ones, in parallel, in their order. Memory does not grow
//! with their number: a result is handed on as soon as it is its turn.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::verify::{Bundle, Inputs, Verification, exit, verify};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

/// How far workers may be ahead of the result that is waited for.
const AHEAD: usize = 64;

/// What one bundle came to.
pub type Verified = Result<Verification, Failure>;

/// Evidence files: those that were named, and every `.json` of a directory that
/// was named. A directory without any is an error: nothing would be verified.
pub fn bundles(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in named {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut inside = evidence_in(path).map_err(|error| {
            Failure::usage(
                "evidence.unreadable",
                format!("{}: {error}", path.display()),
                "give a directory that can be read",
            )
        })?;
        if inside.is_empty() {
            return Err(Failure::blocked(
                "evidence.none",
                format!("{}: there is no evidence in it", path.display()),
                "give a directory that holds evidence files (*.json)",
            ));
        }
        inside.sort();
        found.append(&mut inside);
    }
    Ok(found)
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
    verify(&Bundle::read(path)?, inputs)
}

/// Verifies bundles, `jobs` at a time, and hands the results on in their order.
pub fn each(
    paths: &[PathBuf],
    inputs: &Inputs,
    jobs: usize,
    mut with: impl FnMut(&Path, Verified) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let jobs = jobs.clamp(1, paths.len().max(1));
    if jobs == 1 {
        return paths
            .iter()
            .try_for_each(|path| with(path, one(path, inputs)));
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let shared = (Mutex::new(Waiting::default()), Condvar::new());
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else { break };
            // A panic in one would otherwise keep everybody waiting for it.
            let result = std::panic::catch_unwind(|| one(path, inputs)).unwrap_or_else(|_| {
                Err(Failure::internal(
                    "verify.panic",
                    path.display().to_string(),
                ))
            });
            let (lock, changed) = &shared;
            let Ok(mut waiting) = lock.lock() else { break };
            while index > waiting.turn + AHEAD && !stop.load(Ordering::Relaxed) {
                match changed.wait(waiting) {
                    Ok(again) => waiting = again,
                    Err(_) => return,
                }
            }
            waiting.results.insert(index, result);
            changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
        let (lock, changed) = &shared;
        let broken = || Failure::internal("verify.many", "a worker panicked");
        let mut handed = Ok(());
        for (index, path) in paths.iter().enumerate() {
            let mut waiting = lock.lock().map_err(|_| broken())?;
            let result = loop {
                match waiting.results.remove(&index) {
                    Some(result) => break result,
                    None => waiting = changed.wait(waiting).map_err(|_| broken())?,
                }
            };
            waiting.turn = index + 1;
            changed.notify_all();
            drop(waiting);
            handed = with(path, result);
            if handed.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        changed.notify_all();
        handed
    })
}

#[derive(Default)]
struct Waiting {
    turn: usize,
    results: BTreeMap<usize, Verified>,
}

/// The exit code of the worst: disproved is worse than unreadable, and that
/// than not proven. A bug outweighs everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst(Option<Exit>);

impl Worst {
    /// Takes one result into account.
    pub fn add(&mut self, result: &Verified) {
        let exit = match result {
            Ok(verification) => exit(verification.decision),
            Err(failure) => failure.exit,
        };
        if self.0.is_none_or(|worst| rank(exit) > rank(worst)) {
            self.0 = Some(exit);
        }
    }

    /// The exit code; without a single result nothing is proven.
    pub fn exit(self) -> Exit {
        self.0.unwrap_or(Exit::Blocked)
    }
}

fn rank(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Blocked => 1,
        Exit::Usage => 2,
        Exit::Disproved => 3,
        Exit::Internal => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_decides_and_nothing_is_not_done() {
        assert_eq!(Worst::default().exit(), Exit::Blocked);
        let failed = |exit| Err(Failure::new(exit, "x", "x", "x"));
        let mut worst = Worst::default();
        for (next, wanted) in [
            (Exit::Done, Exit::Done),
            (Exit::Blocked, Exit::Blocked),
            (Exit::Usage, Exit::Usage),
            (Exit::Done, Exit::Usage),
            (Exit::Disproved, Exit::Disproved),
            (Exit::Blocked, Exit::Disproved),
        ] {
            worst.add(&failed(next));
            assert_eq!(worst.exit(), wanted);
        }
    }

    #[test]
    fn results_come_in_their_order_and_a_stop_ends_the_workers() {
        let paths: Vec<PathBuf> = (0..500)
            .map(|n| format!("/nonexistent/{n}").into())
            .collect();
        let mut seen = Vec::new();
        each(&paths, &Inputs::default(), 4, |path, result| {
            assert!(result.is_err());
            seen.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, paths);
        let mut count = 0;
        let stopped = each(&paths, &Inputs::default(), 4, |_, _| {
            count += 1;
            if count == 3 {
                return Err(Failure::internal("stop", "here"));
            }
            Ok(())
        });
        assert_eq!((stopped.is_err(), count), (true, 3));
    }
}
