//! `/proc/PID/uid_map` and `gid_map`: ids inside, ids outside, how many.

use super::number;
use alloc::vec::Vec;

/// The most ranges of a map.
const MOST_ROWS: usize = 340;

/// A map that is in the kernel's form.
#[derive(Debug)]
pub struct Map(Vec<(u64, u64, u64)>);

impl Map {
    /// Reads a map. There is at least one range.
    pub fn parse(text: &str) -> Option<Self> {
        let row = |line: &str| {
            let mut words = line.split_whitespace().map(number);
            let row = (words.next()??, words.next()??, words.next()??);
            (words.next().is_none() && row.2 > 0).then_some(row)
        };
        let rows: Option<Vec<_>> = text.lines().map(row).collect();
        rows.filter(|rows| (1..=MOST_ROWS).contains(&rows.len()))
            .map(Self)
    }

    /// Every id is the same on both sides.
    pub fn is_identity(&self) -> bool {
        matches!(self.0.as_slice(), [(0, 0, count)] if *count >= u64::from(u32::MAX))
    }

    /// An id of the host as the container knows it.
    pub fn inner(&self, id: u64) -> Option<u64> {
        self.0.iter().find_map(|(inner, outer, count)| {
            let offset = id.checked_sub(*outer).filter(|offset| offset < count)?;
            inner.checked_add(offset)
        })
    }

    /// The container knows this id as one of its own.
    pub fn has_inner(&self, id: u64) -> bool {
        let own = |(inner, _, count): &(u64, u64, u64)| {
            id.checked_sub(*inner).is_some_and(|offset| offset < *count)
        };
        self.0.iter().any(own)
    }

    /// Both give the container the same ids, whichever they are outside: that depends
    /// on who reads.
    pub fn has_same_ids(&self, other: &Self) -> bool {
        let own = |(inner, _, count): &(u64, u64, u64)| (*inner, *count);
        self.0.iter().map(own).eq(other.0.iter().map(own))
    }
}
