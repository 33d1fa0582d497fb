//! Text that came from outside, made safe to show.

/// The longest piece of foreign text that a message repeats.
const SHOWN_CHARS: usize = 80;

/// Foreign text for a message, safe to print.
pub(crate) fn shown(text: &str) -> String {
    tki_text::printable(text, SHOWN_CHARS)
}

/// The 1-based line and column (in characters) of a byte offset.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::{position, shown};

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b"), "a\\u{1b}[31m\\u{202e}b");
        assert_eq!(shown("grün"), "grün");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), 81);
    }

    #[test]
    fn positions_count_characters_from_one() {
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("ä b\nc", 3), (1, 3));
        assert_eq!(position("ä\nc", 3), (2, 1));
        assert_eq!(position("ä", 1), (1, 1));
        assert_eq!(position("a", 99), (1, 2));
    }
}
