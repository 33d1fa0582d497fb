//! Text from elsewhere, made safe to print.
//!
//! A file's name, an engine's answer or a container's output may hold characters that act on
//! the terminal, or on the text around them, instead of showing themselves: escape sequences,
//! characters that reorder or hide. [`acts`] is the one set of them, for every crate of this
//! workspace.

#![no_std]

extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt::Write;

/// Whether a character acts on the terminal or on its neighbours instead of showing itself:
/// control characters, line and paragraph separators, characters that set the direction of
/// text, that are not seen (soft hyphen, zero width, variation selectors of the supplement,
/// fillers, tags) or that annotate.
pub fn acts(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{00ad}'
                | '\u{034f}'
                | '\u{061c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// At most `most` characters of a text, in one line; a character that [`acts`] is escaped.
pub fn printable(text: &str, most: usize) -> String {
    // Most text is short and plain, and stays as it is.
    if text.len() <= most && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        match acts(character) {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// A JSON text that says the same and can be shown: a character that [`acts`] is written as
/// JSON escapes it. Line feeds stay, because they stand between a JSON text's values only.
pub fn json(text: String) -> String {
    let stays = |character: char| character == '\n' || !acts(character);
    if text.chars().all(stays) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if stays(character) {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing into a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{acts, json, printable};
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;

    #[test]
    fn escapes_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31mb\n", 80), "a\\u{1b}[31mb\\n");
        assert_eq!(printable("\u{202e}txt.exe", 80), "\\u{202e}txt.exe");
        assert_eq!(printable("abcdef", 3), "abc…");
        assert_eq!(printable("abc", 3), "abc");
        assert_eq!(printable("a\u{7f}", 3), "a\\u{7f}");
        assert_eq!(printable("é✓", 3), "é✓");
    }

    #[test]
    fn what_hides_or_reorders_text_acts() {
        for character in [
            '\u{ad}',
            '\u{61c}',
            '\u{9b}',
            '\u{200b}',
            '\u{2028}',
            '\u{2066}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e0001}',
            '\u{e0100}',
        ] {
            assert!(acts(character), "{:x}", character as u32);
            assert!(!printable(&character.to_string(), 9).contains(character));
        }
        for character in ['a', 'ü', ' ', '✓', '′', '…', '漢', '🦀'] {
            assert!(!acts(character), "{character}");
        }
    }

    #[test]
    fn json_says_the_same_and_nothing_in_it_acts() {
        let plain = "{\n  \"a\": \"ü\"\n}".to_owned();
        assert_eq!(json(plain.clone()), plain);
        assert_eq!(
            json("\"\u{7f}\u{202e}\u{e0001}\"".to_owned()),
            "\"\\u007f\\u202e\\udb40\\udc01\""
        );
    }
}
