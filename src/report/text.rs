//! Text from elsewhere, made safe to print.

/// At most `most` characters, in one line, without control characters: nothing
/// from a container, an engine or a file reaches the terminal as an escape.
pub fn printable(text: &str, most: usize) -> String {
    // Most text is short and plain, and stays as it is.
    if text.len() <= most && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        if is_safe(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

/// Not a control character, and none of the invisible characters that reorder
/// or hide what stands around them.
fn is_safe(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn escapes_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31mb\n", 80), "a\\u{1b}[31mb\\n");
        assert_eq!(printable("\u{202e}txt.exe", 80), "\\u{202e}txt.exe");
        assert_eq!(printable("abcdef", 3), "abc…");
        assert_eq!(printable("abc", 3), "abc");
        assert_eq!(printable("a\u{7f}", 3), "a\\u{7f}");
        assert_eq!(printable("é✓", 3), "é✓");
    }
}
