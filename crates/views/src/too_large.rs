//! Limit of the memory that a kernel allocates.

use std::error::Error;
use std::fmt;

/// Error for a requested shape that has too many cells (buckets × ids, or groups × measures).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Number of requested cells.
    pub cells: u64,
}

impl TooLarge {
    /// Maximum number of cells of a kernel. This number of summaries takes 400 MB.
    pub const LIMIT: u64 = 1 << 23;

    /// Returns the number of cells, or an error if it exceeds the limit.
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
            "{cells} cells are too many, the limit is {limit}: request fewer buckets or groups"
        )
    }
}

impl Error for TooLarge {}
