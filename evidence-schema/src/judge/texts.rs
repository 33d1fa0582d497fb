//! What rules read: the kernel texts of one container. Each is taken apart when a
//! rule first asks for it, and only once.

use super::facts::Problem;
use super::profile::Calls;
use super::sweep;
use crate::evidence::{RawFacts, Verdict};
use crate::facts::{self, BadLine, Mount};
use crate::kernel::{self, Own};
use crate::seccomp::Place;
use crate::wire::ProbeObservation;
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{OnceCell, RefCell};

/// The kernel texts of one container, and what they are held against.
#[derive(Debug)]
pub struct Texts<'a> {
    /// What the prober read.
    pub raw: &'a RawFacts,
    /// The host's own namespaces, as far as they are known.
    pub host_namespaces: &'a [String],
    /// Those of the run's neighbour, if it was there at the same time: the kernel gives a
    /// number again once it is free.
    pub neighbour_namespaces: &'a [String],
    /// The seccomp profile that stood there, as it is without marks.
    pub profile: &'a str,
    /// Whether it carried marks.
    pub marked: bool,
    /// The label of a security module that the engine says it gave the run's container.
    pub label: &'a str,
    /// The kernel, if it is not the host's.
    pub own: Option<Own<'a>>,
    sweeps: &'a Sweeps,
    mounts: OnceCell<Result<Vec<Mount<'a>>, BadLine>>,
    status: OnceCell<Vec<(&'a str, &'a str)>>,
}

impl<'a> Texts<'a> {
    /// Those of a run itself.
    pub fn of_run(raw: &'a RawFacts, sweeps: &'a Sweeps) -> Self {
        Self::new(raw, raw, &raw.seccomp_profile, sweeps)
    }

    /// Those of any container of a run: `run` says what the tool knows besides.
    pub fn new(raw: &'a RawFacts, run: &'a RawFacts, profile: &'a str, sweeps: &'a Sweeps) -> Self {
        Self {
            raw,
            host_namespaces: &run.host_namespaces,
            // Where the host cannot be seen, the neighbour is there before any other
            // container and stays until the last one is gone.
            neighbour_namespaces: match run.host_namespaces.is_empty() {
                true => &run.neighbour_namespaces,
                false => &[],
            },
            profile,
            marked: false,
            label: "",
            own: None,
            sweeps,
            mounts: OnceCell::new(),
            status: OnceCell::new(),
        }
    }

    /// The same on a kernel of its own, if it is one.
    pub fn on(self, own: Option<Own<'a>>) -> Self {
        Self { own, ..self }
    }

    /// A field of the prober's status, before the lock.
    pub fn status(&self, name: &str) -> Option<&'a str> {
        let read = || facts::status_fields(&self.raw.proc_self_status);
        let mut fields = self.status.get_or_init(read).iter();
        fields
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// The mount table, or the line that is not in the kernel's form.
    pub fn mounts(&self) -> Result<&[Mount<'a>], BadLine> {
        let mounts = self
            .mounts
            .get_or_init(|| facts::mounts(&self.raw.mountinfo));
        mounts.as_deref().map_err(|line| *line)
    }

    /// What is wrong with a sweep of all system calls.
    pub fn sweep(&self, reading: &str) -> Vec<Problem> {
        let place = kernel::place(self.raw, self.own);
        let mut known = self.sweeps.sweeps.borrow_mut();
        let same = |sweep: &&Sweep| {
            sweep.reading == reading
                && sweep.profile == self.profile
                && (sweep.marked, sweep.place) == (self.marked, place)
        };
        if let Some(sweep) = known.iter().find(same) {
            return sweep.problems.clone();
        }
        let calls = self.sweeps.calls(self.profile, place);
        let problems = match (calls, self.marked) {
            (None, _) => vec![sweep::unreadable_profile()],
            (Some(calls), true) => sweep::check_marked(reading, &calls),
            (Some(calls), false) => sweep::check(reading, &calls),
        };
        known.push(Sweep {
            reading: reading.to_owned(),
            profile: self.profile.to_owned(),
            marked: self.marked,
            place,
            problems: problems.clone(),
        });
        problems
    }

    /// The verdict on these observations, if it follows from them alone: the same
    /// as before, if these very observations were judged before.
    pub fn known_verdict(
        &self,
        probe: &str,
        seen: &[&Arc<ProbeObservation>],
        judge: impl FnOnce() -> Verdict,
    ) -> Verdict {
        let mut known = self.sweeps.verdicts.borrow_mut();
        let place = known.place(probe);
        let judged = &mut known.by_probe[place].1;
        let same = |judged: &&Judged| {
            let both = judged.seen.iter().zip(seen);
            judged.seen.len() == seen.len() && both.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(judged) = judged.iter().find(same) {
            return judged.verdict;
        }
        let verdict = judge();
        judged.push(Judged {
            seen: seen.iter().copied().cloned().collect(),
            verdict,
        });
        verdict
    }
}

/// What was judged before: the containers of one bundle, a few dozen at most,
/// mostly give the same answers, and the same sweep under the same profile.
#[derive(Debug, Default)]
pub struct Sweeps {
    sweeps: RefCell<Vec<Sweep>>,
    profiles: RefCell<Vec<Profile>>,
    verdicts: RefCell<Verdicts>,
}

/// A profile that was read for a place; `None` if it could not be.
#[derive(Debug)]
struct Profile {
    text: String,
    place: Place,
    calls: Option<Rc<Cow<'static, Calls>>>,
}

impl Sweeps {
    /// What a profile expects in a place. Each is read once.
    fn calls(&self, text: &str, place: Place) -> Option<Rc<Cow<'static, Calls>>> {
        let mut known = self.profiles.borrow_mut();
        let same = |profile: &&Profile| profile.place == place && profile.text == text;
        if let Some(profile) = known.iter().find(same) {
            return profile.calls.clone();
        }
        let calls = Calls::of(text, place).map(Rc::new);
        known.push(Profile {
            text: text.to_owned(),
            place,
            calls: calls.clone(),
        });
        calls
    }
}

#[derive(Debug)]
struct Sweep {
    reading: String,
    profile: String,
    marked: bool,
    place: Place,
    problems: Vec<Problem>,
}

/// Verdicts by probe. They are asked for in the same order for each container.
#[derive(Debug, Default)]
struct Verdicts {
    by_probe: Vec<(String, Vec<Judged>)>,
    next: usize,
}

/// As long as the observations are held here, no others can be in their place.
#[derive(Debug)]
struct Judged {
    seen: Vec<Arc<ProbeObservation>>,
    verdict: Verdict,
}

impl Verdicts {
    fn place(&mut self, probe: &str) -> usize {
        let is_own = |(known, _): &(String, Vec<Judged>)| known == probe;
        let place = match self.by_probe.get(self.next) {
            Some(next) if is_own(next) => self.next,
            _ => match self.by_probe.iter().position(is_own) {
                Some(place) => place,
                None => {
                    self.by_probe.push((probe.to_owned(), Vec::new()));
                    self.by_probe.len() - 1
                }
            },
        };
        self.next = place + 1;
        place
    }
}
