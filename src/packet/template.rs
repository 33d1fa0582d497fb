//! Texts with places to fill in.

use crate::packet::error::PacketError;

/// Replaces each `{{name}}`. A place without a value, and a value without a
/// place, are mistakes of ours.
pub fn fill(text: &str, values: &[(&str, String)]) -> Result<String, PacketError> {
    let mut out = String::with_capacity(text.len());
    let mut used = vec![false; values.len()];
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        // `${{ … }}` is GitHub's own.
        if rest[..start].ends_with('$') {
            out.push_str("{{");
            rest = after;
            continue;
        }
        let found = after
            .find("}}")
            .map(|end| (&after[..end], &after[end + 2..]));
        let place = found.and_then(|(name, _)| values.iter().position(|(known, _)| *known == name));
        let (Some((_, behind)), Some(place)) = (found, place) else {
            let place = after.chars().take(40).collect();
            return Err(PacketError::NoValue { place });
        };
        out.push_str(&values[place].1);
        used[place] = true;
        rest = behind;
    }
    out.push_str(rest);
    match used.iter().position(|used| !used) {
        Some(place) => Err(PacketError::NoPlace {
            name: values[place].0.to_owned(),
        }),
        None => Ok(out),
    }
}

/// A value for a workflow, a manifest or a script, by what may stand in its place.
/// Whatever the value is, it cannot end the line that it stands in, and no system
/// that reads the file takes it for an expression of its own.
#[derive(Clone, Debug)]
pub enum Slot {
    /// One word: a digest, a number, an id.
    Word(String),
    /// A name or a few words, in a comment.
    Name(String),
    /// Words of a command line, which are quoted.
    Command(Vec<String>),
    /// One line of JSON that this tool made, inside a literal block.
    Json(String),
    /// Lines that [`fill_safely`] made.
    Block(String),
}

/// The same as [`fill`] where a program reads the result: a value that its place
/// cannot hold is refused.
pub fn fill_safely(text: &str, values: Vec<(&'static str, Slot)>) -> Result<String, PacketError> {
    let checked = values.into_iter().map(|(name, slot)| {
        let safe = slot.text(name)?;
        Ok((name, safe))
    });
    fill(text, &checked.collect::<Result<Vec<_>, PacketError>>()?)
}

/// Checks a name that packets show.
pub fn check_name(what: &'static str, name: &str) -> Result<(), PacketError> {
    Slot::Name(name.to_owned()).text(what).map(drop)
}

impl Slot {
    /// Its text. An error says `what` it is, and what of it is not safe.
    fn text(self, what: &'static str) -> Result<String, PacketError> {
        let unsafe_value = |value| Err(PacketError::Unsafe { what, value });
        let word = |c: char| c.is_ascii_alphanumeric() || "._:/@+=-".contains(c);
        let name = |c: char| c.is_alphanumeric() || "._-+@(), ".contains(c);
        match self {
            Slot::Word(text) if !text.is_empty() && text.chars().all(word) => Ok(text),
            Slot::Name(text) if !text.is_empty() && text.chars().all(name) => Ok(text),
            Slot::Json(text) if in_one_line(&text) => Ok(text),
            Slot::Command(words) => match words.iter().find(|word| !in_one_line(word)) {
                None => Ok(shell(&words)),
                Some(bad) => unsafe_value(bad.clone()),
            },
            Slot::Block(text) => Ok(text),
            Slot::Word(text) | Slot::Name(text) | Slot::Json(text) => unsafe_value(text),
        }
    }
}

/// Neither a further line nor the start of an expression: GitHub replaces `${{ … }}`
/// and GitLab `$[[ … ]]` before any shell can see a quote.
fn in_one_line(text: &str) -> bool {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}');
    !text.chars().any(breaks) && !text.contains("{{") && !text.contains("$[[")
}

/// Words as a shell reads them, one flag a line. Only `$scratch` and `$docker`
/// are expanded.
pub fn shell(words: &[String]) -> String {
    let mut line = String::new();
    for word in words {
        let flag = word.starts_with("--") && word.contains('=') && !word.starts_with("--unset");
        line += match (line.is_empty(), flag) {
            (true, _) => "",
            (false, true) => " \\\n    ",
            (false, false) => " ",
        };
        line += &quoted(word);
    }
    line
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    let without = word.replace("$scratch", "").replace("$docker", "");
    match (word.chars().all(plain), without.chars().all(plain)) {
        (true, _) => word.to_owned(),
        (false, true) => format!("\"{word}\""),
        (false, false) => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A cell of a Markdown table.
pub fn cell(text: &str) -> String {
    let text = tki_text::printable(text, 300);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // Nothing that would become a column, a link, a picture or markup.
            '|' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '`' => out.push('\''),
            '<' => out.push_str("&lt;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_mistakes_are_found() {
        let values = [("a", "1".to_owned())];
        assert_eq!(fill("x {{a}} ${{ b }}", &values).unwrap(), "x 1 ${{ b }}");
        assert!(fill("x {{b}}", &values).is_err());
        assert!(fill("x", &values).is_err());
        assert!(fill("x {{a", &values).is_err());
    }

    #[test]
    fn no_value_leaves_its_place() {
        let safe = |slot: Slot| fill_safely("x {{a}} ${{ b }}", vec![("a", slot)]);
        for (slot, wanted) in [
            (Slot::Word("sha256:ab".into()), "sha256:ab"),
            (
                Slot::Name("my profile (1).json".into()),
                "my profile (1).json",
            ),
            (Slot::Name("größe.json".into()), "größe.json"),
            (
                Slot::Command(vec!["--a".into(), "b $(c) 'd".into()]),
                "--a 'b $(c) '\\''d'",
            ),
            (
                Slot::Json("{\"a\":[{\"b\":1}]}".into()),
                "{\"a\":[{\"b\":1}]}",
            ),
        ] {
            assert_eq!(safe(slot).unwrap(), format!("x {wanted} ${{{{ b }}}}"));
        }
        let bad = [
            "a\n      - run: id",
            "a\rb",
            "a\u{85}b",
            "a\u{2028}b",
            "${{ secrets.X }}",
            "$[[ inputs.x ]]",
            "{{version}}",
        ];
        for text in bad.map(str::to_owned) {
            for slot in [
                Slot::Word(text.clone()),
                Slot::Name(text.clone()),
                Slot::Json(text.clone()),
                Slot::Command(vec!["--a".into(), text.clone()]),
            ] {
                let error = safe(slot.clone()).unwrap_err();
                assert!(matches!(error, PacketError::Unsafe { .. }), "{slot:?}");
            }
        }
        for text in ["", "a b", "a#b", "a'b", "a\"b", "$x", "a`b"] {
            assert!(safe(Slot::Word(text.into())).is_err(), "{text}");
        }
        for text in ["", "a#b", "a: 'b'", "$(x)", "`x`", "a\u{202e}b"] {
            assert!(safe(Slot::Name(text.into())).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cell_is_text_and_nothing_else() {
        assert_eq!(
            cell("a|b ![x](http://h) \\[y](z) `c` <d>"),
            "a\\|b !\\[x\\](http://h) \\\\\\[y\\](z) 'c' &lt;d>"
        );
    }

    #[test]
    fn words_keep_their_borders() {
        let words = ["a", "--b=$scratch/in", "c d", "it's"].map(str::to_owned);
        assert_eq!(
            shell(&words),
            "a \\\n    \"--b=$scratch/in\" 'c d' 'it'\\''s'"
        );
    }
}
