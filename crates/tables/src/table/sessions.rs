//! `trace`: the sessions that recorded the trace.

use events::Value;

use crate::column::{Nullable, Text};
use crate::register::{Register, TraceFacts, WholeTable};
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per recording session. The row has the information that the log file states about the session
    /// and the machine. Most traces have one session. Merged and joined traces have several sessions.
    ///
    /// If the log-file header of a session is unreadable, most columns are unknown.
    Sessions, SessionsView = "trace" sorted by start_ns {
        /// Start of the session. The trace starts at the earliest start of its sessions.
        start_ns: Vec<i64> = "log-file header: StartTime",
        /// End of the session. Unknown if the log was never finalised.
        end_ns: Nullable<i64> = "log-file header: EndTime",
        /// Name of the trace file.
        file: Text = "the file",
        /// Name of the session.
        session: Text = "log-file header: LoggerName",
        /// Path of the log file at the time of the recording.
        log_file: Text = "log-file header: LogFileName",
        /// Start of the session in UTC, as ISO 8601.
        start_utc: Text = "log-file header: StartTime",
        /// End of the session in UTC, as ISO 8601.
        end_utc: Text = "log-file header: EndTime",
        /// Time at which the system booted, in UTC as ISO 8601. Recent builds of Windows round this time to
        /// half a second.
        boot_utc: Text = "log-file header: BootTime",
        /// Minutes to add to the machine's local time to get UTC, outside daylight saving time.
        time_zone_bias: Nullable<i32> = "log-file header: TimeZoneInformation, Bias" in "minutes",
        /// Operating system: `Windows` or `Linux`. Null if the header does not state the system.
        system: Text = "log-file header; perf.data",
        /// Version of Windows (6.1 is Windows 7, 10.0 is Windows 10 and 11), or release of the kernel of Linux.
        os_version: Text = "log-file header: MajorVersion, MinorVersion; perf.data: HEADER_OSRELEASE",
        /// Build number of Windows.
        os_build: Nullable<u32> = "log-file header: ProviderVersion",
        /// Number of processors. If a session has no buffers per processor, this number is 1.
        processors: Nullable<u32> = "log-file header: NumberOfProcessors",
        /// Nominal frequency of the processors.
        cpu_mhz: Nullable<u32> = "log-file header: CpuSpeedInMHz" in "MHz",
        /// Clock of the event times: `QPC`, `system time` or `CPU cycles`.
        clock: Text = "log-file header: ReservedFlags",
        /// Frequency of the clock.
        clock_hz: Nullable<u64> = "log-file header: PerfFreq; CpuSpeedInMHz; 10 MHz for system time"
            in "Hz",
        /// Time between two clock interrupts at the start of the session.
        clock_interrupt_ns: Nullable<i64> = "log-file header: TimerResolution",
        /// Size of the session's buffers.
        buffer_size_bytes: Nullable<u32> = "log-file header: BufferSize",
        /// Number of buffers written, including the buffer of the log-file header.
        buffers_written: Nullable<u32> = "log-file header: BuffersWritten",
        /// Number of events that the session lost.
        events_lost: Nullable<u32> = "log-file header: EventsLost",
        /// Number of buffers that the session lost.
        buffers_lost: Nullable<u32> = "log-file header: BuffersLost",
        /// Modes of the session: `SEQUENTIAL, COMPRESSED`, …
        modes: Text = "log-file header: LogFileMode",
        /// Process that controlled the session.
        controller_process_id: Nullable<u32> = "log-file header: header process",
    }
}

impl Register for Sessions {
    const IS_IN_HEADERS: bool = true;
}

impl WholeTable for Sessions {
    fn build(facts: &TraceFacts<'_>, _: &mut UnreadableEvents) -> Sessions {
        let trace = facts.trace;
        let mut rows = Sessions::default();
        let files: Vec<&str> = trace.files().map(crate::file_name).collect();
        let mut segments: Vec<_> = trace.segments().iter().collect();
        segments.sort_by_key(|segment| segment.header.as_ref().map_or(0, |header| header.start));
        for segment in segments {
            let header = segment.header.as_ref();
            let origin = segment.clock.origin_filetime();
            let ns = |filetime: i64| filetime.saturating_sub(origin).saturating_mul(100);
            let start = header.map(|header| header.start);
            let end = header.and_then(|header| header.end);
            rows.start_ns.push(start.map_or(0, ns));
            rows.end_ns.push(end.map(ns));
            rows.file
                .push(files.get(usize::from(segment.file)).copied());
            let text = |text: Option<&String>| {
                let text = text.map(String::as_str);
                text.filter(|text| !text.is_empty()).map(str::to_owned)
            };
            rows.session
                .push(text(header.map(|h| &h.session)).as_deref());
            rows.log_file
                .push(text(header.map(|h| &h.log_file)).as_deref());
            rows.start_utc.push(start.and_then(utc).as_deref());
            rows.end_utc.push(end.and_then(utc).as_deref());
            let boot = header.and_then(|header| utc(header.boot));
            rows.boot_utc.push(boot.as_deref());
            rows.time_zone_bias.push(header.map(|h| h.time_zone_bias));
            let versions = header.filter(|h| h.os_version != (0, 0));
            let version = versions.map(|h| format!("{}.{}", h.os_version.0, h.os_version.1));
            rows.system.push(versions.map(|_| "Windows"));
            rows.os_version.push(version.as_deref());
            let known = |number: Option<u32>| number.filter(|number| *number != 0);
            rows.os_build.push(known(header.map(|h| h.os_build)));
            rows.processors.push(header.and_then(|h| h.cpus()));
            rows.cpu_mhz.push(known(header.map(|h| h.cpu_mhz)));
            let clock = header.map(|h| h.clock());
            rows.clock.push(clock.map(|clock| clock.kind().name()));
            rows.clock_hz.push(clock.map(|clock| clock.frequency()));
            let tick = known(header.map(|h| h.timer_resolution));
            rows.clock_interrupt_ns
                .push(tick.map(|units| i64::from(units) * 100));
            rows.buffer_size_bytes
                .push(known(header.map(|h| h.buffer_size)));
            rows.buffers_written
                .push(known(header.map(|h| h.buffers_written)));
            rows.events_lost.push(header.map(|h| h.events_lost));
            rows.buffers_lost.push(header.map(|h| h.buffers_lost));
            rows.modes
                .push(header.map(|h| h.modes().join(", ")).as_deref());
            rows.controller_process_id
                .push(header.map(|h| h.process_id).filter(|id| *id != u32::MAX));
        }
        rows
    }
}

/// Formats a FILETIME as ISO 8601. Returns `None` if it is 0.
fn utc(filetime: i64) -> Option<String> {
    let filetime = u64::try_from(filetime).ok().filter(|time| *time != 0)?;
    Some(Value::FileTime(filetime).to_string())
}
