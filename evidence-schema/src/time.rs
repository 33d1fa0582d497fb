//! Time as RFC 3339 in UTC, to the second, both ways.

use alloc::format;
use alloc::string::String;

/// The span that the clocks of two honest parties may differ by, in seconds.
pub const SKEW: u64 = 300;

/// `2026-06-09T12:34:56Z`
pub fn rfc3339(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let rest = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Reads exactly the form that [`rfc3339`] writes.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    if bytes.len() != 20 {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<u64> {
        let part = bytes.get(from..to)?;
        part.iter().try_fold(0, |sum: u64, byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + u64::from(byte - b'0'))
        })
    };
    let day = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let seconds = day * 86_400 + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    // Writing it again catches every wrong separator and every 31st of June.
    (rfc3339(seconds) == text).then_some(seconds)
}

/// Reads a span such as `90s`, `15m`, `24h` or `7d`; a plain number is seconds.
pub fn parse_span(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1),
        b'm' => (&text[..text.len() - 1], 60),
        b'h' => (&text[..text.len() - 1], 3600),
        b'd' => (&text[..text.len() - 1], 86_400),
        _ => (text, 1),
    };
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Days since 1970 → year, month, day in the Gregorian calendar, counted in
/// eras of 400 years that begin on the first of March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let shifted = year - u64::from(month <= 2);
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_go_both_ways() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_780_962_896, "2026-06-08T23:54:56Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
            assert_eq!(parse_rfc3339(text), Some(seconds));
        }
    }

    #[test]
    fn spans_are_read_and_what_is_none_is_refused() {
        for (text, seconds) in [
            ("0", 0),
            ("90", 90),
            ("90s", 90),
            ("15m", 900),
            ("24h", 86_400),
            ("7d", 604_800),
        ] {
            assert_eq!(parse_span(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "h",
            "-1h",
            "1.5h",
            "1w",
            " 1h",
            "1 h",
            "+1h",
            "9999999999d",
            "1é",
        ] {
            assert_eq!(parse_span(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        for text in [
            "",
            "2026-06-09",
            "2026-02-30T00:00:00Z",
            "2026-06-09T24:00:00Z",
            "2026-06-09 00:00:00Z",
            "2026-06-09T00:00:00+",
            "2026-06-09T00:00:6éZ",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
