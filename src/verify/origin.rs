//! Where it comes from: the image, the seccomp profile, the settings.

use crate::image::Identity;
use crate::verify::checks::{Checks, truth};
use crate::verify::{Inputs, Outcome};
use tki_evidence::derive;
use tki_evidence::evidence::Evidence;
use tki_evidence::request::is_hex_of_32_bytes;
use tki_evidence::settings;
use tki_evidence::stamp;

/// The digests agree, the container was made from this image, and it is the
/// expected one.
pub fn image(checks: &mut Checks, evidence: &Evidence, inputs: &Inputs) {
    let image = &evidence.image;
    let consistent = evidence.image_digest == image.manifest_digest
        && [&image.manifest_digest, &image.config_digest]
            .into_iter()
            .chain(&image.diff_ids)
            .all(|digest| is_digest(digest))
        && !image.diff_ids.is_empty();
    let used = [&image.manifest_digest, &image.config_digest].contains(&&image.engine_reported_id);
    let is_same = |wanted: &Identity| {
        wanted.manifest_digest == image.manifest_digest
            && wanted.config_digest == image.config_digest
            && wanted.diff_ids == image.diff_ids
    };
    let known = inputs.known.image.as_ref();
    let known = known.filter(|own| own.manifest_digest == image.manifest_digest);
    let (outcome, expected) = if !consistent {
        (Outcome::False, "digests that agree".into())
    } else if !used {
        (Outcome::False, "a container made from this image".into())
    } else if let Some(wanted) = &inputs.image {
        (truth(is_same(wanted)), wanted.manifest_digest.clone())
    } else if let Some(own) = known {
        // The manifest's digest settles the others.
        (truth(is_same(own)), "this tool's own image".into())
    } else {
        // Another image holds another inspector, which could say anything.
        (Outcome::Blocked, "a known image".into())
    };
    checks.add(
        "EV-IMAGE",
        outcome,
        expected,
        &image.manifest_digest,
        "image",
        "give the image that you expect with --image LAYOUT",
    );
}

/// The profile is the one that the engine had, and the expected one.
pub fn seccomp(checks: &mut Checks, evidence: &Evidence, inputs: &Inputs) {
    let digest = &evidence.seccomp_sha256;
    // An exec gate may have extended the profile; what it was before counts.
    let chosen = derive::chosen_profile(evidence).unwrap_or_default();
    let known = inputs
        .known
        .seccomp
        .iter()
        .find(|(known, _)| *known == chosen);
    let text = stamp::sha256_hex(evidence.raw.seccomp_profile.as_bytes());
    let (outcome, expected) = if text != *digest {
        (Outcome::False, text)
    } else if chosen.is_empty() {
        let expected = "the chosen profile, extended by the exec gate alone";
        (Outcome::False, expected.to_owned())
    } else if evidence.sandbox.configured.seccomp != *digest {
        (Outcome::False, evidence.sandbox.configured.seccomp.clone())
    } else if let Some(wanted) = &inputs.seccomp_sha256 {
        (truth(*wanted == chosen), wanted.clone())
    } else if let Some((_, name)) = known {
        (
            truth(*name == evidence.seccomp_profile),
            format!("the built-in profile {}", evidence.seccomp_profile),
        )
    } else {
        (Outcome::NotChecked, "a known profile".into())
    };
    checks.add(
        "EV-SECCOMP",
        outcome,
        expected,
        digest,
        "seccomp_sha256",
        "give the profile that you expect with --seccomp FILE",
    );
}

/// The settings are what was asked for, and enough.
pub fn sandbox(checks: &mut Checks, evidence: &Evidence) {
    let short = settings::shortfalls(&evidence.sandbox.configured);
    let deviations: Vec<String> = derive::deviations(evidence)
        .into_iter()
        .map(|d| format!("{}: {} became {}", d.setting, d.declared, d.configured))
        .collect();
    // A limit that the host cannot set is not proven; all else is not so.
    let absent = |what: &String| what.ends_with(" limit");
    let outcome = match (short.iter().all(absent), deviations.is_empty()) {
        (true, true) if short.is_empty() => Outcome::Ok,
        (true, true) => Outcome::Blocked,
        _ => Outcome::False,
    };
    let problems = [short, deviations].concat();
    checks.add(
        "EV-SANDBOX",
        outcome,
        "the deny-by-default sandbox, set as it was asked for",
        if problems.is_empty() {
            "it is".into()
        } else {
            problems.join("; ")
        },
        "sandbox",
        "the engine did not set what was asked for: use one that does",
    );
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(is_hex_of_32_bytes)
}
