//! The time from one process's getting the focus to another's.

use std::ops::Range;

use tables::{FocusView, Identities, Options, Store, StoreError, Table};

use crate::case::is_called;

/// From the moment that a process (by its name or id) got the focus to the next moment that another
/// got it; the longest such time, if it was so several times.
///
/// # Errors
/// If a table cannot be made or read, or the user stopped it.
pub fn between_focus(
    store: &Store,
    from: &str,
    to: &str,
    options: Options<'_>,
) -> Result<Option<Range<i64>>, StoreError> {
    let names = Identities::read(store, options)?;
    let table = store.table(Table::Focus, options)?;
    let mut since = None;
    let mut longest: Option<Range<i64>> = None;
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["start_ns", "process_id", "process_row"])?;
        let view = FocusView::new(&batch)?;
        for row in 0..view.len() {
            let at = view.start_ns[row];
            let process = names.process(view.process_row.get(row), Some(view.process_id[row]));
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
    }
    Ok(longest.filter(|range| !range.is_empty()))
}
