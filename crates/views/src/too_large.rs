//! The bound on what a kernel may allocate.

use std::error::Error;
use std::fmt;

/// A shape was asked for that has more cells (buckets × ids, groups × measures) than are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Cells asked for.
    pub cells: u64,
}

impl TooLarge {
    /// The most cells that a kernel keeps: 400 MB of summaries.
    pub const LIMIT: u64 = 1 << 23;

    /// The number of cells, if they are not too many.
    pub(crate) fn check(rows: usize, columns: usize) -> Result<usize, TooLarge> {
        let cells = (rows as u64).saturating_mul(columns as u64);
        if cells <= TooLarge::LIMIT {
            Ok(rows * columns)
        } else {
            Err(TooLarge { cells })
        }
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cells, limit) = (self.cells, TooLarge::LIMIT);
        write!(
            f,
            "{cells} cells were asked for and at most {limit} are kept: take fewer buckets, or \
             name the ids to keep apart"
        )
    }
}

impl Error for TooLarge {}
