//! One byte or character, as programs escape it.

/// The character after a backslash, and what both mean.
const LETTERS: &[(u8, u8)] = &[
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
    (b'b', 8),
    (b'f', 12),
    (b'v', 11),
    (b'0', 0),
    (b'e', 27),
];

/// HTML's names.
const ENTITIES: &[(&[u8], u8)] = &[
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];

/// How often a text may have been encoded.
const DEPTH: usize = 4;

/// A byte with which an escape begins.
pub fn is_lead(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'=')
}

/// What a text may begin with, each with the length of its escape. An escape can
/// be read in several ways: `\u00e9` is a character, `\xe9` a character or a byte.
pub fn units(text: &[u8]) -> Vec<(Vec<u8>, usize)> {
    let mut found = Vec::new();
    match text.first() {
        Some(b'%') => percent(text, &mut found),
        Some(b'=') => found.extend(hex(text, 1, 2).map(|code| (vec![code as u8], 3))),
        Some(b'\\') => backslash(text, &mut found),
        Some(b'&') => entity(text, &mut found),
        _ => {}
    }
    found
}

/// `%0a`, and `%250a` if it was encoded twice.
fn percent(text: &[u8], found: &mut Vec<(Vec<u8>, usize)>) {
    for at in (1..).step_by(2).take(DEPTH) {
        let Some(code) = hex(text, at, 2) else {
            return;
        };
        found.push((vec![code as u8], at + 2));
        if text.get(at..at + 2) != Some(b"25") {
            return;
        }
    }
}

/// Several backslashes, as of JSON in JSON, and what they escape.
fn backslash(text: &[u8], found: &mut Vec<(Vec<u8>, usize)>) {
    let run = backslashes(text);
    let doubled = (1..DEPTH).map(|times| 1 << times);
    found.extend(
        doubled
            .filter(|length| *length <= run)
            .map(|length| (vec![b'\\'], length)),
    );
    let Some(&letter) = text.get(run) else {
        return;
    };
    let after = run + 1;
    found.push((vec![letter], after));
    for (_, byte) in LETTERS.iter().filter(|(known, _)| *known == letter) {
        found.push((vec![*byte], after));
    }
    let octal = text.get(run..run + 3).and_then(|digits| {
        let octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
        let digits = std::str::from_utf8(digits).ok().filter(|_| octal)?;
        u8::from_str_radix(digits, 8).ok()
    });
    found.extend(octal.map(|byte| (vec![byte], run + 3)));
    if let (b'x', Some(code)) = (letter, hex(text, after, 2)) {
        found.push((vec![code as u8], after + 2));
        push_char(code, after + 2, found);
    }
    if let (b'u', Some(code)) = (letter, hex(text, after, 4)) {
        push_char(code, after + 4, found);
        // The second half of a pair.
        let rest = &text[after + 4..];
        let run = backslashes(rest);
        if let (Some(b'u'), Some(low)) = (rest.get(run), hex(rest, run + 1, 4))
            && (0xd800..0xdc00).contains(&code)
            && (0xdc00..0xe000).contains(&low)
        {
            let whole = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            push_char(whole, after + 4 + run + 5, found);
        }
    }
    if let (b'U', Some(code)) = (letter, hex(text, after, 8)) {
        push_char(code, after + 8, found);
    }
    if b"xu".contains(&letter) && text.get(after) == Some(&b'{') {
        let digits = text[after + 1..].iter().take(8);
        let count = digits.take_while(|digit| digit.is_ascii_hexdigit()).count();
        if let Some(code) = hex(text, after + 1, count)
            && text.get(after + 1 + count) == Some(&b'}')
        {
            push_char(code, after + count + 2, found);
        }
    }
}

/// How many there are at the start; each encoding doubles them.
fn backslashes(text: &[u8]) -> usize {
    let start = text.iter().take(1 << (DEPTH - 1));
    start.take_while(|byte| **byte == b'\\').count()
}

/// `&amp;`, `&#10;`, `&#xa;`.
fn entity(text: &[u8], found: &mut Vec<(Vec<u8>, usize)>) {
    for (name, byte) in ENTITIES {
        if text.starts_with(name) {
            found.push((vec![*byte], name.len()));
        }
    }
    let Some(end) = text.iter().take(12).position(|byte| *byte == b';') else {
        return;
    };
    let digits = text.get(2..end).filter(|_| text[1] == b'#');
    let code = digits
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        });
    if let Some(code) = code {
        push_char(code, end + 1, found);
    }
}

fn push_char(code: u32, length: usize, found: &mut Vec<(Vec<u8>, usize)>) {
    if let Some(c) = char::from_u32(code) {
        found.push((c.to_string().into_bytes(), length));
    }
}

/// The number that so many hexadecimal digits at this place are.
fn hex(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = text.get(at..at + count)?;
    let all = count > 0 && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| all)?;
    u32::from_str_radix(digits, 16).ok()
}
