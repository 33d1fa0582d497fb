//! What the functions share that show an acceptance test: they print their proof, which
//! `make matrix` puts beside the row.

use std::fmt::Display;

/// Says what proves a test.
pub fn proof(test: u32, what: impl Display) {
    println!("proof #{test}: {what}");
}
