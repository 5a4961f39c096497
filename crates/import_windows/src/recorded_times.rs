//! Time ranges in which a trace has all events of its CPUs.

use std::collections::BTreeMap;
use std::ops::Range;

use etl::{CpuStream, Trace, mode};
use rustc_hash::FxHashMap;
use tables::MAX_CPUS;
use tables::import::{FirstAndLast, RecordedTimes};

use crate::presence::Presence;

/// Computes the ranges of a trace from the events of its streams.
pub(crate) fn read(trace: &Trace, streams: &[(CpuStream<'_>, Presence)]) -> RecordedTimes {
    let rings = rings(trace);
    let is_cut = is_cut(trace);
    let mut cpus: BTreeMap<u16, Range<i64>> = BTreeMap::new();
    let mut present: BTreeMap<u16, Presence> = BTreeMap::new();
    for (stream, presence) in streams {
        present.entry(stream.cpu()).or_default().merge(presence);
        let Some((first, last)) = presence.span_ns else {
            continue;
        };
        let is_ring = rings.contains(&stream.buffers()[0].segment);
        let from = if is_ring { first } else { i64::MIN };
        let until = if is_cut { last } else { i64::MAX };
        // The range is the union of the ranges of all sessions, because one session may have events that
        // another session lacks.
        let cpu = cpus.entry(stream.cpu()).or_insert(from..until);
        *cpu = cpu.start.min(from)..cpu.end.max(until);
    }
    // A truncated file may lack all buffers of a CPU. This happens if the first buffer of the CPU was
    // written after the truncated end.
    let headers = || trace.segments().iter().filter_map(|s| s.header.as_ref());
    let processors = headers()
        .filter_map(|header| header.cpus())
        .max()
        .unwrap_or(0);
    let processors = 0..processors.min(MAX_CPUS) as u16;
    if is_cut {
        for cpu in processors.clone() {
            cpus.entry(cpu).or_insert(NOTHING);
        }
    }
    let samples: BTreeMap<u16, FirstAndLast> = (present.iter())
        .filter_map(|(cpu, presence)| Some((*cpu, presence.samples()?)))
        .collect();
    let is_relogged = headers().any(|header| header.log_file_mode & mode::RELOG != 0);
    let unswitched = unswitched(present, processors, &mut cpus);
    let ends = trace.segments().iter().map(|segment| {
        let end = segment.header.as_ref()?.end?;
        let since = end.saturating_sub(segment.clock.origin_filetime());
        Some(since.saturating_mul(100))
    });
    let ends: Option<Vec<i64>> = ends.collect();
    RecordedTimes {
        cpus,
        unswitched,
        needs_samples: is_relogged || !samples.is_empty(),
        samples,
        stopped_ns: ends.and_then(|ends| ends.into_iter().max()),
        skips_switches: false,
        losses: BTreeMap::new(),
    }
}

/// Range of a CPU whose events count as missing from the trace.
const NOTHING: Range<i64> = i64::MIN..0;

/// Finds the CPUs that never switched threads, in a trace that has context switches. If it is unknown which
/// thread ran on such a CPU, the events of the CPU count as missing. The range of the CPU is then
/// [`NOTHING`].
fn unswitched(
    mut present: BTreeMap<u16, Presence>,
    processors: Range<u16>,
    cpus: &mut BTreeMap<u16, Range<i64>>,
) -> BTreeMap<u16, (u32, i64)> {
    let mut unswitched = BTreeMap::new();
    if !present.values().any(|presence| presence.switches) {
        return unswitched;
    }
    for cpu in processors {
        present.entry(cpu).or_default();
    }
    let spans = present.values().filter_map(|presence| presence.span_ns);
    let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let span = span.map_or(0..0, |(first, last)| first..last);
    for (cpu, presence) in present.into_iter().filter(|(_, p)| !p.switches) {
        match presence.unswitched_thread(&span).zip(presence.span_ns) {
            Some((thread_id, (first_ns, _))) => {
                unswitched.insert(cpu, (thread_id, first_ns));
            }
            None => {
                cpus.insert(cpu, NOTHING);
            }
        }
    }
    unswitched
}

/// Returns the indices of the segments that are ring buffers with overwritten buffers. In such a segment,
/// sequence numbers are missing.
fn rings(trace: &Trace) -> Vec<u16> {
    let mut sequences: FxHashMap<u16, (i64, i64, i64)> = FxHashMap::default();
    for buffer in trace.buffers() {
        let sequence = buffer.sequence;
        let (first, last, count) =
            (sequences.entry(buffer.segment)).or_insert((sequence, sequence, 0));
        (*first, *last) = ((*first).min(sequence), (*last).max(sequence));
        *count += 1;
    }
    let has_gaps = |(first, last, count): &(i64, i64, i64)| {
        // Sequence numbers start at 0 or 1.
        *first > 1 || last.saturating_sub(*first) >= *count
    };
    let segments = (0..).zip(trace.segments());
    let rings = segments.filter(|(number, segment)| {
        let mode = (segment.header.as_ref()).map_or(0, |header| header.log_file_mode);
        mode & (mode::CIRCULAR | mode::BUFFERING) != 0
            && sequences.get(number).is_some_and(has_gaps)
    });
    rings.map(|(number, _)| number).collect()
}

/// Returns true if the last buffers of the trace may be missing.
fn is_cut(trace: &Trace) -> bool {
    let damage = trace.damage();
    damage.unfinished_segments > 0 || damage.is_cut_off()
}
