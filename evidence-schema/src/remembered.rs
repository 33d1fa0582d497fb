//! The reason of an exec gate that was not tried, because the engine had refused one
//! before: what it said then, and when. Written by `run`, read by `verify`.

use crate::time::{parse_rfc3339, rfc3339};
use alloc::format;
use alloc::string::String;

/// How every such reason begins. No other does.
pub const NOT_TRIED: &str = "not tried";

/// What stands before the engine's words.
const BEFORE: &str = "not tried (remembered): the engine does not take it: ";

/// What stands between the engine's words and the time.
const BETWEEN: &str = " (said at ";

/// The reason, from what the engine said and when, in seconds since 1970.
pub fn reason(said: &str, when: u64) -> String {
    format!("{BEFORE}{said}{BETWEEN}{})", rfc3339(when))
}

/// What the engine said and when; `None` unless it is exactly the form that [`reason`]
/// writes.
pub fn parse(reason: &str) -> Option<(&str, u64)> {
    let rest = reason.strip_prefix(BEFORE)?.strip_suffix(')')?;
    let (said, when) = rest.rsplit_once(BETWEEN)?;
    let when = parse_rfc3339(when)?;
    (!said.trim().is_empty()).then_some((said, when))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_goes_both_ways() {
        for said in ["listenerPath is not set", "a (said at b) c", "…"] {
            let text = reason(said, 1_780_962_896);
            assert!(text.starts_with(NOT_TRIED), "{text}");
            assert!(text.ends_with("(said at 2026-06-08T23:54:56Z)"), "{text}");
            assert_eq!(parse(&text), Some((said, 1_780_962_896)));
        }
    }

    #[test]
    fn what_is_almost_such_a_reason_is_none() {
        let good = reason("no", 0);
        for bad in [
            "",
            "not tried",
            "no gate was asked for",
            &reason("", 0),
            &reason(" ", 0),
            &good[1..],
            &good[..good.len() - 1],
            &format!("{good} "),
            &good.replace("remembered", "guessed"),
            &good.replace("1970-01-01", "1970-02-30"),
            &good.replace(" (said at ", " (said "),
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
