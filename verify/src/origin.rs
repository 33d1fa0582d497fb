//! Where it comes from: the image, the seccomp profile, the settings.

use crate::checks::{Checks, truth};
use crate::container::read_deadline;
use crate::inputs::ImageDigests;
use crate::{Inputs, Outcome};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use tki_evidence::command_line::{Client, command_line};
use tki_evidence::derive;
use tki_evidence::described::names::{self, LABEL_DEADLINE, NAME_PREFIX};
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::Evidence;
use tki_evidence::request::is_hex_of_32_bytes;
use tki_evidence::settings;
use tki_evidence::stamp;
use tki_evidence::step_code::StepCode;

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
    let is_same = |wanted: &ImageDigests| {
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
        // Another image holds another prober, which could say anything.
        (Outcome::Blocked, "a known image".into())
    };
    checks.add(
        StepCode::Image,
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
    let built_in = inputs.known.seccomp.iter();
    let mut built_in = built_in.filter(|(_, name)| *name == evidence.seccomp_profile);
    let borrowed = built_in.find_map(|(own, _)| (*own != chosen).then_some(own));
    let text = stamp::sha256_hex(evidence.raw.seccomp_profile.as_bytes());
    let (outcome, expected) = if text != *digest {
        (Outcome::False, text)
    } else if chosen.is_empty() {
        let expected = "the chosen profile, extended by the exec gate alone";
        (Outcome::False, expected.to_owned())
    } else if evidence.sandbox.configured.seccomp != *digest {
        (Outcome::False, evidence.sandbox.configured.seccomp.clone())
    } else if let Some(own) = borrowed {
        // A name is no profile.
        (
            Outcome::False,
            format!("the built-in profile of that name, {own}"),
        )
    } else if let Some(wanted) = &inputs.seccomp_sha256 {
        (truth(*wanted == chosen), wanted.clone())
    } else if let Some((_, name)) = known {
        (
            truth(*name == evidence.seccomp_profile),
            format!("the built-in profile {}", evidence.seccomp_profile),
        )
    } else if inputs.names_profile(&chosen) {
        (Outcome::Ok, "a profile that the verifier names".into())
    } else {
        // Another profile may let through what no probe tries.
        (Outcome::Blocked, "a known profile".into())
    };
    checks.add(
        StepCode::Seccomp,
        outcome,
        expected,
        digest,
        "seccomp_sha256",
        "give the profile that you expect with --seccomp FILE, or name it in a policy",
    );
}

/// The settings are what was asked for, and enough. `deadline` is that of the
/// container's own description, if it is there.
pub fn sandbox(checks: &mut Checks, evidence: &Evidence, deadline: Option<u64>) {
    let short = settings::shortfalls(&evidence.sandbox.configured);
    let deviations: Vec<String> = derive::deviations(evidence)
        .into_iter()
        .map(|d| format!("{}: {} became {}", d.setting, d.declared, d.configured))
        .collect();
    // A limit that the host cannot set is not proven; all else is not so.
    let absent = |what: &String| what.ends_with(" limit");
    let line = if follows(evidence, deadline) {
        Vec::new()
    } else {
        vec!["command_line does not follow from the settings".to_owned()]
    };
    let outcome = match (short.iter().all(absent), [&deviations, &line].map(Vec::len)) {
        (true, [0, 0]) if short.is_empty() => Outcome::Ok,
        (true, [0, 0]) => Outcome::Blocked,
        _ => Outcome::False,
    };
    let problems = [short, deviations, line].concat();
    checks.add(
        StepCode::Sandbox,
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

/// The command line is the one that these settings give. The engine may know the
/// image by either digest.
fn follows(evidence: &Evidence, deadline: Option<u64>) -> bool {
    let (sandbox, runtime) = (&evidence.sandbox, &evidence.runtime);
    let label = format!("--label={LABEL_DEADLINE}=");
    let mut words = sandbox.command_line.iter();
    let said = words.find_map(|word| word.strip_prefix(&label));
    let said = said.and_then(|text| read_deadline(evidence, text));
    let Some(said) = said.filter(|said| deadline.is_none_or(|known| known == *said)) else {
        return false;
    };
    let client = match runtime.kind() {
        Some(EngineKind::Podman) => Client::Podman(&runtime.oci_runtime),
        _ => Client::Docker,
    };
    let name = format!("{NAME_PREFIX}{}", evidence.run_id);
    let labels = names::labels(&evidence.run_id, "probe", said);
    let image = &evidence.image;
    [&image.manifest_digest, &image.config_digest]
        .into_iter()
        .any(|image| {
            let declared = &sandbox.declared;
            command_line(client, declared, &name, &labels, "seccomp.json", image)
                == sandbox.command_line
        })
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(is_hex_of_32_bytes)
}
