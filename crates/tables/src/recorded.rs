//! From when and until when a trace holds all that a processor logged.

use std::collections::BTreeMap;
use std::ops::Range;

use etl::{CpuStream, Trace, mode};
use rustc_hash::FxHashMap;

use crate::cpus::MAX_CPUS;

/// From when and until when a trace holds all that each processor logged.
///
/// Of most traces that is the whole time. But a ring overwrites its oldest buffers, and those of one
/// processor reach less far back than those of another; and where a file was cut off, or its session
/// was never stopped, each processor's last buffers are missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// Of processors that it is limited for; without limit on a side, that end of `i64`.
    cpus: BTreeMap<u16, Range<i64>>,
    /// When the last of its sessions ended, if all say so. What tells of threads and images may have
    /// later times: in a part of a trace, those that it had in the whole.
    stopped_ns: Option<i64>,
}

impl Recorded {
    /// Of a trace, whose streams have events from and to these moments.
    pub(crate) fn new(trace: &Trace, spans_ns: &[(CpuStream<'_>, Option<(i64, i64)>)]) -> Recorded {
        let rings = rings(trace);
        let is_cut = is_cut(trace);
        let mut cpus: BTreeMap<u16, Range<i64>> = BTreeMap::new();
        for (stream, span_ns) in spans_ns {
            let Some((first, last)) = *span_ns else {
                continue;
            };
            let is_ring = rings.contains(&stream.buffers()[0].segment);
            let from = if is_ring { first } else { i64::MIN };
            let until = if is_cut { last } else { i64::MAX };
            // What one session lacks another may have.
            let cpu = cpus.entry(stream.cpu()).or_insert(from..until);
            *cpu = cpu.start.min(from)..cpu.end.max(until);
        }
        // Of a processor whose first buffer was to come later the file has nothing.
        let headers = trace.segments().iter().filter_map(|s| s.header.as_ref());
        let processors = headers.map(|header| header.processors).max().unwrap_or(0);
        if is_cut {
            for cpu in 0..processors.min(MAX_CPUS) as u16 {
                cpus.entry(cpu).or_insert(i64::MIN..0);
            }
        }
        let ends = trace.segments().iter().map(|segment| {
            let end = segment.header.as_ref()?.end?;
            let since = end.saturating_sub(segment.clock.origin_filetime());
            Some(since.saturating_mul(100))
        });
        let ends: Option<Vec<i64>> = ends.collect();
        Recorded {
            cpus,
            stopped_ns: ends.and_then(|ends| ends.into_iter().max()),
        }
    }

    /// Until when a trace that has events until `last_ns` tells what ran; its last switch was then.
    pub(crate) fn until_ns(&self, last_ns: i64, last_switch_ns: i64) -> i64 {
        let stopped_ns = self.stopped_ns.unwrap_or(last_ns);
        last_ns.min(stopped_ns.max(last_switch_ns))
    }

    /// From when on a processor's events are in the trace, if not from its begin.
    pub(crate) fn begin_ns(&self, cpu: u16) -> Option<i64> {
        let from = self.cpus.get(&cpu)?.start;
        (from != i64::MIN).then_some(from)
    }

    /// Until when a processor's events are in the trace, if not to its end.
    pub(crate) fn end_ns(&self, cpu: u16) -> Option<i64> {
        let until = self.cpus.get(&cpu)?.end;
        (until != i64::MAX).then_some(until)
    }

    /// From when and until when all processors' are.
    pub(crate) fn of_all(&self) -> Range<i64> {
        let from = self.cpus.values().map(|cpu| cpu.start).max();
        let until = self.cpus.values().map(|cpu| cpu.end).min();
        from.unwrap_or(i64::MIN)..until.unwrap_or(i64::MAX)
    }
}

/// The segments that are rings which overwrote buffers: some of their sequence numbers are missing.
fn rings(trace: &Trace) -> Vec<u16> {
    let mut sequences: FxHashMap<u16, (i64, i64, i64)> = FxHashMap::default();
    for buffer in trace.buffers() {
        let sequence = buffer.sequence;
        let (first, last, count) =
            (sequences.entry(buffer.segment)).or_insert((sequence, sequence, 0));
        (*first, *last) = ((*first).min(sequence), (*last).max(sequence));
        *count += 1;
    }
    let lacks = |(first, last, count): &(i64, i64, i64)| {
        // They are counted from 0 or 1.
        *first > 1 || last.saturating_sub(*first) >= *count
    };
    let segments = (0..).zip(trace.segments());
    let rings = segments.filter(|(number, segment)| {
        let mode = (segment.header.as_ref()).map_or(0, |header| header.log_file_mode);
        mode & (mode::CIRCULAR | mode::BUFFERING) != 0 && sequences.get(number).is_some_and(lacks)
    });
    rings.map(|(number, _)| number).collect()
}

/// Whether the last buffers may be missing.
fn is_cut(trace: &Trace) -> bool {
    let damage = trace.damage();
    damage.unfinished_segments > 0 || damage.is_cut_off()
}
