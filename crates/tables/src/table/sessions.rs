//! `trace`: the sessions that recorded the trace.

use crate::column::{Nullable, Text};
use crate::recording::{OperatingSystem, RecordingInfo, SessionHeader};
use crate::register::Register;
use crate::schema::table;
use crate::time::utc;

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

impl Sessions {
    /// Makes the rows from the facts about a recording.
    pub fn from_info(info: &RecordingInfo) -> Sessions {
        let mut rows = Sessions::default();
        let mut sessions: Vec<_> = info.sessions.iter().collect();
        sessions.sort_by_key(|session| session.header.as_ref().map(|header| header.start_ns));
        let unreadable = SessionHeader::default();
        for session in sessions {
            let header = session.header.as_ref();
            let file = info
                .files
                .get(session.file)
                .map(|file| crate::file_name(file));
            rows.file.push(file);
            // A column of a session without a readable header is unknown.
            let known = header.unwrap_or(&unreadable);
            rows.start_ns.push(known.start_ns);
            rows.end_ns.push(known.end_ns);
            rows.session
                .push(Some(&*known.name).filter(|name| !name.is_empty()));
            rows.log_file.push(known.log_file.as_deref());
            for (column, moment) in [
                (&mut rows.start_utc, known.start_unix_ns),
                (&mut rows.end_utc, known.end_unix_ns),
                (&mut rows.boot_utc, known.boot_unix_ns),
            ] {
                column.push(moment.map(utc).as_deref());
            }
            rows.time_zone_bias.push(known.time_zone_bias);
            rows.system.push(known.system.map(OperatingSystem::name));
            rows.os_version.push(known.os_version.as_deref());
            rows.os_build.push(known.os_build);
            rows.processors.push(known.processors);
            rows.cpu_mhz.push(known.cpu_mhz);
            rows.clock.push(known.clock);
            rows.clock_hz.push(known.clock_hz);
            rows.clock_interrupt_ns.push(known.clock_interrupt_ns);
            rows.buffer_size_bytes.push(known.buffer_size);
            rows.buffers_written.push(known.buffers_written);
            rows.events_lost.push(known.events_lost);
            rows.buffers_lost.push(known.buffers_lost);
            let modes = known.modes.as_ref().map(|modes| modes.join(", "));
            rows.modes.push(modes.as_deref());
            rows.controller_process_id.push(known.controller_process_id);
        }
        rows
    }
}
