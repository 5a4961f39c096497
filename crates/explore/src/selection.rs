//! The rows of a table that a request is about: a stretch of time, less what filters take out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use views::{IdSet, NULL, Rows, TimeRange, rows_within};

use crate::catalogue::{self, ColumnDef, ColumnKind};
use crate::columns::{Columns, Keys, Measures, Opened};
use crate::trace::{Trace, check};
use crate::{Condition, ExploreError, decode, query};

/// What requests are answered from.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) columns: &'a Columns,
    pub(crate) cancel: &'a AtomicBool,
}

/// Which rows are in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// Those that overlap it, if rows last.
    Overlap,
    /// Those whose time lies in it.
    Moment,
}

/// The most conditions of a request.
const MOST_CONDITIONS: usize = 64;

/// The rows of a table that a request is about.
pub(crate) struct Selection<'a> {
    pub(crate) ask: Ask<'a>,
    pub(crate) table: Opened,
    /// The chunks that may have some.
    chunks: Vec<usize>,
    range: Option<Time>,
    tests: Vec<Test>,
    /// The conditions as SQL.
    pub(crate) sql: Vec<String>,
}

/// Where rows are in time.
enum Time {
    /// Each at a moment, sorted.
    Moments(Arc<Measures>, TimeRange),
    /// Each from a start to an end.
    Intervals(Arc<Measures>, Arc<Measures>, TimeRange),
}

/// What a row must pass.
enum Test {
    Ids(Arc<Keys>, IdSet),
    Span(Arc<Measures>, Option<i64>, Option<i64>),
    Contains(&'static str, String),
}

impl<'a> Ask<'a> {
    /// Opens a table by its name.
    pub(crate) fn open(&self, name: &str) -> Result<Opened, ExploreError> {
        let def = catalogue::table(name)?;
        let stored = self.trace.table(def.table, self.cancel)?;
        Ok(Opened { def, stored })
    }

    pub(crate) fn keys(
        &self,
        table: &Opened,
        column: &'static ColumnDef,
    ) -> Result<Arc<Keys>, ExploreError> {
        self.columns.keys(self.trace, table, column, self.cancel)
    }

    pub(crate) fn measures(
        &self,
        table: &Opened,
        column: &'static ColumnDef,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.columns.measures(table, column, self.cancel)
    }

    /// The stretch of time of a request, or all of the trace and of the table.
    pub(crate) fn span(
        &self,
        range: Option<[i64; 2]>,
        table: &Opened,
    ) -> Result<TimeRange, ExploreError> {
        if let Some(range) = range_of(range)? {
            return Ok(range);
        }
        let (start, end) = tables::span_of(self.trace.store.trace());
        let chunks = table.stored.chunks();
        let (first, last) = match (chunks.first(), chunks.last()) {
            (Some(first), Some(last)) => (first.first, last.last),
            _ => (start, end),
        };
        // Captured packets can be all that there is, and are where UTC has them.
        let is_captured = end == start;
        let start = if is_captured { first } else { start };
        Ok(TimeRange::new(start, end.max(last).saturating_add(1)))
    }
}

/// A request's stretch of time.
pub(crate) fn range_of(range: Option<[i64; 2]>) -> Result<Option<TimeRange>, ExploreError> {
    match range {
        Some([start, end]) if start >= end => Err(ExploreError::OutOfBounds {
            field: "range",
            needed: format!("must end after it starts; {start} to {end} is no stretch of time"),
        }),
        Some([start, end]) => Ok(Some(TimeRange::new(start, end))),
        None => Ok(None),
    }
}

/// # Errors
/// If a number of a request is not within its bounds.
pub(crate) fn bounded(
    field: &'static str,
    number: u64,
    least: u64,
    most: u64,
) -> Result<(), ExploreError> {
    match (least..=most).contains(&number) {
        true => Ok(()),
        false => Err(ExploreError::OutOfBounds {
            field,
            needed: format!("must be from {least} to {most}, not {number}"),
        }),
    }
}

impl<'a> Selection<'a> {
    pub(crate) fn new(
        ask: Ask<'a>,
        table: &Opened,
        within: Within,
        range: Option<TimeRange>,
        filter: &[Condition],
    ) -> Result<Selection<'a>, ExploreError> {
        bounded("filter", filter.len() as u64, 0, MOST_CONDITIONS as u64)?;
        let mut selection = Selection {
            ask,
            table: table.clone(),
            chunks: (0..table.stored.chunks().len()).collect(),
            range: None,
            tests: Vec::new(),
            sql: Vec::new(),
        };
        // What is wrong with a condition is told before anything is decoded.
        let mut columns = Vec::with_capacity(filter.len());
        for condition in filter {
            columns.push(checked(table, condition)?);
        }
        if let Some(range) = range {
            selection.limit(within, range)?;
        }
        for (condition, column) in filter.iter().zip(columns) {
            selection.add(condition, column)?;
        }
        Ok(selection)
    }

    fn limit(&mut self, within: Within, range: TimeRange) -> Result<(), ExploreError> {
        let columns = self.ask.columns;
        let intervals = match within {
            Within::Overlap => columns.intervals(&self.table, self.ask.cancel)?,
            Within::Moment => None,
        };
        let (start, end) = (range.start(), range.end());
        match intervals {
            Some((starts, ends)) => {
                self.chunks.retain(|chunk| {
                    let (starts, ends) = (starts.spans[*chunk], ends.spans[*chunk]);
                    starts.is_some_and(|(least, _)| least < end)
                        && ends.is_some_and(|(_, greatest)| greatest > start)
                });
                self.range = Some(Time::Intervals(starts, ends, range));
            }
            None => {
                let times = columns.times(&self.table, self.ask.cancel)?;
                self.chunks.retain(|chunk| {
                    times.spans[*chunk]
                        .is_some_and(|(least, greatest)| least < end && greatest >= start)
                });
                self.range = Some(Time::Moments(times, range));
            }
        }
        self.sql.push(query::within(self.table.def, within, range));
        Ok(())
    }

    fn add(
        &mut self,
        condition: &Condition,
        column: &'static ColumnDef,
    ) -> Result<(), ExploreError> {
        let table = self.table.clone();
        if column.kind == ColumnKind::Text {
            if let Some(text) = &condition.contains {
                self.sql.push(query::contains(column, text));
                let test = Test::Contains(stored_text(column), text.to_lowercase());
                self.tests.push(test);
            }
            return Ok(());
        }
        if column.kind == ColumnKind::Key {
            let keys = self.ask.keys(&table, column)?;
            let names = &keys.names;
            let unknown = keys.bound();
            let mut sets = Vec::new();
            let every = || IdSet::new(unknown).with(0..=unknown);
            let of = |ids: &[crate::Id]| {
                let ids = ids.iter().filter_map(|id| names.dense(*id));
                ids.collect::<Vec<u32>>()
            };
            if let Some(ids) = &condition.within {
                let ids = of(ids);
                self.sql.push(query::is_one_of(column, names, &ids));
                sets.push(IdSet::new(unknown).with(ids));
            }
            if let Some(ids) = &condition.not_in {
                let ids = of(ids);
                self.sql.push(query::is_none_of(column, names, &ids));
                let out = IdSet::new(unknown).with(ids);
                sets.push(IdSet::new(unknown).with((0..=unknown).filter(|id| !out.contains(*id))));
            }
            if let Some(labels) = &condition.is {
                self.sql.push(query::is_label(column, labels));
                sets.push(names.whose(|label| labels.iter().any(|wanted| wanted == label)));
            }
            if let Some(labels) = &condition.is_not {
                self.sql.push(query::is_no_label(column, labels));
                let out = names.whose(|label| labels.iter().any(|unwanted| unwanted == label));
                sets.push(IdSet::new(unknown).with((0..=unknown).filter(|id| !out.contains(*id))));
            }
            if let Some(text) = &condition.contains {
                self.sql.push(query::contains(column, text));
                let text = text.to_lowercase();
                sets.push(names.whose(|label| label.to_lowercase().contains(&text)));
            }
            if condition.from.is_some() || condition.to.is_some() {
                self.sql
                    .extend(query::bounds(column, condition.from, condition.to));
                let (from, to) = (condition.from, condition.to);
                sets.push(names.whose_number(|number| {
                    from.is_none_or(|from| number >= from) && to.is_none_or(|to| number < to)
                }));
            }
            let all = sets.into_iter().reduce(|a, b| {
                IdSet::new(unknown)
                    .with((0..=unknown).filter(|id| a.contains(*id) && b.contains(*id)))
            });
            self.tests.push(Test::Ids(keys, all.unwrap_or_else(every)));
            return Ok(());
        }
        if condition.from.is_some() || condition.to.is_some() {
            let numbers = self.ask.measures(&table, column)?;
            let (from, to) = (condition.from, condition.to);
            self.sql.extend(query::bounds(column, from, to));
            self.chunks.retain(|chunk| {
                numbers.spans[*chunk].is_some_and(|(least, greatest)| {
                    from.is_none_or(|from| greatest >= from) && to.is_none_or(|to| least < to)
                })
            });
            self.tests.push(Test::Span(numbers, from, to));
        }
        Ok(())
    }

    /// The rows of a chunk that are selected.
    pub(crate) fn rows(&self, chunk: usize) -> Result<Rows<'_>, ExploreError> {
        let len = self.table.stored.chunks()[chunk].rows;
        let mut rows = match &self.range {
            None => Rows::of(0..len),
            Some(Time::Moments(times, range)) => {
                Rows::of(rows_within(&times.chunks[chunk], *range))
            }
            Some(Time::Intervals(starts, ends, range)) => {
                let (first, last) = (range.start(), range.end());
                let is_whole = starts.spans[chunk].is_some_and(|(_, greatest)| greatest < last)
                    && ends.spans[chunk].is_some_and(|(least, _)| least > first);
                let (starts, ends) = (&starts.chunks[chunk], &ends.chunks[chunk]);
                let rows = Rows::of(0..len);
                match is_whole {
                    true => rows,
                    false => rows.keep_if(|row| starts[row] < last && ends[row] > first),
                }
            }
        };
        for test in &self.tests {
            rows = match test {
                Test::Ids(keys, ids) => rows.keep(&keys.chunks[chunk], ids),
                Test::Span(numbers, from, to) => {
                    let numbers = &numbers.chunks[chunk];
                    // The unknown is the least number.
                    let from = from.unwrap_or(NULL + 1).max(NULL + 1);
                    match to {
                        Some(to) => rows.keep_if(|row| (from..*to).contains(&numbers[row])),
                        None => rows.keep_if(|row| numbers[row] >= from),
                    }
                }
                Test::Contains(column, text) => {
                    let contains = |cell: &str| cell.to_lowercase().contains(text);
                    let passes = decode::text_passes(&self.table, chunk, column, &contains)?;
                    rows.keep_if(|row| passes[row])
                }
            };
        }
        Ok(rows.until(self.ask.cancel))
    }

    /// The chunks that may have selected rows, in order.
    pub(crate) fn chunks(&self) -> &[usize] {
        &self.chunks
    }

    /// Goes over all selected rows, in as many parts as there are threads, each of neighbouring
    /// chunks in order, and merges what they saw in the order of the parts.
    pub(crate) fn pass<K: Send>(
        &self,
        make: impl Fn() -> Result<K, ExploreError> + Sync,
        add: impl Fn(&mut K, usize, &Rows<'_>) -> Result<(), ExploreError> + Sync,
        merge: impl Fn(&mut K, K) + Sync,
    ) -> Result<K, ExploreError> {
        let parts = rayon::current_num_threads().max(1);
        let length = self.chunks.len().div_ceil(parts).max(1);
        let seen: Result<Vec<K>, ExploreError> = self
            .chunks
            .par_chunks(length)
            .map(|chunks| {
                let mut kernel = make()?;
                for chunk in chunks {
                    check(self.ask.cancel)?;
                    add(&mut kernel, *chunk, &self.rows(*chunk)?)?;
                }
                Ok(kernel)
            })
            .collect();
        let mut seen = seen?.into_iter();
        let mut all = match seen.next() {
            Some(first) => first,
            None => make()?,
        };
        seen.for_each(|more| merge(&mut all, more));
        Ok(all)
    }

    /// How many rows are selected.
    pub(crate) fn count(&self) -> Result<u64, ExploreError> {
        let count = |sum: &mut u64, _, rows: &Rows<'_>| {
            *sum += rows.count() as u64;
            Ok(())
        };
        self.pass(|| Ok(0), count, |sum, more| *sum += more)
    }

    /// Rows of the longest chunk.
    pub(crate) fn longest_chunk(&self) -> usize {
        let chunks = self.table.stored.chunks();
        let rows = self.chunks.iter().map(|chunk| chunks[*chunk].rows);
        rows.max().unwrap_or(0)
    }
}

/// The column of a condition, if it can be put to that.
fn checked(table: &Opened, condition: &Condition) -> Result<&'static ColumnDef, ExploreError> {
    let column = table.def.column(&condition.column)?;
    let has_ids = condition.within.is_some()
        || condition.not_in.is_some()
        || condition.is.is_some()
        || condition.is_not.is_some();
    let has_bounds = condition.from.is_some() || condition.to.is_some();
    match column.kind {
        ColumnKind::Key if has_bounds && !column.is_number() => Err(table.def.wrong(
            column,
            "has ids without an order; use `in`, `is` or `contains`, not `from` and `to`",
        )),
        ColumnKind::Key => Ok(column),
        ColumnKind::Measure | ColumnKind::Time if has_ids || condition.contains.is_some() => {
            Err(table
                .def
                .wrong(column, "holds numbers; use `from` and `to`"))
        }
        ColumnKind::Text if has_ids || has_bounds => Err(table.def.wrong(
            column,
            "holds text of its own in nearly every row; use `contains`",
        )),
        _ => Ok(column),
    }
}

fn stored_text(column: &'static ColumnDef) -> &'static str {
    match column.source {
        crate::catalogue::Source::Text(name) => name,
        _ => &column.name,
    }
}
