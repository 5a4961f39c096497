//! Input focus over time.

use std::ops::Range;

use tables::{FocusView, Identities, Options, Store, StoreError, Table};

use crate::Reader;
use crate::scope::is_called;

/// Time range during which a process had the input focus.
pub(crate) struct Focus {
    pub(crate) process_id: u32,
    pub(crate) process_row: Option<u32>,
    pub(crate) during: Range<i64>,
}

impl Reader<'_> {
    /// Returns the processes that had the focus, in order of time. The list is empty if the trace
    /// does not record the focus.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) fn focus(&self) -> Result<Vec<Focus>, StoreError> {
        read(self.store(), Options::default())
    }
}

fn read(store: &Store, options: Options<'_>) -> Result<Vec<Focus>, StoreError> {
    let table = store.table(Table::Focus, options)?;
    let columns = ["start_ns", "end_ns", "process_id", "process_row"];
    let mut focus = Vec::new();
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &columns)?;
        let view = FocusView::new(&batch)?;
        focus.extend((0..view.len()).map(|row| Focus {
            process_id: view.process_id[row],
            process_row: view.process_row.get(row),
            during: view.start_ns[row]..view.end_ns[row],
        }));
    }
    Ok(focus)
}

/// Returns the time range that starts when process `from` gets the focus, and ends when process `to` gets the focus.
/// Processes are given by name or id. If there are several ranges, returns the longest.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn between_focus(
    store: &Store,
    from: &str,
    to: &str,
    options: Options<'_>,
) -> Result<Option<Range<i64>>, StoreError> {
    let names = Identities::read(store, options)?;
    let mut since = None;
    let mut longest: Option<Range<i64>> = None;
    for focus in read(store, options)? {
        let at = focus.during.start;
        let process = names.process(focus.process_row, Some(focus.process_id));
        if is_called(process, to)
            && let Some(since) = since.take()
            && longest
                .as_ref()
                .is_none_or(|l| at - since > l.end - l.start)
        {
            longest = Some(since..at);
        }
        if is_called(process, from) {
            since = Some(at);
        }
    }
    Ok(longest.filter(|range| !range.is_empty()))
}
