//! `process_freezes`: time ranges in which processes were frozen.

use std::collections::HashMap;

use crate::column::Nullable;
use crate::intervals::Interval;
use crate::providers::{KERNEL_PROCESS, buffered_fields, number};
use crate::register::{Reader, Reads, Register, TraceFacts, WholeTable};
use crate::schema::table;
use crate::table::Table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per time range in which a process was frozen. The threads of a frozen process do not
    /// run, even if they are ready. Windows freezes packaged applications without visible windows. On Linux,
    /// programs freeze cgroups.
    ProcessFreezes, ProcessFreezesView = "process_freezes" sorted by start_ns
        title "Frozen Processes"
        record "freezes (provider Microsoft-Windows-Kernel-Process with keyword 0x200)"
        lasts start_ns to end_ns
    {
        /// Time at which the process was frozen. If the process was already frozen, this is the trace's
        /// start.
        start_ns: Vec<i64> = "Kernel-Process ProcessFreeze/Start: header time",
        /// Time at which the process was thawed. If the trace has no such event, this is the trace's end.
        end_ns: Vec<i64> = "Kernel-Process ProcessFreeze/Stop: header time",
        /// True if an event reports the freeze at `start_ns`. False if the process was already
        /// frozen when the trace began.
        starts_at_event: Vec<bool> = "an event at start_ns",
        /// True if an event reports the thaw at `end_ns`. False if the trace has no such event. The process
        /// may then have ended before `end_ns`.
        ends_at_event: Vec<bool> = "an event at end_ns",
        /// Process that was frozen.
        process_id: Vec<u32> = "FrozenProcessID",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
    }
}

/// Id of the event that reports a freeze of a process.
const FROZEN: u16 = 11;
/// Id of the event that reports a thaw of a process.
const THAWED: u16 = 12;

impl Register for ProcessFreezes {
    const READS: Reads = Reads {
        providers: &[(KERNEL_PROCESS, &[FROZEN..=THAWED])],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl WholeTable for ProcessFreezes {
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
