//! The packet: what is put before the inspector. `packet.json` names every item with its digest
//! and every claim with the places that it rests on; the items are files beside it.
//!
//! The types are the form. Everything in them is the packer's word, and bounded.

use crate::ids::{is_id, is_plain_text};
use crate::path;
use crate::status::Statuses;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use tki_evidence::request::is_hex_of_32_bytes;
use tki_evidence::strict::{self, StrictError};
use tki_evidence::time::{parse_rfc3339, parse_span};
use tki_text::printable;

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/packet/v1";

/// The packet's own file, beside its items.
pub const FILE: &str = "packet.json";

/// The most bytes of `packet.json`.
pub const MAX_BYTES: usize = 4 << 20;

/// The most items.
pub const MAX_ITEMS: usize = 4096;

/// The most claims.
pub const MAX_CLAIMS: usize = 2048;

/// The most places that one claim may rest on.
pub const MAX_PLACES: usize = 32;

/// The most items that one item may be derived from.
pub const MAX_DERIVED: usize = 32;

/// The most bytes of a claim's text or of a quote.
pub const MAX_TEXT: usize = 4096;

/// The scope that no packet can answer for.
pub const GLOBAL: &str = "global";

/// The scope of a claim about what the packet holds.
pub const PACKET: &str = "packet";

/// `packet.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Packet {
    /// Always `tki-attest/packet/v1`.
    pub schema: String,
    /// The packet's name.
    pub id: String,
    /// The moment that the packet is judged at; RFC 3339, UTC. No clock is asked.
    pub as_of: String,
    /// Its files.
    pub items: Vec<Item>,
    /// What is claimed.
    pub claims: Vec<Claim>,
}

/// One file of the packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name within the packet.
    pub id: String,
    /// Where it is, from the directory of `packet.json`: plain names divided by `/`.
    pub path: String,
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
    /// Their number.
    pub size: u64,
    /// What kind of file it is.
    pub media_type: String,
    /// What kind of document it is.
    pub document_type: DocumentType,
    /// Its revision; 0 if it has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: u64,
    /// The status that the document asserts, if it asserts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Asserted>,
    /// Whether it is all of the document.
    pub extent: Extent,
    /// The venue that it speaks of: `vps`, `ci` or `dev`; empty if it speaks of none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub venue: String,
    /// Where it is from.
    pub source: Source,
    /// The item that holds a signature over it: a DSSE envelope over an in-toto statement
    /// that names its SHA-256. Empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
}

/// What kind of document an item is. It decides how far up the ladder of statuses the item can
/// carry a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DocumentType {
    /// What shall be: a specification or a design.
    Specification,
    /// What shall be done.
    Plan,
    /// A table of contents.
    Index,
    /// What was found or decided, in prose.
    Report,
    /// A note on where things stand.
    Checkpoint,
    /// Instructions for the next actor, with commands.
    Packet,
    /// Program or configuration.
    Harness,
    /// A decision of somebody who may decide.
    Decision,
    /// A list as a program printed it.
    Listing,
    /// What was executed and what came of it: one JSON value per line, with `step` and `exit`.
    Transcript,
    /// Evidence of tki-attest.
    EvidenceBundle,
    /// A file that belongs to evidence of tki-attest.
    EvidenceArtifact,
    /// A DSSE envelope.
    Envelope,
    /// Anything else.
    Other,
}

/// Whether an item is all of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// All of it.
    Complete,
    /// A part.
    Excerpt,
}

/// A status that is asserted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Asserted {
    /// The status word, one of those in docs/inspector.md.
    pub word: String,
    /// What has that status, such as `B4'`.
    pub of: String,
    /// For what alone it has it, such as the scope of a waiver; empty if for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
}

/// Where an item is from. All of it is the packer's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Which authority holds the original.
    pub authority: Authority,
    /// Where in it.
    pub locator: String,
    /// When it was taken from there; RFC 3339, UTC.
    pub captured_at: String,
    /// By whom.
    pub captured_by: String,
    /// The items that it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived_from: Vec<String>,
}

/// Who holds an original, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Authority {
    /// A file of the packer's.
    Local,
    /// The system that the item speaks of.
    Native,
    /// The database.
    Pg,
    /// The knowledge base.
    Kb,
}

/// Something that is claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name within the packet.
    pub id: String,
    /// It, for a person.
    pub text: String,
    /// What kind of claim it is.
    pub kind: ClaimKind,
    /// The status that it asserts, if it asserts one. Its scope must be that of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Asserted>,
    /// For what it is claimed: `packet`, `global`, or a name such as that of a waiver's scope.
    pub scope: String,
    /// The venue that it speaks of: `vps`, `ci` or `dev`; empty if it speaks of none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub venue: String,
    /// In whose name it is claimed, where only that party can say so; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub holder: String,
    /// How old its evidence may be at `as_of`, such as `24h`; empty if of any age.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub within: String,
    /// The places that it rests on. All of them count.
    pub evidence: Vec<Place>,
}

/// What kind of claim it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// A document states it. A quote proves it.
    Says,
    /// The world is so. No quote proves it.
    Is,
}

/// A place in an item, and what must be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The item.
    pub item: String,
    /// Where in it; absent for the whole item, which only an evidence bundle is asked as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Locator>,
    /// What must be found there for a claim about the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// Where in an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Locator {
    /// A JSON pointer (RFC 6901) into an item of the media type `application/json`.
    Json(String),
    /// Lines of a text, with what stands there.
    Lines(Lines),
    /// The line of a transcript whose `step` is this.
    Step(u64),
}

/// Lines of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The first, from 1.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// What stands within them, to the letter; white space is folded.
    pub quote: String,
}

/// What must be found at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expect {
    /// This text, number or truth value.
    Equals(Scalar),
    /// An array or object with so many entries.
    Count(u64),
    /// A number that is no smaller, or an array or object with no fewer entries.
    AtLeast(i64),
    /// An array or object without this entry: among the elements, their `name` or `id`, or
    /// the keys. It shows nothing unless the item is complete.
    Absent(String),
    /// A transcript step that ended with this status.
    Exit(i64),
    /// The same value as at another place.
    SameAs(Other),
    /// An evidence bundle that the verifier inside accepts.
    Accepted(bool),
}

/// A text, a number or a truth value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Scalar {
    /// True or false.
    Truth(bool),
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// A place to compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// The item.
    pub item: String,
    /// The JSON pointer into it.
    pub json: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why a text is not a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Not strict JSON of this form.
    #[error("{FILE}: {}", printable(&.0.to_string(), 300))]
    Malformed(#[from] StrictError),
    /// Too long.
    #[error("{FILE} has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(usize),
    /// A field that does not hold what it should.
    #[error("{FILE}: {place} {problem}")]
    Field {
        /// Where, such as `items[3].path`.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

impl PacketError {
    /// A stable code such as `packet.malformed`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "packet.malformed",
            Self::TooLarge(_) => "packet.too-large",
            Self::Field { .. } => "packet.field",
        }
    }
}

impl Packet {
    /// Reads `packet.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, PacketError> {
        if bytes.len() > MAX_BYTES {
            return Err(PacketError::TooLarge(bytes.len()));
        }
        let packet: Packet = strict::parse_as(bytes)?;
        packet.check()?;
        Ok(packet)
    }

    /// The moment that it is judged at, in seconds since 1970.
    pub fn as_of(&self) -> u64 {
        parse_rfc3339(&self.as_of).unwrap_or(0)
    }

    /// The item with this id.
    pub fn item(&self, id: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }

    /// Everything about its form that the types do not say.
    pub fn check(&self) -> Result<(), PacketError> {
        let check = |ok: bool, place: &str, problem: String| match ok {
            true => Ok(()),
            false => Err(PacketError::Field {
                place: place.to_owned(),
                problem,
            }),
        };
        let got = |text: &str| format!("is {:?}", printable(text, 100));
        check(
            self.schema == SCHEMA,
            "schema",
            got(&self.schema) + "; expected " + SCHEMA,
        )?;
        check(is_id(&self.id), "id", got(&self.id) + &not_id())?;
        let is_time = |text: &str| parse_rfc3339(text).is_some();
        check(is_time(&self.as_of), "as_of", got(&self.as_of) + NOT_TIME)?;
        check(
            self.items.len() <= MAX_ITEMS,
            "items",
            format!(
                "has {} entries; at most {MAX_ITEMS} are read",
                self.items.len()
            ),
        )?;
        check(
            self.claims.len() <= MAX_CLAIMS,
            "claims",
            format!(
                "has {} entries; at most {MAX_CLAIMS} are read",
                self.claims.len()
            ),
        )?;
        let (mut ids, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for (index, item) in self.items.iter().enumerate() {
            let at = |field: &str| format!("items[{index}].{field}");
            check(is_id(&item.id), &at("id"), got(&item.id) + &not_id())?;
            check(
                ids.insert(&item.id),
                &at("id"),
                got(&item.id) + ", as another item's",
            )?;
            path::check(&item.path).map_err(|problem| PacketError::Field {
                place: at("path"),
                problem: format!("{}: {problem}", got(&item.path)),
            })?;
            check(
                item.path != FILE,
                &at("path"),
                "is the packet's own file".into(),
            )?;
            check(
                paths.insert(&item.path),
                &at("path"),
                got(&item.path) + ", as another item's",
            )?;
            check(
                is_hex_of_32_bytes(&item.sha256),
                &at("sha256"),
                got(&item.sha256) + "; expected 64 lower-case hex digits",
            )?;
            let plain = |text: &str| is_plain_text(text, 200);
            check(
                plain(&item.media_type) && item.media_type.contains('/'),
                &at("media_type"),
                got(&item.media_type) + "; expected a media type such as text/markdown",
            )?;
            check(
                is_venue(&item.venue),
                &at("venue"),
                got(&item.venue) + NOT_VENUE,
            )?;
            if let Some(status) = &item.status {
                self.check_status(status, &at("status"))?;
            }
            let source = &item.source;
            check(
                plain(&source.locator),
                &at("source.locator"),
                got(&source.locator) + NOT_TEXT,
            )?;
            check(
                plain(&source.captured_by),
                &at("source.captured_by"),
                got(&source.captured_by) + NOT_TEXT,
            )?;
            check(
                is_time(&source.captured_at),
                &at("source.captured_at"),
                got(&source.captured_at) + NOT_TIME,
            )?;
            check(
                source.derived_from.len() <= MAX_DERIVED,
                &at("source.derived_from"),
                format!(
                    "has {} entries; at most {MAX_DERIVED} are read",
                    source.derived_from.len()
                ),
            )?;
        }
        for (index, item) in self.items.iter().enumerate() {
            let place = format!("items[{index}].signature");
            let known = item.signature.is_empty() || ids.contains(&item.signature);
            check(known, &place, got(&item.signature) + NOT_ITEM)?;
        }
        let mut claims = BTreeSet::new();
        for (index, claim) in self.claims.iter().enumerate() {
            let at = |field: &str| format!("claims[{index}].{field}");
            check(is_id(&claim.id), &at("id"), got(&claim.id) + &not_id())?;
            check(
                claims.insert(&claim.id),
                &at("id"),
                got(&claim.id) + ", as another claim's",
            )?;
            let text = &claim.text;
            let fits = !text.is_empty() && text.len() <= MAX_TEXT;
            check(
                fits,
                &at("text"),
                format!("has {} bytes; 1 to {MAX_TEXT} are read", text.len()),
            )?;
            check(
                is_id(&claim.scope),
                &at("scope"),
                got(&claim.scope) + &not_id(),
            )?;
            check(
                is_venue(&claim.venue),
                &at("venue"),
                got(&claim.venue) + NOT_VENUE,
            )?;
            let holder = &claim.holder;
            check(
                holder.is_empty() || is_plain_text(holder, 200),
                &at("holder"),
                got(holder) + NOT_TEXT,
            )?;
            check(
                claim.within.is_empty() || parse_span(&claim.within).is_some(),
                &at("within"),
                got(&claim.within) + "; expected a span such as 24h or 7d",
            )?;
            if let Some(status) = &claim.status {
                self.check_status(status, &at("status"))?;
                check(
                    status.scope.is_empty(),
                    &at("status.scope"),
                    "is given; a claim has its scope in `scope`".into(),
                )?;
            }
            let places = &claim.evidence;
            check(
                places.len() <= MAX_PLACES,
                &at("evidence"),
                format!(
                    "has {} entries; at most {MAX_PLACES} are read",
                    places.len()
                ),
            )?;
            for (number, place) in places.iter().enumerate() {
                let at = |field: &str| format!("claims[{index}].evidence[{number}]{field}");
                check(
                    ids.contains(&place.item),
                    &at(".item"),
                    got(&place.item) + NOT_ITEM,
                )?;
                place
                    .check(&ids)
                    .map_err(|(field, problem)| PacketError::Field {
                        place: at(field),
                        problem: problem.to_owned(),
                    })?;
            }
        }
        Ok(())
    }

    fn check_status(&self, status: &Asserted, place: &str) -> Result<(), PacketError> {
        let refused = |field: &str, problem: String| {
            Err(PacketError::Field {
                place: format!("{place}.{field}"),
                problem,
            })
        };
        if Statuses::built_in().word(&status.word).is_none() {
            let word = printable(&status.word, 60);
            return refused(
                "word",
                format!("is {word:?}, which is no status word (docs/inspector.md)"),
            );
        }
        if !is_plain_text(&status.of, 100) {
            return refused(
                "of",
                format!("is {:?}{NOT_TEXT}", printable(&status.of, 100)),
            );
        }
        if !status.scope.is_empty() && !is_id(&status.scope) {
            return refused(
                "scope",
                format!("is {:?}{}", printable(&status.scope, 100), not_id()),
            );
        }
        Ok(())
    }
}

const NOT_TIME: &str = "; expected a time such as 2026-06-10T00:00:00Z";
const NOT_VENUE: &str = "; expected vps, ci, dev or nothing";
const NOT_TEXT: &str = "; expected one line of text";
const NOT_ITEM: &str = ", which is no item's id";

fn not_id() -> String {
    "; expected 1 to 64 letters, digits, dots, hyphens, underscores or primes".into()
}

fn is_venue(text: &str) -> bool {
    matches!(text, "" | "vps" | "ci" | "dev")
}

impl Place {
    /// The field and what is wrong with it.
    fn check(&self, ids: &BTreeSet<&String>) -> Result<(), (&'static str, &'static str)> {
        match &self.at {
            Some(Locator::Json(pointer)) => check_pointer(pointer, ".at.json")?,
            Some(Locator::Lines(lines)) => {
                if lines.first == 0 || lines.last < lines.first {
                    return Err((
                        ".at.lines",
                        "must go from a first line, at least 1, to a last",
                    ));
                }
                if lines.quote.trim().is_empty() || lines.quote.len() > MAX_TEXT {
                    return Err((".at.lines.quote", "must have 1 to 4096 bytes"));
                }
            }
            Some(Locator::Step(_)) | None => {}
        }
        let fits = match (&self.at, &self.expect) {
            (_, None) => true,
            (Some(Locator::Json(_)), Some(expect)) => {
                !matches!(expect, Expect::Exit(_) | Expect::Accepted(_))
            }
            (Some(Locator::Step(_)), Some(expect)) => matches!(expect, Expect::Exit(_)),
            (Some(Locator::Lines(_)), Some(_)) => false,
            (None, Some(expect)) => matches!(expect, Expect::Accepted(_)),
        };
        if !fits {
            let problem = "does not go with this place: a JSON pointer takes equals, count, \
                           at_least, absent and same_as, a step takes exit, a whole bundle takes \
                           accepted, and lines take none";
            return Err((".expect", problem));
        }
        match &self.expect {
            Some(Expect::SameAs(other)) if !ids.contains(&other.item) => {
                Err((".expect.same_as.item", "is no item's id"))
            }
            Some(Expect::SameAs(other)) => check_pointer(&other.json, ".expect.same_as.json"),
            _ => Ok(()),
        }
    }
}

fn check_pointer(pointer: &str, field: &'static str) -> Result<(), (&'static str, &'static str)> {
    let has_form = pointer.is_empty() || pointer.starts_with('/');
    match has_form && pointer.len() <= 1024 {
        true => Ok(()),
        false => Err((field, "is no JSON pointer: empty, or beginning with `/`")),
    }
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
