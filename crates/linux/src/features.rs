//! Facts about the recorded machine, from the feature sections of a recording.

use std::collections::HashMap;

use crate::attribute::Attribute;
use crate::bytes::{Bytes, Order, text};
use crate::record::{self, Header, misc};

/// Numbers of feature sections (`HEADER_…` in `tools/perf/util/header.h`).
pub(crate) mod feature {
    pub(crate) const TRACING_DATA: u32 = 1;
    pub(crate) const BUILD_IDS: u32 = 2;
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
    /// Number of feature bits in the header of a file.
    pub(crate) const COUNT: u32 = 256;
}

/// Facts about the recorded machine. A field is `None` if the recording does not contain the fact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Name of the machine in its network.
    pub host_name: Option<String>,
    /// Release of the kernel, for example `6.18.1`.
    pub os_release: Option<String>,
    /// Version of the program (perf or trace-cmd) that made the recording.
    pub recorder_version: Option<String>,
    /// Architecture of the machine, for example `x86_64`.
    pub architecture: Option<String>,
    /// Number of online CPUs.
    pub cpus_online: Option<u32>,
    /// Number of configured CPUs, including CPUs that are offline.
    pub cpus_available: Option<u32>,
    /// Name of the CPU model.
    pub cpu_description: Option<String>,
    /// Size of the machine's memory in KiB.
    pub memory_kib: Option<u64>,
    /// Command that made the recording, with its arguments.
    pub command_line: Option<Vec<String>>,
    /// Relation of the recording's clock to the time of day.
    pub wall_clock: Option<WallClock>,
}

/// Two times of the same moment: the time of the recording's clock and the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Time of the recording's clock, in nanoseconds.
    pub clock_ns: u64,
    /// Time of day, in nanoseconds since 1970-01-01 UTC.
    pub unix_ns: u64,
}

impl System {
    /// Reads the feature section with the number `number`. Returns false if the section is damaged. Ignores sections
    /// that contain no facts about the machine.
    pub(crate) fn read(&mut self, number: u32, section: &[u8], order: Order) -> bool {
        let bytes = &mut Bytes::new(section, order);
        match number {
            feature::HOST_NAME => set(&mut self.host_name, read_string(bytes)),
            feature::OS_RELEASE => set(&mut self.os_release, read_string(bytes)),
            feature::VERSION => set(&mut self.recorder_version, read_string(bytes)),
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

/// Sets `fact` to `value`. Returns true if there is a value.
fn set<T>(fact: &mut Option<T>, value: Option<T>) -> bool {
    *fact = value;
    fact.is_some()
}

/// Reads a string. A 32-bit length comes before the string. The length includes the padding after the string.
fn read_string(bytes: &mut Bytes<'_>) -> Option<String> {
    let len = bytes.len32()?;
    bytes.take(len).map(text)
}

fn read_strings(bytes: &mut Bytes<'_>) -> Option<Vec<String>> {
    // A count that is too large does no harm, because reading stops with `None` at the end of the bytes.
    (0..bytes.u32()?).map(|_| read_string(bytes)).collect()
}

/// Reads a `HEADER_CLOCK_DATA` section. Its fields are a version, the id of the recording's clock, the time of day,
/// and the time of the recording's clock.
fn read_clock(bytes: &mut Bytes<'_>) -> Option<WallClock> {
    bytes.u32()?;
    bytes.u32()?;
    let unix_ns = bytes.u64()?;
    let clock_ns = bytes.u64()?;
    Some(WallClock { clock_ns, unix_ns })
}

/// Reads a `HEADER_BUILD_ID` section into `build_ids`, which has the build ids of files by path. Returns `None` if the
/// section is damaged.
///
/// Each entry is a record: the id of a process, 24 bytes with the build id, and the path. The build id takes up to 20
/// of the 24 bytes. If a bit of the record's header is set, the byte after these 20 bytes has the size of the build id.
pub(crate) fn read_build_ids(
    section: &[u8],
    order: Order,
    build_ids: &mut HashMap<String, Vec<u8>>,
) -> Option<()> {
    let mut bytes = Bytes::new(section, order);
    while !bytes.rest().is_empty() {
        let header = Header::read(bytes.rest(), order)?;
        let mut entry = Bytes::new(bytes.take(header.size)?, order);
        entry.take(record::HEADER)?;
        entry.u32()?;
        let id = entry.take(24)?;
        let size = if header.misc & misc::BUILD_ID_SIZE != 0 {
            usize::from(id[20]).min(20)
        } else {
            20
        };
        build_ids.insert(text(entry.rest()), id[..size].to_vec());
    }
    Some(())
}

/// Reads a `HEADER_EVENT_DESC` section. Returns all events with their names. Returns `None` if the section is
/// damaged.
pub(crate) fn read_events(section: &[u8], order: Order) -> Option<Vec<Attribute>> {
    let mut bytes = Bytes::new(section, order);
    let (count, size) = (bytes.u32()?, bytes.len32()?);
    let mut events = Vec::new();
    for _ in 0..count {
        let (mut event, _) = Attribute::read(bytes.take(size)?, order)?;
        let ids = bytes.u32()?;
        event.name = Some(read_string(&mut bytes)?);
        bytes.take(usize::try_from(ids).ok()?.checked_mul(8)?)?;
        events.push(event);
    }
    Some(events)
}
