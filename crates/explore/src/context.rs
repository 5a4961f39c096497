//! Context of one request, and the tables that the request opens.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tables::StoredTable;
use views::TimeRange;

use crate::ExploreError;
use crate::cache::{ColumnCache, Role};
use crate::catalogue::{self, ColumnDef, TableDef};
use crate::decode;
use crate::decoded_columns::{Keys, Measures, RowIntervals};
use crate::durations::Durations;
use crate::trace::Trace;

/// Context of one request: the trace, the cache and the cancellation flag.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) cache: &'a ColumnCache,
    pub(crate) cancel: &'a AtomicBool,
}

/// An open table. Its columns are decoded through the cache.
#[derive(Clone)]
pub(crate) struct OpenTable<'a> {
    pub(crate) def: &'static TableDef,
    pub(crate) stored: StoredTable,
    pub(crate) context: Context<'a>,
}

impl<'a> Context<'a> {
    /// Opens a table by its name.
    pub(crate) fn open(self, name: &str) -> Result<OpenTable<'a>, ExploreError> {
        let def = catalogue::table(name)?;
        Ok(OpenTable {
            def,
            stored: self.trace.table(def.table, self.cancel)?,
            context: self,
        })
    }
}

impl OpenTable<'_> {
    /// Returns the dense ids of a key.
    pub(crate) fn keys(&self, column: &'static ColumnDef) -> Result<Arc<Keys>, ExploreError> {
        let Context { trace, cancel, .. } = self.context;
        self.context.cache.keys(self.def.table, &column.name, || {
            decode::keys(trace, self.def, &self.stored, column, cancel)
        })
    }

    /// Returns the numbers of a measure or of a numeric key.
    pub(crate) fn measures(
        &self,
        column: &'static ColumnDef,
    ) -> Result<Arc<Measures>, ExploreError> {
        match column.number() {
            Some(stored) => self.stored_numbers(stored),
            None => Err(self.def.wrong_kind(column, "has no numbers")),
        }
    }

    /// Returns the times by which the table is sorted.
    pub(crate) fn times(&self) -> Result<Arc<Measures>, ExploreError> {
        self.stored_numbers(self.def.time)
    }

    /// Returns the numbers of a stored column.
    pub(crate) fn stored_numbers(
        &self,
        column: &'static str,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.numbers(column, Role::Numbers, || {
            decode::stored_numbers(&self.stored, column, self.context.cancel)
        })
    }

    /// Returns the starts and ends of rows; `None` if the rows of the table are single moments.
    pub(crate) fn intervals(&self) -> Result<Option<RowIntervals>, ExploreError> {
        let Some(lasts) = &self.def.lasts else {
            return Ok(None);
        };
        let cancel = self.context.cancel;
        let starts = self.numbers(lasts.start, Role::Starts, || {
            decode::starts(&self.stored, lasts, cancel)
        })?;
        let ends = self.numbers(lasts.end, Role::Ends, || {
            decode::ends(&self.stored, lasts, cancel)
        })?;
        Ok(Some(RowIntervals { starts, ends }))
    }

    /// Returns the starts and ends of the durations in a column.
    pub(crate) fn durations(&self, durations: Durations) -> Result<RowIntervals, ExploreError> {
        let ends = self.stored_numbers(durations.end)?;
        let starts = self.numbers(&durations.length.name, Role::Starts, || {
            let lengths = self.measures(durations.length)?;
            Ok(Durations::starts(&lengths, &ends))
        })?;
        Ok(RowIntervals { starts, ends })
    }

    fn numbers(
        &self,
        column: &'static str,
        role: Role,
        decode: impl FnOnce() -> Result<Measures, ExploreError>,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.context
            .cache
            .numbers(self.def.table, column, role, decode)
    }

    /// Returns the time range of a request. Without a range, returns the range of the whole trace and table.
    pub(crate) fn span(&self, range: Option<[i64; 2]>) -> Result<TimeRange, ExploreError> {
        if let Some(range) = range_of(range)? {
            return Ok(range);
        }
        let (start, end) = (0, self.context.trace.store.info().end_ns);
        let chunks = self.stored.chunks();
        let (first, last) = match (chunks.first(), chunks.last()) {
            (Some(first), Some(last)) => (first.first, last.last),
            _ => (start, end),
        };
        // If a trace consists only of captured packets, its times are in UTC. The range must then start at the first
        // row, not at the trace's start.
        let has_only_packets = end == start;
        let start = if has_only_packets { first } else { start };
        Ok(TimeRange::new(start, end.max(last).saturating_add(1)))
    }
}

/// Checks the time range of a request: its start must be before its end.
pub(crate) fn range_of(range: Option<[i64; 2]>) -> Result<Option<TimeRange>, ExploreError> {
    match range {
        Some([start, end]) if start >= end => Err(ExploreError::OutOfBounds {
            field: "range",
            needed: format!("must end after it starts, not {start} to {end}"),
        }),
        Some([start, end]) => Ok(Some(TimeRange::new(start, end))),
        None => Ok(None),
    }
}

/// Checks that a number of a request is from `min` to `max`.
pub(crate) fn check_bounds(
    field: &'static str,
    number: u64,
    min: u64,
    max: u64,
) -> Result<(), ExploreError> {
    if (min..=max).contains(&number) {
        Ok(())
    } else {
        Err(ExploreError::OutOfBounds {
            field,
            needed: format!("must be from {min} to {max}, not {number}"),
        })
    }
}
