//! Check that files belong to one recording. Two files of one recording do not record the same CPUs at the
//! same time.

use std::collections::BTreeSet;
use std::ops::Range;

use etl::{BufferRef, Trace};
use events::ids::hook;

/// Hook ids of events that a CPU logs exactly once, even if there are several sessions. These are context
/// switches, samples and DPCs (including the DPCs of I/O timers).
const CPU_EVENTS: [u16; 6] = [
    hook::CONTEXT_SWITCH,
    hook::SAMPLE,
    hook::THREADED_DPC,
    hook::DPC,
    hook::TIMER_DPC,
    hook::IO_TIMER,
];

/// Number of buffers that are read from a session to find the kinds of events that it recorded.
const SAMPLED_BUFFERS: usize = 16;

/// CPU events that a session recorded.
struct CpuSpan {
    file: u16,
    cpus: BTreeSet<u16>,
    hooks: BTreeSet<u16>,
    /// Time range from the start of the session's first buffer to the start of its last buffer, in
    /// nanoseconds since the trace's start.
    during: Range<i64>,
}

/// Two files record the same CPUs at the same time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} and {other} record the same CPUs at the same time; they are from two machines, or \
     one is a copy of the other; open them one by one"
)]
pub struct RecordedTwice {
    /// Name of a file.
    pub name: String,
    /// Name of another file. The user gave this file before the file `name`.
    pub other: String,
}

/// Refuses files that record the same CPUs at the same time. Files of different systems are not compared,
/// because the times of different systems are unrelated.
///
/// # Errors
/// Returns an error if two files record the same CPUs at the same time.
pub fn check_one_recording(trace: &Trace) -> Result<(), RecordedTwice> {
    if trace.files().len() < 2 || !trace.is_one_system() {
        return Ok(());
    }
    let segments = 0..trace.segments().len() as u16;
    let recorded: Vec<CpuSpan> = segments.filter_map(|place| read(trace, place)).collect();
    for (place, one) in recorded.iter().enumerate() {
        for other in recorded[..place]
            .iter()
            .filter(|other| other.file != one.file)
        {
            if is_same_time(one, other) {
                let name = |file: u16| trace.files().nth(file.into()).unwrap_or("?").to_owned();
                return Err(RecordedTwice {
                    name: name(one.file),
                    other: name(other.file),
                });
            }
        }
    }
    Ok(())
}

/// Returns true if two sessions have a common CPU and a common kind of CPU events, and if they overlap for at least
/// half of the duration of the shorter session. A shorter overlap is accepted, because consecutive files may overlap a
/// little.
fn is_same_time(one: &CpuSpan, other: &CpuSpan) -> bool {
    let length = |range: &Range<i64>| range.end.saturating_sub(range.start);
    let start = one.during.start.max(other.during.start);
    let common = start..one.during.end.min(other.during.end);
    let shorter = length(&one.during).min(length(&other.during));
    length(&common) > 0
        && length(&common) >= shorter / 2
        && !one.cpus.is_disjoint(&other.cpus)
        && !one.hooks.is_disjoint(&other.hooks)
}

/// Finds the CPUs, the time range and the kinds of CPU events of a session. Reads only a sample of the session's
/// buffers. Returns `None` if the session's header is unreadable, if the session has no buffers, or if CPUs share
/// buffers.
fn read(trace: &Trace, place: u16) -> Option<CpuSpan> {
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
    Some(CpuSpan {
        file: segment.file,
        cpus: buffers.iter().map(|buffer| buffer.cpu).collect(),
        hooks,
        during: segment.clock.to_ns(first)..segment.clock.to_ns(last),
    })
}
