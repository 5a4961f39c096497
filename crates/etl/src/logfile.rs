//! Header of a log. The header is the first event of the log and has the payload `TRACE_LOGFILE_HEADER`.

use std::ops::RangeInclusive;

use crate::buffer::{HEADER_SIZE, MAX_BUFFER};
use crate::clock::{Clock, ClockKind};
use crate::event::{HeaderKind, Record};
use crate::le;

/// Information about the session and the machine from the log's header.
///
/// Times are FILETIMEs (100 ns since 1601-01-01 UTC). Raw times are an exception: they are in ticks of the
/// session's clock. Source: `evntrace.h` and Chappell's study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileHeader {
    /// Size of the session's buffers in bytes.
    pub buffer_size: u32,
    /// Operating system major and minor version (6.1 is Windows 7, 10.0 is Windows 10 or 11).
    pub os_version: (u8, u8),
    /// Version of the log format: 1.4 for Vista, 1.5 for Windows 7 and later. It is 2.0 for logs that are
    /// compressed, and for logs with large buffers or many CPUs.
    pub log_version: (u8, u8),
    /// Build number of the operating system.
    pub os_build: u32,
    /// Number of processors. If a session has no buffers per processor, this number is 1.
    pub processors: u32,
    /// Time of the end of the session; `None` if the log was never finalised.
    pub end: Option<i64>,
    /// Period of the system's clock tick in 100 ns units.
    pub timer_resolution: u32,
    /// Maximum file size in MB (in KB if mode bit 0x2000 is set); 0 if there is no maximum.
    pub maximum_file_size: u32,
    /// Mode bits of the session (`EVENT_TRACE_*_MODE`).
    pub log_file_mode: u32,
    /// Number of buffers in the file at the time when the log was finalised, including the header buffer.
    pub buffers_written: u32,
    /// Number of buffers at the start of a circular log that are never overwritten.
    pub start_buffers: u32,
    /// Pointer size in bytes of the process that controlled the session. Events can have a different pointer
    /// size.
    pub pointer_size: u32,
    /// Number of events lost in the session.
    pub events_lost: u32,
    /// Number of buffers lost in the session.
    pub buffers_lost: u32,
    /// Nominal CPU speed in MHz.
    pub cpu_mhz: u32,
    /// Number of minutes to add to local time to get UTC.
    pub time_zone_bias: i32,
    /// Name of the time zone's standard time. The name is often a reference to a resource.
    pub time_zone: String,
    /// Boot time of the system.
    pub boot: i64,
    /// Frequency of the performance counter in ticks per second.
    pub perf_frequency: u64,
    /// Start of the session.
    pub start: i64,
    /// Clock type that the log states: 0 and 1 mean the performance counter (QPC), 2 means the system time, 3
    /// means CPU cycles.
    pub clock_type: u32,
    /// Raw time of the header event. It is the moment `start` in ticks of the session's clock.
    pub raw_start: i64,
    /// Id of the process that controlled the session.
    pub process_id: u32,
    /// Name of the session.
    pub session: String,
    /// Name of the log file that the session wrote.
    pub log_file: String,
}

impl LogFileHeader {
    /// Reads the header from the first record of a buffer. The record's kind decides whether the payload has
    /// the 32-bit or the 64-bit layout. A 32-bit controller writes the 32-bit layout, even on 64-bit Windows.
    pub(crate) fn read(buffer: &[u8], record: &Record) -> Option<LogFileHeader> {
        let at = record.offset as usize;
        let bytes = buffer.get(at..at + usize::from(record.size))?;
        let pointer = match record.kind {
            HeaderKind::System32 => 4,
            HeaderKind::System64 => 8,
            _ => return None,
        };
        if le::u16(bytes, 6)? != 0 {
            return None;
        }
        let p = bytes.get(32..)?;
        // Two fields have the size of a pointer. So the offsets of all later fields differ between the two
        // layouts.
        let shift = 2 * (pointer - 4);
        let tail = |offset32: usize| offset32 + shift;
        let names = p.get(tail(0x110)..).unwrap_or(&[]);
        let (session, rest) = utf16_z(names);
        let (log_file, _) = utf16_z(rest);
        let end = le::i64(p, 0x10)?;
        Some(LogFileHeader {
            buffer_size: le::u32(p, 0x00)?,
            os_version: (*p.get(4)?, *p.get(5)?),
            log_version: (*p.get(6)?, *p.get(7)?),
            os_build: le::u32(p, 0x08)?,
            processors: le::u32(p, 0x0C)?,
            end: (end != 0).then_some(end),
            timer_resolution: le::u32(p, 0x18)?,
            maximum_file_size: le::u32(p, 0x1C)?,
            log_file_mode: le::u32(p, 0x20)?,
            buffers_written: le::u32(p, 0x24)?,
            start_buffers: le::u32(p, 0x28)?,
            pointer_size: le::u32(p, 0x2C)?,
            events_lost: le::u32(p, 0x30)?,
            cpu_mhz: le::u32(p, 0x34)?,
            time_zone_bias: le::i32(p, tail(0x40))?,
            time_zone: utf16_z(p.get(tail(0x44)..tail(0x44) + 64)?).0,
            boot: le::i64(p, tail(0xF0))?,
            perf_frequency: le::u64(p, tail(0xF8))?,
            start: le::i64(p, tail(0x100))?,
            clock_type: le::u32(p, tail(0x108))?,
            buffers_lost: le::u32(p, tail(0x10C))?,
            raw_start: record.raw_time,
            process_id: le::u32(bytes, 12)?,
            session,
            log_file,
        })
    }

    /// Returns the number of processors; `None` if no machine can have this number, because the header is damaged.
    pub fn cpus(&self) -> Option<u32> {
        // The index of a processor in a buffer has 11 bits.
        const MOST: u32 = 2048;
        Some(self.processors).filter(|cpus| (1..=MOST).contains(cpus))
    }

    /// Returns true if the fields have values that a session can write. Up to two fields may have other
    /// values, because the header may be damaged.
    pub(crate) fn is_plausible(&self) -> bool {
        /// Latest plausible FILETIME: about the year 2200.
        const LATEST: i64 = 190_000_000_000_000_000;
        let is_date = |filetime: i64| (0..=LATEST).contains(&filetime);
        let checks = [
            (4..=15).contains(&self.os_version.0),
            (1..=2).contains(&self.log_version.0),
            self.os_build < 1_000_000,
            (1..=4096).contains(&self.processors),
            (HEADER_SIZE as u32..=MAX_BUFFER).contains(&self.buffer_size),
            matches!(self.pointer_size, 4 | 8),
            self.clock_type <= 3,
            self.perf_frequency <= 1 << 40,
            self.timer_resolution <= 100_000_000,
            is_date(self.start),
            is_date(self.boot),
            self.end.is_none_or(|end| is_date(end) && end >= self.start),
        ];
        checks.iter().filter(|is_plausible| !**is_plausible).count() <= 2
    }

    /// Returns the names of the session's modes.
    pub fn modes(&self) -> Vec<&'static str> {
        mode::NAMES
            .iter()
            .filter(|(bit, _)| self.log_file_mode & bit != 0)
            .map(|m| m.1)
            .collect()
    }

    /// Returns true if buffer headers have a 16-bit processor index (Windows 8 and later).
    pub(crate) fn has_wide_cpu_index(&self) -> bool {
        self.os_version >= (6, 2)
    }

    /// Returns true if every CPU fills separate buffers.
    pub(crate) fn has_buffers_per_cpu(&self) -> bool {
        const SHARED: u32 =
            mode::NO_PER_PROCESSOR_BUFFERING | mode::PRIVATE_LOGGER | mode::PRIVATE_IN_PROC;
        self.log_file_mode & SHARED == 0
    }

    /// Returns the range of plausible raw times: from one day before the session's start to one day after its
    /// end. Some events are a little older than the session. Rundown events are later than the end of the
    /// session.
    pub(crate) fn plausible_times(&self) -> (i64, i64) {
        const DAY_NS: i64 = 86_400_000_000_000;
        let clock = self.clock();
        let latest = match self.end.and_then(|end| end.checked_sub(self.start)) {
            Some(units @ 0..) => clock.from_ns(units.saturating_mul(100).saturating_add(DAY_NS)),
            _ => i64::MAX,
        };
        (clock.from_ns(-DAY_NS), latest)
    }

    /// Returns the raw times of the session's start and end. Returns `None` if the header has no end that is
    /// after the start.
    pub(crate) fn session_times(&self) -> Option<SessionTimes> {
        let units = self
            .end?
            .checked_sub(self.start)
            .filter(|units| *units > 0)?;
        let clock = self.clock();
        Some(SessionTimes {
            clock,
            end_ns: units.checked_mul(100)?,
        })
    }

    /// Returns the session's clock, whose nanosecond 0 is the session's start.
    pub fn clock(&self) -> Clock {
        match self.clock_type {
            2 if self.starts_at_system_time() => {
                Clock::new(ClockKind::SystemTime, self.start, self.start, 0)
            }
            3 => Clock::new(
                ClockKind::CpuCycles,
                self.raw_start,
                self.start,
                u64::from(self.cpu_mhz) * 1_000_000,
            ),
            _ => Clock::new(
                ClockKind::Qpc,
                self.raw_start,
                self.start,
                self.believed_frequency(),
            ),
        }
    }

    /// Returns true if the raw start time and the start time as FILETIME are less than a year apart. If a log
    /// uses a system-time clock, its raw times are FILETIMEs. So a greater difference means that the clock
    /// type in the header is damaged.
    fn starts_at_system_time(&self) -> bool {
        const YEAR: u64 = 365 * 864_000_000_000;
        self.raw_start.abs_diff(self.start) < YEAR
    }

    /// Returns the frequency of the performance counter. Returns 0 if the frequency is damaged. A damaged frequency
    /// fulfils two conditions: it is below 1 MHz, and with this frequency the counter would have run more than a day
    /// longer than the machine.
    fn believed_frequency(&self) -> u64 {
        const LOWEST: u64 = 1_000_000;
        const DAY_SECONDS: u64 = 86_400;
        let up = self.start.checked_sub(self.boot).filter(|_| self.boot > 0);
        let up_seconds = up.map_or(u64::MAX, |units| units.unsigned_abs() / 10_000_000);
        let counted_seconds = self.raw_start.unsigned_abs() / self.perf_frequency.max(1);
        let is_too_long = counted_seconds > up_seconds.saturating_add(DAY_SECONDS);
        if self.perf_frequency < LOWEST && is_too_long {
            0
        } else {
            self.perf_frequency
        }
    }
}

/// Time range of a session according to its header.
pub(crate) struct SessionTimes {
    /// Clock whose nanosecond 0 is the session's start.
    clock: Clock,
    end_ns: i64,
}

impl SessionTimes {
    /// Returns the range of raw times in which buffers of the session can begin. The range begins a minute before the
    /// session and ends a minute after the session. The minute after the session is for rundown events and for events
    /// that a merge adds.
    pub(crate) fn near(&self) -> RangeInclusive<i64> {
        const NEAR_NS: i64 = 60_000_000_000;
        self.raw(-NEAR_NS)..=self.raw(self.end_ns.saturating_add(NEAR_NS))
    }

    /// Returns the first and the last plausible raw time. `times` are the times at which buffers begin. The range
    /// covers the session and all `times`, and it is 10 s longer at both ends. The 10 s are necessary, because the
    /// events of the last buffer are later than the start of that buffer.
    pub(crate) fn extended<'t>(&self, times: impl Iterator<Item = &'t i64>) -> (i64, i64) {
        const ROOM_NS: i64 = 10_000_000_000;
        let (mut first_ns, mut last_ns) = (0, self.end_ns);
        for time in times {
            let ns = self.clock.to_ns(*time);
            first_ns = first_ns.min(ns);
            last_ns = last_ns.max(ns);
        }
        (
            self.raw(first_ns.saturating_sub(ROOM_NS)),
            self.raw(last_ns.saturating_add(ROOM_NS)),
        )
    }

    fn raw(&self, ns: i64) -> i64 {
        self.clock.from_ns(ns)
    }
}

/// `LogFileMode` bits (`EVENT_TRACE_*_MODE`).
pub mod mode {
    /// Buffers follow each other in the file.
    pub const SEQUENTIAL: u32 = 0x1;
    /// Buffers wrap around in the file.
    pub const CIRCULAR: u32 = 0x2;
    /// A new session can be appended to the log file.
    pub const APPEND: u32 = 0x4;
    /// The session begins a new file when the file has its maximum size.
    pub const NEW_FILE: u32 = 0x8;
    /// Buffers stay in memory until a write is requested.
    pub const BUFFERING: u32 = 0x400;
    /// The session belongs to one process, which writes the log.
    pub const PRIVATE_LOGGER: u32 = 0x800;
    /// The session belongs to one process. Several processes can have sessions of this kind at the
    /// same time.
    pub const PRIVATE_IN_PROC: u32 = 0x20000;
    /// The relogger wrote the log: it trimmed, merged or converted other logs.
    pub const RELOG: u32 = 0x10000;
    /// Buffers are compressed.
    pub const COMPRESSED: u32 = 0x0400_0000;
    /// Events of all CPUs share buffers. The CPU of an event is unknown.
    pub const NO_PER_PROCESSOR_BUFFERING: u32 = 0x1000_0000;

    /// All mode bits with the names that reports use.
    pub const NAMES: &[(u32, &str)] = &[
        (SEQUENTIAL, "SEQUENTIAL"),
        (CIRCULAR, "CIRCULAR"),
        (APPEND, "APPEND"),
        (NEW_FILE, "NEWFILE"),
        (0x10, "FLUSH_TIMER_MS"),
        (0x20, "PREALLOCATE"),
        (0x40, "NONSTOPPABLE"),
        (0x80, "SECURE"),
        (0x100, "REAL_TIME"),
        (0x200, "DELAY_OPEN"),
        (BUFFERING, "BUFFERING"),
        (PRIVATE_LOGGER, "PRIVATE_LOGGER"),
        (0x1000, "ADD_HEADER"),
        (0x2000, "SIZE_IN_KB"),
        (0x4000, "GLOBAL_SEQUENCE"),
        (0x8000, "LOCAL_SEQUENCE"),
        (RELOG, "RELOG"),
        (PRIVATE_IN_PROC, "PRIVATE_IN_PROC"),
        (0x40000, "BUFFER_INTERFACE"),
        (0x80000, "KD_FILTER"),
        (0x10_0000, "REAL_TIME_RELOG"),
        (0x20_0000, "LOST_EVENTS_DEBUG"),
        (0x40_0000, "STOP_ON_HYBRID_SHUTDOWN"),
        (0x80_0000, "PERSIST_ON_HYBRID_SHUTDOWN"),
        (0x100_0000, "PAGED_MEMORY"),
        (0x200_0000, "SYSTEM_LOGGER"),
        (COMPRESSED, "COMPRESSED"),
        (0x800_0000, "INDEPENDENT_SESSION"),
        (NO_PER_PROCESSOR_BUFFERING, "NO_PER_PROCESSOR_BUFFERING"),
        (0x2000_0000, "BLOCKING"),
        (0x8000_0000, "ADD_TO_TRIAGE_DUMP"),
    ];
}

/// Returns the NUL-terminated UTF-16 text at the start of `bytes`, and the bytes after it.
fn utf16_z(bytes: &[u8]) -> (String, &[u8]) {
    let (units, _) = bytes.as_chunks::<2>();
    let units = units.iter().map(|u| u16::from_le_bytes(*u));
    let len = units.clone().take_while(|u| *u != 0).count();
    let text = char::decode_utf16(units.take(len))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    (text, bytes.get(len * 2 + 2..).unwrap_or(&[]))
}
