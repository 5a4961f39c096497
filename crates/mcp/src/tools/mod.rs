//! Tools. Each has a file with its arguments and its answer.

mod compare;
mod explain;
mod finding;
mod schema;
#[cfg(feature = "sql")]
mod sql;
mod story;
mod summarize;
mod timeline;
mod traces;

use std::ops::Range;
use std::sync::Arc;

use explore::Explorer;
use facts::Info;
use serde_json::{Map, Value};
use session::NotRecorded;
use tables::Table;
use wording::{QuotedName, duration};

use crate::answer::Answer;
use crate::arguments::{self, Time};
use crate::call::Call;
use crate::failure::Failure;
use crate::open_traces::OpenTrace;
use crate::server::ServerState;

pub(crate) use finding::no_finding;
pub(crate) use schema::table as table_schema;

/// Open trace with the time range and the explorer of a view.
type Explored = (Arc<OpenTrace>, Option<Range<i64>>, Arc<Explorer>);

/// Server and call of a tool.
pub(crate) struct Session<'s> {
    pub(crate) server: &'s ServerState,
    pub(crate) call: &'s Arc<Call>,
}

impl Session<'_> {
    /// Opens the trace that an argument names. Without an argument, opens the only trace.
    pub(crate) fn open(&self, asked: Option<&str>) -> Result<Arc<OpenTrace>, Failure> {
        let file = self.server.folders.find(asked)?;
        self.server.opened.open(file)
    }

    /// Opens a trace of Windows, for a tool that cannot read a recording of Linux.
    fn open_windows(&self, asked: Option<&str>) -> Result<Arc<OpenTrace>, Failure> {
        let trace = self.open(asked)?;
        if trace.store.info().is_linux() {
            Err(Failure::arguments(
                "this is a recording of Linux, which this tool cannot read yet; use `explain`, `finding`, \
                 `summarize`, `timeline` or `sql`",
            ))
        } else {
            Ok(trace)
        }
    }

    /// Opens a trace for a view of a table. Returns the trace, the time range, and the explorer with the tables of the
    /// view.
    fn explore(
        &self,
        asked: Option<&str>,
        between: Option<&[Time; 2]>,
        table: &str,
    ) -> Result<Explored, Failure> {
        let trace = self.open(asked)?;
        let range = arguments::range(between, &trace.store)?;
        let explorer = trace.explorer(self.call)?;
        explorer.prepare(&[table], self.call.flag())?;
        self.call.begin_query();
        Ok((trace, range, explorer))
    }

    /// Returns an error after the client cancelled the call.
    fn check(&self) -> Result<(), Failure> {
        if self.call.flag().load(std::sync::atomic::Ordering::Relaxed) {
            Err(Failure::cancelled())
        } else {
            Ok(())
        }
    }
}

/// Runs a tool. Returns `None` if there is no tool with this name.
pub(crate) fn run(
    session: &Session<'_>,
    name: &str,
    given: Option<Map<String, Value>>,
) -> Option<Result<Answer, Failure>> {
    macro_rules! tools {
        ($($(#[$attribute:meta])* $tool:ident),+) => {
            match name {
                $($(#[$attribute])* stringify!($tool) => {
                    Some(arguments::read(given).and_then(|read| $tool::answer(session, read)))
                })+
                _ => None,
            }
        };
    }
    tools!(
        traces,
        explain,
        finding,
        story,
        summarize,
        timeline,
        #[cfg(feature = "sql")]
        sql,
        schema,
        compare
    )
}

/// Returns the reason why a table has no rows, with the events to record. Returns `None` if the table has rows. For
/// a trace of Windows, also returns `None` if the rows of the table do not depend on the choice of recorded events.
fn missing(trace: &OpenTrace, table: &str, rows: Option<u64>) -> Option<String> {
    let table = Table::ALL.iter().find(|known| known.name() == table)?;
    if rows != Some(0) {
        return None;
    }
    if trace.store.info().is_linux() {
        Some(NotRecorded::of_linux_table(*table).map_or_else(
            || {
                "no such event happened, or laglab does not read it from recordings of Linux"
                    .to_owned()
            },
            |missing| missing.to_string(),
        ))
    } else {
        NotRecorded::of_table(*table).map(|missing| missing.to_string())
    }
}

/// Describes the recording: its length, system and CPUs.
fn recorded(info: &Info) -> String {
    let lasted = info
        .trace
        .recorded_ns()
        .map_or("no time".to_owned(), duration);
    format!("{lasted}, {}, {}", system(info), info.cpus.counted())
}

/// Names the operating system. The release of a Linux kernel is text from the recording.
fn system(info: &Info) -> String {
    match &info.system.linux {
        Some(release) => format!("Linux {}", QuotedName(release)),
        None => info.system.name(),
    }
}
