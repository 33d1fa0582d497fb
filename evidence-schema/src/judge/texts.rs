//! What rules read: the kernel texts of one container. Each is taken apart when a
//! rule first asks for it, and only once.

use super::facts::Problem;
use super::profile::Calls;
use crate::evidence::RawFacts;
use crate::facts::{self, BadLine, Mount};
use std::cell::{OnceCell, RefCell};

/// The kernel texts of one container, and what they are held against.
#[derive(Debug)]
pub struct Texts<'a> {
    /// What the inspector read.
    pub raw: &'a RawFacts,
    /// The host's own namespaces.
    pub host_namespaces: &'a [String],
    /// The seccomp profile that stood there.
    pub profile: &'a str,
    sweeps: &'a Sweeps,
    mounts: OnceCell<Result<Vec<Mount<'a>>, BadLine>>,
    status: OnceCell<Vec<(&'a str, &'a str)>>,
}

impl<'a> Texts<'a> {
    /// Those of a run itself.
    pub fn of_run(raw: &'a RawFacts, sweeps: &'a Sweeps) -> Self {
        Self::new(raw, &raw.host_namespaces, &raw.seccomp_profile, sweeps)
    }

    /// Those of any container.
    pub fn new(
        raw: &'a RawFacts,
        host_namespaces: &'a [String],
        profile: &'a str,
        sweeps: &'a Sweeps,
    ) -> Self {
        Self {
            raw,
            host_namespaces,
            profile,
            sweeps,
            mounts: OnceCell::new(),
            status: OnceCell::new(),
        }
    }

    /// A field of the inspector's status, before the lock.
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
        let mut known = self.sweeps.0.borrow_mut();
        let same = |sweep: &&Sweep| sweep.reading == reading && sweep.profile == self.profile;
        if let Some(sweep) = known.iter().find(same) {
            return sweep.problems.clone();
        }
        let problems = Calls::of(self.profile).map_or_else(
            || vec![super::facts::unreadable_profile()],
            |calls| super::facts::sweep(reading, &calls),
        );
        known.push(Sweep {
            reading: reading.to_owned(),
            profile: self.profile.to_owned(),
            problems: problems.clone(),
        });
        problems
    }
}

/// Sweeps that were judged before: the containers of one bundle, a few dozen at
/// most, mostly give the same answers under the same profile.
#[derive(Debug, Default)]
pub struct Sweeps(RefCell<Vec<Sweep>>);

#[derive(Debug)]
struct Sweep {
    reading: String,
    profile: String,
    problems: Vec<Problem>,
}
