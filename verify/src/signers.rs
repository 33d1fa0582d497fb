//! Whom a verifier trusts: OpenSSH's `allowed_signers` format, restricted to
//! what can be checked here. A line that cannot be honoured is refused, not
//! skipped: a list that means less than it says would be a trap.

mod problem;

pub use problem::{ListError, ListProblem};

use crate::NAMESPACE;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ed25519_dalek::VerifyingKey;
use ssh_key::{HashAlg, PublicKey};
use tki_evidence::time::{parse_rfc3339, rfc3339};

/// The largest list that is read, in bytes.
pub const MAX_LIST: u64 = 1 << 20;

/// The kinds of keys that OpenSSH knows; only the first is used here.
const KEY_TYPES: &[&str] = &[
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-dss",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// A list of allowed signers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedSigners {
    /// Its entries, in the file's order.
    pub entries: Vec<Entry>,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Patterns of who this is.
    pub principals: String,
    /// Namespaces that it may sign for; `None` for any.
    pub namespaces: Option<String>,
    /// Not valid before; seconds since 1970.
    pub valid_after: Option<u64>,
    /// Not valid from here on; seconds since 1970.
    pub valid_before: Option<u64>,
    /// The key.
    pub key: VerifyingKey,
    /// Its fingerprint, `SHA256:…`.
    pub fingerprint: String,
}

impl AllowedSigners {
    /// Reads a list.
    pub fn parse(bytes: &[u8]) -> Result<Self, ListError> {
        let text = core::str::from_utf8(bytes).map_err(|_| ListError {
            line: 1,
            what: ListProblem::Text,
        })?;
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = parse_line(line).map_err(|what| ListError {
                line: index + 1,
                what,
            })?;
            entries.extend(entry);
        }
        if entries.is_empty() {
            return Err(ListError {
                line: 1,
                what: ListProblem::NoKey,
            });
        }
        Ok(Self { entries })
    }
}

impl Entry {
    /// Why this entry does not count for our namespace at a moment, if so.
    pub fn unusable(&self, now: u64, principal: Option<&str>) -> Option<String> {
        if let Some(namespaces) = &self.namespaces
            && !matches_list(NAMESPACE, namespaces)
        {
            return Some(format!(
                "is listed for namespaces {namespaces:?}, not for {NAMESPACE:?}"
            ));
        }
        if let Some(principal) = principal
            && !matches_list(principal, &self.principals)
        {
            return Some(format!(
                "is listed for {:?}, not for {principal:?}",
                self.principals
            ));
        }
        if let Some(after) = self.valid_after
            && now < after
        {
            return Some(format!("is not valid before {}", rfc3339(after)));
        }
        if let Some(before) = self.valid_before
            && now >= before
        {
            return Some(format!("was valid until {}", rfc3339(before)));
        }
        None
    }
}

/// `None` for a key of another kind than ours, which can sign nothing here.
fn parse_line(line: &str) -> Result<Option<Entry>, ListProblem> {
    let (principals, rest) = word(line)?;
    let principals = principals.trim_matches('"').to_owned();
    if principals.is_empty() {
        return Err(ListProblem::NoPrincipal);
    }
    let (mut next, mut rest) = word(rest)?;
    let mut entry = (None, None, None);
    if !KEY_TYPES.contains(&next) {
        for option in options(next) {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(unquote(value)?)),
                None => (option, None),
            };
            match (name.to_ascii_lowercase().as_str(), value) {
                ("cert-authority", _) => {
                    return Err(ListProblem::Authority);
                }
                ("namespaces", Some(list)) if !list.is_empty() && entry.0.is_none() => {
                    entry.0 = Some(list);
                }
                ("valid-after", Some(time)) if entry.1.is_none() => {
                    entry.1 = Some(moment(&time)?);
                }
                ("valid-before", Some(time)) if entry.2.is_none() => {
                    entry.2 = Some(moment(&time)?);
                }
                _ => return Err(ListProblem::Option(option.to_owned())),
            }
        }
        (next, rest) = word(rest)?;
    }
    if !KEY_TYPES.contains(&next) {
        return Err(ListProblem::Kind(next.to_owned()));
    }
    if next != "ssh-ed25519" {
        return Ok(None);
    }
    let (blob, _comment) = word(rest)?;
    let public =
        PublicKey::from_openssh(&format!("ssh-ed25519 {blob}")).map_err(ListProblem::Key)?;
    let bytes = public.key_data().ed25519().ok_or(ListProblem::OtherKey)?;
    let key = VerifyingKey::from_bytes(&bytes.0).map_err(|_| ListProblem::Point)?;
    if key.is_weak() {
        return Err(ListProblem::Weak);
    }
    let (namespaces, valid_after, valid_before) = entry;
    if let (Some(after), Some(before)) = (valid_after, valid_before)
        && after >= before
    {
        return Err(ListProblem::Never);
    }
    Ok(Some(Entry {
        principals,
        namespaces,
        valid_after,
        valid_before,
        key,
        fingerprint: public.fingerprint(HashAlg::Sha256).to_string(),
    }))
}

/// The first word and the rest. White space inside quotes belongs to a word.
fn word(text: &str) -> Result<(&str, &str), ListProblem> {
    let text = text.trim_start();
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => return Ok((&text[..at], &text[at..])),
            _ => {}
        }
    }
    if quoted {
        return Err(ListProblem::Quote);
    }
    if text.is_empty() {
        return Err(ListProblem::End);
    }
    Ok((text, ""))
}

/// Options, separated by commas outside quotes.
fn options(text: &str) -> Vec<&str> {
    let (mut quoted, mut from, mut found) = (false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[from..]);
    found
}

fn unquote(text: &str) -> Result<String, ListProblem> {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .filter(|text| !text.contains(['"', '\\']))
        .map(str::to_owned)
        .ok_or_else(|| ListProblem::Unquoted(text.to_owned()))
}

/// `YYYYMMDD` or `YYYYMMDDHHMM[SS]`, with or without `Z`; always UTC, because a
/// verifier's decision may not depend on the zone that it is in.
fn moment(text: &str) -> Result<u64, ListProblem> {
    let wrong = || ListProblem::Time(text.to_owned());
    let digits = text.strip_suffix('Z').unwrap_or(text);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let full = format!("{digits:0<14}");
    let part = |from: usize, to: usize| &full[from..to];
    parse_rfc3339(&format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    ))
    .ok_or_else(wrong)
}

/// OpenSSH's list of patterns: any must match, none that begins with `!` may.
pub fn matches_list(text: &str, list: &str) -> bool {
    let mut found = false;
    for pattern in list.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(text.as_bytes(), pattern.as_bytes()) => return false,
            Some(_) => {}
            None => found |= matches(text.as_bytes(), pattern.as_bytes()),
        }
    }
    found
}

/// `*` is any text, `?` one character. Linear in the length of both for every
/// star, so that a hostile pattern costs nothing.
fn matches(text: &[u8], pattern: &[u8]) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((t, p));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                t += 1;
                p += 1;
            }
            _ => match star {
                Some((at, pattern_at)) => {
                    t = at + 1;
                    p = pattern_at + 1;
                    star = Some((at + 1, pattern_at));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINgiyP0zbInEq8jGg2aXdO4kmSA/f4OpPT/FdMerXnJ1";

    fn one(line: &str) -> Entry {
        let list = AllowedSigners::parse(line.as_bytes()).unwrap();
        list.entries.into_iter().next().unwrap()
    }

    #[test]
    fn lines_as_openssh_writes_them_are_read() {
        let entry = one(&format!("operator@vps {KEY} a comment"));
        assert_eq!(entry.principals, "operator@vps");
        assert!(entry.fingerprint.starts_with("SHA256:"));
        assert_eq!(entry.unusable(0, None), None);
        let entry = one(&format!(
            "# who\n\n\"a,b*\" namespaces=\"git,tki-*\",valid-after=\"20260101Z\",valid-before=\"202701010000\" {KEY}"
        ));
        assert_eq!(entry.valid_after, parse_rfc3339("2026-01-01T00:00:00Z"));
        assert_eq!(entry.valid_before, parse_rfc3339("2027-01-01T00:00:00Z"));
        let inside = parse_rfc3339("2026-06-01T00:00:00Z").unwrap();
        assert_eq!(entry.unusable(inside, Some("bob")), None);
        assert!(entry.unusable(inside, Some("carol")).is_some());
        assert!(
            entry
                .unusable(0, None)
                .unwrap()
                .contains("not valid before")
        );
        let end = entry.valid_before.unwrap();
        assert!(
            entry
                .unusable(end, None)
                .unwrap()
                .contains("was valid until")
        );
        assert_eq!(entry.unusable(end - 1, None), None);
        let entry = one(&format!("x namespaces=\"git\" {KEY}"));
        assert!(entry.unusable(0, None).unwrap().contains("namespaces"));
    }

    #[test]
    fn a_line_that_cannot_be_honoured_is_refused_with_its_number() {
        for (line, wanted) in [
            (
                format!("ca cert-authority {KEY}"),
                "certificates are not supported",
            ),
            (format!("x verify-required {KEY}"), "not understood"),
            (format!("x namespaces=git {KEY}"), "must stand in quotes"),
            (format!("x namespaces=\"git {KEY}"), "a quote is not closed"),
            (format!("x namespaces=\"\" {KEY}"), "not understood"),
            (format!("x valid-after=\"tomorrow\" {KEY}"), "not a time"),
            (format!("x valid-after=\"20260230\" {KEY}"), "not a time"),
            (
                format!("x valid-after=\"2027\",valid-before=\"2026\" {KEY}"),
                "not a time",
            ),
            (
                format!("x valid-after=\"20270101\",valid-before=\"20260101\" {KEY}"),
                "at no time",
            ),
            ("x ssh-ed25519".into(), "ends before its key"),
            ("x ssh-ed25519 AAAA".into(), "cannot be read"),
            ("x".into(), "ends before its key"),
            ("x ssh-rsa AAAA".into(), "no Ed25519 key"),
            (String::new(), "no Ed25519 key"),
        ] {
            let error = AllowedSigners::parse(format!("{line}\n").as_bytes()).unwrap_err();
            assert!(error.to_string().contains(wanted), "{line}: {error}");
        }
        let error = AllowedSigners::parse(format!("a {KEY}\nb x {KEY}\n").as_bytes()).unwrap_err();
        assert_eq!(error.line, 2);
    }

    #[test]
    fn patterns_match_as_openssh_has_them() {
        for (text, list, wanted) in [
            ("a", "a", true),
            ("a", "b,a", true),
            ("a", "!a,*", false),
            ("ab", "a?", true),
            ("abc", "a*c", true),
            ("abc", "*", true),
            ("abc", "a*d", false),
            ("", "*", true),
            ("", "?", false),
            ("aaaa", "*a*a*b", false),
        ] {
            assert_eq!(matches_list(text, list), wanted, "{text} {list}");
        }
    }
}
