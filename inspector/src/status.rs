//! The ladder of statuses: specified is not authored, authored is not run, run is not attested,
//! attested is not accepted. Which word stands on which rung, and how far up which kind of
//! document can carry a claim, is data (`data/statuses.json`).

use crate::packet::DocumentType;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;
use serde::{Deserialize, Serialize};

/// The table as it is published.
pub const TEXT: &str = include_str!("../data/statuses.json");

/// How far something has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rung {
    /// Not on the ladder.
    None,
    /// Written down.
    Specified,
    /// The program or the configuration exists.
    Authored,
    /// It was executed.
    Run,
    /// The probes were run inside and passed.
    Attested,
    /// A verifier accepted the evidence.
    Accepted,
}

impl Rung {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Specified => "specified",
            Self::Authored => "authored",
            Self::Run => "run",
            Self::Attested => "attested",
            Self::Accepted => "accepted",
        }
    }
}

/// A status word.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// The word.
    pub word: String,
    /// Where it stands.
    pub rung: Rung,
    /// It says that something is not done.
    #[serde(default)]
    pub open: bool,
    /// Only the holder of an authority can say it.
    #[serde(default)]
    pub by_holder: bool,
    /// It may be said only after evidence was accepted.
    #[serde(default)]
    pub after_b4: bool,
    /// It says that nothing was changed.
    #[serde(default)]
    pub no_mutation: bool,
    /// It is a word of the original documents, and not one of ours.
    pub seed: bool,
    /// What it means.
    pub meaning: String,
}

/// How far up a kind of document carries a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// The kind.
    #[serde(rename = "type")]
    pub kind: DocumentType,
    /// So far.
    pub rung: Rung,
    /// Why.
    pub why: String,
}

/// The whole table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statuses {
    /// Always `tki-attest/statuses/v1`.
    pub schema: String,
    /// What it is.
    pub comment: String,
    /// The words.
    pub words: Vec<Word>,
    /// The kinds of documents.
    pub document_types: Vec<Reach>,
}

impl Statuses {
    /// The table that this program carries.
    pub fn built_in() -> &'static Self {
        static TABLE: OnceBox<Statuses> = OnceBox::new();
        TABLE.get_or_init(|| Box::new(serde_json::from_str(TEXT).expect("a test reads the table")))
    }

    /// What is known of a status word.
    pub fn word(&self, word: &str) -> Option<&Word> {
        self.words.iter().find(|known| known.word == word)
    }

    /// How far up a document of this kind carries a claim.
    pub fn reach(&self, kind: DocumentType) -> Rung {
        let known = self.document_types.iter().find(|known| known.kind == kind);
        known.map_or(Rung::None, |known| known.rung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn the_table_is_whole() {
        let table = Statuses::built_in();
        assert_eq!(table.schema, "tki-attest/statuses/v1");
        let words: BTreeSet<&str> = table.words.iter().map(|word| word.word.as_str()).collect();
        assert_eq!(words.len(), table.words.len());
        assert!(table.words.iter().all(|word| !word.meaning.is_empty()));
        let kinds: BTreeSet<DocumentType> = table
            .document_types
            .iter()
            .map(|known| known.kind)
            .collect();
        assert_eq!(kinds.len(), 14);
    }

    #[test]
    fn each_rung_is_above_the_one_before() {
        let rung = |word: &str| Statuses::built_in().word(word).unwrap().rung;
        let ladder = ["SPECIFIED", "AUTHORED", "RUN", "ATTESTED", "ACCEPTED"];
        assert!(ladder.windows(2).all(|pair| rung(pair[0]) < rung(pair[1])));
        assert!(rung("SPECIFIED_NOT_ATTESTED") < rung("ATTESTED"));
    }
}
