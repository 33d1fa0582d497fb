//! One probe and what came back: verbatim, but cut, printable and without
//! secrets.

use crate::report::text::printable;
use serde::Serialize;

/// The most characters of a result.
pub const MOST: usize = 600;

/// A call that was made and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// What was called.
    pub call: String,
    /// What came back.
    pub result: String,
}

impl Call {
    /// A call and a result of our own making or from elsewhere.
    pub fn new(call: impl AsRef<str>, result: impl AsRef<str>) -> Self {
        Redactor::default().call(call, result)
    }
}

/// Takes secrets out of texts.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

/// What stands in a secret's place.
const GONE: &str = "[redacted]";

/// What stands there meanwhile, so that no secret is found in what replaced
/// another.
const MARK: &str = "\u{f8ff}";

/// Names whose value is a secret, whoever chose it.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
    "authorization",
    "credential",
    "private_key",
];

impl Redactor {
    /// Also these values, in every form in which they may come back.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all = Vec::new();
        for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
            all.push(base64(secret.as_bytes()));
            all.push(percent(&secret));
            if let Ok(json) = serde_json::to_string(&secret) {
                all.push(json.trim_matches('"').to_owned());
            }
            all.push(secret);
        }
        // The longest first: one may be part of another.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self { secrets: all }
    }

    /// A call and its result without secrets.
    pub fn call(&self, call: impl AsRef<str>, result: impl AsRef<str>) -> Call {
        Call {
            call: self.clean(call.as_ref(), MOST),
            result: self.clean(result.as_ref(), MOST),
        }
    }

    /// A text without secrets, cut and printable.
    pub fn clean(&self, text: &str, most: usize) -> String {
        let mut text = text.trim().to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, MARK);
        }
        let text = text.replace(MARK, GONE);
        printable(&without_user_info(&without_named(&text)), most)
    }

    /// The same for bytes of which the end may be missing: half a secret at the
    /// cut would not be recognised, so as much goes as the longest secret has.
    pub fn clean_bytes(&self, bytes: &[u8], cut: bool, most: usize) -> String {
        let longest = self.secrets.first().map_or(0, String::len);
        let keep = match cut {
            true => bytes.len().saturating_sub(longest),
            false => bytes.len(),
        };
        self.clean(&String::from_utf8_lossy(&bytes[..keep]), most)
    }
}

/// `password=…`, `"token": "…"`, `Authorization: Bearer …`.
fn without_named(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let named = NAMES.iter().find(|name| lower[at..].starts_with(**name));
        let value = named.and_then(|name| value_after(&lower, at + name.len()));
        match value {
            Some((start, end)) => {
                out.push_str(&text[at..start]);
                out.push_str(GONE);
                at = end;
            }
            None => {
                let next = text[at..].chars().next().map_or(1, char::len_utf8);
                out.push_str(&text[at..at + next]);
                at += next;
            }
        }
    }
    out
}

/// Where the value begins and ends that stands behind a name and `:` or `=`.
fn value_after(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let skip = |mut at: usize, these: &[u8]| {
        while bytes.get(at).is_some_and(|byte| these.contains(byte)) {
            at += 1;
        }
        at
    };
    let sign = skip(from, b"\"' \\");
    if !matches!(bytes.get(sign), Some(b':' | b'=')) {
        return None;
    }
    let mut start = skip(sign + 1, b"\"' \\");
    for scheme in ["bearer ", "basic ", "token "] {
        if text[start..].starts_with(scheme) {
            start += scheme.len();
        }
    }
    let length = text[start..]
        .find(['"', '\'', ' ', '\t', '\r', '\n', ',', '&', ';', '}', '\\'])
        .unwrap_or(text.len() - start);
    (length > 0).then_some((start, start + length))
}

/// `scheme://user:password@host`.
fn without_user_info(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find("://") {
        let (before, after) = rest.split_at(place + 3);
        out.push_str(before);
        let end = after
            .find(['/', ' ', '"', '\'', '\n', '?', '#'])
            .unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(sign) if after[..sign].contains(':') => {
                out.push_str(GONE);
                rest = &after[sign..];
            }
            _ => rest = after,
        }
    }
    out + rest
}

/// A secret as a program may encode it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk
            .iter()
            .fold(0u32, |sum, byte| (sum << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            let index = (number >> (18 - 6 * digit)) & 63;
            out.push(char::from(DIGITS[index as usize]));
        }
    }
    // Without the padding, which may be left out.
    out
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_come_back_in_any_form() {
        let redactor = Redactor::new(["s3cr3t/pass word".to_owned()]);
        for text in [
            "got s3cr3t/pass word back",
            "czNjcjN0L3Bhc3Mgd29yZA==",
            "s3cr3t%2Fpass%20word",
            "a\u{1b}[31ms3cr3t/pass word",
        ] {
            let clean = redactor.clean(text, 200);
            assert!(clean.contains(GONE), "{text} → {clean}");
            assert!(!clean.contains('\u{1b}'));
        }
        // Secrets that are found in the sign of their absence.
        let redactor = Redactor::new(["a", "c", "d", "e", "t"].map(str::to_owned));
        assert_eq!(redactor.clean("xex", 200), "x[redacted]x");
        let redactor = Redactor::new(["s3cr3t/pass word".to_owned()]);
        let cut = redactor.clean_bytes(b"tail s3cr3t/pass wo", true, 200);
        assert!(!cut.contains("s3cr3t"), "{cut}");
    }

    #[test]
    fn what_is_named_a_secret_is_one() {
        for (text, wanted) in [
            ("password=hunter2 x", "password=[redacted] x"),
            ("{\"token\": \"abc\"}", "{\"token\": \"[redacted]\"}"),
            (
                "Authorization: Bearer abc.def",
                "Authorization: Bearer [redacted]",
            ),
            (
                "postgres://u:p@127.0.0.1/db",
                "postgres://[redacted]@127.0.0.1/db",
            ),
            ("http://127.0.0.1/a@b", "http://127.0.0.1/a@b"),
            (
                "no secret here, only the word token",
                "no secret here, only the word token",
            ),
            ("pässwörd=ü password=ß", "pässwörd=ü password=[redacted]"),
        ] {
            assert_eq!(Redactor::default().clean(text, 200), wanted);
        }
    }
}
