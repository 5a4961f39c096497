//! Check that files belong to one recording. Such files do not record the same CPUs at the same
//! time.

use std::collections::BTreeSet;
use std::ops::Range;

use etl::{BufferRef, Trace};
use events::ids::hook;

use crate::StoreError;

/// Hook ids of events that a CPU logs exactly once, even if there are several sessions: context
/// switches, samples and DPCs (including those of I/O timers).
const CPU_EVENTS: [u16; 6] = [
    hook::CONTEXT_SWITCH,
    hook::SAMPLE,
    hook::THREADED_DPC,
    hook::DPC,
    hook::TIMER_DPC,
    hook::IO_TIMER,
];

/// Number of buffers of a session that are read to find the events that it recorded.
const SAMPLED_BUFFERS: usize = 16;

/// CPU events that a session recorded.
struct Recorded {
    file: u16,
    cpus: BTreeSet<u16>,
    hooks: BTreeSet<u16>,
    /// Time range from the session's first to its last buffer, in nanoseconds since the trace's
    /// start.
    during: Range<i64>,
}

/// Refuses files that record the same CPUs at the same time. Files of different systems are not
/// compared, because their times are unrelated.
///
/// # Errors
/// If two files record the same CPUs at the same time.
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
            if is_same_time(one, other) {
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

/// Returns true if two sessions recorded the same CPUs for at least half of the duration of the
/// shorter session. A shorter overlap is accepted, because consecutive files may overlap a little.
fn is_same_time(one: &Recorded, other: &Recorded) -> bool {
    let length = |range: &Range<i64>| range.end.saturating_sub(range.start);
    let start = one.during.start.max(other.during.start);
    let common = start..one.during.end.min(other.during.end);
    let shorter = length(&one.during).min(length(&other.during));
    length(&common) > 0
        && length(&common) >= shorter / 2
        && !one.cpus.is_disjoint(&other.cpus)
        && !one.hooks.is_disjoint(&other.hooks)
}

/// Reads the CPU events that a session recorded; returns `None` if it has no buffers or no separate
/// buffers per CPU.
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
    for buffer in buffers
        .iter()
        .step_by(buffers.len().div_ceil(SAMPLED_BUFFERS))
    {
        for event in reader.read(buffer) {
            hooks.extend(event.hook().filter(|hook| CPU_EVENTS.contains(hook)));
        }
    }
    Some(Recorded {
        file: segment.file,
        cpus: buffers.iter().map(|buffer| buffer.cpu).collect(),
        hooks,
        during: segment.clock.to_ns(first)..segment.clock.to_ns(last),
    })
}
