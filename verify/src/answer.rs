//! Request and times: is this the answer to the verifier's question, and is it
//! recent? The clock is the one that was handed in.

use crate::checks::{Checks, truth};
use crate::{Inputs, Outcome};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use tki_evidence::derive;
use tki_evidence::described::names::is_run_id;
use tki_evidence::evidence::Evidence;
use tki_evidence::request::Request;
use tki_evidence::step_code::StepCode;
use tki_evidence::time::SKEW;
use tki_evidence::time::{parse_rfc3339, rfc3339};
use tki_evidence::wire::LONGEST_RUN;

/// The first moment of the year in which evidence was first written.
const EARLIEST: u64 = 1_767_225_600;

/// How long a run may go on when its time is over, in seconds: until its containers
/// are gone.
const CLEAN_UP: u64 = 30;

/// A time that was given instead of the clock's is said loudly.
pub fn clock(checks: &mut Checks, inputs: &Inputs) {
    if inputs.clock.given {
        checks.add(
            StepCode::Clock,
            Outcome::NotChecked,
            "the verifier's clock",
            format!("{} was given with --verify-time", rfc3339(inputs.clock.now)),
            "--verify-time",
            "this says what a verification would have come to then, not what it comes to now",
        );
    }
}

/// `nonce` is that of the recorded conversation, if it could be read.
pub fn request(checks: &mut Checks, evidence: &Evidence, nonce: Option<&str>, inputs: &Inputs) {
    let (outcome, got) = match (&inputs.request, &evidence.request) {
        (None, None) => (Outcome::NotChecked, "no request was given".to_owned()),
        (None, Some(bound)) if nonce.is_some_and(|nonce| nonce != bound.nonce) => (
            Outcome::False,
            "the conversation carries another nonce than the evidence".to_owned(),
        ),
        (None, Some(bound)) => (
            Outcome::NotChecked,
            format!("it answers request {}, which was not given", bound.sha256),
        ),
        (Some(_), None) => (Outcome::Blocked, "the run answers no request".to_owned()),
        (Some((request, sha256)), Some(bound)) => {
            if bound.sha256 != *sha256 {
                let other = format!("it answers another request, {}", bound.sha256);
                (Outcome::Blocked, other)
            } else if bound.nonce != request.nonce {
                (
                    Outcome::False,
                    "it names another nonce than the request".to_owned(),
                )
            } else {
                answered(evidence, nonce, request, inputs)
            }
        }
    };
    checks.add(
        StepCode::Request,
        outcome,
        "an answer to the verifier's own request, as asked and in time",
        got,
        "request",
        "give the request that you wrote with --request FILE; if it has run out, write a new one \
         and ask for a new run",
    );
}

/// The nonce came back; was it asked for what was run, and is it in time?
fn answered(
    evidence: &Evidence,
    nonce: Option<&str>,
    request: &Request,
    inputs: &Inputs,
) -> (Outcome, String) {
    let chosen = derive::chosen_profile(evidence).unwrap_or_default();
    for (what, asked, got) in [
        ("venue", &request.venue, &evidence.venue),
        ("image", &request.image_digest, &evidence.image_digest),
        ("seccomp profile", &request.seccomp_sha256, &chosen),
    ] {
        if asked != got {
            return (
                Outcome::False,
                format!("{what}: asked for {asked}, got {got}"),
            );
        }
    }
    let applied = inputs.matrix_sha256();
    if request.matrix_sha256 != applied {
        let why = format!(
            "matrix {} was asked for, {applied} is applied",
            request.matrix_sha256
        );
        return (Outcome::Blocked, why);
    }
    match nonce {
        None => {
            let why =
                "the conversation is not there to show that the nonce went into the container";
            return (Outcome::Blocked, why.into());
        }
        Some(nonce) if nonce != request.nonce => {
            return (
                Outcome::False,
                "the conversation carries another nonce".into(),
            );
        }
        Some(_) => {}
    }
    let times = [
        &request.issued,
        &request.not_after,
        &evidence.started,
        &evidence.finished,
    ];
    let [Some(issued), Some(not_after), Some(started), Some(finished)] =
        times.map(|time| parse_rfc3339(time))
    else {
        return (Outcome::False, "a time that is none".into());
    };
    if started + SKEW < issued {
        let why = format!(
            "stale: run at {}, before it was asked for",
            evidence.started
        );
        (Outcome::Blocked, why)
    } else if finished > not_after {
        let why = format!(
            "stale: run at {}, after {}",
            evidence.finished, request.not_after
        );
        (Outcome::Blocked, why)
    } else if inputs.clock.now > not_after {
        // When it was run is the venue's word; when it was handed over is not.
        let why = format!(
            "stale: it is {}, and answers counted until {}",
            rfc3339(inputs.clock.now),
            request.not_after
        );
        (Outcome::Blocked, why)
    } else {
        (
            Outcome::Ok,
            format!("answered at {}, in time", evidence.finished),
        )
    }
}

/// The run's id and the order of its times, and how long ago they are.
pub fn times(checks: &mut Checks, evidence: &Evidence, inputs: &Inputs) {
    let (started, finished) = (&evidence.started, &evidence.finished);
    let parsed = parse_rfc3339(started).zip(parse_rfc3339(finished));
    let wrong = parsed.map_or(Some("a time that is none"), |times| {
        why_not(evidence, times)
    });
    checks.add(
        StepCode::Time,
        truth(wrong.is_none()),
        "an id of that time, and a run no longer than one can be",
        match wrong {
            Some(why) => format!("{why}: {started} to {finished}, {}", evidence.run_id),
            None => format!("{started} to {finished}"),
        },
        "run_id, started, finished",
        "the times contradict each other: ask for a new run",
    );
    let now = inputs.clock.now;
    let most = inputs.max_age();
    let expected = match most {
        Some(most) => format!("started at most {most} seconds ago, and not in the future"),
        None => "finished not in the future".into(),
    };
    let (outcome, got) = match parsed {
        None => (Outcome::Blocked, "it is not known when".to_owned()),
        Some((_, finished)) if finished > now.saturating_add(SKEW) => (
            Outcome::Blocked,
            format!("{} seconds in the future", finished - now),
        ),
        Some((started, _)) => {
            let age = now.saturating_sub(started);
            let outcome = match most {
                Some(most) if age > most => Outcome::Blocked,
                _ => Outcome::Ok,
            };
            (outcome, format!("{age} seconds ago"))
        }
    };
    checks.add(
        StepCode::Age,
        outcome,
        expected,
        got,
        "started, finished",
        "ask for a new run, or see which of the two clocks is wrong",
    );
}

/// Why no run has these times, if none has.
fn why_not(evidence: &Evidence, (started, finished): (u64, u64)) -> Option<&'static str> {
    if started > finished {
        Some("it ended before it began")
    } else if started < EARLIEST {
        Some("there was no evidence then")
    } else if finished - started > LONGEST_RUN + CLEAN_UP {
        Some("no run takes that long")
    } else if !is_run_id(&evidence.run_id, started) {
        Some("the run's id is none of that time")
    } else {
        None
    }
}
