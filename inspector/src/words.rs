//! The vocabulary of the report: what can be said of a claim, of an item and of an audit's line.
//! There is no word for the packet as a whole, and none that lets anything go on.

use serde::{Deserialize, Serialize};

/// What a claim's evidence comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Adequacy {
    /// The evidence shows what is claimed.
    Adequate,
    /// It shows a part of it.
    Partial,
    /// A document says so, and nothing else does.
    ProseOnly,
    /// Nothing shows it.
    Unsupported,
    /// The evidence says otherwise.
    Contradicted,
    /// It shows what was.
    Stale,
    /// No packet could show it, or not by this evidence.
    OutOfScope,
}

impl Adequacy {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Adequate,
        Self::Partial,
        Self::ProseOnly,
        Self::Unsupported,
        Self::Contradicted,
        Self::Stale,
        Self::OutOfScope,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adequate => "ADEQUATE",
            Self::Partial => "PARTIAL",
            Self::ProseOnly => "PROSE_ONLY",
            Self::Unsupported => "UNSUPPORTED",
            Self::Contradicted => "CONTRADICTED",
            Self::Stale => "STALE",
            Self::OutOfScope => "OUT_OF_SCOPE",
        }
    }
}

/// Whether a line of a self-audit holds. It is about this report and about nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// It holds, with what shows it.
    Held,
    /// It does not.
    NotHeld,
    /// The packet has nothing that it could be about.
    NothingToHold,
}

impl Held {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::NotHeld => "not held",
            Self::NothingToHold => "nothing to hold",
        }
    }
}
