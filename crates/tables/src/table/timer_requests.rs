//! `timer_requests`: requests for timer resolutions, and the resolutions in effect.

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::Trackers;

table! {
    /// One row per request for a timer resolution. Also one row for each resolution that the system sets.
    TimerRequests, TimerRequestsView = "timer_requests" sorted by time_ns
        title "Timer Requests"
        record "timer resolutions (provider Microsoft-Windows-Kernel-Power)"
    {
        /// Time of the event.
        time_ns: Vec<i64> = "header time",
        /// CPU that logged the event.
        cpu: Vec<u16> = "CPU of the buffer",
        /// Kind of the row. `request` means that a process requests a resolution. `effective` means that the
        /// system uses the resolution from this time on.
        kind: Names<TimerRequestKind> =
            "Kernel-Power SystemTimeResolutionChange, SystemTimeResolutionUpdate",
        /// Time between two clock interrupts, requested or in effect. It is 0 if a process withdraws its
        /// request.
        resolution_ns: Nullable<i64> = "RequestedResolution, NewResolution",
        /// Process that makes the request.
        process_id: Nullable<u32> = "Pid; before version 1, the process in the header",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// NT path of the image of the process.
        image_path: Text = "AppName",
        /// Tag of the service that makes the request. Null if the request is not from a service.
        sub_process_tag: Nullable<u32> = "SubProcessTag",
        /// True if Windows ignores the request, because no window of the process is visible or audible.
        /// Present since Windows 11.
        ignored: Nullable<bool> = "RequestIgnored",
    }
}

/// Kind of a row of `timer_requests`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerRequestKind {
    /// Request of a process.
    Request,
    /// Resolution that the system sets.
    Effective,
}

impl Named for TimerRequestKind {
    const NAMES: &'static [&'static str] = &["request", "effective"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl Register for TimerRequests {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl EventTable for TimerRequests {
    type Raw = TimerRequests;
    type State = ();

    fn join(raw: &mut TimerRequests, (): &mut (), trackers: &Trackers<'_>) -> TimerRequests {
        let mut rows = std::mem::take(raw);
        rows.process_row = trackers.process_rows(&rows.process_id, &rows.time_ns);
        rows
    }
}
