//! Records of the header buffer: the log-file header event and, for some sessions, a partition
//! event.

use super::session::Session;
use crate::buffer::HEADER_SIZE;
use crate::clock::ClockKind;
use crate::event::HeaderKind;

/// Size in bytes of the fixed part of `TRACE_LOGFILE_HEADER` in its 64-bit form. Two names follow the fixed
/// part.
const FIXED: usize = 0x118;

/// Maximum length of a name in UTF-16 units. Windows paths are shorter.
const MAX_NAME: usize = 1024;

/// Header fields whose values become known only after the last event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// End of the session as FILETIME; 0 while the log is being written.
    pub(super) end: i64,
    /// Number of buffers, including the header buffer.
    pub(super) buffers_written: u32,
    pub(super) events_lost: u32,
    pub(super) buffers_lost: u32,
}

/// Returns the records of the header buffer, each padded to a multiple of 8 bytes. The size of the records
/// depends only on the session. So the records can be overwritten in the file when the totals are known.
pub(super) fn records(s: &Session, totals: Totals) -> Vec<u8> {
    let mut p = vec![0; FIXED];
    let mut put = |at: usize, bytes: &[u8]| p[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &s.buffer_size.to_le_bytes());
    put(0x04, &[s.os_version.0, s.os_version.1]);
    put(0x06, &log_version(s));
    put(0x08, &s.os_build.to_le_bytes());
    put(0x0C, &u32::from(s.processors).to_le_bytes());
    put(0x10, &totals.end.to_le_bytes());
    put(0x18, &s.timer_resolution.to_le_bytes());
    put(0x1C, &s.maximum_file_size.to_le_bytes());
    put(0x20, &s.log_mode().to_le_bytes());
    put(0x24, &totals.buffers_written.to_le_bytes());
    put(0x28, &s.start_buffers.to_le_bytes());
    put(0x2C, &8u32.to_le_bytes());
    put(0x30, &totals.events_lost.to_le_bytes());
    put(0x34, &s.cpu_mhz.to_le_bytes());
    put(0x48, &s.time_zone_bias.to_le_bytes());
    put(0x4C, &utf16(&s.time_zone, 31));
    put(0xF8, &s.boot.to_le_bytes());
    put(0x100, &s.perf_frequency.to_le_bytes());
    put(0x108, &s.start.to_le_bytes());
    let clock: u32 = match s.clock {
        ClockKind::Qpc => 1,
        ClockKind::SystemTime => 2,
        ClockKind::CpuCycles => 3,
    };
    put(0x110, &clock.to_le_bytes());
    put(0x114, &totals.buffers_lost.to_le_bytes());

    let partition = s.partition.map(|partition| partition.payload());
    let mut free = s.buffer_size as usize - HEADER_SIZE - (32 + FIXED) - 8;
    free -= partition.map_or(0, |p| 32 + p.len());
    // The two names share the free space. Each needs a NUL at its end.
    let longest = (free / 4 - 1).min(MAX_NAME);
    for name in [&s.name, &s.log_file] {
        p.extend(utf16(name, longest));
        p.extend([0, 0]);
    }
    let mut records = system_record(s, 0, &p);
    if let Some(partition) = partition {
        let hook = crate::ids::hook::PARTITION_INFO;
        records.extend(system_record(s, hook, &partition));
    }
    records
}

/// Returns the version of the log format: 1.4 for Vista, 1.5 for later versions of Windows. If the log uses
/// features that older readers do not support, the version is 2.0.
fn log_version(s: &Session) -> [u8; 2] {
    if s.compressed || s.buffer_size > 1 << 20 || s.processors > 256 {
        [2, 0]
    } else if s.os_version < (6, 1) {
        [1, 4]
    } else {
        [1, 5]
    }
}

/// Returns a SYSTEM64 record with the time of the session's start, padded to a multiple of 8 bytes.
fn system_record(s: &Session, hook: u16, payload: &[u8]) -> Vec<u8> {
    let mut record = vec![2, 0, HeaderKind::System64 as u8, 0xC0];
    record.extend(((32 + payload.len()) as u16).to_le_bytes());
    record.extend(hook.to_le_bytes());
    record.extend([0; 4]);
    record.extend(s.process_id.to_le_bytes());
    record.extend(s.raw_start.to_le_bytes());
    record.extend([0; 8]);
    record.extend(payload);
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// Returns `text` as UTF-16. The text is cut at its first NUL and has at most `longest` units.
fn utf16(text: &str, longest: usize) -> Vec<u8> {
    let units = text.encode_utf16().take_while(|unit| *unit != 0);
    units.take(longest).flat_map(u16::to_le_bytes).collect()
}
