//! `processes`: processes and their lifetimes.

use std::collections::HashMap;

use etl::Segment;
use events::Value;
use events::ids::hook;
use events::kernel::{Process, ProcessTerminate};
use tables::import::UnreadableEvents;
use tables::{Processes, Table};

use crate::event_buffer::BufferedEvent;
use crate::register::Reads;

/// Events from which the rows are made.
pub(crate) const READS: Reads = Reads {
    hooks: &[
        hook::PROCESS_START..=hook::PROCESS_DC_END,
        hook::PROCESS_TERMINATE..=hook::PROCESS_TERMINATE,
        hook::PROCESS_DEFUNCT..=hook::PROCESS_DEFUNCT,
    ],
    ..Reads::NOTHING
};

/// A process.
#[derive(Default)]
struct Row {
    first_seen_ns: i64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    last_thread_end_ns: Option<i64>,
    process_id: u32,
    parent_id: u32,
    session_id: Option<u32>,
    image_name: Option<String>,
    command_line: Option<String>,
    package_full_name: Option<String>,
    application_id: Option<String>,
    user_sid: Option<String>,
    flags: Option<u32>,
    exit_status: Option<i32>,
    unique_key: Option<u64>,
    directory_table_base: Option<u64>,
    defunct_ns: Option<i64>,
    /// True if an event about the end of the process was read.
    is_over: bool,
}

impl Row {
    /// Fills the fields of the row that are not known yet.
    fn fill(&mut self, process: &Process<'_>) {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let fill = |field: &mut Option<String>, with: Option<String>| {
            if field.is_none() {
                *field = with.and_then(text);
            }
        };
        self.session_id = self
            .session_id
            .or(process.session_id.filter(|id| *id != u32::MAX));
        fill(&mut self.image_name, Some(process.image_name.to_string()));
        fill(
            &mut self.command_line,
            process.command_line.map(|t| t.to_string()),
        );
        fill(
            &mut self.package_full_name,
            process.package_full_name.map(|t| t.to_string()),
        );
        fill(
            &mut self.application_id,
            process.application_id.map(|t| t.to_string()),
        );
        fill(
            &mut self.user_sid,
            process.user_sid.map(|sid| Value::Sid(sid).to_string()),
        );
        self.flags = self.flags.or(process.flags);
        self.unique_key = self.unique_key.or(key(process));
        self.directory_table_base = self.directory_table_base.or(process.directory_table_base);
    }

    /// Returns true if an event may be about this process. Returns false if the event is about a later
    /// process with the same id.
    fn may_be(&self, process: &Process<'_>) -> bool {
        match (self.unique_key, key(process)) {
            (Some(mine), Some(other)) => mine == other,
            _ => !self.is_over,
        }
    }
}

/// Returns the key that distinguishes processes with the same id. Returns `None` if the key is 0.
fn key(process: &Process<'_>) -> Option<u64> {
    process.unique_key.filter(|key| *key != 0)
}

/// Processes that were read so far.
#[derive(Default)]
struct Builder {
    rows: Vec<Row>,
    /// Latest row of each process id.
    latest: HashMap<u32, usize>,
}

impl Builder {
    /// Reads an event. Returns `None` if the payload of the event is unreadable.
    fn take(&mut self, event: &BufferedEvent<'_>, segments: &[Segment]) -> Option<()> {
        let (payload, version, width) = (event.payload, event.version, event.pointer_size);
        if event.id == hook::PROCESS_TERMINATE {
            let terminate = ProcessTerminate::read(payload, version, width)?;
            if let Some(row) = self.latest.get(&terminate.process_id) {
                let row = &mut self.rows[*row];
                row.last_thread_end_ns.get_or_insert(event.time_ns);
            }
            return Some(());
        }
        let process = Process::read(payload, version, width)?;
        let row = self.row(event, &process);
        row.fill(&process);
        match event.id {
            hook::PROCESS_START => row.start_ns = row.start_ns.or(Some(event.time_ns)),
            hook::PROCESS_END => {
                row.is_over = true;
                row.end_ns = Some(event.time_ns);
                row.exit_status = process.exit_status;
            }
            hook::PROCESS_DEFUNCT => {
                row.is_over = true;
                row.defunct_ns = Some(event.time_ns);
                row.exit_status = row.exit_status.or(process.exit_status);
                let clock = &segments[usize::from(event.place.segment)].clock;
                let exit = process
                    .exit_time
                    .filter(|time| *time != 0)
                    .and_then(|time| i64::try_from(time).ok())
                    .and_then(|time| time.checked_sub(clock.origin_filetime()))
                    .and_then(|since| since.checked_mul(100));
                row.end_ns = row.end_ns.or(exit);
            }
            _ => {}
        }
        Some(())
    }

    /// Returns the row of the process that an event is about. If the process is new, adds a row.
    fn row(&mut self, event: &BufferedEvent<'_>, process: &Process<'_>) -> &mut Row {
        let latest = self.latest.get(&process.process_id).copied();
        let row = match (event.id, key(process)) {
            // If the event has no key, its kind decides. A start always belongs to a new process. A freed
            // object belongs to the latest process with the id.
            (hook::PROCESS_START, None) => None,
            (hook::PROCESS_DEFUNCT, None) => latest,
            _ => latest.filter(|row| self.rows[*row].may_be(process)),
        };
        let row = row.unwrap_or_else(|| {
            self.rows.push(Row {
                first_seen_ns: event.time_ns,
                process_id: process.process_id,
                parent_id: process.parent_id,
                ..Row::default()
            });
            let row = self.rows.len() - 1;
            self.latest.insert(process.process_id, row);
            row
        });
        &mut self.rows[row]
    }
}

/// Makes the table from the process events in time order.
pub(crate) fn build(
    events: &[BufferedEvent<'_>],
    segments: &[Segment],
    unreadable: &mut UnreadableEvents,
) -> Processes {
    let mut builder = Builder::default();
    for event in events {
        if builder.take(event, segments).is_none() {
            unreadable.add(Table::Processes, event.place);
        }
    }
    from_rows(&builder.rows)
}

fn from_rows(rows: &[Row]) -> Processes {
    Processes {
        first_seen_ns: rows.iter().map(|row| row.first_seen_ns).collect(),
        start_ns: rows.iter().map(|row| row.start_ns).collect(),
        end_ns: rows.iter().map(|row| row.end_ns).collect(),
        last_thread_end_ns: rows.iter().map(|row| row.last_thread_end_ns).collect(),
        process_id: rows.iter().map(|row| row.process_id).collect(),
        parent_id: rows.iter().map(|row| row.parent_id).collect(),
        session_id: rows.iter().map(|row| row.session_id).collect(),
        image_name: rows.iter().map(|row| row.image_name.as_deref()).collect(),
        command_line: rows.iter().map(|row| row.command_line.as_deref()).collect(),
        package_full_name: rows
            .iter()
            .map(|row| row.package_full_name.as_deref())
            .collect(),
        application_id: rows
            .iter()
            .map(|row| row.application_id.as_deref())
            .collect(),
        user_sid: rows.iter().map(|row| row.user_sid.as_deref()).collect(),
        flags: rows.iter().map(|row| row.flags).collect(),
        exit_status: rows.iter().map(|row| row.exit_status).collect(),
        unique_key: rows.iter().map(|row| row.unique_key).collect(),
        directory_table_base: rows.iter().map(|row| row.directory_table_base).collect(),
        defunct_ns: rows.iter().map(|row| row.defunct_ns).collect(),
        ..Processes::default()
    }
}
