//! `timer_requests`: requests for timer resolutions, and the resolutions in effect.

use crate::column::{Named, Names, Nullable, Text};
use crate::providers::{KERNEL_POWER, fields, logged_by, number, text};
use crate::register::{EventTable, Incoming, Reader, Reads, Register};
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

/// Id of the event with the resolution in effect.
const EFFECTIVE: u16 = 95;

impl Register for TimerRequests {
    const READS: Reads = Reads {
        providers: &[(KERNEL_POWER, &[63..=63, EFFECTIVE..=EFFECTIVE])],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl EventTable for TimerRequests {
    type Raw = TimerRequests;
    type State = ();

    fn push(raw: &mut TimerRequests, incoming: &Incoming<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let fields = fields(KERNEL_POWER, event)?;
        let is_effective = event.descriptor()?.id == EFFECTIVE;
        let (kind, resolution, process_id) = if is_effective {
            (
                TimerRequestKind::Effective,
                number(&fields, "NewResolution"),
                None,
            )
        } else {
            let process_id = number(&fields, "Pid").or(logged_by(event).1);
            let resolution = number(&fields, "RequestedResolution");
            (TimerRequestKind::Request, resolution, process_id)
        };
        raw.time_ns.push(event.time_ns());
        raw.cpu.push(event.cpu());
        raw.kind.0.push(kind);
        // The resolution in the event is in units of 100 ns.
        raw.resolution_ns
            .push(resolution.map(|units| i64::from(units) * 100));
        raw.process_id.push(process_id);
        raw.image_path.push(text(&fields, "AppName"));
        let tag = number(&fields, "SubProcessTag").filter(|tag| *tag != 0);
        raw.sub_process_tag.push(tag);
        raw.ignored
            .push(number(&fields, "RequestIgnored").map(|flag| flag != 0));
        Some(())
    }

    fn join(raw: &mut TimerRequests, (): &mut (), trackers: &Trackers<'_>) -> TimerRequests {
        let mut rows = std::mem::take(raw);
        rows.process_row = trackers.process_rows(&rows.process_id, &rows.time_ns);
        rows
    }
}
