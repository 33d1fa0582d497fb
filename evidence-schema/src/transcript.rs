//! Reads the prober's side of the conversation. The container is hostile
//! until proven otherwise: every line is bounded, typed and expected, or the
//! run ends.

mod lines;

pub use lines::Lines;

use crate::evidence::{Information, RawFacts};
use crate::facts;
use crate::judge::Texts;
use crate::observation::Observation;
use crate::wire::{
    Challenge, Done, Hello, HostMessage, PROTOCOL, ProbeObservation, ProberMessage, Raw, Refused,
};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// The most missing invariants that a prober could name.
const MAX_MISSING: usize = 32;

/// The most probes that a challenge asks for: the catalogue has a few dozen.
const MAX_PROBES: usize = 256;

/// The most pieces of information.
const MAX_INFORMATION: usize = 128;

/// The start of a text, with everything escaped that is not plain.
fn shown(text: &str, most: usize) -> String {
    let start: String = text.chars().take(most).collect();
    start.escape_debug().to_string()
}

/// Why a line is not what the prober would say here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// Not a message at all.
    #[error("line {line} is not a message of the prober: {start}")]
    Garbage {
        /// The line's number, from 1.
        line: usize,
        /// How it starts.
        start: String,
    },
    /// A message that does not belong here.
    #[error("line {line}: {what}")]
    Unexpected {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The prober says that it will not go on.
    #[error("the prober refused: {0}")]
    Refused(String),
}

/// What has been heard so far.
#[derive(Debug)]
pub struct Transcript {
    lines: usize,
    bytes: Vec<u8>,
    hello: Option<Hello>,
    raw: RawFacts,
    raw_names: Vec<String>,
    observations: Vec<Arc<ProbeObservation>>,
    /// Observations that come together, by their probe's place in the challenge.
    runs: Vec<(usize, Range<usize>)>,
    information: Vec<Arc<Information>>,
    done: Option<Done>,
}

/// A conversation that came to its end.
#[derive(Debug)]
pub struct Heard {
    /// Every line, verbatim, as it was heard; empty if it was read back.
    pub bytes: Vec<u8>,
    /// How the prober introduced itself.
    pub hello: Hello,
    /// Kernel texts.
    pub raw: RawFacts,
    /// Observations with their probes' ids.
    pub observations: Vec<Arc<ProbeObservation>>,
    runs: Vec<(usize, Range<usize>)>,
    /// Worth knowing, never judged.
    pub information: Vec<Arc<Information>>,
    /// How long the probes took, in microseconds.
    pub elapsed_us: u64,
}

impl Heard {
    /// Why a prober of this version does not say that of itself and its sandbox. An
    /// interface that came after the greeting is not missed in it. A text that is not
    /// there shows nothing.
    pub fn untrue(
        &self,
        version: &str,
        interface_later: bool,
        texts: &Texts,
    ) -> Option<&'static str> {
        if self.hello.version != version {
            return Some("the prober is of another version than the tool");
        }
        if self.elapsed_us == 0 {
            return Some("it took no time");
        }
        let mut said = self.hello.missing.iter().map(String::as_str).peekable();
        for (name, holds) in invariants(texts) {
            let misses = said.next_if_eq(&name).is_some();
            let later = interface_later && name == "network-none" && !misses;
            if !later && holds == Some(misses) {
                return Some("the prober misses other invariants than its texts show");
            }
        }
        // Without those that are left, which are structural, it would not speak.
        let known = said.next().is_none();
        (!known).then_some("the prober misses other invariants than its texts show")
    }

    /// What was seen of one probe.
    pub fn observations_of(&self, probe: &str) -> Vec<Observation> {
        let own = self.observations.iter().filter(|own| own.probe == probe);
        own.map(|own| own.seen.clone()).collect()
    }

    /// What was seen of every probe.
    pub fn by_probe(&self) -> ByProbe<'_> {
        ByProbe {
            observations: &self.observations,
            runs: &self.runs,
            first: None,
            next: 0,
        }
    }
}

/// Invariants of the sandbox by the names and in the order of the prober's
/// self-check, and whether they hold by these texts.
fn invariants(texts: &Texts) -> [(&'static str, Option<bool>); 8] {
    let raw = texts.raw;
    let (table, devices, status) = (&raw.mountinfo, &raw.proc_net_dev, &raw.proc_self_status);
    let mounts = texts.mounts().unwrap_or_default();
    let read_only = |point: &str| {
        let found = mounts.iter().rev().find(|mount| mount.mount_point == point);
        let holds = found.is_some_and(facts::Mount::is_read_only);
        (!table.is_empty()).then_some(holds)
    };
    let field = |name: &str| texts.status(name);
    let shown = |holds: bool| (!status.is_empty()).then_some(holds);
    let is_zero = |bits: &str| bits.bytes().all(|bit| bit == b'0');
    let is_user = |ids: &str| ids.split_whitespace().all(|id| id != "0");
    let mut sets = facts::CAPABILITY_SETS.iter();
    let alone = facts::interfaces(devices) == ["lo"];
    [
        ("pid-1", shown(field("Pid") == Some("1"))),
        ("in-read-only", read_only("/in")),
        ("rootfs-read-only", read_only("/")),
        ("network-none", (!devices.is_empty()).then_some(alone)),
        ("non-root", shown(field("Uid").is_some_and(is_user))),
        (
            "no-capabilities",
            shown(sets.all(|set| field(set).is_some_and(is_zero))),
        ),
        ("no-new-privs", shown(field("NoNewPrivs") == Some("1"))),
        ("seccomp-filter", shown(field("Seccomp") == Some("2"))),
    ]
}

/// Observations by probe. A caller that asks for one probe after the other in the order
/// of the challenge, which names each once, finds them without a search.
#[derive(Debug)]
pub struct ByProbe<'a> {
    observations: &'a [Arc<ProbeObservation>],
    /// In the order of the challenge.
    runs: &'a [(usize, Range<usize>)],
    /// The first run of each probe, once a caller asks in another order.
    first: Option<BTreeMap<&'a str, usize>>,
    next: usize,
}

impl<'a> ByProbe<'a> {
    /// What was seen of one probe, in the order of the conversation.
    pub fn of(&mut self, probe: &str) -> impl Iterator<Item = &'a Arc<ProbeObservation>> {
        let (observations, runs) = (self.observations, self.runs);
        let is_own = |run: &(usize, Range<usize>)| observations[run.1.start].probe == probe;
        let first = match runs.get(self.next) {
            Some(run) if is_own(run) => self.next,
            _ => {
                let all = || runs.iter().enumerate().rev();
                let named = |(at, run): (usize, &(usize, Range<usize>))| {
                    (observations[run.1.start].probe.as_str(), at)
                };
                let first = self.first.get_or_insert_with(|| all().map(named).collect());
                first.get(probe).copied().unwrap_or(runs.len())
            }
        };
        let place = runs.get(first).map(|run| run.0);
        let own = runs[first..]
            .iter()
            .take_while(move |run| Some(run.0) == place);
        self.next = first + own.clone().count();
        own.flat_map(move |(_, range)| &observations[range.clone()])
    }
}

/// Writes both sides of a conversation down, in their order.
pub fn write(challenge: &Challenge, heard: &Heard) -> Vec<u8> {
    let message = HostMessage::Challenge(challenge.clone());
    let asked = serde_json::to_vec(&message).unwrap_or_default();
    let end_of_hello = heard.bytes.iter().position(|byte| *byte == b'\n');
    let (hello, rest) = heard.bytes.split_at(end_of_hello.map_or(0, |at| at + 1));
    [hello, &asked, b"\n", rest].concat()
}

/// The first line of a text, without its end, and what comes after it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', text) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

/// A message of the prober; an observation that was read before is shared.
#[derive(Clone, Debug)]
enum Message {
    Hello(Hello),
    Raw(Raw),
    Info(Arc<Information>),
    Observation(Arc<ProbeObservation>),
    Refused(Refused),
    Done(Done),
}

impl From<ProberMessage> for Message {
    fn from(message: ProberMessage) -> Self {
        match message {
            ProberMessage::Hello(hello) => Message::Hello(hello),
            ProberMessage::Raw(raw) => Message::Raw(raw),
            ProberMessage::Info(info) => Message::Info(Arc::new(Information {
                name: info.name,
                value: info.text,
            })),
            ProberMessage::Observation(seen) => Message::Observation(Arc::new(seen)),
            ProberMessage::Refused(refused) => Message::Refused(refused),
            ProberMessage::Done(done) => Message::Done(done),
        }
    }
}

/// Reads a conversation that was written down.
pub fn read(bytes: &[u8]) -> Result<(Challenge, Heard), TranscriptError> {
    read_with(bytes, &mut Lines::default())
}

/// Reads one of several conversations that were written down.
pub fn read_with<'a>(
    bytes: &'a [u8],
    known: &mut Lines<'a>,
) -> Result<(Challenge, Heard), TranscriptError> {
    let wrong = |line: usize, what: &str| TranscriptError::Unexpected {
        line,
        what: what.into(),
    };
    let mut transcript = Transcript::new();
    // Most lines are observations, and this is how long most of them are.
    transcript.observations.reserve(bytes.len() / 128);
    let (hello, rest) = split_line(bytes);
    transcript.greet(hello)?;
    let (asked, mut rest) = split_line(rest);
    let asked = core::str::from_utf8(asked).ok();
    let asked = asked.and_then(|asked| serde_json::from_str(asked).ok());
    let Some(HostMessage::Challenge(challenge)) = asked else {
        return Err(wrong(2, "not a challenge"));
    };
    if challenge.probes.len() > MAX_PROBES {
        return Err(wrong(2, "it asks for more probes than there are"));
    }
    let mut last = None;
    while !rest.is_empty() {
        let index = if let Some((line, after)) = known.find(last, rest) {
            rest = after;
            transcript.lines += 1;
            line
        } else {
            let (line, after) = split_line(rest);
            rest = after;
            let message = match known.expected(line) {
                Some(message) => {
                    transcript.lines += 1;
                    message
                }
                None => transcript.message(line)?,
            };
            known.add(line, message, last)
        };
        known.follows(index, last);
        last = Some(index);
        transcript.take(known.message(index).clone(), &challenge)?;
    }
    match transcript.end() {
        Some(heard) => Ok((challenge, heard)),
        None => Err(wrong(0, "it stops before its end")),
    }
}

/// Reads what a neighbour said and was written down: its greeting, and its namespaces.
pub fn read_neighbour(bytes: &[u8]) -> Result<Vec<String>, TranscriptError> {
    let mut transcript = Transcript::new();
    let (hello, rest) = split_line(bytes);
    transcript.greet(hello)?;
    let (line, rest) = split_line(rest);
    match transcript.message(line)? {
        Message::Raw(raw) if raw.name == "namespaces" && rest.is_empty() => {
            Ok(raw.text.lines().map(str::to_owned).collect())
        }
        Message::Refused(refused) => Err(TranscriptError::Refused(shown(&refused.reason, 300))),
        _ => Err(transcript.unexpected("not the namespaces of a neighbour")),
    }
}

impl Transcript {
    /// Nothing was heard yet.
    pub fn new() -> Self {
        Self {
            lines: 0,
            bytes: Vec::new(),
            hello: None,
            raw: RawFacts::default(),
            raw_names: Vec::new(),
            observations: Vec::new(),
            runs: Vec::new(),
            information: Vec::new(),
            done: None,
        }
    }

    /// The first line: which invariants the prober found missing.
    pub fn hear_hello(&mut self, line: &[u8]) -> Result<Vec<String>, TranscriptError> {
        self.record(line);
        self.greet(line)
    }

    fn greet(&mut self, line: &[u8]) -> Result<Vec<String>, TranscriptError> {
        match self.message(line)? {
            Message::Hello(hello) if hello.protocol != PROTOCOL => {
                Err(self.unexpected("the image is of another version of tki-attest"))
            }
            Message::Hello(hello) if hello.missing.len() <= MAX_MISSING => {
                let missing = hello.missing.clone();
                self.hello = Some(hello);
                Ok(missing)
            }
            Message::Refused(refused) => Err(TranscriptError::Refused(shown(&refused.reason, 300))),
            _ => Err(self.unexpected("the first line is not a greeting")),
        }
    }

    /// A later line. True when it was the last.
    pub fn hear(&mut self, line: &[u8], challenge: &Challenge) -> Result<bool, TranscriptError> {
        self.record(line);
        let message = self.message(line)?;
        self.take(message, challenge)
    }

    fn take(&mut self, message: Message, challenge: &Challenge) -> Result<bool, TranscriptError> {
        if self.done.is_some() {
            return Err(self.unexpected("it goes on after its end"));
        }
        match message {
            Message::Raw(raw) => {
                if self.raw_names.contains(&raw.name) {
                    return Err(self.unexpected("a kernel text came twice"));
                }
                let Some(place) = place(&mut self.raw, &raw.name) else {
                    return Err(self.unexpected("a kernel text that nobody asked for"));
                };
                match place {
                    Place::Text(text) => *text = raw.text,
                    Place::List(list) => {
                        *list = raw.text.lines().map(str::to_owned).collect();
                    }
                }
                self.raw_names.push(raw.name);
                Ok(false)
            }
            Message::Info(info) if self.information.len() < MAX_INFORMATION => {
                self.information.push(info);
                Ok(false)
            }
            Message::Info(_) => Err(self.unexpected("more than anybody wants to know")),
            Message::Observation(observation) => {
                // Observations of one probe mostly come together, and the probes
                // in the order of the challenge.
                let (probes, probe) = (&challenge.probes, &observation.probe);
                let last = self.runs.last().map_or(0, |(place, _)| *place);
                let near = last..probes.len().min(last + 2);
                let found = near.into_iter().find(|index| probes[*index] == *probe);
                let found = found.or_else(|| probes.iter().position(|known| known == probe));
                let Some(found) = found else {
                    return Err(self.unexpected("an observation of a probe that nobody asked for"));
                };
                let end = self.observations.len() + 1;
                match self.runs.last_mut() {
                    Some((place, range)) if *place == found => range.end = end,
                    _ => self.runs.push((found, end - 1..end)),
                }
                self.observations.push(observation);
                Ok(false)
            }
            Message::Done(done) => {
                if done.nonce != challenge.nonce {
                    return Err(self.unexpected("the nonce is not the challenge's"));
                }
                if usize::try_from(done.observations) != Ok(self.observations.len()) {
                    return Err(self.unexpected("the number of observations is wrong"));
                }
                self.done = Some(done);
                Ok(true)
            }
            Message::Refused(refused) => Err(TranscriptError::Refused(shown(&refused.reason, 300))),
            Message::Hello(_) => Err(self.unexpected("a second greeting")),
        }
    }

    /// Everything, if the conversation came to its end.
    pub fn end(self) -> Option<Heard> {
        let (hello, done) = (self.hello?, self.done?);
        let mut runs = self.runs;
        // A stable sort: runs of one probe stay in the order of the conversation.
        runs.sort_by_key(|(place, _)| *place);
        Some(Heard {
            bytes: self.bytes,
            hello,
            raw: self.raw,
            observations: self.observations,
            runs,
            information: self.information,
            elapsed_us: done.elapsed_us,
        })
    }

    fn record(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
    }

    fn message(&mut self, line: &[u8]) -> Result<Message, TranscriptError> {
        self.lines += 1;
        let text = core::str::from_utf8(line).ok();
        let message = text.and_then(|text| serde_json::from_str::<ProberMessage>(text).ok());
        message
            .map(Message::from)
            .ok_or_else(|| TranscriptError::Garbage {
                line: self.lines,
                start: shown(&String::from_utf8_lossy(line), 60),
            })
    }

    fn unexpected(&self, what: &str) -> TranscriptError {
        TranscriptError::Unexpected {
            line: self.lines,
            what: what.into(),
        }
    }
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}

enum Place<'a> {
    Text(&'a mut String),
    List(&'a mut Vec<String>),
}

fn place<'a>(raw: &'a mut RawFacts, name: &str) -> Option<Place<'a>> {
    Some(match name {
        "mountinfo" => Place::Text(&mut raw.mountinfo),
        "env_keyset" => Place::List(&mut raw.env_keyset),
        "proc_net_dev" => Place::Text(&mut raw.proc_net_dev),
        "proc_net_route" => Place::Text(&mut raw.proc_net_route),
        "proc_net_ipv6_route" => Place::Text(&mut raw.proc_net_ipv6_route),
        "proc_self_status" => Place::Text(&mut raw.proc_self_status),
        "proc_self_status_locked" => Place::Text(&mut raw.proc_self_status_locked),
        "proc_self_limits" => Place::Text(&mut raw.proc_self_limits),
        "proc_self_cgroup" => Place::Text(&mut raw.proc_self_cgroup),
        "proc_version" => Place::Text(&mut raw.proc_version),
        "lsm_label" => Place::Text(&mut raw.lsm_label),
        "boot_id" => Place::Text(&mut raw.boot_id),
        "namespaces" => Place::List(&mut raw.namespaces),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Phase, State};
    use alloc::format;
    use alloc::vec;

    fn challenge() -> Challenge {
        Challenge {
            protocol: PROTOCOL,
            nonce: "n".into(),
            probes: vec!["PR-NET-1".into()],
            phases: vec![Phase::Engine],
            probe_deadline_ms: 1,
            overall_deadline_ms: 1,
            lock: true,
            env_canary: "C".into(),
            host_canary: String::new(),
            limits: crate::wire::Limits::default(),
            accept_missing: Vec::new(),
        }
    }

    const HELLO: &[u8] = br#"{"hello":{"protocol":1,"version":"0","missing":["x"]}}"#;

    #[test]
    fn a_neighbour_says_two_lines_and_no_more() {
        let hello = core::str::from_utf8(HELLO).unwrap();
        let raw = r#"{"raw":{"name":"namespaces","text":"net:[1]\nuts:[2]\n"}}"#;
        let read = |text: String| read_neighbour(text.as_bytes());
        assert_eq!(
            read(format!("{hello}\n{raw}\n")).unwrap(),
            ["net:[1]", "uts:[2]"]
        );
        for text in [
            String::new(),
            format!("{hello}\n"),
            format!("{raw}\n{hello}\n"),
            format!("{hello}\n{hello}\n"),
            format!("{hello}\n{raw}\n{raw}\n"),
            format!("{hello}\n{}\n", raw.replace("namespaces", "mountinfo")),
        ] {
            assert!(read(text.clone()).is_err(), "{text}");
        }
        let refused = r#"{"refused":{"reason":"no"}}"#;
        let said = read(format!("{refused}\n")).unwrap_err();
        assert_eq!(said, TranscriptError::Refused("no".into()));
    }

    /// Where observations of the first probe and of the last one take turns.
    #[test]
    fn a_challenge_asks_for_no_more_than_there_is() {
        let refused = crate::sizes::ends(|| {
            let challenge = Challenge {
                probes: crate::sizes::names(100_000),
                ..challenge()
            };
            let (first, last) = (&challenge.probes[0], challenge.probes.last().unwrap());
            let line = |probe| {
                format!(
                    r#"{{"observation":{{"probe":"{probe}","seen":{{"phase":"engine","operation":"o","state":"denied"}}}}}}"#
                )
            };
            let asked = serde_json::to_string(&HostMessage::Challenge(challenge.clone())).unwrap();
            let said = format!("{}\n{}\n", line(first), line(last)).repeat(60_000);
            let text = [HELLO, b"\n", asked.as_bytes(), b"\n", said.as_bytes()].concat();
            read(&text).unwrap_err()
        });
        assert!(refused.to_string().contains("line 2"), "{refused}");
    }

    /// Probes that were asked for in another order, or not at all, are looked for once.
    #[test]
    fn probes_are_found_in_any_order() {
        let observation = |probe: &str| {
            Arc::new(ProbeObservation {
                probe: probe.into(),
                seen: Observation::new(Phase::Engine, probe, crate::observation::State::Denied),
            })
        };
        let heard = Heard {
            bytes: Vec::new(),
            hello: Hello {
                protocol: PROTOCOL,
                version: String::new(),
                missing: Vec::new(),
            },
            raw: RawFacts::default(),
            observations: ["a", "b", "a", "c"].map(observation).to_vec(),
            runs: vec![(0, 0..1), (0, 2..3), (1, 1..2), (2, 3..4)],
            information: Vec::new(),
            elapsed_us: 0,
        };
        let mut by_probe = heard.by_probe();
        for (probe, count) in [("a", 2), ("c", 1), ("x", 0), ("b", 1), ("a", 2), ("a", 2)] {
            assert_eq!(by_probe.of(probe).count(), count, "{probe}");
        }
    }

    #[test]
    fn a_whole_conversation_is_heard() {
        let mut transcript = Transcript::new();
        assert_eq!(transcript.hear_hello(HELLO).unwrap(), ["x"]);
        let mut hear = |line: &[u8]| transcript.hear(line, &challenge());
        assert!(!hear(br#"{"raw":{"name":"mountinfo","text":"a"}}"#).unwrap());
        assert!(
            !hear(br#"{"observation":{"probe":"PR-NET-1","seen":{"phase":"engine","operation":"o","state":"denied"}}}"#)
                .unwrap()
        );
        assert!(hear(br#"{"done":{"nonce":"n","observations":1,"elapsed_us":7}}"#).unwrap());
        let heard = transcript.end().unwrap();
        assert_eq!(heard.raw.mountinfo, "a");
        assert_eq!(heard.observations.len(), 1);
        assert_eq!(heard.bytes.iter().filter(|b| **b == b'\n').count(), 4);
        let written = write(&challenge(), &heard);
        let (asked, again) = read(&written).unwrap();
        assert_eq!(asked, challenge());
        assert_eq!(again.raw, heard.raw);
        assert_eq!(again.observations, heard.observations);
        assert!(read(&written[..written.len() - 40]).is_err());
    }

    fn written(lines: &[&str]) -> Vec<u8> {
        let asked = serde_json::to_string(&HostMessage::Challenge(challenge())).unwrap();
        let hello = core::str::from_utf8(HELLO).unwrap();
        let mut text = format!("{hello}\n{asked}\n");
        for line in lines {
            text += line;
            text += "\n";
        }
        text.into_bytes()
    }

    fn seen(operation: &str) -> String {
        format!(
            r#"{{"observation":{{"probe":"PR-NET-1","seen":{{"phase":"engine","operation":"{operation}","state":"denied"}}}}}}"#
        )
    }

    /// Whatever was read before, and in whatever order, a conversation says
    /// what it says by itself.
    #[test]
    fn lines_that_are_known_change_nothing() {
        let long = seen(&"l".repeat(2000));
        let (a, b, c) = (seen("a"), seen("b"), seen("c"));
        let done = |count: usize| {
            format!(r#"{{"done":{{"nonce":"n","observations":{count},"elapsed_us":7}}}}"#)
        };
        let many: Vec<String> = (0..40).map(|n| seen(&n.to_string())).collect();
        let all: Vec<&String> = many.iter().collect();
        let some: Vec<&String> = [&all[..7], &all[20..25], &[&long], &all[26..]].concat();
        let orders: [&[&String]; 9] = [
            &all,
            &some,
            &all[1..],
            &[&a, &b, &long, &c],
            &[&a, &c, &long, &b],
            &[&c, &a, &b],
            &[&a, &a, &a],
            &[],
            &[&long, &long, &b],
        ];
        let texts: Vec<Vec<u8>> = orders
            .iter()
            .map(|order| {
                let end = done(order.len());
                let mut lines: Vec<&str> = order.iter().map(|line| line.as_str()).collect();
                lines.push(&end);
                written(&lines)
            })
            .collect();
        let mut known = Lines::default();
        for text in texts.iter().chain(texts.iter().rev()) {
            let (_, with) = read_with(text, &mut known).unwrap();
            let (_, alone) = read(text).unwrap();
            assert_eq!(with.observations, alone.observations);
            // A line that only begins as a known one does is another line.
            let longer = [&text[..text.len() - 1], b" x\n"].concat();
            assert!(read_with(&longer, &mut Lines::default()).is_err());
            let early: Vec<u8> = text.iter().copied().filter(|byte| *byte != b':').collect();
            assert!(read(&early).is_err());
        }
    }

    /// What is expected changes nothing either, whether it comes or not.
    #[test]
    fn lines_that_are_expected_change_nothing() {
        let lines = [seen("a"), seen("b"), seen("c")];
        let done = r#"{"done":{"nonce":"n","observations":3,"elapsed_us":7}}"#;
        let text = written(&[&lines[0], &lines[1], &lines[2], done]);
        let (_, alone) = read(&text).unwrap();
        for names in [&["a", "b", "c"][..], &["a", "x", "b"], &["c"], &[]] {
            let observations: Vec<Observation> = names
                .iter()
                .map(|name| Observation::new(Phase::Engine, name, State::Denied))
                .collect();
            let said = [("PR-NET-1", observations.as_slice())];
            let mut known = Lines::expecting(said.into_iter());
            let (_, with) = read_with(&text, &mut known).unwrap();
            assert_eq!(with.observations, alone.observations, "{names:?}");
        }
    }

    #[test]
    fn what_is_not_text_is_no_conversation() {
        let good = written(&[r#"{"done":{"nonce":"n","observations":0,"elapsed_us":7}}"#]);
        assert!(read(&good).is_ok());
        for (from, to) in [
            (&b"\"n\""[..], &b"\"\xff\""[..]),
            (b"{\"done", b"\n{\"done"),
        ] {
            let at = good
                .windows(from.len())
                .rposition(|part| part == from)
                .unwrap();
            let bad = [&good[..at], to, &good[at + from.len()..]].concat();
            assert!(read(&bad).is_err());
        }
    }

    #[test]
    fn observations_are_found_by_their_probe_in_their_order() {
        let probes = ["b", "a", "d"].map(str::to_owned).to_vec();
        let asked = Challenge {
            probes,
            ..challenge()
        };
        let mut transcript = Transcript::new();
        transcript.hear_hello(HELLO).unwrap();
        for (probe, operation) in [("b", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("d", "5")] {
            let line = seen(operation).replace("PR-NET-1", probe);
            transcript.hear(line.as_bytes(), &asked).unwrap();
        }
        let done = br#"{"done":{"nonce":"n","observations":5,"elapsed_us":7}}"#;
        transcript.hear(done, &asked).unwrap();
        let heard = transcript.end().unwrap();
        let mut by_probe = heard.by_probe();
        let mut found = |probe: &str| -> Vec<&str> {
            let own = by_probe.of(probe);
            own.map(|own| own.seen.operation.as_str()).collect()
        };
        for _ in 0..2 {
            assert_eq!((found("a"), found("b")), (vec!["3"], vec!["1", "2", "4"]));
            assert!(found("").is_empty() && found("c").is_empty());
            assert_eq!((found("b"), found("d")), (vec!["1", "2", "4"], vec!["5"]));
        }
    }

    #[test]
    fn an_end_that_did_not_come_is_no_end() {
        let mut transcript = Transcript::new();
        transcript.hear_hello(HELLO).unwrap();
        assert!(transcript.end().is_none());
    }

    #[test]
    fn what_no_prober_says_ends_the_run() {
        for (lines, wanted) in [
            (vec!["\u{1b}[2Jgarbage"], "line 2 is not a message"),
            (
                vec![r#"{"raw":{"name":"mountinfo","text":"a","extra":1}}"#],
                "line 2 is not",
            ),
            (
                vec![r#"{"raw":{"name":"passwords","text":"a"}}"#],
                "nobody asked for",
            ),
            (
                vec![r#"{"raw":{"name":"mountinfo","text":"a"}}"#; 2],
                "line 3: a kernel text came twice",
            ),
            (
                vec![
                    r#"{"observation":{"probe":"PR-X","seen":{"phase":"engine","operation":"o","state":"denied"}}}"#,
                ],
                "nobody asked for",
            ),
            (
                vec![r#"{"done":{"nonce":"m","observations":0,"elapsed_us":7}}"#],
                "the nonce is not",
            ),
            (
                vec![r#"{"done":{"nonce":"n","observations":3,"elapsed_us":7}}"#],
                "number of observations",
            ),
            (
                vec![r#"{"done":{"nonce":"n","observations":0,"elapsed_us":7}}"#; 2],
                "after its end",
            ),
            (
                vec![r#"{"refused":{"reason":"no\u001b[m"}}"#],
                "refused: no",
            ),
            (
                vec![r#"{"hello":{"protocol":1,"version":"0","missing":[]}}"#],
                "second greeting",
            ),
        ] {
            let mut transcript = Transcript::new();
            transcript.hear_hello(HELLO).unwrap();
            let error = lines
                .iter()
                .find_map(|line| transcript.hear(line.as_bytes(), &challenge()).err())
                .unwrap_or_else(|| panic!("{lines:?} was accepted"))
                .to_string();
            assert!(error.contains(wanted), "{error}");
            assert!(!error.contains('\u{1b}'), "{error:?}");
        }
        let error = Transcript::new()
            .hear_hello(br#"{"hello":{"protocol":9,"version":"0","missing":[]}}"#)
            .unwrap_err();
        assert!(error.to_string().contains("another version"));
    }
}
