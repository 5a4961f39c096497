//! Advice for a trace that has no rows of a table.

use std::fmt;

use record::needs::{TableNeeds, for_table};
use tables::Table;

/// Error for a trace without rows of a needed table. There are two possible reasons: the events of the table did not
/// happen, or they were not recorded. The trace does not show the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRecorded {
    /// The trace is a trace of Windows.
    Windows(TableNeeds),
    /// The trace is a recording of Linux.
    Linux {
        /// Name of the missing rows, in the plural.
        rows: &'static str,
        /// Advice for recording the rows. The text continues a sentence after the word “record”.
        record: String,
    },
    /// Rows that no recording of Linux has. The name of the rows is in the plural.
    NeverOnLinux(&'static str),
    /// Rows that no trace of Windows has. The name of the rows is in the plural.
    NeverOnWindows(&'static str),
}

impl NotRecorded {
    /// Returns the advice for a table of a trace of Windows. Returns `None` if the rows of the table do not depend on
    /// the choice of recorded events.
    pub fn of_table(table: Table) -> Option<NotRecorded> {
        match for_table(table.name()) {
            Some(needs) => Some(NotRecorded::Windows(*needs)),
            None => record::linux::only_on_linux(table.name()).map(NotRecorded::NeverOnWindows),
        }
    }

    /// Returns the advice for a table of a recording of Linux. Returns `None` if the rows of the table do not depend on
    /// the choice of recorded events.
    pub fn of_linux_table(table: Table) -> Option<NotRecorded> {
        match record::linux::for_table(table.name()) {
            Some((rows, record)) => Some(NotRecorded::Linux { rows, record }),
            None => for_table(table.name()).map(|needs| NotRecorded::NeverOnLinux(needs.rows)),
        }
    }
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRecorded::Windows(needs) => write!(
                f,
                "the trace has no {}: none happened, or they were not recorded; record {needs}",
                needs.rows
            ),
            NotRecorded::Linux { rows, record } => write!(
                f,
                "the recording has no {rows}: none happened, or they were not recorded; record {record}"
            ),
            NotRecorded::NeverOnLinux(rows) => write!(
                f,
                "this is a recording of Linux, and such recordings have no {rows}"
            ),
            NotRecorded::NeverOnWindows(rows) => write!(
                f,
                "this is a trace of Windows, and only recordings of Linux have {rows}"
            ),
        }
    }
}

/// Explains why a table of a trace, or of a recording of Linux, has no rows, and how to record rows.
pub fn missing_rows(table: Table, is_linux: bool) -> String {
    let missing = if is_linux {
        NotRecorded::of_linux_table(table)
    } else {
        NotRecorded::of_table(table)
    };
    match missing {
        Some(missing) => missing.to_string(),
        None => format!("the table `{table}` has no rows"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_table_names_the_switches_that_record_it() {
        let text = missing_rows(Table::Interrupts, false);
        assert!(text.starts_with("the trace has no DPCs and ISRs: "));
        assert!(text.contains("xperf -on LOADER+DPC+INTERRUPT"), "{text}");
        assert!(
            text.contains("WPR keywords Loader, DPC and Interrupt"),
            "{text}"
        );
        assert_eq!(NotRecorded::of_table(Table::Damages), None);
        let text = missing_rows(Table::FutexWaits, false);
        assert_eq!(
            text,
            "this is a trace of Windows, and only recordings of Linux have waits for futexes"
        );
        let text = missing_rows(Table::DiskIo, true);
        assert!(
            text.contains("perf record") && text.contains("block:"),
            "{text}"
        );
        // perf records processes and mapped files, but cut or forged recordings can lack them.
        for table in [Table::Processes, Table::Threads, Table::Images] {
            let text = missing_rows(table, true);
            assert!(
                text.starts_with("the recording has no records of "),
                "{text}"
            );
            assert!(text.contains("perf record"), "{text}");
        }
        let text = missing_rows(Table::Focus, true);
        assert!(
            text.contains("recordings have no changes of the window"),
            "{text}"
        );
        assert_eq!(NotRecorded::of_linux_table(Table::Damages), None);
    }

    /// Tables that each trace fills, or that are not made from recorded events.
    const ALWAYS_FILLED: &[Table] = &[
        Table::Sessions,
        Table::Cpus,
        Table::SystemConfig,
        Table::Damages,
        Table::EventKinds,
        Table::LatencySamples,
    ];

    #[test]
    fn each_table_says_what_to_record() {
        for table in Table::ALL {
            let is_known = NotRecorded::of_table(*table).is_some();
            assert!(
                is_known != ALWAYS_FILLED.contains(table),
                "{table}: add it to `record::needs::TABLES` or to `record::linux::for_table`"
            );
        }
    }
}
