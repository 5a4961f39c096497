//! What theories are judged by.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tables::{
    Cancelled, DoubtfulRuns, Functions, Identities, Options, Process, Store, StoreError,
    StoredTable, Table,
};

use crate::theories::long_waits;
use crate::{Explanation, Finding, Survey};

/// A trace to be explained.
pub struct Case<'a> {
    store: &'a Store,
    /// Who and what the rows of tables speak of.
    pub names: Arc<Identities>,
    /// What the user wants to know above all.
    pub asked: Asked,
    /// What more than one theory needs.
    pub survey: Arc<Survey>,
    pub(crate) functions: Option<&'a dyn Functions>,
    /// Whether to go on, asked often.
    go_on: &'a (dyn Fn() -> bool + Sync),
}

/// What the user wants to know above all: where nothing is said, what cost most time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Threads, by their ids.
    pub threads: Vec<u32>,
    /// Processes, by their ids or file names (without regard to case and `.exe`).
    pub processes: Vec<String>,
    /// A stretch of time, in nanoseconds since the trace's start.
    pub during: Option<Range<i64>>,
}

impl<'a> Case<'a> {
    pub(crate) fn open(
        store: &'a Store,
        asked: Asked,
        functions: Option<&'a dyn Functions>,
        go_on: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Case<'a>, StoreError> {
        let names = Arc::new(Identities::read(store, Options::default())?);
        let mut case = Case {
            store,
            names,
            asked,
            survey: Arc::default(),
            functions,
            go_on,
        };
        case.survey = Arc::new(Survey::read(&case)?);
        Ok(case)
    }

    /// A trace about which all of this is known from having explained it before.
    pub(crate) fn of(
        store: &'a Store,
        known: &Explanation,
        functions: Option<&'a dyn Functions>,
        go_on: &'a (dyn Fn() -> bool + Sync),
    ) -> Case<'a> {
        Case {
            store,
            names: Arc::clone(&known.names),
            asked: Asked::default(),
            survey: Arc::clone(&known.survey),
            functions,
            go_on,
        }
    }

    /// The trace itself.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// A table, which was made before.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn table(&self, table: Table) -> Result<StoredTable, StoreError> {
        self.store.table(table, Options::default())
    }

    /// Whether a table has rows.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn has(&self, table: Table) -> Result<bool, StoreError> {
        Ok(self.table(table)?.rows() > 0)
    }

    /// The columns named of those chunks of a table that may hold rows of a time range.
    ///
    /// # Errors
    /// Each batch, if it cannot be read or the user stopped it.
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

    /// Runs that were several in truth.
    pub(crate) fn doubtful_runs(&self) -> Result<DoubtfulRuns, StoreError> {
        let progress = |_| (self.go_on)();
        DoubtfulRuns::read(
            self.store,
            Options {
                progress: &progress,
            },
        )
    }

    /// # Errors
    /// If the user stopped it.
    pub fn check(&self) -> Result<(), StoreError> {
        match (self.go_on)() {
            true => Ok(()),
            false => Err(Cancelled.into()),
        }
    }

    /// A process in words: its name and id.
    pub fn process(&self, row: Option<u32>, id: Option<u32>) -> String {
        let process = self.names.process(row, id);
        match (process.name, process.id) {
            (Some(name), Some(id)) => format!("{name} ({id})"),
            (Some(name), None) => name.to_owned(),
            (None, Some(id)) => format!("process {id}"),
            (None, None) => "an unknown process".to_owned(),
        }
    }

    /// Processes in words, where several may be of no known id: they are not one.
    pub fn processes(&self, row: Option<u32>, id: Option<u32>) -> String {
        let process = self.names.process(row, id);
        match process.name.is_none() && process.id.is_none() {
            true => "unknown processes".to_owned(),
            false => self.process(row, id),
        }
    }

    /// Whether a finding is about the threads, processes and the time that the user asks for.
    pub(crate) fn is_about_what_is_asked(&self, finding: &Finding) -> bool {
        let asked = &self.asked;
        // What waits are looked at is asked for already.
        if finding.theory == long_waits::ABOUT.id {
            return true;
        }
        let sentence = finding.sentence.to_lowercase();
        let names_it = |name: &str| sentence.contains(&name.to_lowercase());
        let mut threads = asked.threads.iter().map(|id| format!("thread {id} "));
        let mut processes = self.rows_of_asked_processes();
        let is_of_all = asked.threads.is_empty() && asked.processes.is_empty();
        let is_about_them = is_of_all
            || threads.any(|thread| names_it(&thread))
            || processes.any(|row| names_it(&self.process(Some(row), None)));
        let is_then = asked.during.as_ref().is_none_or(|asked| {
            let during = finding.during.as_ref();
            during.is_some_and(|during| during.start < asked.end && asked.start < during.end)
        });
        is_about_them && is_then
    }

    /// Rows in `processes` of the processes that the user asks for.
    pub fn rows_of_asked_processes(&self) -> impl Iterator<Item = u32> + '_ {
        let asked = &self.asked.processes;
        let is_asked =
            move |process: Process<'_>| asked.iter().any(|asked| is_called(process, asked));
        let rows = (0..).zip(self.names.processes());
        rows.filter(move |(_, process)| is_asked(*process))
            .map(|(row, _)| row)
    }

    /// The function at an address of the image of that row; `module+0x1f` without symbols.
    pub fn function(&self, image_row: u32, address: u64) -> Option<String> {
        let module = self.names.module(Some(image_row));
        let named = self
            .functions
            .and_then(|functions| functions.name(image_row, address));
        named.or_else(|| {
            let base = *self.names.images.base_address.get(image_row as usize)?;
            Some(format!("{}+{:#x}", module?, address.checked_sub(base)?))
        })
    }
}

/// Whether a process is the one that a user means, by its id or file name.
pub fn is_called(process: Process<'_>, asked: &str) -> bool {
    let plain = |name: &str| {
        let name = name.to_lowercase();
        name.strip_suffix(".exe").unwrap_or(&name).to_owned()
    };
    process.id.is_some_and(|id| asked == id.to_string())
        || (process.name).is_some_and(|name| plain(asked) == plain(name))
}
