//! Facts about the recorded machine, from the feature sections of a recording.

use crate::attribute::Attribute;
use crate::bytes::{Bytes, Order, text};

/// Numbers of feature sections (`HEADER_…` in `tools/perf/util/header.h`).
pub(crate) mod feature {
    pub(crate) const TRACING_DATA: u32 = 1;
    pub(crate) const HOST_NAME: u32 = 3;
    pub(crate) const OS_RELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCHITECTURE: u32 = 6;
    pub(crate) const CPUS: u32 = 7;
    pub(crate) const CPU_DESCRIPTION: u32 = 8;
    pub(crate) const MEMORY: u32 = 10;
    pub(crate) const COMMAND_LINE: u32 = 11;
    pub(crate) const EVENTS: u32 = 12;
    pub(crate) const CLOCK: u32 = 29;
    /// Number of bits in the header.
    pub(crate) const COUNT: u32 = 256;
}

/// Facts about the recorded machine. Each is `None` if the recording lacks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Host name.
    pub host_name: Option<String>,
    /// Release of the kernel, for example `6.18.1`.
    pub os_release: Option<String>,
    /// Version of perf.
    pub perf_version: Option<String>,
    /// Architecture, for example `x86_64`.
    pub architecture: Option<String>,
    /// Number of online CPUs.
    pub cpus_online: Option<u32>,
    /// Number of CPUs that the machine may have.
    pub cpus_available: Option<u32>,
    /// Model of the CPU.
    pub cpu_description: Option<String>,
    /// Memory in KiB.
    pub memory_kib: Option<u64>,
    /// Command that made the recording.
    pub command_line: Option<Vec<String>>,
    /// Relation of the recording's clock to the time of day.
    pub wall_clock: Option<WallClock>,
}

/// Moment at which perf read the clock of the recording and the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Time of the recording's clock, in nanoseconds.
    pub clock_ns: u64,
    /// Time of day, in nanoseconds since 1970.
    pub unix_ns: u64,
}

impl System {
    /// Reads a feature section; returns false if it is damaged. Sections without facts are ignored.
    pub(crate) fn read(&mut self, number: u32, section: &[u8], order: Order) -> bool {
        let bytes = &mut Bytes::new(section, order);
        match number {
            feature::HOST_NAME => set(&mut self.host_name, read_string(bytes)),
            feature::OS_RELEASE => set(&mut self.os_release, read_string(bytes)),
            feature::VERSION => set(&mut self.perf_version, read_string(bytes)),
            feature::ARCHITECTURE => set(&mut self.architecture, read_string(bytes)),
            feature::CPU_DESCRIPTION => set(&mut self.cpu_description, read_string(bytes)),
            feature::CPUS => {
                set(&mut self.cpus_available, bytes.u32())
                    && set(&mut self.cpus_online, bytes.u32())
            }
            feature::MEMORY => set(&mut self.memory_kib, bytes.u64()),
            feature::COMMAND_LINE => set(&mut self.command_line, read_strings(bytes)),
            feature::CLOCK => set(&mut self.wall_clock, read_clock(bytes)),
            _ => true,
        }
    }
}

/// Sets a fact; returns false if it is unknown.
fn set<T>(fact: &mut Option<T>, value: Option<T>) -> bool {
    *fact = value;
    fact.is_some()
}

/// Reads a string with its length, which includes padding.
fn read_string(bytes: &mut Bytes<'_>) -> Option<String> {
    let len = bytes.len32()?;
    bytes.take(len).map(text)
}

fn read_strings(bytes: &mut Bytes<'_>) -> Option<Vec<String>> {
    // A damaged count ends at the end of the bytes.
    (0..bytes.u32()?).map(|_| read_string(bytes)).collect()
}

/// Reads a `HEADER_CLOCK_DATA` section: version, clock, time of day, time of the clock.
fn read_clock(bytes: &mut Bytes<'_>) -> Option<WallClock> {
    bytes.u32()?;
    bytes.u32()?;
    let unix_ns = bytes.u64()?;
    let clock_ns = bytes.u64()?;
    Some(WallClock { clock_ns, unix_ns })
}

/// Reads a `HEADER_EVENT_DESC` section: all events with their names and ids. Returns `None` if it is damaged.
pub(crate) fn read_events(section: &[u8], order: Order) -> Option<Vec<Attribute>> {
    let mut bytes = Bytes::new(section, order);
    let (count, size) = (bytes.u32()?, bytes.len32()?);
    let mut events = Vec::new();
    for _ in 0..count {
        let (mut event, _) = Attribute::read(bytes.take(size)?, order)?;
        let ids = bytes.u32()?;
        event.name = Some(read_string(&mut bytes)?);
        for _ in 0..ids {
            event.ids.push(bytes.u64()?);
        }
        events.push(event);
    }
    Some(events)
}
