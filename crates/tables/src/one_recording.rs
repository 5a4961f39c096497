//! Whether files are of one recording: no machine does two things at once on one CPU.

use std::collections::BTreeSet;
use std::ops::Range;

use etl::{BufferRef, Trace};

use crate::StoreError;

/// Events of which every CPU logs each once, whoever listens: context switches, samples, DPCs.
const OF_CPUS: [u16; 6] = [0x0524, 0x0F2E, 0x0F42, 0x0F44, 0x0F45, 0x0F46];

/// Buffers of a session that are read to know what it recorded.
const READ: usize = 16;

/// What a session recorded of CPUs.
struct Recorded {
    file: u16,
    cpus: BTreeSet<u16>,
    hooks: BTreeSet<u16>,
    /// From its first to its last buffer, in nanoseconds since the trace's start.
    during: Range<i64>,
}

/// Refuses files that tell what one CPU did at one time twice. Those of different systems share no
/// time, so nothing is refused there.
///
/// # Errors
/// If there are such files.
pub(crate) fn check(trace: &Trace) -> Result<(), StoreError> {
    if trace.files().len() < 2 || !trace.is_one_system() {
        return Ok(());
    }
    let segments = 0..trace.segments().len() as u16;
    let recorded: Vec<Recorded> = segments.filter_map(|place| read(trace, place)).collect();
    for (place, one) in recorded.iter().enumerate() {
        for other in recorded[..place]
            .iter()
            .filter(|other| other.file != one.file)
        {
            if is_same_moment(one, other) {
                let name = |file: u16| trace.files().nth(file.into()).unwrap_or("?").to_owned();
                return Err(StoreError::RecordedTwice {
                    name: name(one.file),
                    other: name(other.file),
                });
            }
        }
    }
    Ok(())
}

/// Files that follow each other may overlap a little; these do for most of the shorter one.
fn is_same_moment(one: &Recorded, other: &Recorded) -> bool {
    let length = |range: &Range<i64>| range.end.saturating_sub(range.start);
    let start = one.during.start.max(other.during.start);
    let common = start..one.during.end.min(other.during.end);
    let shorter = length(&one.during).min(length(&other.during));
    length(&common) > 0
        && length(&common) >= shorter / 2
        && !one.cpus.is_disjoint(&other.cpus)
        && !one.hooks.is_disjoint(&other.hooks)
}

/// What a session recorded of CPUs; nothing if it has no buffer or did not record them apart.
fn read(trace: &Trace, place: u16) -> Option<Recorded> {
    let segment = &trace.segments()[usize::from(place)];
    let mode = segment.header.as_ref()?.log_file_mode;
    if mode & etl::mode::NO_PER_PROCESSOR_BUFFERING != 0 {
        return None;
    }
    let buffers = trace.buffers().iter();
    let buffers: Vec<&BufferRef> = buffers.filter(|buffer| buffer.segment == place).collect();
    let times = buffers.iter().map(|buffer| buffer.first_time);
    let (first, last) = (times.clone().min()?, times.max()?);
    let streams = trace.streams();
    let mut reader = streams.first()?.reader();
    let mut hooks = BTreeSet::new();
    for buffer in buffers.iter().step_by(buffers.len().div_ceil(READ)) {
        for event in reader.read(buffer) {
            hooks.extend(event.hook().filter(|hook| OF_CPUS.contains(hook)));
        }
    }
    Some(Recorded {
        file: segment.file,
        cpus: buffers.iter().map(|buffer| buffer.cpu).collect(),
        hooks,
        during: segment.clock.to_ns(first)..segment.clock.to_ns(last),
    })
}
