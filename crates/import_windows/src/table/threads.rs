//! `threads`: threads and their lifetimes.

use std::collections::HashMap;

use events::ids::hook;
use events::kernel::{Service, Thread, ThreadName};
use tables::import::UnreadableEvents;
use tables::{Table, Threads};

use crate::event_buffer::BufferedEvent;
use crate::register::Reads;

/// Events from which the rows are made.
pub(crate) const READS: Reads = Reads {
    hooks: &[
        hook::THREAD_START..=hook::THREAD_DC_END,
        hook::THREAD_SET_NAME..=hook::THREAD_SET_NAME,
        hook::SERVICE..=hook::SERVICE,
    ],
    ..Reads::NOTHING
};

/// A thread.
struct Row<'a> {
    first_seen_ns: i64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    /// Id of the thread that started this thread, and id of the process of that thread.
    creator: (Option<u32>, Option<u32>),
    name: Option<String>,
    /// Payload of the first event about the thread.
    first: Thread<'a>,
}

impl Row<'_> {
    fn set_name(&mut self, name: Option<impl ToString>) {
        if let Some(name) = name.map(|name| name.to_string()).filter(|n| !n.is_empty()) {
            self.name = Some(name);
        }
    }
}

/// Threads that were read so far.
#[derive(Default)]
struct Builder<'a> {
    rows: Vec<Row<'a>>,
    /// Row of each thread that has not ended yet, by thread id.
    living: HashMap<u32, usize>,
    /// Names of services, by process id and tag.
    services: HashMap<(u32, u32), String>,
}

impl<'a> Builder<'a> {
    /// Reads an event. Returns `None` if the payload of the event is unreadable.
    fn take(&mut self, event: &BufferedEvent<'a>) -> Option<()> {
        let (payload, version, width) = (event.payload, event.version, event.pointer_size);
        match event.id {
            hook::SERVICE => {
                let service = Service::read(payload, version, width)?;
                let key = (service.process_id, service.sub_process_tag);
                self.services.insert(key, service.name.to_string());
            }
            hook::THREAD_SET_NAME => {
                let named = ThreadName::read(payload, version, width)?;
                if let Some(row) = self.living.get(&named.thread_id) {
                    self.rows[*row].set_name(Some(named.name));
                }
            }
            _ => self.take_thread(event, Thread::read(payload, version, width)?),
        }
        Some(())
    }

    fn take_thread(&mut self, event: &BufferedEvent<'a>, thread: Thread<'a>) {
        let starts = event.id == hook::THREAD_START;
        let present = self.living.get(&thread.thread_id).copied();
        let present =
            present.filter(|row| !starts && self.rows[*row].first.process_id == thread.process_id);
        let row = present.unwrap_or_else(|| {
            self.rows.push(Row {
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
            let row = self.rows.len() - 1;
            self.living.insert(thread.thread_id, row);
            row
        });
        self.rows[row].set_name(thread.name);
        if event.id == hook::THREAD_END {
            self.rows[row].end_ns = Some(event.time_ns);
            self.living.remove(&thread.thread_id);
        }
    }
}

/// Makes the table from thread, thread-name and service events in time order.
pub(crate) fn build(events: &[BufferedEvent<'_>], unreadable: &mut UnreadableEvents) -> Threads {
    let mut builder = Builder::default();
    for event in events {
        if builder.take(event).is_none() {
            unreadable.add(Table::Threads, event.place);
        }
    }
    from_rows(&builder.rows, &builder.services)
}

fn from_rows(rows: &[Row<'_>], services: &HashMap<(u32, u32), String>) -> Threads {
    let service = |row: &Row<'_>| {
        let tag = row.first.sub_process_tag.filter(|tag| *tag != 0)?;
        services.get(&(row.first.process_id, tag))
    };
    Threads {
        first_seen_ns: rows.iter().map(|row| row.first_seen_ns).collect(),
        start_ns: rows.iter().map(|row| row.start_ns).collect(),
        end_ns: rows.iter().map(|row| row.end_ns).collect(),
        thread_id: rows.iter().map(|row| row.first.thread_id).collect(),
        process_id: rows.iter().map(|row| Some(row.first.process_id)).collect(),
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
        ..Threads::default()
    }
}
