//! What can be wrong at one place of `claims.toml` or of a packet.

use std::io;
use tki_evidence::strict::StrictError;
use tki_inspector::packet::{DocumentType, MAX_ITEMS};
use tki_text::printable;

/// Why a file cannot be an item.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// The file, or a directory on the way to it, is a link.
    #[error("{} is a symbolic link, and none is followed", printable(.0, 200))]
    Link(String),
    /// It is a directory.
    #[error("it is a directory")]
    Directory,
    /// Something on the way to it is no directory.
    #[error("{} is no directory", printable(.0, 200))]
    NoDirectory(String),
    /// It is a pipe, a socket or a device.
    #[error("it is not a regular file")]
    Special,
    /// It is larger than an item may be.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// All items together are larger than a packet may be.
    #[error("with it the items have more than {0} bytes")]
    Total(u64),
    /// The files that claims look into are held, and are too many bytes.
    #[error("with it the items that claims look into have more than {0} bytes")]
    Held(u64),
    /// A name in it cannot be one of an item's path.
    #[error("{} has a name that is not UTF-8", printable(.0, 200))]
    NotText(String),
    /// There are more files in it than a packet may have.
    #[error("there are more than {MAX_ITEMS} files in it")]
    Many,
    /// The system does not let it be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
}

/// Why a place that a claim names is not there.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    /// Lines of something that is no text.
    #[error("the item is not UTF-8 text, so that no quote stands in it")]
    NotText,
    /// A quote that stands nowhere.
    #[error("the quote stands nowhere in the item{}", near(*.words, .nearest))]
    Quote {
        /// How many of its first words stand together somewhere.
        words: usize,
        /// On which lines.
        nearest: Vec<(u64, u64)>,
    },
    /// A quote that stands at several places.
    #[error(
        "the quote stands at {} places, on {}: make it longer, or choose with `lines`",
        .0.len(),
        lines(.0)
    )]
    Several(Vec<(u64, u64)>),
    /// A quote that stands elsewhere.
    #[error("the quote does not stand on {}{}", lines(&[*.given]), elsewhere(.found))]
    Elsewhere {
        /// The lines that were given.
        given: (u64, u64),
        /// Where it does.
        found: Vec<(u64, u64)>,
    },
    /// A JSON pointer into something else.
    #[error("the item is {}, and a JSON pointer needs application/json", printable(.0, 80))]
    NotJson(String),
    /// A JSON pointer into what is no strict JSON.
    #[error("the item is no strict JSON: {0}")]
    Malformed(StrictError),
    /// A JSON pointer that leads nowhere.
    #[error("the item has nothing at {:?}; it has {:?}", printable(.pointer, 200), printable(.deepest, 200))]
    Pointer {
        /// The pointer.
        pointer: String,
        /// As far as it leads somewhere.
        deepest: String,
    },
    /// A step of what is no transcript.
    #[error("the item is of the type {}, and only a transcript has steps", name(*.0))]
    NoTranscript(DocumentType),
    /// A line of a transcript that is none.
    #[error("line {line} of the transcript is no strict JSON object with `step`: {problem}")]
    StepLine {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: StepProblem,
    },
    /// A step that is not there.
    #[error("the transcript has no step {step}; it has {}", steps(.known))]
    Step {
        /// The step.
        step: u64,
        /// Those that there are.
        known: Vec<u64>,
    },
    /// A step that is there more than once.
    #[error("the transcript has step {0} more than once")]
    StepTwice(u64),
}

/// What is wrong with a line of a transcript.
#[derive(Debug, thiserror::Error)]
pub enum StepProblem {
    /// It is no JSON.
    #[error("{}", printable(&.0.to_string(), 200))]
    Malformed(StrictError),
    /// It has no number.
    #[error("it has no number of a step")]
    NoStep,
}

/// What is wrong with what stands at a place of `claims.toml`.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// Another schema.
    #[error("is {:?}; expected {wanted:?}", printable(.found, 60))]
    Schema {
        /// The file's.
        found: String,
        /// The one that is read.
        wanted: &'static str,
    },
    /// Something must be said and is not.
    #[error("is missing: {0}")]
    Missing(Needed),
    /// A key that does not go with another.
    #[error("does not go with `{0}`")]
    NotWith(&'static str),
    /// Evidence with another name than evidence has.
    #[error("is no evidence of a bundle: its name does not end with .json")]
    NoEvidence,
    /// Two ways of saying where.
    #[error("says where in more than one way: give one of quote, json and step")]
    Wheres,
    /// Two things that are expected.
    #[error(
        "expects more than one thing: give one of equals, count, at_least, absent, exit, same_as \
         and accepted"
    )]
    Expectations,
    /// An item that none is.
    #[error("is {:?}, which is no item's id", printable(.0, 100))]
    NoItem(String),
    /// A number that JSON readers round.
    #[error("is beyond 2^53, where numbers are not exact in every reader")]
    Integer,
    /// A file that cannot be an item.
    #[error("is {:?}: {problem}", printable(.path, 200))]
    File {
        /// As it is written.
        path: String,
        /// Why not.
        problem: Unfit,
    },
    /// A place that is not there.
    #[error("is not there: {0}")]
    Absent(Absent),
    /// What the form of a packet does not allow.
    #[error("{}", printable(.text, 400))]
    Packet {
        /// In the words of the packet's own check.
        text: String,
    },
}

/// What must be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Needed {
    /// A file.
    #[error("name the item's file with `path`, or a bundle's evidence with `bundle`")]
    File,
    /// A document type.
    #[error("say what kind of document it is, such as \"report\" or \"other\"")]
    DocumentType,
    /// An extent.
    #[error("say \"complete\" or \"excerpt\", here or in [defaults]")]
    Extent,
    /// An authority.
    #[error("say who holds the original, KB, PG, NATIVE or LOCAL, here or in [defaults]")]
    Authority,
    /// A locator.
    #[error("say where the original is; only a LOCAL item has its path for that")]
    Locator,
    /// A time.
    #[error("say when it was taken from its source, here or in [defaults]")]
    CapturedAt,
    /// A person or program.
    #[error("say who took it from its source, here or in [defaults]")]
    CapturedBy,
    /// A quote for lines.
    #[error("`lines` chooses among the places of a `quote`")]
    Quote,
}

/// A document type as it is written.
fn name(document_type: DocumentType) -> String {
    let name = serde_json::to_value(document_type).ok();
    let name = name.as_ref().and_then(serde_json::Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// The most places that are shown.
const SHOWN: usize = 8;

fn lines(places: &[(u64, u64)]) -> String {
    let shown = places
        .iter()
        .take(SHOWN)
        .map(|(first, last)| match first == last {
            true => format!("line {first}"),
            false => format!("lines {first}-{last}"),
        });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if places.len() > SHOWN {
        text += ", …";
    }
    text
}

fn near(words: usize, nearest: &[(u64, u64)]) -> String {
    match (words, nearest) {
        (0, _) | (_, []) => String::new(),
        (1, places) => format!("; its first word stands on {}", lines(places)),
        (words, places) => format!("; its first {words} words stand on {}", lines(places)),
    }
}

fn elsewhere(found: &[(u64, u64)]) -> String {
    match found {
        [] => ", and nowhere else".to_owned(),
        found => format!("; it stands on {}", lines(found)),
    }
}

fn steps(known: &[u64]) -> String {
    let shown = known.iter().take(SHOWN).map(u64::to_string);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    match known.len() {
        0 => "none".to_owned(),
        number if number > SHOWN => {
            text += ", …";
            text
        }
        _ => text,
    }
}
