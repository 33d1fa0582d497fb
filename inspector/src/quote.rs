//! Quotes in lines of text. White space is folded on both sides: a quote may be broken
//! differently than the text.

use alloc::string::String;
use alloc::vec::Vec;

/// Whether the quote stands within these lines (from 1, both counted).
pub fn stands_in(text: &str, first: u64, last: u64, quote: &str) -> bool {
    let skip = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
    let take = usize::try_from(last.saturating_sub(first))
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    let lines: Vec<&str> = text.split('\n').skip(skip).take(take).collect();
    folded(&lines.join("\n")).contains(&folded(quote))
}

fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
