//! What is a secret by its name, whichever party chose it: `password=…`, and the user in a
//! URL.

/// What stands in a secret's place.
pub const GONE: &str = "[redacted]";

/// Names whose value is a secret, whichever party chose it.
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

/// Neither of both.
pub fn without_named(text: &str) -> String {
    without_user_info(&without_values(text))
}

/// `password=…`, `"token": "…"`, `Authorization: Bearer …`.
fn without_values(text: &str) -> String {
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
