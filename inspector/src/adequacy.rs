//! The evidence-adequacy classifier (Article 14): what a claim's evidence comes to, by the first
//! rule of `data/rules.json` that fits.

use crate::bundle::Judged;
use crate::packet::{
    Authority, Claim, ClaimKind, DocumentType, Expect, GLOBAL, Item, Locator, Place,
};
use crate::places::{Case, Looked};
use crate::record::{Records, contradicts, shown};
use crate::report::{ClaimResult, PlaceResult};
use crate::rules::Rule;
use crate::status::{Rung, Statuses, Word};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use tki_evidence::time::{parse_rfc3339, parse_span};
use tki_evidence::verification::Decision;

/// Judges every claim of a packet, in its order, as long as there is time; `None` if there was
/// not enough.
pub fn classify(
    case: &Case,
    records: &Records,
    has_time: &mut dyn FnMut() -> bool,
) -> Option<Vec<ClaimResult>> {
    let claims = case.packet.claims.iter();
    let judge = |claim| has_time().then(|| one(case, records, claim));
    claims.map(judge).collect()
}

fn one(case: &Case, records: &Records, claim: &Claim) -> ClaimResult {
    let look = |place: &Place| Some((place.clone(), case.look(place)?));
    let looked: Vec<(Place, Looked)> = claim.evidence.iter().filter_map(look).collect();
    let question = Question {
        case,
        records,
        claim,
        word: claim
            .status
            .as_ref()
            .and_then(|status| Statuses::built_in().word(&status.word)),
        looked: &looked,
    };
    let (rule, detail) = question.decide();
    let text = rule.text();
    let asserts = claim.status.as_ref();
    ClaimResult {
        id: claim.id.clone(),
        text: claim.text.clone(),
        kind: claim.kind,
        asserts: asserts.map_or(String::new(), |status| {
            format!("{} of {}", status.word, status.of)
        }),
        verdict: text.verdict,
        rule,
        reason: match detail.is_empty() {
            true => text.why.clone(),
            false => format!("{} ({detail})", text.why),
        },
        places: looked
            .iter()
            .map(|(place, looked)| PlaceResult {
                place: place.clone(),
                holds: looked.holds,
                found: looked.found.clone(),
            })
            .collect(),
    }
}

/// Whether a rule fits, and what made it fit.
type Fits<'a> = fn(&Question<'a>) -> Option<String>;

/// A claim with everything that decides about it.
struct Question<'a> {
    case: &'a Case<'a>,
    records: &'a Records<'a>,
    claim: &'a Claim,
    word: Option<&'static Word>,
    looked: &'a [(Place, Looked)],
}

impl<'a> Question<'a> {
    /// The first rule that fits, with what made it fit.
    fn decide(&self) -> (Rule, String) {
        let rules: [(Rule, Fits<'a>); 22] = [
            (Rule::AdScopeGlobal, Self::is_global),
            (Rule::AdScopeWaiver, Self::is_beyond_its_waiver),
            (Rule::AdNoEvidence, Self::has_no_evidence),
            (Rule::AdUnusable, Self::has_nothing_usable),
            (Rule::AdMutation, Self::hides_a_mutation),
            (Rule::AdFalse, Self::is_false),
            (Rule::AdBundleRejected, Self::has_a_rejected_bundle),
            (Rule::AdStatusContradicted, Self::contradicts_the_record),
            (Rule::AdSuperseded, Self::is_superseded),
            (Rule::AdOld, Self::is_old),
            (Rule::AdVenue, Self::confuses_venues),
            (Rule::AdBuild, Self::builds_too_early),
            (Rule::AdAuthority, Self::lacks_its_holder),
            (Rule::AdBundleBlocked, Self::has_a_blocked_bundle),
            (Rule::AdAbsence, Self::looks_for_absence_in_a_part),
            (Rule::AdNotThere, Self::has_nothing_there),
            (Rule::AdProse, Self::is_prose),
            (Rule::AdOverclaim, Self::claims_too_much),
            (Rule::AdSome, Self::holds_in_part),
            (Rule::AdExcerpt, Self::counts_in_a_part),
            (Rule::AdLocal, Self::is_local),
            (Rule::AdSays, Self::is_said),
        ];
        for (rule, fits) in rules {
            if let Some(detail) = fits(self) {
                return (rule, detail);
            }
        }
        match self.bundles().any(|(_, judged)| is_accepted(judged)) {
            true => (Rule::AdBundleAccepted, String::new()),
            false => (Rule::AdIs, String::new()),
        }
    }

    fn is_about_the_world(&self) -> bool {
        self.claim.kind == ClaimKind::Is
    }

    fn item(&self, looked: &Looked) -> &'a Item {
        &self.case.packet.items[looked.item]
    }

    /// The places in items that stand.
    fn usable(&self) -> impl Iterator<Item = &'a (Place, Looked)> + use<'a, '_> {
        let stands = |(_, looked): &&(Place, Looked)| self.case.standings[looked.item].usable;
        self.looked.iter().filter(stands)
    }

    fn holding(&self) -> impl Iterator<Item = &'a (Place, Looked)> + use<'a, '_> {
        self.usable().filter(|(_, looked)| looked.holds)
    }

    /// The bundles that are asked as a whole.
    fn bundles(&self) -> impl Iterator<Item = (&'a (Place, Looked), &'a Judged)> + use<'a, '_> {
        let asked = self.usable().filter(|(place, _)| place.at.is_none());
        asked.filter_map(|one| Some((one, self.case.bundles.get(&one.1.item)?)))
    }

    /// The bundles that should be accepted.
    fn wanted(&self) -> impl Iterator<Item = (&'a (Place, Looked), &'a Judged)> + use<'a, '_> {
        let wanted = |place: &Place| matches!(place.expect, Some(Expect::Accepted(true)));
        self.bundles().filter(move |((place, _), _)| wanted(place))
    }

    fn is_global(&self) -> Option<String> {
        (self.claim.scope == GLOBAL).then(String::new)
    }

    fn is_beyond_its_waiver(&self) -> Option<String> {
        let (word, status) = (self.word?, self.claim.status.as_ref()?);
        if !word.by_holder {
            return None;
        }
        let items = self.case.packet.items.iter().enumerate();
        let rests_on = |index: usize| self.looked.iter().any(|(_, looked)| looked.item == index);
        let records: Vec<(&Item, bool)> = items
            .filter(|(index, _)| self.case.standings[*index].usable)
            .filter_map(|(index, item)| {
                let said = item.status.as_ref().filter(|said| said.word == word.word)?;
                let is_of = said.of == status.of;
                let within = said.scope.is_empty() || said.scope == self.claim.scope;
                (is_of || rests_on(index)).then_some((item, is_of && within))
            })
            .collect();
        match records.iter().any(|(_, fits)| *fits) {
            true => None,
            false => records.first().map(|(item, _)| {
                let said = item.status.as_ref();
                let (of, scope) =
                    said.map_or(("", ""), |said| (said.of.as_str(), said.scope.as_str()));
                format!("{} is about {of} for {scope:?}", item.id)
            }),
        }
    }

    fn has_no_evidence(&self) -> Option<String> {
        self.looked.is_empty().then(String::new)
    }

    fn has_nothing_usable(&self) -> Option<String> {
        self.usable().next().is_none().then(|| self.found())
    }

    fn found(&self) -> String {
        let first = self.looked.first();
        first.map_or(String::new(), |(place, looked)| {
            format!("{}: {}", place.item, looked.found)
        })
    }

    fn hides_a_mutation(&self) -> Option<String> {
        let mut differing = self.usable().filter(|(_, looked)| looked.differs);
        let (place, looked) = differing.next()?;
        Some(format!("{}: {}", place.item, looked.found))
    }

    fn is_false(&self) -> Option<String> {
        let current = |looked: &Looked| !self.case.standings[looked.item].superseded;
        let facts = || {
            self.usable()
                .filter(|(_, looked)| looked.is_fact && current(looked))
        };
        let order = |one: &&(Place, Looked), other: &&(Place, Looked)| self.order(&one.1, &other.1);
        let worst = facts()
            .filter(|(_, looked)| looked.is_false)
            .max_by(order)?;
        let best = facts().filter(|(_, looked)| looked.holds).max_by(order);
        let outranked = best.is_some_and(|best| order(&best, &worst) == Ordering::Greater);
        (!outranked).then(|| format!("{}: {}", worst.0.item, worst.1.found))
    }

    /// Which of two items stands against the other.
    fn order(&self, one: &Looked, other: &Looked) -> Ordering {
        let authority = |looked: &Looked| self.case.standings[looked.item].authority;
        let captured = |looked: &Looked| parse_rfc3339(&self.item(looked).source.captured_at);
        let (first, second) = (self.item(one), self.item(other));
        let by_revision = match first.source.locator == second.source.locator {
            true => first.revision.cmp(&second.revision),
            false => Ordering::Equal,
        };
        let by_authority = authority(one).cmp(&authority(other));
        by_revision
            .then(by_authority)
            .then(captured(one).cmp(&captured(other)))
    }

    fn has_a_rejected_bundle(&self) -> Option<String> {
        let is_rejected = |judged: &Judged| judged.decision == Some(Decision::B4PrimeRejected);
        let mut rejected = self.wanted().filter(|(_, judged)| is_rejected(judged));
        let (one, _) = rejected.next()?;
        Some(format!("{}: {}", one.0.item, one.1.found))
    }

    fn contradicts_the_record(&self) -> Option<String> {
        let (word, status) = (self.word?, self.claim.status.as_ref()?);
        let record = self.records.about(&status.of, &self.claim.scope)?;
        let captured = |item: &Item| parse_rfc3339(&item.source.captured_at);
        let accepted_since = self.bundles().any(|((_, looked), judged)| {
            is_accepted(judged) && captured(self.item(looked)) > captured(record.item)
        });
        let speaks_against = contradicts(record.word, word) && !accepted_since;
        (self.is_about_the_world() && speaks_against).then(|| shown(&record))
    }

    fn is_superseded(&self) -> Option<String> {
        let is_old = |looked: &Looked| self.case.standings[looked.item].superseded;
        let mut old = self.usable().filter(|(_, looked)| is_old(looked));
        let found = old.next().filter(|_| self.is_about_the_world());
        found.map(|(place, looked)| {
            format!("{} is revision {}", place.item, self.item(looked).revision)
        })
    }

    fn is_old(&self) -> Option<String> {
        if let Some(((place, _), _)) = self.wanted().find(|(_, judged)| judged.only_old) {
            return Some(format!(
                "{} would be accepted if it were younger",
                place.item
            ));
        }
        let within = parse_span(&self.claim.within)?;
        let as_of = self.case.packet.as_of();
        let mut old = self.usable().filter(|(_, looked)| {
            let captured = parse_rfc3339(&self.item(looked).source.captured_at).unwrap_or(0);
            as_of.saturating_sub(captured) > within
        });
        let (place, looked) = old.next()?;
        let captured = &self.item(looked).source.captured_at;
        Some(format!("{} was captured at {captured}", place.item))
    }

    fn confuses_venues(&self) -> Option<String> {
        if let Some(((place, _), judged)) = self.wanted().find(|(_, judged)| judged.only_venue) {
            let venue = &judged.result.venue;
            return Some(format!("{} is from the venue {venue}", place.item));
        }
        let venue = Some(&self.claim.venue).filter(|venue| !venue.is_empty())?;
        let of = |looked: &Looked| match self.case.bundles.get(&looked.item) {
            Some(judged) => judged.result.venue.clone(),
            None => self.item(looked).venue.clone(),
        };
        let other = |looked: &Looked| !of(looked).is_empty() && of(looked) != *venue;
        let mut others = self.usable().filter(|(_, looked)| other(looked));
        let (place, looked) = others.next()?;
        Some(format!("{} is about {}", place.item, of(looked)))
    }

    fn builds_too_early(&self) -> Option<String> {
        let accepted = self.bundles().any(|(_, judged)| is_accepted(judged));
        (self.word?.after_b4 && !accepted).then(String::new)
    }

    /// A place in a decision of the holder's, about what is claimed.
    fn decisions(&self) -> impl Iterator<Item = &'a (Place, Looked)> + use<'a, '_> {
        let holder = &self.claim.holder;
        self.holding().filter(move |(_, looked)| {
            let item = self.item(looked);
            let is_theirs = holder.is_empty() || item.source.captured_by == *holder;
            let status = self.claim.status.as_ref();
            let is_it = status.is_none_or(|status| {
                let said = item.status.as_ref();
                said.is_some_and(|said| said.word == status.word && said.of == status.of)
            });
            // What was generated is evidence and never an authority's record.
            let is_record = item.source.derived_from.is_empty();
            item.document_type == DocumentType::Decision && is_theirs && is_it && is_record
        })
    }

    fn lacks_its_holder(&self) -> Option<String> {
        let needs = !self.claim.holder.is_empty() || self.word.is_some_and(|word| word.by_holder);
        let lacks = needs && self.decisions().next().is_none();
        lacks.then(|| match self.claim.holder.is_empty() {
            true => "no decision is among its places".to_owned(),
            false => format!("no decision of {} is among its places", self.claim.holder),
        })
    }

    fn has_a_blocked_bundle(&self) -> Option<String> {
        let (one, _) = self.wanted().find(|(_, judged)| !is_accepted(judged))?;
        Some(format!("{}: {}", one.0.item, one.1.found))
    }

    fn looks_for_absence_in_a_part(&self) -> Option<String> {
        let mut absent = self.usable().filter(|(place, looked)| {
            looked.in_excerpt && matches!(place.expect, Some(Expect::Absent(_)))
        });
        absent
            .next()
            .map(|(place, _)| format!("{} is an excerpt", place.item))
    }

    fn has_nothing_there(&self) -> Option<String> {
        if self.holding().next().is_none() {
            return Some(self.found());
        }
        let bare = self.claim.kind == ClaimKind::Says && self.holding().all(|one| !shows(one));
        bare.then(|| "a place without a quote or an expectation shows nothing".to_owned())
    }

    fn is_prose(&self) -> Option<String> {
        let facts = self.holding().any(|(_, looked)| looked.is_fact);
        let decided = self.lacks_its_holder().is_none()
            && self.word.is_some_and(|word| word.by_holder)
            && self.decisions().next().is_some();
        (self.is_about_the_world() && !facts && !decided).then(String::new)
    }

    fn claims_too_much(&self) -> Option<String> {
        let (word, status) = (self.word?, self.claim.status.as_ref()?);
        let reached = self
            .holding()
            .map(|(_, looked)| self.rung(looked, &status.of));
        let reached = reached.max().unwrap_or(Rung::None);
        (self.is_about_the_world() && word.rung > reached).then(|| {
            format!(
                "{} is {}, and its evidence is {}",
                word.word,
                word.rung.name(),
                reached.name()
            )
        })
    }

    /// How far up the ladder a place carries a claim about a subject.
    fn rung(&self, looked: &Looked, subject: &str) -> Rung {
        if let Some(judged) = self.case.bundles.get(&looked.item) {
            return match is_accepted(judged) {
                true => Rung::Accepted,
                false
                    if judged.says_attested
                        && judged.decision == Some(Decision::B4PrimeBlocked) =>
                {
                    Rung::Attested
                }
                false => Rung::Run,
            };
        }
        let item = self.item(looked);
        let statuses = Statuses::built_in();
        let reach = statuses.reach(item.document_type);
        let said = item.status.as_ref().filter(|said| said.of == subject);
        let said = said.and_then(|said| statuses.word(&said.word));
        said.map_or(reach, |said| reach.min(said.rung))
    }

    fn holds_in_part(&self) -> Option<String> {
        let mut not = self.looked.iter().filter(|(_, looked)| !looked.holds);
        not.next()
            .map(|(place, looked)| format!("{}: {}", place.item, looked.found))
    }

    fn counts_in_a_part(&self) -> Option<String> {
        let mut counted = self.holding().filter(|(_, looked)| looked.in_excerpt);
        counted
            .next()
            .map(|(place, _)| format!("{} is an excerpt", place.item))
    }

    fn is_local(&self) -> Option<String> {
        let is_local = |(_, looked): &(Place, Looked)| {
            let (item, standing) = (self.item(looked), &self.case.standings[looked.item]);
            let is_bundle = self.case.bundles.contains_key(&looked.item);
            let is_made = !item.source.derived_from.is_empty();
            standing.authority == Authority::Local
                && !is_made
                && !is_bundle
                && standing.signer.is_none()
        };
        let all = self.holding().all(is_local);
        (self.is_about_the_world() && all).then(String::new)
    }

    fn is_said(&self) -> Option<String> {
        (self.claim.kind == ClaimKind::Says).then(String::new)
    }
}

/// Something is said to stand at the place: a quote, or what is expected there.
fn shows((place, looked): &(Place, Looked)) -> bool {
    looked.is_fact || matches!(place.at, Some(Locator::Lines(_)))
}

fn is_accepted(judged: &Judged) -> bool {
    judged.decision == Some(Decision::B4PrimeAccepted)
}
