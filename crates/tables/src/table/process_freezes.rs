//! `process_freezes`: time ranges in which processes were frozen.

use crate::column::Nullable;
use crate::register::{Reader, Register};
use crate::schema::table;
use crate::table::Table;

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

impl Register for ProcessFreezes {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}
