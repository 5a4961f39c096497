//! `process_freezes`: time ranges in which processes were frozen.

use std::collections::HashMap;

use tables::import::{Interval, UnreadableEvents};
use tables::{ProcessFreezes, Table};

use crate::providers::{KERNEL_PROCESS, buffered_fields, number};
use crate::register::{Reads, TraceFacts, WholeTable};

/// Id of the event that reports a freeze of a process.
const FROZEN: u16 = 11;

/// Id of the event that reports a thaw of a process.
const THAWED: u16 = 12;

impl WholeTable for ProcessFreezes {
    const READS: Reads = Reads {
        providers: &[(KERNEL_PROCESS, &[FROZEN..=THAWED])],
        ..Reads::NOTHING
    };

    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> ProcessFreezes {
        let (start_ns, end_ns) = facts.span_ns;
        let mut frozen: HashMap<u32, Interval> = HashMap::new();
        let mut rows: Vec<Interval> = Vec::new();
        for event in &facts.events(Table::ProcessFreezes) {
            let process_id = buffered_fields(KERNEL_PROCESS, event)
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
            let row = facts
                .processes
                .lookup(interval.process_id, interval.start_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
        }
        table
    }
}
