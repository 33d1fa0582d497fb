//! The rules of adequacy, as data: `data/rules.json` has their texts, and [`Rule`] a name for
//! each that the classifier can use. Their order is the order in which they decide.

use crate::words::Adequacy;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;
use serde::{Deserialize, Serialize};
use tki_evidence::stamp::sha256_hex;

/// The rules as they are published.
pub const TEXT: &str = include_str!("../data/rules.json");

/// A rule by name, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[allow(missing_docs)]
pub enum Rule {
    AdScopeGlobal,
    AdScopeWaiver,
    AdNoEvidence,
    AdUnusable,
    AdMutation,
    AdFalse,
    AdBundleRejected,
    AdStatusContradicted,
    AdSuperseded,
    AdOld,
    AdVenue,
    AdBuild,
    AdAuthority,
    AdBundleBlocked,
    AdAbsence,
    AdNotThere,
    AdProse,
    AdOverclaim,
    AdSome,
    AdExcerpt,
    AdLocal,
    AdSays,
    AdBundleAccepted,
    AdIs,
}

/// What a rule says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The rule.
    pub id: Rule,
    /// What a claim comes to when it decides.
    pub verdict: Adequacy,
    /// The original documents leave it open.
    pub ours: bool,
    /// What kind of blocker it makes of the claim; `NONE` if none.
    pub class: String,
    /// Who can do something about it.
    pub owner: String,
    /// When it fits.
    pub when: String,
    /// Why it is a rule.
    pub why: String,
    /// What to do.
    pub next: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "schema")]
    _schema: String,
    #[serde(rename = "comment")]
    _comment: String,
    rules: Vec<Text>,
}

/// All rules, in the order in which they decide.
pub fn all() -> &'static [Text] {
    static RULES: OnceBox<Vec<Text>> = OnceBox::new();
    RULES.get_or_init(|| {
        let file: File = serde_json::from_str(TEXT).expect("a test reads the rules");
        Box::new(file.rules)
    })
}

/// SHA-256 (hex) of the rules' file.
pub fn sha256() -> String {
    sha256_hex(TEXT.as_bytes())
}

impl Rule {
    /// What it says.
    pub fn text(self) -> &'static Text {
        let found = all().iter().find(|text| text.id == self);
        found.expect("a test finds every rule in the file")
    }

    /// Its name.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stands_in_the_file_and_in_its_order() {
        let ids: Vec<Rule> = all().iter().map(|text| text.id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        // The last one of the list, and no gap before it.
        assert_eq!(ids.len(), Rule::AdIs as usize + 1);
        assert_eq!(Rule::AdScopeGlobal.name(), "AD-SCOPE-GLOBAL");
        for text in all() {
            assert!(
                !text.when.is_empty() && !text.why.is_empty(),
                "{:?}",
                text.id
            );
            let adequate = text.verdict == Adequacy::Adequate;
            assert_eq!(adequate, text.class == "NONE", "{:?}", text.id);
            assert_eq!(adequate, text.next.is_empty(), "{:?}", text.id);
        }
    }
}
