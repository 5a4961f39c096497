//! Description of a session and a machine. The writer states this description in the header of a log.

use std::time::Duration;

use super::companion::PartitionInfo;
use super::error::WriteError;
use crate::clock::{Clock, ClockKind};
use crate::logfile::{LogFileHeader, mode};

/// Session and machine of a log that is written. The header of the log contains these values. Times are FILETIMEs
/// (100 ns since 1601 UTC). Raw times are an exception: they are in ticks of `clock`.
#[derive(Clone, Debug)]
pub struct Session {
    /// Buffer size in bytes; a power of two from 1 KiB to 16 MiB.
    pub buffer_size: u32,
    /// Number of CPUs, 1 to 2047.
    pub processors: u16,
    /// Counter that the events' raw times use. With [`ClockKind::SystemTime`], raw times are FILETIMEs. With
    /// [`ClockKind::CpuCycles`], the clock has `cpu_mhz` million ticks per second.
    pub clock: ClockKind,
    /// Frequency of the performance counter in ticks per second.
    pub perf_frequency: u64,
    /// Raw time of the session's start.
    pub raw_start: i64,
    /// Start of the session.
    pub start: i64,
    /// End of the session. If the field is `None`, the header states the time of the last event.
    pub end: Option<i64>,
    /// Boot time of the system.
    pub boot: i64,
    /// Major and minor version of the operating system.
    pub os_version: (u8, u8),
    /// Build number of the operating system.
    pub os_build: u32,
    /// Nominal CPU speed in MHz.
    pub cpu_mhz: u32,
    /// Period of the system's clock tick in 100 ns units.
    pub timer_resolution: u32,
    /// Number of minutes to add to local time to get UTC.
    pub time_zone_bias: i32,
    /// Name of the time zone's standard time; cut to 31 UTF-16 units.
    pub time_zone: String,
    /// Name of the session. Windows' relogger uses the name `Relogger`.
    pub name: String,
    /// Name of the log file that the header states.
    pub log_file: String,
    /// Id of the process that controlled the session.
    pub process_id: u32,
    /// Log-file mode bits ([`mode`]). The writer sets or clears the bit for compression, so the value of this
    /// bit is ignored. With [`mode::RELOG`], the log has the form of a relogger's log. The logger id is then
    /// 0, and the times in buffer headers are FILETIMEs.
    pub mode: u32,
    /// Maximum file size that the header states, in MB. The unit is KB if mode bit 0x2000 is set. The value 0
    /// means that there is no maximum. The writer does not enforce the maximum.
    pub maximum_file_size: u32,
    /// Number of buffers at the start of a circular log that are never overwritten. The writer only states
    /// this number in the header.
    pub start_buffers: u32,
    /// Number of events that were lost before this writer could receive them.
    pub events_lost: u32,
    /// Number of buffers that were lost before this writer could receive their events.
    pub buffers_lost: u32,
    /// Interval of the flush timer. When the timer expires, the writer writes all buffers, even if they are
    /// not full.
    pub flush_interval: Option<Duration>,
    /// Payload of the partition event, which comes after the header event. Sessions of Windows 10 and later
    /// have this event, except kernel sessions.
    pub partition: Option<PartitionInfo>,
    /// True to compress the data buffers (XPRESS).
    pub compressed: bool,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            buffer_size: 64 << 10,
            processors: 1,
            clock: ClockKind::Qpc,
            perf_frequency: 10_000_000,
            raw_start: 0,
            start: 0,
            end: None,
            boot: 0,
            os_version: (10, 0),
            os_build: 0,
            cpu_mhz: 0,
            timer_resolution: 156_250,
            time_zone_bias: 0,
            time_zone: String::new(),
            name: String::new(),
            log_file: String::new(),
            process_id: 0,
            mode: mode::SEQUENTIAL,
            maximum_file_size: 0,
            start_buffers: 1,
            events_lost: 0,
            buffers_lost: 0,
            flush_interval: None,
            partition: None,
            compressed: false,
        }
    }
}

impl From<&LogFileHeader> for Session {
    /// Returns the session that a log's header describes. Events of that log can then be written to a new log. The
    /// clock is the same, so raw times keep their meaning. Values about storage and the end are not copied. For
    /// example, `mode` and `end` have the values of [`Session::default`]. Buffers are at least as large as in the old
    /// log.
    fn from(header: &LogFileHeader) -> Session {
        let default = Session::default();
        let buffer_size = header
            .buffer_size
            .clamp(MIN_BUFFER, MAX_BUFFER)
            .next_power_of_two();
        let clock = header.clock();
        Session {
            buffer_size,
            processors: header.processors.clamp(1, MAX_PROCESSORS.into()) as u16,
            clock: clock.kind(),
            perf_frequency: header.perf_frequency,
            raw_start: header.raw_start,
            start: header.start,
            boot: header.boot,
            os_version: header.os_version,
            os_build: header.os_build,
            cpu_mhz: header.cpu_mhz,
            timer_resolution: header.timer_resolution,
            time_zone_bias: header.time_zone_bias,
            time_zone: header.time_zone.clone(),
            name: header.session.clone(),
            log_file: header.log_file.clone(),
            process_id: header.process_id,
            events_lost: header.events_lost,
            buffers_lost: header.buffers_lost,
            ..default
        }
    }
}

/// Maximum number of processors. The processor index in a buffer's header has 11 bits. If all 11 bits are
/// set, the index is unused.
const MAX_PROCESSORS: u16 = 0x7FF;

const MIN_BUFFER: u32 = 1 << 10;
const MAX_BUFFER: u32 = 16 << 20;

impl Session {
    pub(super) fn check(&self) -> Result<(), WriteError> {
        let refuse = |why| Err(WriteError::BadSession(why));
        let size = self.buffer_size;
        if !size.is_power_of_two() || !(MIN_BUFFER..=MAX_BUFFER).contains(&size) {
            return refuse("buffer size is not a power of two from 1 KiB to 16 MiB");
        }
        if self.processors == 0 || self.processors > MAX_PROCESSORS {
            return refuse("number of processors is not 1 to 2047");
        }
        if self.clock == ClockKind::CpuCycles && self.cpu_mhz == 0 {
            return refuse("times in CPU cycles need the CPU's speed");
        }
        if self
            .flush_interval
            .is_some_and(|interval| interval.is_zero())
        {
            return refuse("flush interval is zero");
        }
        Ok(())
    }

    pub(super) fn log_clock(&self) -> Clock {
        let (origin, frequency) = match self.clock {
            ClockKind::Qpc => (self.raw_start, self.perf_frequency),
            ClockKind::SystemTime => (self.start, 0),
            ClockKind::CpuCycles => (self.raw_start, u64::from(self.cpu_mhz) * 1_000_000),
        };
        Clock::new(self.clock, origin, self.start, frequency)
    }

    pub(super) fn log_mode(&self) -> u32 {
        if self.compressed {
            self.mode | mode::COMPRESSED
        } else {
            self.mode & !mode::COMPRESSED
        }
    }

    pub(super) fn is_relogged(&self) -> bool {
        self.mode & mode::RELOG != 0
    }
}
