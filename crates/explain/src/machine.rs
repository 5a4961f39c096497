//! What was traced.

use tables::{SessionsView, StoreError, Table};

use crate::Case;

impl Case<'_> {
    /// The build of Windows, from the table of sessions.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(crate) fn os_build(&self) -> Result<Option<u32>, StoreError> {
        let table = self.table(Table::Sessions)?;
        for batch in self.batches(&table, i64::MIN..i64::MAX, &["os_build"]) {
            let batch = batch?;
            let view = SessionsView::new(&batch)?;
            if let Some(build) = (0..view.len()).find_map(|row| view.os_build.get(row)) {
                return Ok(Some(build));
            }
        }
        Ok(None)
    }
}
