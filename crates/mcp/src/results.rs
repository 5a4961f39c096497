//! Results of SQL queries. They are kept for calls that request further pages, because a query can return its rows
//! in another order when it runs again.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// Maximum number of kept results of a trace.
const KEPT: usize = 4;

/// Maximum number of rows and of bytes of a result.
pub(crate) const ROWS: usize = 10_000;
pub(crate) const BYTES: usize = 16 << 20;

/// Kept part of the result of a query.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) query: String,
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    /// True if the query has further rows.
    pub(crate) is_cut: bool,
    /// Advice for tables of the query that have no rows.
    pub(crate) missing: Vec<String>,
}

impl Rows {
    /// Returns the number of kept rows.
    pub(crate) fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// Results of a trace. The most recently used result is last.
#[derive(Debug, Default)]
pub(crate) struct Results(Mutex<Vec<Arc<Rows>>>);

impl Results {
    pub(crate) fn find(&self, query: &str) -> Option<Arc<Rows>> {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = results.iter().position(|rows| rows.query == query)?;
        let rows = results.remove(place);
        results.push(Arc::clone(&rows));
        Some(rows)
    }

    pub(crate) fn keep(&self, rows: Arc<Rows>) {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.retain(|known| known.query != rows.query);
        results.push(rows);
        if results.len() > KEPT {
            results.remove(0);
        }
    }

    /// Forgets all results, because a statement may have changed a view or table of the session.
    pub(crate) fn clear(&self) {
        let mut results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.clear();
    }
}
