//! Sweeps have thousands of cases. `make test` tries each of them; `make check`, for which
//! that would take too long, one of as many as `TKI_SWEEP` says.

use std::sync::OnceLock;

/// Every how manieth case is tried.
pub fn stride() -> usize {
    static STRIDE: OnceLock<usize> = OnceLock::new();
    *STRIDE.get_or_init(|| match std::env::var("TKI_SWEEP") {
        Ok(text) => text.parse().expect("TKI_SWEEP is a number from 1 on"),
        Err(_) => 1,
    })
}

/// Whether the case with this number is tried.
pub fn is_tried(number: usize) -> bool {
    number.is_multiple_of(stride())
}

/// At least so many cases were tried, or would have been.
pub fn at_least(tried: usize, cases: usize) -> bool {
    tried * stride() >= cases
}
