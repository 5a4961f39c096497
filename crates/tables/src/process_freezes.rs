//! `process_freezes`: when processes were frozen.

use std::collections::HashMap;

use crate::ProcessTracker;
use crate::Table;
use crate::column::Nullable;
use crate::intervals::Interval;
use crate::kept::KeptEvent;
use crate::provider_events::{KERNEL_PROCESS, kept_fields, number};
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per stretch of time during which a process was frozen: none of its threads ran,
    /// whatever they waited for. Windows freezes packaged applications that are out of sight.
    ProcessFreezes, ProcessFreezesView = "process_freezes" sorted by start_ns {
        /// When the process was frozen, or the trace's start.
        start_ns: Vec<i64> = "Kernel-Process ProcessFreeze/Start: header time",
        /// When it was thawed, or the trace's end.
        end_ns: Vec<i64> = "Kernel-Process ProcessFreeze/Stop: header time",
        /// An event tells that it was frozen then; else it was when the trace began.
        starts_at_event: Vec<bool> = "an event at start_ns",
        /// An event tells that it was thawed then; else nothing tells that it was: it may have
        /// ended.
        ends_at_event: Vec<bool> = "an event at end_ns",
        /// The process.
        process_id: Vec<u32> = "FrozenProcessID",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
    }
}

/// Id of the event that says that a process is frozen.
const FROZEN: u16 = 11;

impl ProcessFreezes {
    /// Builds the table from the events in time order.
    pub(crate) fn build(
        events: &[KeptEvent<'_>],
        (start_ns, end_ns): (i64, i64),
        processes: &ProcessTracker<'_>,
        unreadable: &mut UnreadableEvents,
    ) -> ProcessFreezes {
        let mut frozen: HashMap<u32, Interval> = HashMap::new();
        let mut rows: Vec<Interval> = Vec::new();
        for event in events {
            let process_id = kept_fields(KERNEL_PROCESS, event)
                .and_then(|fields| number(&fields, "FrozenProcessID"));
            let Some(id) = process_id else {
                unreadable.add(Table::ProcessFreezes, event.place);
                continue;
            };
            if event.id == FROZEN {
                let opened = Interval::open(id, event.time_ns);
                frozen.entry(id).or_insert(opened);
            } else {
                let before = Interval::since_before(id, start_ns);
                let interval = frozen.remove(&id).unwrap_or(before);
                rows.push(interval.ended(event.time_ns));
            }
        }
        rows.extend(frozen.into_values().map(|interval| interval.cut(end_ns)));
        rows.sort_by_key(|interval| (interval.start_ns, interval.process_id));
        let mut table = ProcessFreezes::default();
        for interval in rows {
            table.start_ns.push(interval.start_ns);
            table.end_ns.push(interval.end_ns);
            table.starts_at_event.push(interval.starts_at_event);
            table.ends_at_event.push(interval.ends_at_event);
            table.process_id.push(interval.process_id);
            let row = processes.lookup(interval.process_id, interval.start_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
        }
        table
    }
}
