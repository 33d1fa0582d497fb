//! What a `claims.toml` comes to: the items that are to be read, and the claims with their
//! places. Nothing is read here but the names of a bundle's files.

use crate::pack::error::PackError;
use crate::pack::form::{Claims, Defaults, ItemForm, PlaceForm, SCHEMA};
use crate::pack::mistake::{Mistake, Needed, Unfit};
use crate::pack::source::Source;
use crate::pack::tree::{Kind, Tree};
use tki_inspector::ids::is_id;
use tki_inspector::packet::{
    self, Authority, Claim, DocumentType, Expect, Extent, Item, Lines, Locator, MAX_ITEMS, Packet,
    PacketError, Place,
};

/// What is to be packed.
#[derive(Debug)]
pub struct Plan {
    /// The packet. Digests and sizes, media types that nobody gave and the lines of quotes are
    /// still open.
    pub packet: Packet,
    /// For each item, the one of `claims.toml` that it comes from.
    pub origins: Vec<usize>,
    /// Whether each item of `claims.toml` is a bundle.
    is_bundle: Vec<bool>,
}

/// A digest until there is one.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Makes a plan of what was written.
pub fn plan(
    source: &Source,
    claims: Claims,
    as_of: String,
    tree: &Tree,
) -> Result<Plan, PackError> {
    if claims.schema != SCHEMA {
        let mistake = Mistake::Schema {
            found: claims.schema,
            wanted: SCHEMA,
        };
        return Err(source.mistake("schema", mistake));
    }
    let is_bundle = claims.items.iter().map(|item| item.bundle.is_some());
    let is_bundle = is_bundle.collect();
    let (mut items, mut origins) = (Vec::new(), Vec::new());
    for (index, form) in claims.items.iter().enumerate() {
        let at = format!("item[{index}]");
        let made = of_item(form, &claims.defaults, tree);
        let made = made.map_err(|(key, mistake)| source.mistake(&below(&at, key), mistake))?;
        if items.len() + made.len() > MAX_ITEMS {
            let path = form.path.clone().or(form.bundle.clone());
            let mistake = Mistake::File {
                path: path.unwrap_or_default(),
                problem: Unfit::Many,
            };
            return Err(source.mistake(&at, mistake));
        }
        origins.extend(made.iter().map(|_| index));
        items.extend(made);
    }
    let mut made = Vec::new();
    for (index, form) in claims.claims.into_iter().enumerate() {
        let mut evidence = Vec::new();
        for (number, place) in form.evidence.iter().enumerate() {
            let at = format!("claim[{index}].evidence[{number}]");
            let place = of_place(place);
            let place =
                place.map_err(|(key, mistake)| source.mistake(&below(&at, key), mistake))?;
            evidence.push(place);
        }
        made.push(Claim {
            id: form.id,
            text: form.text,
            kind: form.kind,
            status: form.status,
            scope: form.scope,
            venue: form.venue,
            holder: form.holder,
            within: form.within,
            evidence,
        });
    }
    let plan = Plan {
        packet: Packet {
            schema: packet::SCHEMA.to_owned(),
            id: claims.id,
            as_of,
            items,
            claims: made,
        },
        origins,
        is_bundle,
    };
    plan.check(source)?;
    Ok(plan)
}

impl Plan {
    /// The form of the packet, with mistakes told in terms of `claims.toml`.
    pub fn check(&self, source: &Source) -> Result<(), PackError> {
        match self.packet.check() {
            Ok(()) => Ok(()),
            Err(PacketError::Field { place, problem }) => {
                let place = self.written_at(&place);
                Err(source.mistake(&place, Mistake::Packet { text: problem }))
            }
            Err(error) => Err(PackError::Own(error)),
        }
    }

    /// Where an item's file is named in `claims.toml`.
    pub fn file_of(&self, index: usize) -> String {
        let origin = self.origins[index];
        let key = match self.is_bundle[origin] {
            true => "bundle",
            false => "path",
        };
        format!("item[{origin}].{key}")
    }

    /// A place of `packet.json`, such as `items[3].source.locator`, where it was written.
    fn written_at(&self, place: &str) -> String {
        if let Some(rest) = place.strip_prefix("claims[") {
            let rest = rest
                .replace(".at.lines.quote", ".quote")
                .replace(".at.", ".")
                .replace(".expect.", ".");
            return format!("claim[{rest}");
        }
        let rest = place.strip_prefix("items[");
        let Some((index, rest)) = rest.and_then(|rest| rest.split_once(']')) else {
            return match place {
                "items" => "item".to_owned(),
                "claims" => "claim".to_owned(),
                place => place.to_owned(),
            };
        };
        let origin = index
            .parse()
            .ok()
            .and_then(|index: usize| self.origins.get(index));
        let origin = origin.copied().unwrap_or_default();
        format!("item[{origin}]{}", rest.replace(".source.", "."))
    }
}

fn below(place: &str, key: &str) -> String {
    match key {
        "" => place.to_owned(),
        key => format!("{place}.{key}"),
    }
}

/// A key of an item or of a place, and what is wrong with it.
type Wrong = (&'static str, Mistake);

fn missing(key: &'static str, needed: Needed) -> Wrong {
    (key, Mistake::Missing(needed))
}

fn of_item(form: &ItemForm, defaults: &Defaults, tree: &Tree) -> Result<Vec<Item>, Wrong> {
    match (&form.path, &form.bundle) {
        (Some(_), Some(_)) => Err(("bundle", Mistake::NotWith("path"))),
        (None, None) => Err(missing("", Needed::File)),
        (Some(path), None) => {
            let document_type = form.document_type;
            let document_type =
                document_type.ok_or(missing("document_type", Needed::DocumentType))?;
            let extent = form.extent.or(defaults.extent);
            let extent = extent.ok_or(missing("extent", Needed::Extent))?;
            Ok(vec![item(form, defaults, path, document_type, extent)?])
        }
        (None, Some(path)) => {
            if form.document_type.is_some() {
                return Err(("document_type", Mistake::NotWith("bundle")));
            }
            of_bundle(form, defaults, path, tree)
        }
    }
}

fn item(
    form: &ItemForm,
    defaults: &Defaults,
    path: &str,
    document_type: DocumentType,
    extent: Extent,
) -> Result<Item, Wrong> {
    let authority = form.authority.or(defaults.authority);
    let authority = authority.ok_or(missing("authority", Needed::Authority))?;
    let locator = match (&form.locator, authority) {
        (Some(locator), _) => locator.clone(),
        (None, Authority::Local) => path.to_owned(),
        (None, _) => return Err(missing("locator", Needed::Locator)),
    };
    let captured_at = form.captured_at.as_ref().or(defaults.captured_at.as_ref());
    let captured_at = captured_at.ok_or(missing("captured_at", Needed::CapturedAt))?;
    let captured_by = form.captured_by.as_ref().or(defaults.captured_by.as_ref());
    let captured_by = captured_by.ok_or(missing("captured_by", Needed::CapturedBy))?;
    Ok(Item {
        id: form.id.clone(),
        path: path.to_owned(),
        sha256: NO_DIGEST.to_owned(),
        size: 0,
        // The check of the plan needs one; what nobody gave is found out from the file.
        media_type: form.media_type.clone().unwrap_or(OPEN_TYPE.to_owned()),
        document_type,
        revision: form.revision,
        status: form.status.clone(),
        extent,
        venue: form.venue.clone(),
        source: packet::Source {
            authority,
            locator,
            captured_at: captured_at.0.clone(),
            captured_by: captured_by.clone(),
            derived_from: form.derived_from.clone(),
        },
        signature: form.signature.clone(),
    })
}

/// The media type of an item until its file is read.
pub const OPEN_TYPE: &str = "application/x-not-read";

/// The evidence of a bundle, its envelope and its artifacts, where they lie beside it.
fn of_bundle(
    form: &ItemForm,
    defaults: &Defaults,
    path: &str,
    tree: &Tree,
) -> Result<Vec<Item>, Wrong> {
    let wrong = |problem| {
        let path = path.to_owned();
        ("bundle", Mistake::File { path, problem })
    };
    let extent = form.extent.unwrap_or(Extent::Complete);
    let mut evidence = item(form, defaults, path, DocumentType::EvidenceBundle, extent)?;
    // A path of another form is refused with the whole plan.
    if tki_inspector::path::check(path).is_err() {
        return Ok(vec![evidence]);
    }
    let stem = path
        .strip_suffix(".json")
        .ok_or(("bundle", Mistake::NoEvidence))?;
    let part = |id: String, path: &str, document_type| {
        let mut part = item(form, defaults, path, document_type, Extent::Complete)?;
        part.id = id;
        part.media_type = OPEN_TYPE.to_owned();
        (part.revision, part.status) = (0, None);
        part.source.derived_from.clear();
        part.signature.clear();
        // One place of the authority's holds one file.
        if let Some(locator) = &form.locator {
            let own = path.strip_prefix(stem).unwrap_or(path);
            part.source.locator = format!("{locator}#{}", own.trim_start_matches(['/', '.']));
        }
        Ok(part)
    };
    let mut parts = Vec::new();
    let envelope = format!("{stem}.intoto.jsonl");
    if tree.has(&envelope).map_err(wrong)? {
        let id = format!("{}.intoto", form.id);
        if evidence.signature.is_empty() {
            evidence.signature.clone_from(&id);
        }
        parts.push(part(id, &envelope, DocumentType::Envelope)?);
    }
    if tree.has(stem).map_err(wrong)? {
        let listing = tree.listing(stem).map_err(wrong)?;
        if listing.more || listing.found.len() > MAX_ITEMS {
            return Err(wrong(Unfit::Many));
        }
        for (number, found) in (1..).zip(listing.found) {
            let problem = match found.kind {
                Kind::File => None,
                Kind::Link => Some(Unfit::Link(found.path.clone())),
                Kind::Special => Some(Unfit::Special),
                Kind::NotText => Some(Unfit::NotText(found.path.clone())),
            };
            if let Some(problem) = problem {
                let path = found.path;
                return Err(("bundle", Mistake::File { path, problem }));
            }
            let name = found.path.rsplit('/').next().unwrap_or_default();
            let named = format!("{}.{name}", form.id);
            let id = match is_id(&named) && found.path == format!("{stem}/{name}") {
                true => named,
                false => format!("{}.{number}", form.id),
            };
            parts.push(part(id, &found.path, DocumentType::EvidenceArtifact)?);
        }
    }
    parts.insert(0, evidence);
    Ok(parts)
}

fn of_place(form: &PlaceForm) -> Result<Place, Wrong> {
    let wheres = [
        form.quote.is_some(),
        form.json.is_some(),
        form.step.is_some(),
    ];
    if wheres.iter().filter(|given| **given).count() > 1 {
        return Err(("", Mistake::Wheres));
    }
    if form.lines.is_some() && form.quote.is_none() {
        return Err(missing("lines", Needed::Quote));
    }
    let at = match (&form.quote, &form.json, form.step) {
        // The lines are looked up when the item was read.
        (Some(quote), _, _) => {
            let [first, last] = form.lines.unwrap_or([1, 1]);
            let quote = quote.clone();
            Some(Locator::Lines(Lines { first, last, quote }))
        }
        (_, Some(pointer), _) => Some(Locator::Json(pointer.clone())),
        (_, _, step) => step.map(Locator::Step),
    };
    let expectations = [
        form.equals.clone().map(Expect::Equals),
        form.count.map(Expect::Count),
        form.at_least.map(Expect::AtLeast),
        form.absent.clone().map(Expect::Absent),
        form.exit.map(Expect::Exit),
        form.same_as.clone().map(Expect::SameAs),
        form.accepted.map(Expect::Accepted),
    ];
    let mut expectations = expectations.into_iter().flatten();
    let expect = expectations.next();
    if expectations.next().is_some() {
        return Err(("", Mistake::Expectations));
    }
    Ok(Place {
        item: form.item.clone(),
        at,
        expect,
    })
}
