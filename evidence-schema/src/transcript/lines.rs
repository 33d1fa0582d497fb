//! Lines of conversations that were read before.

use super::Message;
use crate::observation::{Observation, Phase};
use crate::wire::ProbeObservation;
use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Lines that were read before. The conversations of one bundle mostly say the
/// same, line by line and in the same order: what followed a line before is what
/// is looked for. A line that is not found is read like any other.
#[derive(Debug, Default)]
pub struct Lines<'a>(Vec<Line<'a>>, Expected<'a>);

/// Observations that a conversation is said to have: a line that says one of these, to
/// the letter, need not be read.
#[derive(Debug, Default)]
struct Expected<'a> {
    said: Vec<(&'a str, &'a Observation)>,
    next: usize,
}

#[derive(Debug)]
struct Line<'a> {
    text: &'a [u8],
    message: Message,
    /// What followed it the first time, or stood in that place.
    next: Option<usize>,
    /// What followed it at other times.
    others: Vec<usize>,
}

/// How many other lines are looked for, the last ones first.
const MAX_OTHERS: usize = 8;

/// How many lines in a row a conversation may leave out: those of a probe.
const MAX_LEFT_OUT: usize = 16;

impl<'a> Lines<'a> {
    /// Lines of a conversation that is said to have these observations, by probe. It has
    /// them phase by phase.
    pub fn expecting(said: impl Iterator<Item = (&'a str, &'a [Observation])> + Clone) -> Self {
        let phases = [Phase::Engine, Phase::Locked].into_iter();
        let said = phases.flat_map(|phase| {
            let of_phase = move |seen: &&Observation| seen.phase == phase;
            let own = move |(probe, seen): (&'a str, &'a [Observation])| {
                seen.iter().filter(of_phase).map(move |seen| (probe, seen))
            };
            said.clone().flat_map(own)
        });
        let said = said.collect();
        Self(Vec::new(), Expected { said, next: 0 })
    }

    /// What a line says, if it is the one that is expected next.
    pub(super) fn expected(&mut self, line: &[u8]) -> Option<Message> {
        let (probe, seen) = *self.1.said.get(self.1.next)?;
        says(line, probe, seen)?;
        self.1.next += 1;
        Some(Message::Observation(Arc::new(ProbeObservation {
            probe: probe.to_owned(),
            seen: seen.clone(),
        })))
    }

    /// What followed a line, or began a conversation, the first time.
    fn next(&self, last: Option<usize>) -> Option<usize> {
        match last {
            Some(last) => self.0.get(last)?.next,
            None => (!self.0.is_empty()).then_some(0),
        }
    }

    /// What comes after this line, if the text begins with it.
    fn strip(&self, line: Option<usize>, text: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let text = text.strip_prefix(self.0.get(line?)?.text)?;
        Some((line?, text.strip_prefix(b"\n")?))
    }

    /// What a line says.
    pub(super) fn message(&self, line: usize) -> &Message {
        &self.0[line].message
    }

    /// The line that the text begins with, if it is known here, and the rest.
    pub(super) fn find(&self, last: Option<usize>, text: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let next = self.next(last);
        self.strip(next, text).or_else(|| {
            let last = last.and_then(|last| self.0.get(last));
            let others = last.map_or(&[][..], |last| &last.others).iter().rev();
            let left_out = core::iter::successors(next, |line| self.next(Some(*line)));
            let after = left_out.skip(1).take(MAX_LEFT_OUT);
            let mut lines = others.take(MAX_OTHERS).copied().chain(after);
            lines.find_map(|line| self.strip(Some(line), text))
        })
    }

    /// A line that is not known here. It may stand where another one stood, and
    /// what followed that one may follow it.
    pub(super) fn add(&mut self, text: &'a [u8], message: Message, last: Option<usize>) -> usize {
        let next = self.next(last).and_then(|other| self.next(Some(other)));
        self.0.push(Line {
            text,
            message,
            next,
            others: Vec::new(),
        });
        self.0.len() - 1
    }

    /// One line came after another.
    pub(super) fn follows(&mut self, line: usize, last: Option<usize>) {
        if let Some(last) = last.and_then(|last| self.0.get_mut(last)) {
            let is_next = *last.next.get_or_insert(line) == line;
            if !is_next
                && !last
                    .others
                    .iter()
                    .rev()
                    .take(MAX_OTHERS)
                    .any(|other| *other == line)
            {
                last.others.push(line);
            }
        }
    }
}

/// The line is how the prober writes this observation. What would be written with an
/// escape is not compared.
fn says(line: &[u8], probe: &str, seen: &Observation) -> Option<()> {
    let Observation {
        phase,
        operation,
        state,
        step,
        returned,
        errno,
        signal,
        value,
    } = seen;
    let mut rest = Rest(line);
    rest.word("{\"observation\":{\"probe\":")?.text(probe)?;
    rest.word(",\"seen\":{\"phase\":")?.text(phase.name())?;
    rest.word(",\"operation\":")?.text(operation)?;
    rest.word(",\"state\":")?.text(state.name())?;
    rest.field("step", step.as_deref())?;
    if let Some(returned) = returned {
        rest.word(",\"returned\":")?.word(&returned.to_string())?;
    }
    rest.field("errno", errno.as_deref())?;
    rest.field("signal", signal.as_deref())?;
    rest.field("value", value.as_deref())?;
    rest.word("}}}")?;
    rest.0.is_empty().then_some(())
}

/// What is left of a line.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn word(&mut self, word: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(word.as_bytes())?;
        Some(self)
    }

    /// A text that needs no escape, in quotation marks.
    fn text(&mut self, text: &str) -> Option<&mut Self> {
        let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        let is_plain = text.bytes().all(plain);
        self.word("\"")?.word(text)?.word("\"").filter(|_| is_plain)
    }

    fn field(&mut self, name: &str, text: Option<&str>) -> Option<()> {
        if let Some(text) = text {
            self.word(",\"")?.word(name)?.word("\":")?.text(text)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::State;
    use crate::wire::ProberMessage;

    /// Whatever is compared is what serde writes, and what it would escape is not.
    #[test]
    fn a_line_is_known_to_the_letter() {
        for value in [
            None,
            Some(""),
            Some("1=EPERM é"),
            Some("a\"b"),
            Some("a\\b"),
            Some("\n"),
        ] {
            for (errno, returned) in [(None, None), (Some("EPERM"), Some(-1))] {
                let mut seen = Observation::new(Phase::Locked, "open(/a b)", State::NotReached);
                seen.value = value.map(str::to_owned);
                seen.errno = errno.map(str::to_owned);
                seen.step = errno.map(|_| "socket".into());
                seen.signal = errno.map(|_| "SIGSYS".into());
                seen.returned = returned;
                let own = ProbeObservation {
                    probe: "PR-NET-1".into(),
                    seen: seen.clone(),
                };
                let line = serde_json::to_vec(&ProberMessage::Observation(own)).unwrap();
                let is_plain = value.is_none_or(|value| !value.contains(['"', '\\', '\n']));
                let found = says(&line, "PR-NET-1", &seen);
                assert_eq!(found.is_some(), is_plain, "{value:?}");
                assert!(says(&line, "PR-NET-2", &seen).is_none());
                assert!(says(&line[..line.len() - 1], "PR-NET-1", &seen).is_none());
                seen.phase = Phase::Engine;
                assert!(says(&line, "PR-NET-1", &seen).is_none());
            }
        }
        // What only looks like it, because a text holds what should stand outside.
        let mut seen = Observation::new(Phase::Engine, "o", State::Denied);
        seen.step = Some("a\",\"errno\":\"EPERM".into());
        let line = br#"{"observation":{"probe":"p","seen":{"phase":"engine","operation":"o","state":"denied","step":"a","errno":"EPERM"}}}"#;
        assert!(says(line, "p", &seen).is_none());
    }
}
