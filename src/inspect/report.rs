//! What came out of a container and says that it is a report: it must be one, and about this packet.

use std::collections::BTreeMap;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::strict::{self, StrictError};
use tki_inspector::packet::{Claim, Packet};
use tki_inspector::report::{Action, ClaimResult, IS_NOT, Report, SCHEMA};
use tki_inspector::rules;
use tki_inspector::status;
use tki_inspector::wire::{ACTIONS, BINDING, REPORT};
use tki_inspector::words::Adequacy;
use tki_text::{acts, printable};

/// What a report must be about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The packet that was put in.
    pub packet: &'a Packet,
    /// SHA-256 (hex) of its own file.
    pub sha256: &'a str,
    /// The launcher's files, by name and SHA-256 (hex), sorted.
    pub brought: &'a [(String, String)],
}

/// What is wrong with what it wrote.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file is not there.
    #[error("there is no {0}")]
    None(&'static str),
    /// Not strict JSON.
    #[error("{file}: {}", printable(&.error.to_string(), 300))]
    Malformed {
        /// The file.
        file: &'static str,
        /// What is wrong.
        error: StrictError,
    },
    /// JSON of another form.
    #[error("{file}: {}", printable(&.error.to_string(), 300))]
    Form {
        /// The file.
        file: &'static str,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// No text, or one with characters that act on a terminal.
    #[error("{0}: it is not plain text")]
    Acts(&'static str),
    /// It says more than the report that was read of it.
    #[error("{REPORT}: it says more than a report does")]
    More,
    /// Something in it is not so.
    #[error("{REPORT}: {0} is not what it must be")]
    Untrue(&'static str),
    /// The actions are other ones in the log of their own.
    #[error("{ACTIONS}: it is not the log of the report")]
    Log,
}

/// The file of this name.
fn file<'a>(
    files: &'a [(&'static str, Vec<u8>)],
    name: &'static str,
) -> Result<&'a [u8], ReportError> {
    let found = files.iter().find(|(own, _)| *own == name);
    found
        .map(|(_, bytes)| bytes.as_slice())
        .ok_or(ReportError::None(name))
}

/// The report itself. Its types take neither an unknown field nor one twice.
pub fn read(files: &[(&'static str, Vec<u8>)]) -> Result<Report, ReportError> {
    let bytes = file(files, REPORT)?;
    serde_json::from_slice(bytes).map_err(|error| ReportError::Form {
        file: REPORT,
        error,
    })
}

/// All files, with the number of claims and of those that are not adequate, as it said them.
pub fn check(
    files: &[(&'static str, Vec<u8>)],
    said: (u64, u64),
    about: About,
) -> Result<(), ReportError> {
    for (name, bytes) in files {
        let text = std::str::from_utf8(bytes).map_err(|_| ReportError::Acts(name))?;
        if text.chars().any(|c| c != '\n' && acts(c)) {
            return Err(ReportError::Acts(name));
        }
    }
    let report = read(files)?;
    // What a reader finds there is what was read here, and nothing besides.
    let whole = serde_json::from_slice::<serde_json::Value>(file(files, REPORT)?);
    let form = |error| ReportError::Form {
        file: REPORT,
        error,
    };
    let again = serde_json::to_value(&report).map_err(form)?;
    if whole.map_err(form)? != again {
        return Err(ReportError::More);
    }
    is_about(&report, said, about)?;
    strict::parse(file(files, BINDING)?).map_err(|error| ReportError::Malformed {
        file: BINDING,
        error,
    })?;
    log(file(files, ACTIONS)?, &report.actions)
}

fn is_about(
    report: &Report,
    (claims, inadequate): (u64, u64),
    about: About,
) -> Result<(), ReportError> {
    let must = |holds: bool, what: &'static str| match holds {
        true => Ok(()),
        false => Err(ReportError::Untrue(what)),
    };
    let (own, packet) = (&report.packet, about.packet);
    must(report.schema == SCHEMA, "schema")?;
    must(report.is_not == IS_NOT, "is_not")?;
    must(own.sha256 == about.sha256, "packet: sha256")?;
    must(own.id == packet.id && own.as_of == packet.as_of, "packet")?;
    must(own.items == packet.items.len() as u64, "packet: items")?;
    must(own.claims == packet.claims.len() as u64, "packet: claims")?;
    must(report.rules_sha256 == rules::sha256(), "rules_sha256")?;
    let statuses = sha256_hex(status::TEXT.as_bytes());
    must(report.statuses_sha256 == statuses, "statuses_sha256")?;
    let mut brought: Vec<(&str, &str)> = report
        .brought
        .iter()
        .map(|one| (one.name.as_str(), one.sha256.as_str()))
        .collect();
    brought.sort_unstable();
    let put = about
        .brought
        .iter()
        .map(|(name, sha256)| (name.as_str(), sha256.as_str()));
    must(brought.into_iter().eq(put), "brought")?;
    let same = |(result, claim): (&ClaimResult, &Claim)| {
        let is_it = result.id == claim.id && result.text == claim.text && result.kind == claim.kind;
        is_it && result.rule.text().verdict == result.verdict
    };
    let is_whole = report.claims.len() == packet.claims.len();
    must(
        is_whole && report.claims.iter().zip(&packet.claims).all(same),
        "claims",
    )?;
    let is_whole = report.items.len() == packet.items.len();
    let ids = report.items.iter().zip(&packet.items);
    must(
        is_whole && ids.into_iter().all(|(result, item)| result.id == item.id),
        "items",
    )?;
    must(totals(report), "totals")?;
    let found = report
        .claims
        .iter()
        .filter(|claim| claim.verdict != Adequacy::Adequate);
    let found = found.count() as u64;
    must(
        (own.claims, found) == (claims, inadequate),
        "the number of claims",
    )
}

/// The totals follow from the claims; a verdict that no claim has may be left out.
fn totals(report: &Report) -> bool {
    let mut counted: BTreeMap<Adequacy, u64> = BTreeMap::new();
    for claim in &report.claims {
        *counted.entry(claim.verdict).or_default() += 1;
    }
    let said = report.totals.iter().filter(|total| total.claims > 0);
    let said: Vec<(Adequacy, u64)> = said.map(|total| (total.verdict, total.claims)).collect();
    let mut sorted = said.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(counted)
}

/// The log has the report's actions, one in each line.
fn log(bytes: &[u8], actions: &[Action]) -> Result<(), ReportError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ReportError::Acts(ACTIONS))?;
    let mut lines = text.lines();
    for action in actions {
        let line = lines.next().ok_or(ReportError::Log)?;
        let read: Action = serde_json::from_str(line).map_err(|error| ReportError::Form {
            file: ACTIONS,
            error,
        })?;
        if read != *action {
            return Err(ReportError::Log);
        }
    }
    match lines.next() {
        None => Ok(()),
        Some(_) => Err(ReportError::Log),
    }
}
