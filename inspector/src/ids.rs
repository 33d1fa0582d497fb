//! The form of names within a packet.

use tki_text::acts;

/// A name: short, and nothing in it acts on a terminal, a path or a table.
pub fn is_id(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_'′″‴".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts && text.chars().count() <= 64 && text.chars().all(is_part)
}

/// One line of text that shows all of itself.
pub fn is_plain_text(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && !text.chars().any(acts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_and_plain() {
        for good in ["a", "C-01", "B4'", "B0‴", "index-77", "a.b_c"] {
            assert!(is_id(good), "{good}");
        }
        let long = "x".repeat(65);
        for bad in [
            "",
            "-a",
            ".",
            "a b",
            "a/b",
            "a\n",
            "ü",
            "a|b",
            "a\u{202e}",
            &long,
        ] {
            assert!(!is_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_line_shows_all_of_itself() {
        assert!(is_plain_text("tkt — ü", 20));
        for bad in [
            "",
            "a\u{1b}[31m",
            "a\nb",
            "a\u{200b}b",
            "123456789012345678901",
        ] {
            assert!(!is_plain_text(bad, 20), "{bad:?}");
        }
    }
}
