//! What a written log says of its session and machine.

use std::time::Duration;

use super::companion::PartitionInfo;
use super::error::WriteError;
use crate::clock::{Clock, ClockKind};
use crate::logfile::{LogFileHeader, mode};

/// What a written log says about its session and machine. Times are FILETIME (100 ns since 1601
/// UTC) unless they are called raw.
#[derive(Clone, Debug)]
pub struct Session {
    /// Buffer size in bytes; a power of two from 1 KiB to 16 MiB.
    pub buffer_size: u32,
    /// Number of CPUs, 1 to 2047.
    pub processors: u16,
    /// Which counter the events' raw times count. With [`ClockKind::SystemTime`] they are
    /// FILETIMEs, with [`ClockKind::CpuCycles`] they tick `cpu_mhz` million times a second.
    pub clock: ClockKind,
    /// Ticks of the performance counter per second.
    pub perf_frequency: u64,
    /// Raw time of the session's start.
    pub raw_start: i64,
    /// Session start.
    pub start: i64,
    /// Session end; `None` for the time of the last event.
    pub end: Option<i64>,
    /// Boot time.
    pub boot: i64,
    /// Operating system version.
    pub os_version: (u8, u8),
    /// Operating system build.
    pub os_build: u32,
    /// Nominal CPU speed.
    pub cpu_mhz: u32,
    /// Clock-tick period in 100 ns units.
    pub timer_resolution: u32,
    /// Minutes to add to local time for UTC.
    pub time_zone_bias: i32,
    /// Name of the standard time zone; 31 UTF-16 units are kept.
    pub time_zone: String,
    /// Session name. A relogger's is `Relogger`.
    pub name: String,
    /// Log file name.
    pub log_file: String,
    /// Process that controlled the session.
    pub process_id: u32,
    /// Log-file mode bits ([`mode`]). Compression sets its own. A log with [`mode::RELOG`] is
    /// written as a relogger does: logger id 0, buffers stamped with FILETIMEs.
    pub mode: u32,
    /// Largest file size in MB (KB with mode 0x2000) that the header states; 0 for none. The
    /// writer does not keep to it.
    pub maximum_file_size: u32,
    /// Leading buffers outside the ring that the header of a circular log states.
    pub start_buffers: u32,
    /// Events lost before this writer had anything to do with them.
    pub events_lost: u32,
    /// Buffers lost likewise.
    pub buffers_lost: u32,
    /// How often buffers are written even if they are not full, as by a session's flush timer.
    pub flush_interval: Option<Duration>,
    /// What follows the header event in sessions of Windows 10 and later, unless they are the
    /// kernel's.
    pub partition: Option<PartitionInfo>,
    /// Compress the data buffers (XPRESS).
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
    /// The session that a log's header tells of, to write some of its events anew. The clock is
    /// the same, so raw times keep their meaning. How the log was stored is not taken over: mode
    /// and end are those of [`Session::default`], and buffers are at least as large.
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

/// The index in a buffer's header has 11 bits, all ones among them unused.
const MAX_PROCESSORS: u16 = 0x7FF;

const MIN_BUFFER: u32 = 1 << 10;
const MAX_BUFFER: u32 = 16 << 20;

impl Session {
    pub(super) fn check(&self) -> Result<(), WriteError> {
        let refuse = |why| Err(WriteError::BadSession(why));
        let size = self.buffer_size;
        if !size.is_power_of_two() || !(MIN_BUFFER..=MAX_BUFFER).contains(&size) {
            return refuse("buffer size is no power of two from 1 KiB to 16 MiB");
        }
        if self.processors == 0 || self.processors > MAX_PROCESSORS {
            return refuse("processors are not 1 to 2047");
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
        match self.compressed {
            true => self.mode | mode::COMPRESSED,
            false => self.mode & !mode::COMPRESSED,
        }
    }

    pub(super) fn is_relogged(&self) -> bool {
        self.mode & mode::RELOG != 0
    }
}
