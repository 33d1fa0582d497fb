//! Envelope → signature → types → subjects → evidence bytes. Until all of that
//! is good, no byte of the evidence is interpreted.

use crate::checks::{Checks, truth};
use crate::dsse::{self, Envelope, Signature};
use crate::error::VerifyError;
use crate::signers::AllowedSigners;
use crate::{Bundle, Inputs, Outcome};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::evidence::Evidence;
use tki_evidence::request::is_hex_of_32_bytes;
use tki_evidence::statement::{self, PAYLOAD_TYPE, Statement, TEST_RESULT, TYPE, TestResult};
use tki_evidence::step_code::StepCode;
use tki_evidence::strict;
use tki_evidence::verification::Signer;

const AGAIN: &str = "ask for the bundle again, as it was signed";

/// What the envelope came to.
#[derive(Clone, Debug, Default)]
pub struct Seal {
    /// What was signed, if there is an envelope and its form is right.
    pub statement: Option<Statement<TestResult>>,
    /// Keys whose signatures are good.
    pub signers: Vec<Signer>,
    /// Why nothing after this can be done: this is not what was signed.
    pub broken: bool,
}

/// Checks the envelope. The error is for what is no envelope at all.
pub fn check(
    checks: &mut Checks,
    bundle: &Bundle,
    evidence_sha256: &str,
    inputs: &Inputs,
) -> Result<Seal, VerifyError> {
    let Some(bytes) = &bundle.envelope else {
        let (outcome, expected) = match inputs.allowed_signers {
            Some(_) => (Outcome::Blocked, "an envelope with signatures"),
            None => (Outcome::NotChecked, "an envelope, if there is one"),
        };
        checks.add(
            StepCode::Envelope,
            outcome,
            expected,
            "there is none",
            "the .intoto.jsonl file",
            "have the bundle signed with `tki-attest sign`, and put the envelope beside it",
        );
        for code in [
            StepCode::Signature,
            StepCode::Types,
            StepCode::Subjects,
            StepCode::Bytes,
        ] {
            checks.skip(code, "there is no envelope");
        }
        return Ok(Seal::default());
    };
    let envelope = Envelope::parse(bytes).map_err(|source| VerifyError::Envelope {
        bundle: bundle.name.clone(),
        source,
    })?;
    checks.add(
        StepCode::Envelope,
        Outcome::Ok,
        "one DSSE envelope",
        format!("{} signatures", envelope.signatures.len()),
        "the .intoto.jsonl file",
        "",
    );
    let mut seal = Seal::default();
    if let Some((list, _)) = &inputs.allowed_signers {
        seal.signers = signatures(checks, &envelope, list, inputs);
        seal.broken = !checks.all_ok(&[StepCode::Signature]);
        if seal.broken {
            // Bytes that nobody trusted has signed are not interpreted.
            checks.skip_after(
                StepCode::Signature,
                "no sufficient signature stands before it",
            );
            return Ok(seal);
        }
    } else {
        checks.add(
            StepCode::Signature,
            Outcome::NotChecked,
            "signatures by listed keys",
            "nobody is listed",
            "signatures",
            "say who may sign with --allowed-signers FILE",
        );
    }
    let Some(statement) = types(checks, bundle, &envelope)? else {
        seal.broken = true;
        checks.skip_after(StepCode::Types, "what was signed is something else");
        return Ok(seal);
    };
    let subjects = &statement.subject;
    let digests_fine = subjects
        .iter()
        .all(|subject| is_hex_of_32_bytes(&subject.digest.sha256));
    let two = subjects.len() == 2 && digests_fine && subjects[0].digest != subjects[1].digest;
    checks.add(
        StepCode::Subjects,
        truth(two),
        "two subjects: the image and the evidence file",
        format!("{} subjects", subjects.len()),
        "subject",
        AGAIN,
    );
    let signed = subjects
        .get(1)
        .map_or("", |subject| subject.digest.sha256.as_str());
    checks.add(
        StepCode::Bytes,
        truth(two && signed == evidence_sha256),
        signed,
        evidence_sha256,
        "the evidence file",
        "the evidence is not the file that was signed: ask for that one",
    );
    seal.broken = !checks.all_ok(&[StepCode::Subjects, StepCode::Bytes]);
    if seal.broken {
        checks.skip_after(StepCode::Bytes, "the evidence is not what was signed");
    }
    seal.statement = Some(statement);
    Ok(seal)
}

/// Checks every signature; gives those that count.
///
/// A key id is a name that anybody can write. One in the name of a listed key that
/// did not sign is a lie about that key; beside a signature that the key did make
/// it says nothing, and must not undo it.
fn signatures(
    checks: &mut Checks,
    envelope: &Envelope,
    list: &AllowedSigners,
    inputs: &Inputs,
) -> Vec<Signer> {
    let message = envelope.signed_bytes();
    let moment = (inputs.clock.now, inputs.principal.as_deref());
    let judged: Vec<Judged> = envelope
        .signatures
        .iter()
        .map(|signature| judge(signature, &message, list, moment))
        .collect();
    let made = |key: &str| {
        let made_by = |judged: &Judged| match judged {
            Judged::Good(signer) => signer.key == key,
            Judged::Unusable { key: by, .. } => by == key,
            Judged::Unlisted(_) | Judged::NotBy(_) => false,
        };
        judged.iter().any(made_by)
    };
    let (mut good, mut said, mut bad) = (Vec::<Signer>::new(), Vec::new(), false);
    for judged in &judged {
        match judged {
            Judged::Good(signer) => {
                said.push(format!("{} ({})", signer.key, signer.principals));
                // Two keys of one signer, or one key twice, are one signer.
                let again = |other: &Signer| {
                    other.key == signer.key || other.principals == signer.principals
                };
                if !good.iter().any(again) {
                    good.push(signer.clone());
                }
            }
            Judged::Unusable { key, why } => said.push(format!("{key} {why}")),
            Judged::Unlisted(why) => said.push(why.clone()),
            Judged::NotBy(key) if made(key) => {
                said.push(format!("another in the name of {key} is not by it"));
            }
            Judged::NotBy(key) => {
                bad = true;
                said.push(format!("{key} did not sign this"));
            }
        }
    }
    let threshold = inputs.threshold();
    let outcome = if bad {
        Outcome::False
    } else if good.len() >= threshold {
        Outcome::Ok
    } else {
        Outcome::Blocked
    };
    checks.add(
        StepCode::Signature,
        outcome,
        format!("signatures by {threshold} listed and valid signers"),
        format!("{} good: {}", good.len(), said.join("; ")),
        "signatures",
        "have it signed by a key that you list, or list the key if you trust its holder",
    );
    good
}

enum Judged {
    /// By a listed and valid key.
    Good(Signer),
    /// By a listed key that does not count here or now.
    Unusable { key: String, why: String },
    /// By nobody who is listed, so it cannot be checked.
    Unlisted(String),
    /// In the name of this listed key, which did not make it.
    NotBy(String),
}

/// Keys of the list that signed an envelope, whatever it is about, and that are valid at
/// `now`, in seconds since 1970.
pub fn signers_of(envelope: &Envelope, list: &AllowedSigners, now: u64) -> Vec<Signer> {
    let message = envelope.signed_bytes();
    let judged = envelope.signatures.iter();
    let judged = judged.map(|signature| judge(signature, &message, list, (now, None)));
    let good = judged.filter_map(|judged| match judged {
        Judged::Good(signer) => Some(signer),
        Judged::Unusable { .. } | Judged::Unlisted(_) | Judged::NotBy(_) => None,
    });
    good.collect()
}

/// The key id only says which keys are tried. A moment has a time, and the principal that
/// alone counts, if one does.
fn judge(
    signature: &Signature,
    message: &[u8],
    list: &AllowedSigners,
    (now, principal): (u64, Option<&str>),
) -> Judged {
    let named = !signature.keyid.is_empty();
    let mut candidates = list
        .entries
        .iter()
        .filter(|entry| !named || entry.fingerprint == signature.keyid)
        .peekable();
    if candidates.peek().is_none() {
        return Judged::Unlisted(format!("{} is not listed", signature.keyid));
    }
    let mut unusable = None;
    for entry in candidates {
        if !dsse::is_good(&entry.key, message, &signature.sig) {
            continue;
        }
        let key = entry.fingerprint.clone();
        match entry.unusable(now, principal) {
            None => {
                return Judged::Good(Signer {
                    key,
                    principals: entry.principals.clone(),
                });
            }
            Some(why) => unusable = Some(Judged::Unusable { key, why }),
        }
    }
    match unusable {
        Some(unusable) => unusable,
        None if named => Judged::NotBy(signature.keyid.clone()),
        None => Judged::Unlisted("a signature without key id is by no listed key".into()),
    }
}

/// The statement, if it is one of ours. These are the bytes that the
/// signatures were checked over.
fn types(
    checks: &mut Checks,
    bundle: &Bundle,
    envelope: &Envelope,
) -> Result<Option<Statement<TestResult>>, VerifyError> {
    let malformed = |source| VerifyError::Statement {
        bundle: bundle.name.clone(),
        source,
    };
    let value = strict::parse(&envelope.payload).map_err(malformed)?;
    let text = |name: &str| {
        value
            .get(name)
            .and_then(|text| text.as_str())
            .unwrap_or("")
            .to_owned()
    };
    let found = [
        envelope.payload_type.clone(),
        text("_type"),
        text("predicateType"),
    ];
    let wanted = [PAYLOAD_TYPE, TYPE, TEST_RESULT];
    checks.add(
        StepCode::Types,
        truth(found == wanted),
        wanted.join(", "),
        found.join(", "),
        "payloadType, _type, predicateType",
        AGAIN,
    );
    if found != wanted {
        return Ok(None);
    }
    let statement = strict::typed(&envelope.payload).map_err(malformed)?;
    Ok(Some(statement))
}

/// What was signed must say what the evidence says.
pub fn statement(checks: &mut Checks, seal: &Seal, evidence: &Evidence) {
    let Some(statement) = &seal.statement else {
        checks.skip(StepCode::Statement, "there is no envelope");
        return;
    };
    let image = statement
        .subject
        .first()
        .map(|subject| &subject.digest.sha256);
    let same_image =
        image.is_some_and(|sha256| evidence.image_digest == format!("sha256:{sha256}"));
    let same = statement.predicate == statement::predicate(evidence);
    let got = match (same_image, same) {
        (true, true) => "the same image and the same results",
        (false, _) => "another image",
        (true, false) => "other results",
    };
    checks.add(
        StepCode::Statement,
        truth(same_image && same),
        "what was signed repeats the evidence",
        got,
        "subject, predicate",
        AGAIN,
    );
}
