//! Advice for a trace that lacks the rows of a table.

use std::fmt;

use record::needs::{TableNeeds, for_table};
use tables::Table;

/// Error for a trace that lacks the rows of a needed table. The trace does not show whether such events did
/// not happen or were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRecorded(pub TableNeeds);

impl NotRecorded {
    /// Returns the advice for a table. Returns `None` if the rows of the table do not depend on the choice of
    /// recorded events.
    pub fn of_table(table: Table) -> Option<NotRecorded> {
        for_table(table.name()).copied().map(NotRecorded)
    }
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the trace has no {}: none happened, or they were not recorded; record {}",
            self.0.rows, self.0
        )
    }
}

/// Explains why a table has no rows, and how to record a trace that has rows.
pub fn missing_rows(table: Table) -> String {
    match NotRecorded::of_table(table) {
        Some(missing) => missing.to_string(),
        None => format!("the table `{table}` has no rows"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_table_names_the_switches_that_record_it() {
        let text = missing_rows(Table::Interrupts);
        assert!(text.starts_with("the trace has no DPCs and ISRs: "));
        assert!(text.contains("xperf -on LOADER+DPC+INTERRUPT"), "{text}");
        assert!(
            text.contains("WPR keywords Loader, DPC and Interrupt"),
            "{text}"
        );
        assert_eq!(NotRecorded::of_table(Table::Damages), None);
    }
}
