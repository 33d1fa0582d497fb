//! Whether an exec gate is worth trying, from what runs before have seen.

use crate::attest::events::{Event, Listener};
use crate::engine::EngineFacts;
use crate::engine::gate::GateChoice;
use crate::state::{Key, Refusal, State};
use tki_evidence::remembered;

/// What is remembered, and how it is used.
#[derive(Clone, Copy, Debug)]
pub enum Memory<'a> {
    /// Nothing is read or written.
    None,
    /// A gate that was refused is not tried again.
    Used(&'a State),
    /// It is tried again, and what comes of it is remembered instead.
    Renewed(&'a State),
}

/// What a run has seen of the gate.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// It was not tried, or came to nothing for a reason of its own.
    Nothing,
    /// It stood.
    Stood,
    /// The engine refused it, with these words, and launched the same container without.
    Refused(&'a str),
}

/// What an engine is known by. `None` if it does not say everything before it is asked for a
/// container.
pub fn key(facts: &EngineFacts, runtime: Option<&str>) -> Option<Key> {
    let identity = facts.identity.as_ref()?;
    let known = &facts.runtime;
    Some(Key {
        engine: known.engine.clone(),
        engine_version: known.engine_version.clone(),
        address: identity.address.clone(),
        id: identity.id.clone(),
        oci_runtime: runtime.unwrap_or(&known.oci_runtime).to_owned(),
        oci_runtime_commit: identity.runtime_commit.clone(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
    })
}

impl<'a> Memory<'a> {
    /// Why the gate need not be tried, if an engine refused it before `now`.
    pub fn recall(
        self,
        by: Option<&Key>,
        gate: GateChoice,
        now: u64,
        events: &mut dyn Listener,
    ) -> Option<String> {
        let (Self::Used(state), Some(by), GateChoice::Auto) = (self, by, gate) else {
            return None;
        };
        match state.refusal(by, now) {
            Ok(refusal) => refusal.map(|one| remembered::reason(&one.said, one.when)),
            Err(why) => {
                events.hear(Event::Note(&why.to_string()));
                None
            }
        }
    }

    /// Remembers what this run has seen: a refusal, or that there is none any more. What
    /// cannot be remembered is no failure.
    pub fn keep(self, by: Option<&Key>, seen: Seen, now: u64, events: &mut dyn Listener) {
        let (Some(state), Some(by)) = (self.state(), by) else {
            return;
        };
        let kept = match seen {
            Seen::Refused(said) if is_about_the_gate(said) => {
                let said = said.to_owned();
                state.remember(by, &Refusal { said, when: now })
            }
            Seen::Stood => state.forget(by),
            Seen::Refused(_) | Seen::Nothing => Ok(()),
        };
        if let Err(error) = kept {
            events.hear(Event::Note(&format!(
                "whether the engine takes an exec gate is not remembered: {error}"
            )));
        }
    }

    fn state(self) -> Option<&'a State> {
        match self {
            Self::None => None,
            Self::Used(state) | Self::Renewed(state) => Some(state),
        }
    }
}

/// It was the gate that the engine or its runtime did not know. Whatever else can be wrong
/// with a container may be right the next time.
fn is_about_the_gate(said: &str) -> bool {
    ["listenerPath", "SCMP_ACT_NOTIFY"]
        .iter()
        .any(|word| said.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_until_the_gate_stands() {
        const REFUSED: Seen = Seen::Refused("listenerPath is not set");
        let place = tempfile::tempdir().unwrap();
        let state = State::below(place.path().to_owned());
        let by = Key {
            engine: "docker".into(),
            engine_version: "1".into(),
            address: "unix:///x".into(),
            id: String::new(),
            oci_runtime: "runc".into(),
            oci_runtime_commit: String::new(),
            tool_version: "1".into(),
        };
        let (used, renewed) = (Memory::Used(&state), Memory::Renewed(&state));
        let told = |memory: Memory, gate| memory.recall(Some(&by), gate, 2, &mut ());
        let keep = |memory: Memory, seen| memory.keep(Some(&by), seen, 1, &mut ());
        for seen in [Seen::Nothing, Seen::Stood, Seen::Refused("no space")] {
            keep(used, seen);
            assert_eq!(told(used, GateChoice::Auto), None);
        }
        keep(Memory::None, REFUSED);
        assert_eq!(told(used, GateChoice::Auto), None);
        for memory in [used, renewed] {
            keep(memory, REFUSED);
            let reason = told(used, GateChoice::Auto).unwrap();
            let said = remembered::parse(&reason);
            assert_eq!(said, Some(("listenerPath is not set", 1)));
            for gate in [GateChoice::Require, GateChoice::Off] {
                assert_eq!(told(used, gate), None);
            }
            assert_eq!(told(renewed, GateChoice::Auto), None);
            assert_eq!(told(Memory::None, GateChoice::Auto), None);
            keep(memory, Seen::Nothing);
            assert!(told(used, GateChoice::Auto).is_some());
            keep(memory, Seen::Stood);
            assert_eq!(told(used, GateChoice::Auto), None);
        }
    }

    #[test]
    fn only_a_refusal_of_the_gate_is_worth_remembering() {
        assert!(is_about_the_gate(
            "runc create failed: unable to start container process: listenerPath is not set"
        ));
        assert!(is_about_the_gate(
            "string SCMP_ACT_NOTIFY is not a valid action for seccomp"
        ));
        for other in ["", "no space left on device", "seccomp agent: dial unix"] {
            assert!(!is_about_the_gate(other), "{other}");
        }
    }
}
