//! `claims.toml`: what a packer writes by hand. The types are the form.

use crate::clock;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use tki_inspector::packet::{
    Asserted, Authority, ClaimKind, DocumentType, Extent, Other, PACKET, Scalar,
};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/claims/v1";

/// The usual name of the file.
pub const FILE: &str = "claims.toml";

/// The most bytes of it.
pub const MAX_BYTES: u64 = 4 << 20;

/// A `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Always `tki-attest/claims/v1`.
    pub schema: String,
    /// The packet's name.
    pub id: String,
    /// The moment that the packet is judged at, or `now`.
    #[serde(default)]
    pub as_of: Option<Time>,
    /// What items say that do not say it themselves.
    #[serde(default)]
    pub defaults: Defaults,
    /// The files.
    #[serde(default, rename = "item")]
    pub items: Vec<ItemForm>,
    /// What is claimed.
    #[serde(default, rename = "claim")]
    pub claims: Vec<ClaimForm>,
}

/// What items say that do not say it themselves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Who holds the originals.
    #[serde(default)]
    pub authority: Option<Authority>,
    /// When they were taken from there.
    #[serde(default)]
    pub captured_at: Option<Time>,
    /// By whom.
    #[serde(default)]
    pub captured_by: Option<String>,
    /// Whether they are all of their documents.
    #[serde(default)]
    pub extent: Option<Extent>,
}

/// A file, or a bundle of evidence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemForm {
    /// Its name within the packet.
    pub id: String,
    /// Where it is, from the directory.
    #[serde(default)]
    pub path: Option<String>,
    /// Instead of `path`: the evidence file of a bundle, which is packed with its artifacts and
    /// its envelope.
    #[serde(default)]
    pub bundle: Option<String>,
    /// What kind of file it is, where its name and content do not tell.
    #[serde(default)]
    pub media_type: Option<String>,
    /// What kind of document it is.
    #[serde(default)]
    pub document_type: Option<DocumentType>,
    /// Its revision.
    #[serde(default)]
    pub revision: u64,
    /// The status that it asserts.
    #[serde(default)]
    pub status: Option<Asserted>,
    /// Whether it is all of the document.
    #[serde(default)]
    pub extent: Option<Extent>,
    /// The venue that it speaks of.
    #[serde(default)]
    pub venue: String,
    /// Who holds the original.
    #[serde(default)]
    pub authority: Option<Authority>,
    /// Where in it.
    #[serde(default)]
    pub locator: Option<String>,
    /// When it was taken from there.
    #[serde(default)]
    pub captured_at: Option<Time>,
    /// By whom.
    #[serde(default)]
    pub captured_by: Option<String>,
    /// The items that it was made from.
    #[serde(default)]
    pub derived_from: Vec<String>,
    /// The item that holds a signature over it.
    #[serde(default)]
    pub signature: String,
}

/// Something that is claimed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimForm {
    /// Its name within the packet.
    pub id: String,
    /// It, for a person.
    pub text: String,
    /// `says` or `is`.
    pub kind: ClaimKind,
    /// The status that it asserts.
    #[serde(default)]
    pub status: Option<Asserted>,
    /// For what it is claimed.
    #[serde(default = "packet")]
    pub scope: String,
    /// The venue that it speaks of.
    #[serde(default)]
    pub venue: String,
    /// In whose name it is claimed.
    #[serde(default)]
    pub holder: String,
    /// How old its evidence may be.
    #[serde(default)]
    pub within: String,
    /// The places that it rests on.
    #[serde(default)]
    pub evidence: Vec<PlaceForm>,
}

/// A place in an item: at most one of `quote`, `json` and `step`, and at most one expectation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceForm {
    /// The item.
    pub item: String,
    /// What stands there.
    #[serde(default)]
    pub quote: Option<String>,
    /// On which lines, if it stands at several places: the first and the last.
    #[serde(default)]
    pub lines: Option<[u64; 2]>,
    /// A JSON pointer.
    #[serde(default)]
    pub json: Option<String>,
    /// A step of a transcript.
    #[serde(default)]
    pub step: Option<u64>,
    /// The value there is this.
    #[serde(default)]
    pub equals: Option<Scalar>,
    /// It has so many entries.
    #[serde(default)]
    pub count: Option<u64>,
    /// It is no smaller.
    #[serde(default)]
    pub at_least: Option<i64>,
    /// It has no such entry.
    #[serde(default)]
    pub absent: Option<String>,
    /// The step ended with this status.
    #[serde(default)]
    pub exit: Option<i64>,
    /// The value there is the same as at another place.
    #[serde(default)]
    pub same_as: Option<Other>,
    /// The bundle is accepted.
    #[serde(default)]
    pub accepted: Option<bool>,
}

fn packet() -> String {
    PACKET.to_owned()
}

/// The moment that a packet is judged at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// When it is packed, by this host's clock.
    Now,
    /// A moment that was given, as it was written.
    At(String),
}

impl AsOf {
    /// `now`, or anything else.
    pub fn of(text: &str) -> Self {
        match text {
            "now" => Self::Now,
            text => Self::At(text.to_owned()),
        }
    }

    /// It as a packet has it.
    pub fn text(&self) -> String {
        match self {
            Self::Now => clock::rfc3339(clock::now()),
            Self::At(text) => text.clone(),
        }
    }
}

/// A time as text or as TOML's own form of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time(pub String);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a time such as 2026-06-10T12:00:00Z")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                Ok(Time(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Time, A::Error> {
                let time = toml::value::Datetime::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Time(time.to_string()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_of(text: &str) -> Result<Option<Time>, toml::de::Error> {
        let text = format!("schema = \"{SCHEMA}\"\nid = \"p\"\nas_of = {text}\n");
        toml::from_str::<Claims>(&text).map(|claims| claims.as_of)
    }

    #[test]
    fn a_time_is_text_or_tomls_own() {
        let noon = Some(Time("2026-06-10T12:00:00Z".into()));
        assert_eq!(as_of("\"2026-06-10T12:00:00Z\"").unwrap(), noon);
        assert_eq!(as_of("2026-06-10T12:00:00Z").unwrap(), noon);
        assert!(
            as_of("12")
                .unwrap_err()
                .message()
                .contains("a time such as")
        );
        assert!(as_of("{ a = 1 }").is_err());
        assert_eq!(AsOf::of("now"), AsOf::Now);
        assert_eq!(AsOf::of("then").text(), "then");
    }
}
