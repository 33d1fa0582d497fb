//! The clock, and time as RFC 3339 in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

pub use tki_evidence::time::{parse_rfc3339, rfc3339};

/// Seconds since 1970, now.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
