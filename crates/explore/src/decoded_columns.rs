//! Columns that are decoded to dense ids and numbers.
//!
//! A dense id represents a value of a key. Dense ids are consecutive numbers from 0, so they can be indexes of
//! arrays.

use rayon::prelude::*;
use views::TimeRange;

use crate::names::Names;

/// Key column as dense ids, with the labels of these ids.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Dense ids of the rows, in one list for each chunk of the table.
    pub(crate) chunks: Vec<Vec<u32>>,
    pub(crate) names: Names,
}

/// A column of numbers. Unknown numbers are [`views::NULL`].
#[derive(Debug)]
pub(crate) struct Measures {
    /// Numbers of the rows, in one list for each chunk of the table.
    pub(crate) chunks: Vec<Vec<i64>>,
    /// Minimum and maximum of the known numbers in each chunk. `None` if all numbers of the chunk are
    /// unknown.
    pub(crate) spans: Vec<Option<(i64, i64)>>,
}

/// Start and end of each row.
#[derive(Clone, Debug)]
pub(crate) struct RowIntervals {
    pub(crate) starts: std::sync::Arc<Measures>,
    pub(crate) ends: std::sync::Arc<Measures>,
}

impl RowIntervals {
    /// Returns true if the interval of a row is known and overlaps a time range. An interval of length 0 overlaps a
    /// range that contains its start.
    pub(crate) fn overlaps(&self, chunk: usize, row: usize, range: TimeRange) -> bool {
        let (start, end) = (self.starts.chunks[chunk][row], self.ends.chunks[chunk][row]);
        start != views::NULL
            && start < range.end()
            && (end > range.start() || start >= range.start())
    }
}

impl Keys {
    /// Returns the number of ids. It is also the dense id of the group of unknown values.
    pub(crate) fn bound(&self) -> u32 {
        self.names.len() as u32
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let ids: usize = self.chunks.iter().map(Vec::len).sum();
        ids * 4 + self.names.bytes()
    }
}

impl Measures {
    pub(crate) fn new(chunks: Vec<Vec<i64>>) -> Measures {
        let span = |values: &Vec<i64>| {
            let known = values.iter().copied().filter(|value| *value != views::NULL);
            let (min, max) = known.fold((i64::MAX, i64::MIN), |(min, max), value| {
                (min.min(value), max.max(value))
            });
            (min <= max).then_some((min, max))
        };
        Measures {
            spans: chunks.par_iter().map(span).collect(),
            chunks,
        }
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let numbers: usize = self.chunks.iter().map(Vec::len).sum();
        numbers * 8
    }
}
