//! Takes secrets out of texts, in whatever form they come back.
//!
//! A secret is looked for byte by byte. Each of its bytes may stand in the text as
//! itself, in either case, or escaped as programs escape bytes: percent codes, `\n`,
//! `\x0a`, `\u000a`, octal, HTML and quoted-printable. What is encoded as a whole
//! (base64, hexadecimal digits) is a secret of its own, and so is what a secret is
//! made of: the lines of a PEM file, the credentials in a Basic header.

use crate::survey::told::Told;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::collections::BTreeSet;
use std::ops::Range;
use tki_text::printable;

mod escapes;
mod names;

use escapes::{is_lead, units};
use names::GONE;

/// How many bytes of what a peer said are looked at. More than that is never
/// shown, and looking takes time.
const MOST_BYTES: usize = 4096;

/// A piece of a secret that has fewer bytes is found everywhere by chance.
const LEAST_PIECE: usize = 4;

/// How many places in a text are tried for each byte of a secret. A text that needs
/// more was made for that, and is not shown.
const MOST_PLACES: usize = 32;

/// Words in front of a secret that are none themselves.
const SCHEMES: &[&str] = &["bearer", "basic", "digest", "token"];

/// Takes secrets out of texts. Without any it still takes out what is named a
/// password, and the user in a URL.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    forms: Vec<Form>,
    /// What others said is not shown at all.
    hides_words: bool,
}

/// A text that must not come back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    bytes: Vec<u8>,
    /// They are hexadecimal digits, which may come with separators.
    hex: bool,
}

impl Redactor {
    /// For these values, in every form in which they may come back.
    pub fn new(secrets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut forms = Vec::new();
        for secret in secrets {
            for value in values(&secret) {
                forms.extend(encoded(&value));
                forms.push(Form {
                    bytes: value,
                    hex: false,
                });
            }
        }
        forms.retain(|form| !form.bytes.is_empty());
        forms.sort();
        forms.dedup();
        Self {
            forms,
            hides_words: false,
        }
    }

    /// The same, and what others said is not shown at all: no list of forms is
    /// complete.
    pub fn hiding_words(self) -> Self {
        Self {
            hides_words: true,
            ..self
        }
    }

    /// What this tool says and, unless it is hidden, what others said.
    pub fn told(&self, told: &Told, most: usize) -> String {
        let mut text = self.without_secrets(told.own.as_bytes(), false);
        let bytes: usize = told.words.iter().map(|words| words.bytes.len()).sum();
        if !self.hides_words {
            for words in &told.words {
                text += words.lead;
                text += &self.without_secrets(&words.bytes, words.cut);
            }
        } else if bytes > 0 {
            text += &format!(" ({bytes} bytes of its words are not shown)");
        }
        shown(&text, most)
    }

    /// A text without secrets, cut and printable.
    pub fn clean(&self, text: &str, most: usize) -> String {
        self.clean_bytes(text.as_bytes(), false, most)
    }

    /// The same for bytes of which the end may be missing.
    pub fn clean_bytes(&self, bytes: &[u8], cut: bool, most: usize) -> String {
        shown(&self.without_secrets(bytes, cut), most)
    }

    /// The start of a text without secrets. If its end is missing, a secret that
    /// only begins there goes too.
    fn without_secrets(&self, bytes: &[u8], cut: bool) -> String {
        let (bytes, cut) = match bytes.get(..MOST_BYTES) {
            Some(start) => (start, cut || start.len() < bytes.len()),
            None => (bytes, cut),
        };
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for found in self.found_in(bytes, cut) {
            out.extend_from_slice(&bytes[at..found.start]);
            out.extend_from_slice(GONE.as_bytes());
            at = found.end;
        }
        out.extend_from_slice(&bytes[at..]);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Where secrets are, in order; those that touch are one.
    fn found_in(&self, text: &[u8], cut: bool) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        for form in &self.forms {
            let mut at = 0;
            while at < text.len() {
                match form.end_of_match(text, at, cut) {
                    Some(end) => {
                        all.push(at..end);
                        at = end;
                    }
                    None => at += 1,
                }
            }
        }
        all.sort_by_key(|found| found.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for found in all {
            match merged.last_mut() {
                Some(last) if found.start <= last.end => last.end = last.end.max(found.end),
                _ => merged.push(found),
            }
        }
        merged
    }
}

impl Form {
    /// Where the secret ends that begins here, if one does.
    fn end_of_match(&self, text: &[u8], start: usize, cut: bool) -> Option<usize> {
        let first = self.bytes[0];
        let here = text[start];
        let begins = here.eq_ignore_ascii_case(&first) || is_lead(here) || here == b'+';
        if !begins {
            return None;
        }
        // Every place that can be reached, as (bytes of the secret, bytes of the text).
        let mut places = BTreeSet::from([(0, start)]);
        let mut end = None;
        let mut patience = MOST_PLACES * self.bytes.len();
        while let Some((of_secret, of_text)) = places.pop_first() {
            patience -= 1;
            if patience == 0 {
                return Some(text.len());
            }
            if of_secret == self.bytes.len() {
                end = end.max(Some(of_text));
                continue;
            }
            let here = &text[of_text..];
            // The text ends inside the secret, or inside the escape of a byte of it.
            let broken_escape = here.len() < 12 && here.first().copied().is_some_and(is_lead);
            if cut && of_secret > 0 && (here.is_empty() || broken_escape) {
                return Some(text.len());
            }
            self.steps(of_secret, here, |secret, text| {
                places.insert((of_secret + secret, of_text + text));
            });
        }
        end.filter(|end| *end > start)
    }

    /// Each way to go on from a place: so many bytes of the secret, so many of the
    /// text.
    fn steps(&self, of_secret: usize, text: &[u8], mut step: impl FnMut(usize, usize)) {
        let rest = &self.bytes[of_secret..];
        let begins_with = |unit: &[u8]| {
            rest.get(..unit.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(unit))
        };
        // Lines may be joined, and long ones wrapped.
        if of_secret > 0 && is_break(rest[0]) {
            step(1, 0);
        }
        let Some(&next) = text.first() else {
            return;
        };
        if begins_with(&[next]) || (rest[0] == b' ' && next == b'+') {
            step(1, 1);
        }
        if of_secret > 0 && is_break(next) {
            step(0, 1);
        }
        if self.hex && of_secret > 0 {
            if b": -,_".contains(&next) {
                step(0, 1);
            }
            if text.starts_with(b"0x") || text.starts_with(b"\\x") {
                step(0, 2);
            }
        }
        for (unit, length) in units(text) {
            if begins_with(&unit) {
                step(unit.len(), length);
            }
            if of_secret > 0 && unit.len() == 1 && is_break(unit[0]) {
                step(0, length);
            }
        }
    }
}

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// The secret, and what it is made of.
fn values(secret: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::from([secret.to_vec(), secret.trim_ascii().to_vec()]);
    let long = |piece: &&[u8]| piece.len() >= LEAST_PIECE;
    let lines = secret.split(|byte| is_break(*byte)).map(<[u8]>::trim_ascii);
    // The armour of a PEM file is no secret.
    let armour = |line: &&[u8]| line.starts_with(b"-----");
    all.extend(
        lines
            .filter(long)
            .filter(|l| !armour(l))
            .map(<[u8]>::to_vec),
    );
    let is_scheme = |word: &[u8]| {
        let same = |name: &&str| word.eq_ignore_ascii_case(name.as_bytes());
        SCHEMES.iter().any(same)
    };
    let words = secret.split(u8::is_ascii_whitespace);
    let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
    if let [first, rest @ ..] = &words[..]
        && is_scheme(first)
    {
        all.insert(rest.join(&b' '));
    }
    for word in words.into_iter().filter(|word| !is_scheme(word)) {
        if word.len() >= LEAST_PIECE {
            all.insert(word.to_vec());
        }
        // `Basic dXNlcjpwYXNzd29yZA==` holds a password, a token holds claims.
        for part in word.split(|byte| *byte == b'.') {
            let Some(plain) = decoded(part) else {
                continue;
            };
            if let Some(colon) = plain.iter().position(|byte| *byte == b':') {
                all.insert(plain[colon + 1..].to_vec());
            }
            all.insert(plain);
        }
    }
    all
}

/// What base64 of either alphabet holds, if that is a text.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() < LEAST_PIECE {
        return None;
    }
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let found = [&alphabet::STANDARD, &alphabet::URL_SAFE]
        .into_iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())?;
    let plain = std::str::from_utf8(&found).is_ok_and(|text| !text.chars().any(char::is_control));
    plain.then_some(found)
}

/// A secret as programs encode it as a whole.
fn encoded(secret: &[u8]) -> Vec<Form> {
    let config = GeneralPurposeConfig::new().with_encode_padding(false);
    let mut forms = Vec::new();
    for alphabet in [&alphabet::STANDARD, &alphabet::URL_SAFE] {
        let engine = GeneralPurpose::new(alphabet, config);
        let whole = engine.encode(secret).into_bytes();
        forms.push(Form {
            bytes: whole,
            hex: false,
        });
        if secret.len() < LEAST_PIECE {
            continue;
        }
        // Inside something longer, such as `user:password`, it may begin at any of
        // three places. Digits that it shares with its neighbours are left out.
        for before in 0..3 {
            let all = [&[0; 2][..before], secret].concat();
            let digits = engine.encode(&all).into_bytes();
            let first = (before * 8).div_ceil(6);
            let last = all.len() * 8 / 6;
            forms.push(Form {
                bytes: digits[first..last].to_vec(),
                hex: false,
            });
        }
    }
    if secret.len() >= LEAST_PIECE {
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        forms.push(Form {
            bytes: digits.into_bytes(),
            hex: true,
        });
    }
    forms
}

fn shown(text: &str, most: usize) -> String {
    printable(&names::without_named(text.trim()), most)
}

#[cfg(test)]
mod tests;
