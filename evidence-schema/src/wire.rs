//! The conversation between the host tool and the prober: one JSON value a
//! line, over the container's stdin and stdout.
//!
//! ```text
//! prober → host   {"hello":{…}}         who I am, which invariants are missing
//! host → prober   {"challenge":{…}}     nonce, probes, phases, deadlines
//! prober → host   {"raw":{…}} …         kernel texts, verbatim
//! prober → host   {"observation":{…}} … one per operation and phase
//! prober → host   {"done":{…}}          nonce again, number of observations
//! ```

use crate::observation::{Observation, Phase};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The version of this conversation. A host and a prober of different
/// versions do not talk.
pub const PROTOCOL: u32 = 1;

/// The longest challenge line that the prober reads, in bytes.
pub const MAX_CHALLENGE: usize = 64 * 1024;

/// The longest line that the host accepts from the prober, in bytes.
pub const MAX_LINE: usize = 256 * 1024;

/// The most bytes that the host accepts from the prober altogether.
pub const MAX_TRANSCRIPT: usize = 4 * 1024 * 1024;

/// How long one probe may take inside, in milliseconds.
pub const PROBE_DEADLINE_MS: u32 = 2_000;

/// The longest that a run may take, in seconds.
pub const LONGEST_RUN: u64 = 600;

/// How the name of the variable begins that must not be visible inside; eight
/// hexadecimal digits follow.
pub const ENV_CANARY: &str = "TKI_CANARY_";

/// How the abstract name of the socket begins that must not be reachable from inside; the
/// same eight digits follow.
pub const ABSTRACT_CANARY: &str = "tki-canary-";

/// The abstract name of the canary whose variable has this name.
pub fn abstract_canary(variable: &str) -> Option<String> {
    let random = variable.strip_prefix(ENV_CANARY)?;
    Some([ABSTRACT_CANARY, random].concat())
}

/// What the host may say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HostMessage {
    /// The one message that starts the probes.
    Challenge(Challenge),
}

/// What the prober is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Challenge {
    /// [`PROTOCOL`] of the host.
    pub protocol: u32,
    /// Random, chosen by the host or by the verifying party's request.
    pub nonce: String,
    /// The probes to run, by id, in this order.
    pub probes: Vec<String>,
    /// The phases to run them in. `locked` can only come last: a seccomp
    /// filter cannot be taken off again.
    pub phases: Vec<Phase>,
    /// How long one probe may take before its child is killed.
    pub probe_deadline_ms: u32,
    /// How long everything may take before the prober ends by itself.
    pub overall_deadline_ms: u32,
    /// Stack the prober's own filter at the start of phase `locked`. Only
    /// the control that calibrates the lock leaves it off.
    pub lock: bool,
    /// An environment variable's name that must not be visible inside.
    pub env_canary: String,
    /// The path of a file of the host: the launcher's own executable.
    pub host_canary: String,
    /// Limits to run into.
    pub limits: Limits,
    /// Missing invariants that the launcher knows of and accepts: the
    /// prober does nothing in a container that lacks any other.
    pub accept_missing: Vec<String>,
}

/// Limits that the launcher set, for the probes that run into them. A limit of
/// 0 was not set, and its probe says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processes.
    pub pids: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes behind /out.
    pub out_bytes: u64,
    /// Bytes of /tmp.
    pub tmp_bytes: u64,
    /// Files behind /out.
    pub out_files: u64,
    /// Files in /tmp.
    pub tmp_files: u64,
    /// Open files.
    pub nofile: u32,
    /// Period of the CPU quota, in microseconds.
    pub cpu_period_us: u32,
    /// CPU time in each period, in microseconds.
    pub cpu_quota_us: u32,
}

/// What the prober may say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProberMessage {
    /// First line.
    Hello(Hello),
    /// A kernel text.
    Raw(Raw),
    /// Something worth knowing that is never judged.
    Info(Raw),
    /// One observation of one probe.
    Observation(ProbeObservation),
    /// The prober stops here, and why.
    Refused(Refused),
    /// Last line.
    Done(Done),
}

/// The prober introduces itself, after its self-check and before it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`] of the prober.
    pub protocol: u32,
    /// Its package version.
    pub version: String,
    /// Sandbox invariants that its self-check found missing.
    pub missing: Vec<String>,
}

/// A kernel text, verbatim (invalid UTF-8 replaced).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// Its name in the evidence's `raw` object.
    pub name: String,
    /// The text.
    pub text: String,
}

/// An observation and the probe it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProbeObservation {
    /// The probe's id.
    pub probe: String,
    /// What was seen.
    pub seen: Observation,
}

/// Why the prober did not run the probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The reason, for a person.
    pub reason: String,
}

/// The prober has finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The challenge's nonce.
    pub nonce: String,
    /// How many observations were sent.
    pub observations: u32,
    /// From the challenge's arrival to here, in microseconds.
    pub elapsed_us: u64,
}
