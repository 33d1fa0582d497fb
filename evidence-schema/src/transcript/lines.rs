//! Lines of conversations that were read before.

use super::Message;
use crate::observation::{Observation, Phase};
use crate::wire::ProbeObservation;
use serde::Serialize;
use std::ops::Range;
use std::sync::Arc;

/// Lines that were read before. The conversations of one bundle mostly say the
/// same, line by line and in the same order: what followed a line before is what
/// is looked for. A line that is not found is read like any other.
#[derive(Debug, Default)]
pub struct Lines<'a>(Vec<Line<'a>>, Expected);

/// Observations that somebody says a conversation has, as it would have them: a line that
/// is one of these, to the letter, need not be read.
#[derive(Debug, Default)]
struct Expected {
    text: Vec<u8>,
    lines: Vec<(Range<usize>, Arc<ProbeObservation>)>,
    next: usize,
}

/// A line of the inspector's, written as it writes it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Said<'a> {
    Observation(Seen<'a>),
}

#[derive(Serialize)]
struct Seen<'a> {
    probe: &'a str,
    seen: &'a Observation,
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
    pub fn expecting<'e>(said: impl Iterator<Item = (&'e str, &'e [Observation])> + Clone) -> Self {
        let mut expected = Expected::default();
        for phase in [Phase::Engine, Phase::Locked] {
            for (probe, seen) in said.clone() {
                for seen in seen.iter().filter(|seen| seen.phase == phase) {
                    let start = expected.text.len();
                    let line = Said::Observation(Seen { probe, seen });
                    if serde_json::to_writer(&mut expected.text, &line).is_err() {
                        continue;
                    }
                    let own = ProbeObservation {
                        probe: probe.to_owned(),
                        seen: seen.clone(),
                    };
                    let range = start..expected.text.len();
                    expected.lines.push((range, Arc::new(own)));
                }
            }
        }
        Self(Vec::new(), expected)
    }

    /// What a line says, if it is the one that is expected next.
    pub(super) fn expected(&mut self, line: &[u8]) -> Option<Message> {
        let expected = &mut self.1;
        let (range, seen) = expected.lines.get(expected.next)?;
        let is_it = expected.text.get(range.clone()) == Some(line);
        is_it.then(|| {
            expected.next += 1;
            Message::Observation(seen.clone())
        })
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
            let left_out = std::iter::successors(next, |line| self.next(Some(*line)));
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
