//! The canonical form of a text that is as plain as what this tool writes, in a
//! pass that looks at each byte once. It gives up on whatever is not: an escape
//! with another spelling, a number that needs a closer look, a key twice, and
//! everything that is no JSON. The careful reader then says what the text is, or
//! what is wrong with it; here nothing is refused, and nothing is accepted that
//! the careful reader would refuse.

use super::{Entry, Writer};
use alloc::borrow::Cow;

/// How deep a plain text goes. The careful reader goes deeper.
const MAX_DEPTH: usize = 32;

/// A number with so many digits is exact in every reader.
const MAX_DIGITS: usize = 15;

/// Writes the canonical form; `None` if the text is not plain.
pub fn write<'de>(text: &'de str, writer: &mut Writer<'de, '_>) -> Option<()> {
    let mut reader = Reader { text, at: 0 };
    reader.value(writer, 0)?;
    reader.skip_white_space();
    (reader.at == text.len()).then_some(())
}

struct Reader<'de> {
    text: &'de str,
    at: usize,
}

impl<'de> Reader<'de> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is no white space, which is left behind.
    fn token(&mut self) -> Option<u8> {
        self.skip_white_space();
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn value(&mut self, writer: &mut Writer<'de, '_>, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.token()? {
            b'"' => writer.out.push_str(self.string()?.0),
            b'{' => self.object(writer, depth)?,
            b'[' => self.array(writer, depth)?,
            b't' => self.word("true", writer)?,
            b'f' => self.word("false", writer)?,
            b'n' => self.word("null", writer)?,
            b'-' | b'0'..=b'9' => self.number(writer)?,
            _ => return None,
        }
        Some(())
    }

    /// After its first letter.
    fn word(&mut self, word: &str, writer: &mut Writer) -> Option<()> {
        let start = self.at - 1;
        self.text[start..].starts_with(word).then_some(())?;
        self.at = start + word.len();
        writer.out.push_str(word);
        Some(())
    }

    /// After its first character. What follows it is looked at as a token.
    fn number(&mut self, writer: &mut Writer) -> Option<()> {
        let start = self.at - 1;
        while let Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') = self.peek() {
            self.at += 1;
        }
        let number = &self.text[start..self.at];
        let digits = number.strip_prefix('-').unwrap_or(number).as_bytes();
        let plain = match digits {
            [b'0'] => digits.len() == number.len(),
            [b'1'..=b'9', rest @ ..] => {
                rest.len() < MAX_DIGITS && rest.iter().all(u8::is_ascii_digit)
            }
            _ => false,
        };
        plain.then(|| writer.out.push_str(number))
    }

    /// After its quotation mark: the string with both marks, and whether there is
    /// an escape in it. Every escape that is plain has this one spelling.
    fn string(&mut self) -> Option<(&'de str, bool)> {
        let (start, mut escaped) = (self.at - 1, false);
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..)?;
            self.at += rest.iter().position(|byte| SPECIAL[usize::from(*byte)])?;
            match bytes[self.at] {
                b'"' => break,
                b'\\' if is_plain_escape(*bytes.get(self.at + 1)?) => escaped = true,
                _ => return None,
            }
            self.at += 2;
        }
        self.at += 1;
        Some((&self.text[start..self.at], escaped))
    }

    fn array(&mut self, writer: &mut Writer<'de, '_>, depth: usize) -> Option<()> {
        writer.out.push('[');
        self.skip_white_space();
        if self.peek()? == b']' {
            self.at += 1;
            writer.out.push(']');
            return Some(());
        }
        loop {
            self.value(writer, depth + 1)?;
            match self.token()? {
                b',' => writer.out.push(','),
                b']' => break,
                _ => return None,
            }
        }
        writer.out.push(']');
        Some(())
    }

    fn object(&mut self, writer: &mut Writer<'de, '_>, depth: usize) -> Option<()> {
        writer.out.push('{');
        let (first, start) = (writer.entries.len(), writer.out.len());
        let mut token = self.token()?;
        while token != b'}' {
            if token != b'"' {
                return None;
            }
            let (key, escaped) = self.string()?;
            if escaped || self.token()? != b':' {
                return None;
            }
            let start = writer.out.len();
            writer.out.push_str(key);
            writer.out.push(':');
            self.value(writer, depth + 1)?;
            let end = writer.out.len();
            writer.out.push(',');
            let key = Cow::Borrowed(&key[1..key.len() - 1]);
            writer.entries.push(Entry { key, start, end });
            token = match self.token()? {
                b'}' => b'}',
                // After a comma there is another key.
                b',' => Some(self.token()?).filter(|next| *next != b'}')?,
                _ => return None,
            };
        }
        writer.close(first, start, depth == 0).then_some(())
    }
}

/// Bytes at which a string ends, or needs a closer look.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[0x7f] = true;
    special
};

/// An escape that the canonical form has too. All others have another spelling.
fn is_plain_escape(after: u8) -> bool {
    matches!(after, b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't')
}

#[cfg(test)]
mod tests {
    use super::super::{canonical, carefully};
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::string::String;
    use alloc::vec::Vec;
    use alloc::{format, vec};

    fn plainly(text: &str) -> Option<String> {
        let mut writer = Writer::new(text.len(), None);
        write(text, &mut writer).map(|()| writer.out)
    }

    #[test]
    fn what_this_tool_writes_is_plain() {
        for text in [crate::matrix::REV4, crate::DENY_BY_DEFAULT, "[]", " {\n} "] {
            assert!(plainly(text).is_some(), "{text}");
        }
    }

    /// Every text that is one edit away from one of these is given up or read as
    /// the careful reader reads it.
    #[test]
    fn what_is_plain_is_what_the_careful_reader_reads() {
        let texts = [
            r#"{"b":[1,-20,true,false,null],"a":{"d":"x\n\"\\","c":[{},[],""]}}"#,
            " [ { \"k\" : 0 , \"j\" : \"\u{e9}\\t\" } ] ",
            r#"{"a":1,"b":2,"a":3}"#,
            "123456789012345",
        ];
        let bytes: Vec<u8> = (0..=0x7f).collect();
        for text in texts {
            let mut edited = vec![text.to_owned()];
            for (at, old) in text.char_indices() {
                let (before, after) = (&text[..at], &text[at + old.len_utf8()..]);
                edited.push(format!("{before}{after}"));
                edited.push(before.to_owned());
                for byte in &bytes {
                    let new = char::from(*byte);
                    edited.push(format!("{before}{new}{after}"));
                    edited.push(format!("{before}{new}{old}{after}"));
                }
            }
            let mut plain = 0;
            for text in edited {
                let careful = carefully(&text, None).ok().map(|writer| writer.out);
                if let Some(read) = plainly(&text) {
                    plain += 1;
                    assert_eq!(Some(read), careful, "{text:?}");
                }
                assert_eq!(canonical(text.as_bytes()).ok(), careful, "{text:?}");
            }
            assert!(plain > 10, "{text}");
        }
    }

    #[test]
    fn what_needs_a_closer_look_is_given_up() {
        for text in [
            "-0",
            "01",
            "1.0",
            "1e3",
            "1234567890123456",
            r#""\u0061""#,
            r#""\/""#,
            "\"\u{7f}\"",
            r#"{"\n":1}"#,
            r#"{"a":1,"b":1,"a":1}"#,
            &"[".repeat(MAX_DEPTH + 2),
        ] {
            assert_eq!(plainly(text), None, "{text}");
        }
    }
}
