//! `timer_requests`: what was asked of the timer's resolution, and what it became.

use etl::Event;

use crate::column::{Named, Names, Nullable, Text};
use crate::join::Join;
use crate::provider_events::{KERNEL_POWER, fields, logged_by, number, text};
use crate::schema::table;
use crate::world::World;

table! {
    /// One row per request for a timer resolution, and per resolution that the system sets.
    TimerRequests, TimerRequestsView = "timer_requests" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time",
        /// The CPU that logged it.
        cpu: Vec<u16> = "CPU of the buffer",
        /// `request` of a process, or `effective`: the system's from now on.
        kind: Names<TimerRequestKind> =
            "Kernel-Power SystemTimeResolutionChange, SystemTimeResolutionUpdate",
        /// Time between two clock interrupts that is asked for, or that is; 0 where a process
        /// asks for none any more.
        resolution_ns: Nullable<i64> = "RequestedResolution, NewResolution",
        /// The process that asks.
        process_id: Nullable<u32> = "Pid; before version 1 the header's process",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Its image, as an NT path.
        image_path: Text = "AppName",
        /// The service that asks, by its tag; none if 0.
        sub_process_tag: Nullable<u32> = "SubProcessTag",
        /// Windows ignores the request, because none of the process's windows can be seen or
        /// heard. Since Windows 11.
        ignored: Nullable<bool> = "RequestIgnored",
    }
}

/// What a row of `timer_requests` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerRequestKind {
    /// A process asks.
    Request,
    /// The system changes the resolution.
    Effective,
}

impl Named for TimerRequestKind {
    const NAMES: &'static [&'static str] = &["request", "effective"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Id of the event that tells the resolution in effect.
const EFFECTIVE: u16 = 95;

impl TimerRequests {
    /// Adds a row; `None` if the payload is unreadable.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
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
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.kind.0.push(kind);
        // In units of 100 ns.
        self.resolution_ns
            .push(resolution.map(|units| i64::from(units) * 100));
        self.process_id.push(process_id);
        self.image_path.push(text(&fields, "AppName"));
        let tag = number(&fields, "SubProcessTag").filter(|tag| *tag != 0);
        self.sub_process_tag.push(tag);
        self.ignored
            .push(number(&fields, "RequestIgnored").map(|flag| flag != 0));
        Some(())
    }
}

impl Join for TimerRequests {
    type State = ();

    fn join(&mut self, (): &mut (), world: &World<'_>) {
        self.process_row = world.process_rows(&self.process_id, &self.time_ns);
    }
}
