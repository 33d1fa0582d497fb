//! What the kernel answered to one operation.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Which filters stood when the operation was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Only what the engine enforces.
    Engine,
    /// After the prober stacked its own seccomp lock.
    Locked,
}

impl Phase {
    /// The name used on the wire and in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Engine => "engine",
            Phase::Locked => "locked",
        }
    }
}

/// How the operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The kernel refused it, with an errno or with a signal.
    Denied,
    /// It happened, or it passed every check and failed only on a deliberately
    /// impossible argument: nothing stood in the way.
    Allowed,
    /// An earlier step that the operation needs did not succeed, or the child
    /// ended before it came to it.
    NotReached,
    /// The probe itself went wrong: deadline passed, unexpected answer.
    Error,
}

impl State {
    /// The name used on the wire and in evidence.
    pub fn name(self) -> &'static str {
        match self {
            State::Denied => "denied",
            State::Allowed => "allowed",
            State::NotReached => "not_reached",
            State::Error => "error",
        }
    }
}

/// One operation, tried once, in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The phase it was tried in.
    pub phase: Phase,
    /// The operation's id in the catalogue.
    pub operation: String,
    /// How it ended.
    pub state: State,
    /// The system call that decided, where it is not the operation's own
    /// (`memfd_create` when no memfd could be had to execute).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What the deciding call returned, if it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<i64>,
    /// The errno's name, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<String>,
    /// The signal's name, if the call ended the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What was read, for operations that read a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Observation {
    /// An observation with a state and nothing else.
    pub fn new(phase: Phase, operation: &str, state: State) -> Self {
        Self {
            phase,
            operation: operation.into(),
            state,
            step: None,
            returned: None,
            errno: None,
            signal: None,
            value: None,
        }
    }

    /// The proof in a word: errno, signal, value or state.
    pub fn proof(&self) -> String {
        let word = self
            .errno
            .as_deref()
            .or(self.signal.as_deref())
            .or(self.value.as_deref());
        match (self.state, word) {
            (State::Denied, Some(word)) => word.into(),
            (State::Denied, None) => "denied".into(),
            (State::Allowed, Some(word)) if self.value.is_some() => word.into(),
            (State::Allowed, Some(word)) => alloc::format!("allowed ({word})"),
            (State::Allowed, None) => "allowed".into(),
            (State::NotReached, Some(word)) => alloc::format!("not reached ({word})"),
            (State::NotReached, None) => "not reached".into(),
            (State::Error, Some(word)) => alloc::format!("error ({word})"),
            (State::Error, None) => "error".into(),
        }
    }
}
