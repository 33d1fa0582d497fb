//! `KEY=VALUE` words of `ENV` and `LABEL`, with quotes and escapes as BuildKit
//! reads them. Where BuildKit's own two passes disagree, the text is refused.

/// What is wrong with the text, and where in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PairProblem {
    /// The byte offset of the offending character.
    pub(crate) offset: usize,
    /// Why it is refused.
    pub(crate) why: &'static str,
    /// What to write instead.
    pub(crate) next: &'static str,
}

/// A key and its value, quotes removed.
pub(crate) type Pair = (String, String);

/// Splits `text` into pairs.
pub(crate) fn parse(text: &str, escape: char) -> Result<Vec<Pair>, PairProblem> {
    let mut scanner = Scanner {
        text,
        offset: 0,
        escape,
    };
    let mut pairs = Vec::new();
    loop {
        while scanner.peek().is_some_and(char::is_whitespace) {
            scanner.take();
        }
        if scanner.peek().is_none() {
            return Ok(pairs);
        }
        pairs.push(scanner.pair()?);
    }
}

struct Scanner<'a> {
    text: &'a str,
    offset: usize,
    escape: char,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.offset..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        Some(character)
    }

    fn problem(&self, offset: usize, why: &'static str, next: &'static str) -> PairProblem {
        PairProblem { offset, why, next }
    }

    /// One `KEY=VALUE`, up to the next unquoted whitespace.
    fn pair(&mut self) -> Result<Pair, PairProblem> {
        let start = self.offset;
        let mut key = None;
        let mut word = String::new();
        while let Some(character) = self.peek() {
            let here = self.offset;
            if character.is_whitespace() {
                break;
            }
            self.take();
            match character {
                '=' if key.is_none() => key = Some(std::mem::take(&mut word)),
                '\'' => self.single_quoted(here, &mut word)?,
                '"' => self.double_quoted(here, key.is_none(), &mut word)?,
                '$' => return Err(self.variable(here)),
                escape if escape == self.escape => match self.take() {
                    Some(literal) => word.push(literal),
                    None => return Err(self.dangling(here)),
                },
                other => word.push(other),
            }
        }
        match key {
            Some(key) if key.is_empty() => {
                Err(self.problem(start, "has an empty key", "write KEY=VALUE"))
            }
            Some(key) => Ok((key, word)),
            None => Err(self.problem(
                start,
                "has a word without `=`; the old form `KEY VALUE` is not supported",
                "write KEY=VALUE, with quotes around a value that has spaces",
            )),
        }
    }

    fn single_quoted(&mut self, open: usize, word: &mut String) -> Result<(), PairProblem> {
        loop {
            let here = self.offset;
            match self.take() {
                Some('\'') => return Ok(()),
                Some(escape) if escape == self.escape => {
                    return Err(self.problem(
                        here,
                        "has an escape character in single quotes, which builders read differently",
                        "use double quotes",
                    ));
                }
                Some(other) => word.push(other),
                None => return Err(self.unterminated(open)),
            }
        }
    }

    fn double_quoted(
        &mut self,
        open: usize,
        in_key: bool,
        word: &mut String,
    ) -> Result<(), PairProblem> {
        loop {
            let here = self.offset;
            match self.take() {
                Some('"') => return Ok(()),
                Some('$') => return Err(self.variable(here)),
                Some('=') if in_key => {
                    return Err(self.problem(here, "has `=` in a key", "remove it from the key"));
                }
                Some(escape) if escape == self.escape => match self.peek() {
                    // Only these three are escapes in double quotes; before
                    // anything else the escape character stands for itself.
                    Some(next) if next == '"' || next == '$' || next == self.escape => {
                        self.take();
                        word.push(next);
                    }
                    Some(_) => word.push(escape),
                    None => return Err(self.dangling(here)),
                },
                Some(other) => word.push(other),
                None => return Err(self.unterminated(open)),
            }
        }
    }

    fn variable(&self, offset: usize) -> PairProblem {
        self.problem(
            offset,
            "uses a variable, and variables are not expanded",
            "write the value itself, or escape the `$` if it is meant literally",
        )
    }

    fn unterminated(&self, offset: usize) -> PairProblem {
        self.problem(offset, "has a quote that is not closed", "close the quote")
    }

    fn dangling(&self, offset: usize) -> PairProblem {
        self.problem(
            offset,
            "ends in an escape character with nothing to escape",
            "remove it",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text, '\\').unwrap()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        pairs.iter().map(own).collect()
    }

    /// The left-hand sides were given to BuildKit, the right-hand sides are
    /// what it stored.
    #[test]
    fn quotes_and_escapes_as_buildkit_reads_them() {
        let text = r#"a="x y" 'b c'=d e=f\ g h='q"r' i="a\"b\\c\d" "k"="v" l="#;
        let expected = [
            ("a", "x y"),
            ("b c", "d"),
            ("e", "f g"),
            ("h", "q\"r"),
            ("i", "a\"b\\c\\d"),
            ("k", "v"),
            ("l", ""),
        ];
        assert_eq!(pairs(text), owned(&expected));
        assert_eq!(
            pairs(r#"p="\$5" q='$6' r=a=b"#),
            owned(&[("p", "$5"), ("q", "$6"), ("r", "a=b")])
        );
    }

    #[test]
    fn problems_point_at_the_character() {
        for (text, offset, why) in [
            ("A=$B", 2, "variable"),
            ("A=1 B=\"${C}\"", 7, "variable"),
            ("A=\"b", 2, "not closed"),
            ("A='b", 2, "not closed"),
            ("A='b\\'", 4, "single quotes"),
            ("A b", 0, "old form"),
            ("=b", 0, "empty key"),
            ("\"a=b\"=c", 2, "`=` in a key"),
            ("A=b\\", 3, "nothing to escape"),
        ] {
            let problem = parse(text, '\\').unwrap_err();
            assert_eq!(problem.offset, offset, "{text}");
            assert!(problem.why.contains(why), "{text}: {}", problem.why);
        }
    }

    #[test]
    fn the_escape_character_can_be_a_backtick() {
        assert_eq!(
            parse("A=C:\\x` y", '`').unwrap(),
            owned(&[("A", "C:\\x y")])
        );
    }
}
