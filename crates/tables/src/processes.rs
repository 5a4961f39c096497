//! `processes`: processes and their lifetimes.

use std::collections::HashMap;

use etl::Segment;
use events::Value;
use events::kernel::{Process, ProcessTerminate};

use crate::Table;
use crate::column::{Nullable, Text};
use crate::kept::KeptEvent;
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per process; ids are reused, so several rows can have one `process_id`.
    ///
    /// A process that was there when the trace began has no `start_ns`, one that outlived it no
    /// `end_ns`. What processes at the trace's ends are is known from the rundown.
    Processes, ProcessesView = "processes" sorted by first_seen_ns {
        /// When an event first told of the process.
        first_seen_ns: Vec<i64> = "first event: header time",
        /// When it started; unknown if before the trace.
        start_ns: Nullable<i64> = "Process Start: header time" wpa "Start Time (s)",
        /// When it ended; unknown if after the trace.
        end_ns: Nullable<i64> = "Process End: header time; Defunct: ExitTime" wpa "End Time (s)",
        /// When its last thread had exited, a little before its end.
        last_thread_end_ns: Nullable<i64> = "Process Terminate: header time",
        /// Its id.
        process_id: Vec<u32> = "ProcessId" wpa "Process Id",
        /// The process that created it.
        parent_id: Vec<u32> = "ParentId" wpa "Parent Process Id",
        /// Its terminal session; none of the system's own processes.
        session_id: Nullable<u32> = "SessionId" wpa "Session Id",
        /// File name of its image; versions before Windows 8 cut it to 14 or 15 characters.
        image_name: Text = "ImageFileName" wpa "Process Name",
        /// Its command line.
        command_line: Text = "CommandLine" wpa "Command Line",
        /// Full name of the package it belongs to.
        package_full_name: Text = "PackageFullName",
        /// Its application id within the package.
        application_id: Text = "ApplicationId",
        /// Its user as `S-1-5-…`.
        user_sid: Text = "UserSID",
        /// Bits: 1 has a package, 2 WOW64, 4 protected, 8 packaged.
        flags: Nullable<u32> = "Flags",
        /// Its exit status.
        exit_status: Nullable<i32> = "Process End: ExitStatus",
        /// Address of the kernel's process object.
        unique_key: Nullable<u64> = "UniqueProcessKey",
        /// Physical address of its page tables.
        directory_table_base: Nullable<u64> = "DirectoryTableBase",
        /// When its object was freed, after the last handle to it was closed, if that was long
        /// after its end.
        defunct_ns: Nullable<i64> = "Process Defunct: header time",
    }
}

/// A process as known so far.
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
    /// An end event was seen.
    over: bool,
}

impl Row {
    /// Takes what the row does not know yet.
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

    /// Whether an event can be about this process rather than another of its id.
    fn is(&self, process: &Process<'_>) -> bool {
        match (self.unique_key, key(process)) {
            (Some(mine), Some(other)) => mine == other,
            _ => !self.over,
        }
    }
}

/// The key that tells the process from others of its id; 0 says nothing.
fn key(process: &Process<'_>) -> Option<u64> {
    process.unique_key.filter(|key| *key != 0)
}

impl Processes {
    /// Builds the table from the process events in time order.
    pub(crate) fn build(
        events: &[KeptEvent<'_>],
        segments: &[Segment],
        unreadable: &mut UnreadableEvents,
    ) -> Processes {
        const START: u8 = 1;
        const END: u8 = 2;
        const TERMINATE: u8 = 11;
        const DEFUNCT: u8 = 39;
        let mut rows: Vec<Row> = Vec::new();
        // The latest row of each id.
        let mut latest: HashMap<u32, usize> = HashMap::new();
        for event in events {
            let (payload, version, width) = (event.payload, event.version, event.pointer_size);
            if event.opcode() == TERMINATE {
                match ProcessTerminate::read(payload, version, width) {
                    Some(terminate) => {
                        if let Some(row) = latest.get(&terminate.process_id) {
                            rows[*row].last_thread_end_ns.get_or_insert(event.time_ns);
                        }
                    }
                    None => unreadable.add(Table::Processes, event.place),
                }
                continue;
            }
            let Some(process) = Process::read(payload, version, width) else {
                unreadable.add(Table::Processes, event.place);
                continue;
            };
            let present = latest
                .get(&process.process_id)
                .copied()
                .filter(|row| rows[*row].is(&process));
            // Without a key, a second start tells of a second process, and a freed object of the
            // one that ended.
            let present = match (event.opcode(), key(&process)) {
                (START, None) => None,
                (DEFUNCT, None) => latest.get(&process.process_id).copied(),
                _ => present,
            };
            let row = present.unwrap_or_else(|| {
                rows.push(Row {
                    first_seen_ns: event.time_ns,
                    process_id: process.process_id,
                    parent_id: process.parent_id,
                    ..Row::default()
                });
                latest.insert(process.process_id, rows.len() - 1);
                rows.len() - 1
            });
            let row = &mut rows[row];
            row.fill(&process);
            match event.opcode() {
                START => row.start_ns = row.start_ns.or(Some(event.time_ns)),
                END => {
                    row.over = true;
                    row.end_ns = Some(event.time_ns);
                    row.exit_status = process.exit_status;
                }
                DEFUNCT => {
                    row.over = true;
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
        }
        Processes::of(&rows)
    }

    fn of(rows: &[Row]) -> Processes {
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
        }
    }
}
