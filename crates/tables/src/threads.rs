//! `threads`: threads and their lifetimes.

use std::collections::HashMap;

use events::kernel::{Service, Thread, ThreadName};

use crate::Table;
use crate::column::{Nullable, Text};
use crate::kept::KeptEvent;
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per thread; ids are reused, so several rows can have one `thread_id`.
    ///
    /// A thread that was there when the trace began has no `start_ns`, one that outlived it no
    /// `end_ns`. Addresses and priorities are those of the thread's first event.
    Threads, ThreadsView = "threads" sorted by first_seen_ns {
        /// When an event first told of the thread.
        first_seen_ns: Vec<i64> = "first event: header time",
        /// When it started; unknown if before the trace.
        start_ns: Nullable<i64> = "Thread Start: header time",
        /// When it ended; unknown if after the trace.
        end_ns: Nullable<i64> = "Thread End: header time",
        /// Its id.
        thread_id: Vec<u32> = "TThreadId" wpa "Thread Id",
        /// Its process.
        process_id: Vec<u32> = "ProcessId" wpa "Process Id",
        /// The thread that started it.
        creator_thread_id: Nullable<u32> = "Thread Start: header thread",
        /// The process of the thread that started it.
        creator_process_id: Nullable<u32> = "Thread Start: header process",
        /// Its name. Since Windows 10.
        name: Text = "ThreadName; SetName" wpa "Thread Name",
        /// Where its own code begins.
        win32_start_address: Nullable<u64> = "Win32StartAddr",
        /// Where the kernel started it. Before Windows 8.
        start_address: Nullable<u64> = "StartAddr",
        /// The CPUs of its group that it may run on. Since version 3 (Windows 7).
        affinity: Nullable<u64> = "Affinity",
        /// Where its kernel stack begins.
        stack_base: Nullable<u64> = "StackBase",
        /// Where its kernel stack ends.
        stack_limit: Nullable<u64> = "StackLimit",
        /// Where its user stack begins.
        user_stack_base: Nullable<u64> = "UserStackBase",
        /// Where its user stack ends.
        user_stack_limit: Nullable<u64> = "UserStackLimit",
        /// Address of its environment block.
        teb: Nullable<u64> = "TebBase",
        /// Number of the service it works for; 0 for none.
        sub_process_tag: Nullable<u32> = "SubProcessTag",
        /// The service it works for.
        service: Text = "Services: ServiceName, by ProcessId and SubProcessTag",
        /// Base priority, 0 to 31.
        base_priority: Nullable<u8> = "BasePriority",
        /// Priority of its memory, 0 to 7.
        page_priority: Nullable<u8> = "PagePriority",
        /// Priority of its I/O: 0 very low, 1 low, 2 normal, 3 high, 4 critical.
        io_priority: Nullable<u8> = "IoPriority",
    }
}

/// Hook of the event that tells of one service.
pub(crate) const SERVICE: u16 = 0x0B0F;
/// Hook of the event that names a thread.
pub(crate) const SET_NAME: u16 = 0x0548;

/// A thread as known so far.
struct Row<'a> {
    first_seen_ns: i64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    creator: (Option<u32>, Option<u32>),
    name: Option<String>,
    first: Thread<'a>,
}

impl Row<'_> {
    fn set_name(&mut self, name: Option<impl ToString>) {
        if let Some(name) = name.map(|name| name.to_string()).filter(|n| !n.is_empty()) {
            self.name = Some(name);
        }
    }
}

impl Threads {
    /// Builds the table from thread, thread-name and service events in time order.
    pub(crate) fn build(events: &[KeptEvent<'_>], unreadable: &mut UnreadableEvents) -> Threads {
        const START: u8 = 1;
        const END: u8 = 2;
        let mut rows: Vec<Row<'_>> = Vec::new();
        // The row of each living thread.
        let mut living: HashMap<u32, usize> = HashMap::new();
        let mut services: HashMap<(u32, u32), String> = HashMap::new();
        for event in events {
            let (payload, version, width) = (event.payload, event.version, event.pointer_size);
            match event.id {
                SERVICE => match Service::read(payload, version, width) {
                    Some(service) => {
                        let key = (service.process_id, service.sub_process_tag);
                        services.insert(key, service.name.to_string());
                    }
                    None => unreadable.add(Table::Threads, event.place),
                },
                SET_NAME => match ThreadName::read(payload, version, width) {
                    Some(named) => {
                        if let Some(row) = living.get(&named.thread_id) {
                            rows[*row].set_name(Some(named.name));
                        }
                    }
                    None => unreadable.add(Table::Threads, event.place),
                },
                _ => {
                    let Some(thread) = Thread::read(payload, version, width) else {
                        unreadable.add(Table::Threads, event.place);
                        continue;
                    };
                    let opcode = event.opcode();
                    let present = living.get(&thread.thread_id).copied().filter(|row| {
                        opcode != START && rows[*row].first.process_id == thread.process_id
                    });
                    let row = present.unwrap_or_else(|| {
                        let starts = opcode == START;
                        rows.push(Row {
                            first_seen_ns: event.time_ns,
                            start_ns: starts.then_some(event.time_ns),
                            end_ns: None,
                            creator: if starts {
                                (event.thread_id, event.process_id)
                            } else {
                                (None, None)
                            },
                            name: None,
                            first: thread,
                        });
                        living.insert(thread.thread_id, rows.len() - 1);
                        rows.len() - 1
                    });
                    rows[row].set_name(thread.name);
                    if opcode == END {
                        rows[row].end_ns = Some(event.time_ns);
                        living.remove(&thread.thread_id);
                    }
                }
            }
        }
        Threads::of(&rows, &services)
    }

    fn of(rows: &[Row<'_>], services: &HashMap<(u32, u32), String>) -> Threads {
        let service = |row: &Row<'_>| {
            let tag = row.first.sub_process_tag.filter(|tag| *tag != 0)?;
            services.get(&(row.first.process_id, tag))
        };
        Threads {
            first_seen_ns: rows.iter().map(|row| row.first_seen_ns).collect(),
            start_ns: rows.iter().map(|row| row.start_ns).collect(),
            end_ns: rows.iter().map(|row| row.end_ns).collect(),
            thread_id: rows.iter().map(|row| row.first.thread_id).collect(),
            process_id: rows.iter().map(|row| row.first.process_id).collect(),
            creator_thread_id: rows.iter().map(|row| row.creator.0).collect(),
            creator_process_id: rows.iter().map(|row| row.creator.1).collect(),
            name: rows.iter().map(|row| row.name.as_deref()).collect(),
            win32_start_address: rows
                .iter()
                .map(|row| row.first.win32_start_address)
                .collect(),
            start_address: rows.iter().map(|row| row.first.start_address).collect(),
            affinity: rows.iter().map(|row| row.first.affinity).collect(),
            stack_base: rows.iter().map(|row| row.first.stack_base).collect(),
            stack_limit: rows.iter().map(|row| row.first.stack_limit).collect(),
            user_stack_base: rows.iter().map(|row| row.first.user_stack_base).collect(),
            user_stack_limit: rows.iter().map(|row| row.first.user_stack_limit).collect(),
            teb: rows.iter().map(|row| row.first.teb).collect(),
            sub_process_tag: rows.iter().map(|row| row.first.sub_process_tag).collect(),
            service: rows
                .iter()
                .map(|row| service(row).map(String::as_str))
                .collect(),
            base_priority: rows.iter().map(|row| row.first.base_priority).collect(),
            page_priority: rows.iter().map(|row| row.first.page_priority).collect(),
            io_priority: rows.iter().map(|row| row.first.io_priority).collect(),
        }
    }
}
