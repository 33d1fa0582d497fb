//! Texts with places to fill in.

use crate::failure::Failure;

/// Replaces each `{{name}}`. A place without a value, and a value without a
/// place, are mistakes of ours.
pub fn fill(text: &str, values: &[(&str, String)]) -> Result<String, Failure> {
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
            let shown: String = after.chars().take(40).collect();
            return Err(Failure::internal(
                "packet.template",
                format!("no value for {shown}"),
            ));
        };
        out.push_str(&values[place].1);
        used[place] = true;
        rest = behind;
    }
    out.push_str(rest);
    match used.iter().position(|used| !used) {
        Some(place) => Err(Failure::internal(
            "packet.template",
            format!("no place for {}", values[place].0),
        )),
        None => Ok(out),
    }
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
    let text = crate::report::text::printable(text, 300);
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
