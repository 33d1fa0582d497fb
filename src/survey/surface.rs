//! A surface: somewhere that a disposable container might run, with what was
//! found out about it. The columns are those of the surveys that people wrote
//! by hand.

use crate::survey::call::Call;
use serde::Serialize;

/// An answer to "can it".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Can {
    /// `yes`, `no` or `not tried`.
    pub answer: Answer,
    /// Why.
    pub why: String,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Yes,
    /// It was refused, or there is nobody to ask.
    No,
    /// Nobody asked.
    NotTried,
}

impl Answer {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Yes => "YES",
            Answer::No => "NO",
            Answer::NotTried => "not tried",
        }
    }
}

impl Can {
    /// It can, as was seen.
    pub fn yes(why: impl Into<String>) -> Self {
        Self::with(Answer::Yes, why)
    }

    /// It cannot.
    pub fn no(why: impl Into<String>) -> Self {
        Self::with(Answer::No, why)
    }

    /// Nobody asked.
    pub fn not_tried(why: impl Into<String>) -> Self {
        Self::with(Answer::NotTried, why)
    }

    /// An answer and why.
    pub fn with(answer: Answer, why: impl Into<String>) -> Self {
        Self {
            answer,
            why: why.into(),
        }
    }

    /// It was done.
    pub fn is_yes(&self) -> bool {
        self.answer == Answer::Yes
    }
}

/// What to do with a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It runs the sandbox, and a claim of an approved venue is plausible.
    Use,
    /// It runs the sandbox, but not where B4′ evidence may come from.
    DevelopmentOnly,
    /// Another operator can run it: a packet is to be handed over.
    Prepare,
    /// It tells something, and runs nothing.
    InspectOnly,
    /// It is there and cannot be used.
    Reject,
    /// It is not there.
    Absent,
}

impl Decision {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Use => "USE",
            Decision::DevelopmentOnly => "DEVELOPMENT ONLY",
            Decision::Prepare => "PREPARE",
            Decision::InspectOnly => "INSPECT ONLY",
            Decision::Reject => "REJECT",
            Decision::Absent => "ABSENT",
        }
    }
}

/// What stands in the way, where a person could remove it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing, or nothing that anybody here could.
    #[default]
    Other,
    /// The engine lets itself be looked at and no more.
    ReadOnly,
    /// Its socket is for others.
    Permission,
    /// `--read-only`.
    NotPermitted,
}

/// How `run` would use a surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Use {
    /// `docker`, `podman`, `embedded`, `bwrap`.
    pub engine: &'static str,
    /// Its address, if it must be named.
    pub host: Option<String>,
    /// The claim that is plausible there: `vps` or `ci`.
    pub venue: Option<&'static str>,
}

impl Use {
    /// An engine, before anything is known of the place.
    pub fn of(engine: &'static str, host: Option<String>) -> Self {
        Self {
            engine,
            host,
            venue: None,
        }
    }
}

/// A surface and what was found out about it.
#[derive(Clone, Debug, Serialize)]
pub struct Surface {
    /// `S1`, `S2`, …
    pub id: String,
    /// What it is.
    pub surface: String,
    /// Where it is: `this host`, `CI`, `another host`, `operator`.
    pub venue_type: &'static str,
    /// Whether evidence from it may count, by the rules on venues.
    pub approved: String,
    /// A disposable container.
    pub can_run: Can,
    /// Files that come back.
    pub can_write_files: Can,
    /// What the container says.
    pub can_collect_logs: Can,
    /// What could happen to others.
    pub production_risk: String,
    /// What is missing.
    pub permission_gap: String,
    /// What to do with it.
    pub decision: Decision,
    /// Why, or how.
    pub decision_note: String,
    /// What stands in the way.
    #[serde(skip)]
    pub obstacle: Obstacle,
    /// The image was loaded there, and stays.
    #[serde(skip)]
    pub loaded: bool,
    /// How `run` would use it.
    pub usable_as: Option<Use>,
    /// Every call and its result.
    pub evidence: Vec<Call>,
}

impl Surface {
    /// A surface that is not there.
    pub fn absent(surface: impl Into<String>, evidence: Vec<Call>) -> Self {
        Self {
            id: String::new(),
            surface: surface.into(),
            venue_type: "this host",
            approved: "-".into(),
            can_run: Can::no("it is not there"),
            can_write_files: Can::no("it is not there"),
            can_collect_logs: Can::no("it is not there"),
            production_risk: "none".into(),
            permission_gap: "it is not installed or does not listen".into(),
            decision: Decision::Absent,
            decision_note: String::new(),
            obstacle: Obstacle::Other,
            loaded: false,
            usable_as: None,
            evidence,
        }
    }
}
