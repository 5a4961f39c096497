//! Ids that are given to one thing after another.

use crate::column::Nullable;

/// Rows of a table of lifetimes, by id and time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifetimes {
    /// Sorted by id and first moment.
    entries: Vec<(u32, i64, usize)>,
}

impl Lifetimes {
    /// Reads the lifetimes of a table's rows. What has no begin was there since the end of its
    /// predecessor of the same id, or always.
    pub(crate) fn new(
        ids: &[u32],
        first_seen: &[i64],
        begin: &Nullable<i64>,
        end: &Nullable<i64>,
    ) -> Lifetimes {
        let mut rows: Vec<usize> = (0..ids.len()).collect();
        rows.sort_by_key(|row| (ids[*row], first_seen[*row]));
        let mut entries: Vec<(u32, i64, usize)> = Vec::with_capacity(rows.len());
        for row in rows {
            let since = entries
                .last()
                .filter(|last| last.0 == ids[row])
                .map(|last| {
                    end.get(last.2)
                        .map_or(first_seen[row], |end| end.saturating_add(1))
                });
            let from = begin.get(row).or(since).unwrap_or(i64::MIN);
            entries.push((ids[row], from, row));
        }
        entries.sort_by_key(|entry| (entry.0, entry.1));
        Lifetimes { entries }
    }

    /// The row that had the id at a moment. The last to have it keeps it beyond its end, for the
    /// events that tell of its end.
    pub(crate) fn row(&self, id: u32, time_ns: i64) -> Option<usize> {
        self.row_and_span(id, time_ns).0
    }

    /// The same, and from which moment until which (not included) the answer holds.
    pub(crate) fn row_and_span(&self, id: u32, time_ns: i64) -> (Option<usize>, i64, i64) {
        let after = self
            .entries
            .partition_point(|entry| (entry.0, entry.1) <= (id, time_ns));
        let of_id = |entry: &&(u32, i64, usize)| entry.0 == id;
        let next = self.entries.get(after).filter(of_id);
        let until = next.map_or(i64::MAX, |entry| entry.1);
        let now = after.checked_sub(1).and_then(|at| self.entries.get(at));
        match now.filter(of_id) {
            Some((_, from, row)) => (Some(*row), *from, until),
            None => (None, i64::MIN, until),
        }
    }
}
