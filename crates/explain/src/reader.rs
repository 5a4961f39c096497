//! Access to a trace's tables and names.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tables::{
    Cancelled, DoubtfulRuns, Functions, Identities, Options, Store, StoreError, StoredTable, Table,
};

use wording::Name;

use crate::Subject;

/// Reader of the tables of a trace. It also names the processes, threads and images in the rows.
/// Reading fails after the user cancelled.
pub struct Reader<'a> {
    store: &'a Store,
    /// Processes, threads and images of the trace.
    pub names: Arc<Identities>,
    pub(crate) functions: Option<&'a dyn Functions>,
    /// Function that returns true after the user cancelled. The reader calls it often.
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Reader<'a> {
    /// Creates a reader for a trace whose names are already known.
    pub fn new(
        store: &'a Store,
        names: Arc<Identities>,
        functions: Option<&'a dyn Functions>,
        is_cancelled: &'a (dyn Fn() -> bool + Sync),
    ) -> Reader<'a> {
        Reader {
            store,
            names,
            functions,
            is_cancelled,
        }
    }

    /// Returns the store of the trace.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// Returns a table, which must have been made before.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub fn table(&self, table: Table) -> Result<StoredTable, StoreError> {
        self.store.table(table, Options::default())
    }

    /// Returns true if a table has rows.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub fn has(&self, table: Table) -> Result<bool, StoreError> {
        Ok(self.table(table)?.rows() > 0)
    }

    /// Returns the named columns of a table in batches. Only chunks that may contain rows of the
    /// time range are read.
    ///
    /// # Errors
    /// A batch is an error if it cannot be read or if the user cancelled.
    pub fn batches<'t>(
        &'t self,
        table: &'t StoredTable,
        range: Range<i64>,
        columns: &'t [&'t str],
    ) -> impl Iterator<Item = Result<RecordBatch, StoreError>> + 't {
        table.chunks_within(range).map(|chunk| {
            self.check()?;
            table.read(chunk, columns)
        })
    }

    /// Finds the doubtful runs, within which context switches are missing.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read, or the user cancelled.
    pub(crate) fn doubtful_runs(&self) -> Result<DoubtfulRuns, StoreError> {
        let progress = |_| !(self.is_cancelled)();
        DoubtfulRuns::read(
            self.store,
            Options {
                progress: &progress,
            },
        )
    }

    /// Checks for cancellation.
    ///
    /// # Errors
    /// Returns an error if the user cancelled.
    pub fn check(&self) -> Result<(), StoreError> {
        if (self.is_cancelled)() {
            Err(Cancelled.into())
        } else {
            Ok(())
        }
    }

    /// Returns the name and id of a process, for a sentence.
    pub fn process(&self, row: Option<u32>, id: Option<u32>) -> String {
        let process = self.names.process(row, id);
        match (process.name, process.id) {
            (Some(name), Some(id)) => format!("{} ({id})", Name(name)),
            (Some(name), None) => Name(name).to_string(),
            (None, Some(id)) => format!("process {id}"),
            (None, None) => "an unknown process".to_owned(),
        }
    }

    /// Returns the name and id of a process like [`Reader::process`]. But if the process is unknown, returns
    /// "unknown processes" in the plural, because the rows may belong to several processes.
    pub fn processes(&self, row: Option<u32>, id: Option<u32>) -> String {
        let process = self.names.process(row, id);
        if process.name.is_none() && process.id.is_none() {
            "unknown processes".to_owned()
        } else {
            self.process(row, id)
        }
    }

    /// Returns the id and name of a thread and its process, for a sentence: `thread 8 (“window”) of mail.exe (4)`.
    /// `thread` and `process` are pairs of a row and an id.
    pub(crate) fn thread(
        &self,
        thread: (Option<u32>, u32),
        process: (Option<u32>, Option<u32>),
    ) -> String {
        let (row, id) = thread;
        let name = row.and_then(|row| self.names.thread_name(row));
        let name = name.map_or(String::new(), |name| format!(" ({:#})", Name(name)));
        format!(
            "thread {id}{name} of {}",
            self.process(process.0, process.1)
        )
    }

    /// Returns a process as a subject of a finding. Returns `None` if neither the name nor the id of the
    /// process is known.
    pub fn process_subject(&self, row: Option<u32>, id: Option<u32>) -> Option<Subject> {
        let process = self.names.process(row, id);
        let is_known = process.id.is_some() || process.name.is_some();
        is_known.then(|| Subject::Process {
            id: process.id,
            row,
            name: process.name.map(str::to_owned),
        })
    }
}
