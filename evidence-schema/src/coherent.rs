//! What is recorded of one container agrees with itself: the kernel's texts with
//! each other, with what the probes read, with what the engine and the venue say.
//! Pure: evidence → contradictions, each with the fields that contradict each
//! other. A boundary that leaks is no contradiction: the probes find it.

mod forms;
mod gate;
mod inventory;
mod kernel;
mod maps;
mod mounts;
mod namespaces;
mod network;
mod outside;
mod own;
mod readings;
mod status;

pub use inventory::{inventory, is_own_image};
pub use kernel::release;
pub use outside::outside;
pub use status::is_counter;

use crate::evidence::{Evidence, RawFacts};
use crate::facts::{self, Mount};
use crate::observation::{Observation, Phase};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The most contradictions that are told: one is enough.
const MOST: usize = 16;

/// The most characters of a text that are shown.
const SHOWN: usize = 80;

/// Fields of evidence that cannot all be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The fields.
    pub fields: &'static str,
    /// Why they cannot be.
    pub why: String,
}

impl core::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "{}: {}", self.fields, self.why)
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found(Vec<Contradiction>);

impl Found {
    /// This must hold.
    fn must(&mut self, holds: bool, fields: &'static str, why: impl FnOnce() -> String) {
        if !holds && self.0.len() < MOST {
            self.0.push(Contradiction { fields, why: why() });
        }
    }

    /// Both must be the same.
    fn same(&mut self, one: &str, other: &str, fields: &'static str) {
        self.must(one == other, fields, || {
            format!("{} and {}", shown(one), shown(other))
        });
    }
}

/// The start of a text, quoted.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start:?}")
}

/// A number as the kernel writes it.
fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// Everything that cannot be true of the kernel's texts, and of what is said
/// about the kernel, the engine and the venue.
pub fn texts(evidence: &Evidence) -> Vec<Contradiction> {
    let mut found = Found::default();
    let mounts = facts::mounts(&evidence.raw.mountinfo);
    let mounts = mounts.unwrap_or_default();
    kernel::host(&mut found, evidence);
    // Mostly the sandbox shares its host's kernel.
    if crate::kernel::kind(evidence).is_own() {
        own::check(&mut found, evidence, &mounts);
    } else {
        kernel::check(&mut found, evidence, &mounts);
        namespaces::check(&mut found, evidence);
        status::check(&mut found, evidence);
        network::check(&mut found, evidence);
        mounts::check(&mut found, evidence, &mounts);
    }
    readings::check(&mut found, evidence, &mounts);
    gate::check(&mut found, evidence);
    gate::execs(&mut found, evidence);
    forms::check(&mut found, evidence);
    found.0
}

/// The prober gave no text at all.
pub fn is_silent(raw: &RawFacts) -> bool {
    let texts = [
        &raw.mountinfo,
        &raw.proc_net_dev,
        &raw.proc_self_status,
        &raw.proc_self_status_locked,
        &raw.proc_version,
    ];
    texts.iter().all(|text| text.is_empty()) && raw.namespaces.is_empty()
}

/// What was seen of one operation in one phase.
fn seen<'a>(
    evidence: &'a Evidence,
    probe: &str,
    operation: &str,
    phase: Phase,
) -> Option<&'a Observation> {
    let probe = evidence.probes.iter().find(|one| one.probe_id == probe)?;
    let mut seen = probe.observations.iter();
    seen.find(|one| one.phase == phase && one.operation == operation)
}

/// What a probe read before the lock.
fn reading<'a>(evidence: &'a Evidence, probe: &str, operation: &str) -> Option<&'a str> {
    seen(evidence, probe, operation, Phase::Engine)?
        .value
        .as_deref()
}

/// The one mount at a place.
fn mounted_at<'a, 'b>(mounts: &'a [Mount<'b>], point: &str) -> Option<&'a Mount<'b>> {
    let mut found = mounts.iter().filter(|mount| mount.mount_point == point);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests;
