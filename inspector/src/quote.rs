//! Quotes: whether a text stands in lines of another, and where it stands. Runs of white space
//! count as one space on both sides, so that a quote may go over the end of a line. The packer
//! fills in the lines of a quote with [`find`]; the inspector looks at them with [`stands_in`].

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Whether a quote stands within these lines of a text, the first of which is line 1. Lines
/// that the text does not have hold nothing.
pub fn stands_in(text_lines: &str, first: u64, last: u64, quote: &str) -> bool {
    let quote = fold(quote);
    let Some(lines) = lines_of(text_lines, first, last) else {
        return false;
    };
    !quote.is_empty() && fold(lines).contains(&quote)
}

/// The lines, first and last, of every place where a quote stands. Places on the same lines
/// count once. It takes time in proportion to the text, whatever the quote is.
pub fn find(text: &str, quote: &str) -> Vec<(u64, u64)> {
    let quote = fold(quote);
    if quote.is_empty() {
        return Vec::new();
    }
    let mut search = Search::new(quote.as_bytes());
    for (row, line) in text.split('\n').zip(1..) {
        let mut begins = true;
        for word in row.split_whitespace() {
            if search.length > 0 {
                search.take(b' ', line);
            }
            if begins {
                search.starts.push((search.length, line));
                begins = false;
            }
            word.bytes().for_each(|byte| search.take(byte, line));
        }
    }
    search.found
}

/// A text in which every run of white space is one space, without any around it.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// These lines of a text; nothing unless it has all of them.
fn lines_of(text: &str, first: u64, last: u64) -> Option<&str> {
    if first == 0 || last < first {
        return None;
    }
    let (mut start, mut at) = (None, 0);
    for (row, line) in text.split_inclusive('\n').zip(1..) {
        if line == first {
            start = Some(at);
        }
        at += row.len();
        if line == last {
            return start.map(|start| &text[start..at]);
        }
    }
    None
}

/// The search of Knuth, Morris and Pratt, which never looks at a byte of the text twice and
/// finds places that overlap.
struct Search<'a> {
    quote: &'a [u8],
    /// For each beginning of the quote, how much of its end is a beginning as well.
    back: Vec<usize>,
    /// How many bytes of the quote the text ends with so far.
    matched: usize,
    /// How many bytes of the folded text were taken.
    length: usize,
    /// Where in the folded text each line begins that has something on it.
    starts: Vec<(usize, u64)>,
    /// The line of the last place's beginning, in `starts`.
    begun: usize,
    found: Vec<(u64, u64)>,
}

impl<'a> Search<'a> {
    fn new(quote: &'a [u8]) -> Self {
        let mut back = vec![0; quote.len()];
        let mut matched = 0;
        for at in 1..quote.len() {
            while matched > 0 && quote[matched] != quote[at] {
                matched = back[matched - 1];
            }
            if quote[matched] == quote[at] {
                matched += 1;
            }
            back[at] = matched;
        }
        Self {
            quote,
            back,
            matched: 0,
            length: 0,
            starts: Vec::new(),
            begun: 0,
            found: Vec::new(),
        }
    }

    /// Takes the next byte of the folded text, which stands on this line.
    fn take(&mut self, byte: u8, line: u64) {
        self.length += 1;
        while self.matched > 0 && self.quote.get(self.matched) != Some(&byte) {
            self.matched = self.back[self.matched - 1];
        }
        if self.quote[self.matched] == byte {
            self.matched += 1;
        }
        if self.matched < self.quote.len() {
            return;
        }
        let start = self.length - self.quote.len();
        let next = |begun: usize| self.starts.get(begun + 1);
        while next(self.begun).is_some_and(|(from, _)| *from <= start) {
            self.begun += 1;
        }
        let place = (self.starts[self.begun].1, line);
        if self.found.last() != Some(&place) {
            self.found.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const TEXT: &str = "# Index\n\nB4′ is  BLOCKED:\n  0 of 12\tprobes run.\r\nB4′ is waived\n";

    #[test]
    fn a_quote_is_found_on_its_lines_whatever_the_white_space_is() {
        assert_eq!(find(TEXT, "B4′ is BLOCKED"), [(3, 3)]);
        assert_eq!(find(TEXT, " BLOCKED: 0 of\n12 probes "), [(3, 4)]);
        assert_eq!(find(TEXT, "run. B4′"), [(4, 5)]);
        assert_eq!(find(TEXT, "B4′ is"), [(3, 3), (5, 5)]);
        assert_eq!(find(TEXT, "# Index B4′"), [(1, 3)]);
        assert_eq!(find(TEXT, "accepted"), []);
        assert_eq!(find(TEXT, " \n"), []);
        assert_eq!(find("", "a"), []);
    }

    #[test]
    fn places_that_overlap_are_all_found_and_those_on_one_line_are_one() {
        assert_eq!(find("a\na\na\n", "a a"), [(1, 2), (2, 3)]);
        assert_eq!(find("aba ababa", "aba"), [(1, 1)]);
        assert_eq!(find("aab\naaab", "aab"), [(1, 1), (2, 2)]);
    }

    #[test]
    fn what_is_found_stands_there_and_on_no_fewer_lines() {
        for quote in [
            "B4′ is",
            "BLOCKED: 0",
            "12 probes",
            "Index B4′ is BLOCKED: 0",
        ] {
            for (first, last) in find(TEXT, quote) {
                assert!(stands_in(TEXT, first, last, quote), "{quote}");
                assert!(stands_in(TEXT, 1, 5, quote), "{quote}");
                assert!(first == last || !stands_in(TEXT, first + 1, last, quote));
                assert!(first == last || !stands_in(TEXT, first, last - 1, quote));
            }
        }
    }

    #[test]
    fn lines_that_are_not_there_hold_nothing() {
        for (first, last) in [(0, 1), (2, 1), (5, 6), (1, 6), (u64::MAX, u64::MAX)] {
            assert!(!stands_in(TEXT, first, last, "B4′ is"), "{first}-{last}");
        }
        assert!(!stands_in(TEXT, 1, 5, " "));
        assert!(!stands_in(TEXT, 1, 5, "waived accepted"));
        assert!(stands_in("a", 1, 1, "a") && !stands_in("a\n", 1, 2, "a"));
    }

    #[test]
    fn a_search_that_almost_fits_everywhere_is_still_linear() {
        let text = "a".repeat(4 << 20);
        let quote = "a".repeat(4000) + "b";
        assert_eq!(find(&text, &quote), []);
        let spread = "a\n".repeat(100_000);
        assert_eq!(find(&spread, &"a ".repeat(2000)).len(), 98_001);
        assert_eq!(fold(" a \n\t b ").to_string(), "a b");
    }
}
