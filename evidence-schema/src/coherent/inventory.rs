//! What the engine held: lists of ids, and which of them are our own image's.

use super::{Contradiction, Found, shown};
use crate::evidence::{Evidence, Holdings, ImageIdentity};
use crate::venue;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Whether an id is one of our own image's.
pub fn is_own_image(image: &ImageIdentity, id: &str) -> bool {
    let plain = |id: &str| id.strip_prefix("sha256:").unwrap_or(id).to_owned();
    let names = [
        &image.manifest_digest,
        &image.config_digest,
        &image.engine_reported_id,
    ];
    !id.is_empty() && names.into_iter().any(|name| plain(name) == plain(id))
}

/// Everything that cannot be true of the inventories.
pub fn inventory(evidence: &Evidence) -> Vec<Contradiction> {
    let mut found = Found::default();
    let held = &evidence.inventory;
    for (holdings, fields) in [
        (&held.before, "inventory.before"),
        (&held.after, "inventory.after"),
    ] {
        let Holdings {
            containers,
            networks,
            volumes,
            images,
            modules,
        } = holdings;
        for list in [containers, networks, volumes, images, modules] {
            found.must(is_list(list), fields, || {
                "not sorted, or an id is empty or there twice".into()
            });
        }
    }
    let is_here = venue::is_here(&evidence.venue_facts);
    found.must(
        is_here || held.before.modules.is_empty(),
        "inventory.before, venue_facts.engine_at",
        || "modules of this host stand for another one's".into(),
    );
    const OWN: &str = "inventory.own_images, image";
    found.must(is_list(&held.own_images), OWN, || {
        "not a list of ids".into()
    });
    let foreign = held
        .own_images
        .iter()
        .find(|id| !is_own_image(&evidence.image, id));
    found.must(foreign.is_none(), OWN, || {
        format!(
            "{} is not our image",
            shown(foreign.map_or("", String::as_str))
        )
    });
    let used = &evidence.image.engine_reported_id;
    found.must(
        held.own_images.iter().any(|id| is_same(id, used)),
        OWN,
        || "our image is not among them".into(),
    );
    found.0
}

fn is_same(one: &str, other: &str) -> bool {
    let plain = |id: &str| id.strip_prefix("sha256:").unwrap_or(id).to_owned();
    plain(one) == plain(other)
}

/// Sorted, nothing empty, nothing twice.
fn is_list(ids: &[String]) -> bool {
    ids.first().is_none_or(|first| !first.is_empty())
        && ids.windows(2).all(|pair| pair[0] < pair[1])
}
