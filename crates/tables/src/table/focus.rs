//! `focus`: processes that own the window in focus.

use crate::column::Nullable;
use crate::register::{Reader, Register};
use crate::schema::table;
use crate::table::Table;

table! {
    /// One row per time range in which one process owned the window in focus of a terminal session. Outside
    /// these time ranges, no process had the focus, or the trace has no information about the focus.
    Focus, FocusView = "focus" sorted by start_ns
        title "Window in Focus"
        record "changes of focus (provider Microsoft-Windows-Win32k, keywords 0x22000)"
        lasts start_ns to end_ns
    {
        /// Time at which the process got the focus. If the process already had the focus, this is the trace's
        /// start.
        start_ns: Vec<i64> = "Win32k FocusedProcessChange, FocusedProcessChangeGained: header time",
        /// Time at which the process lost the focus. If the process still had the focus, this is the trace's
        /// end.
        end_ns: Vec<i64> = "Win32k FocusedProcessChange, FocusedProcessChangeLost: header time",
        /// True if an event reports that the process got the focus at `start_ns`. False if the
        /// process already had the focus when the trace began.
        starts_at_event: Vec<bool> = "an event at start_ns",
        /// True if an event reports that the process lost the focus at `end_ns`. False if the
        /// process still had the focus when the trace ended.
        ends_at_event: Vec<bool> = "an event at end_ns",
        /// Id of the terminal session.
        session_id: Vec<u32> = "SessionId",
        /// Process that had the focus.
        process_id: Vec<u32> = "NewProcessId, OldProcessId" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
    }
}

impl Register for Focus {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}
