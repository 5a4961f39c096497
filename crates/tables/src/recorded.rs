//! Time ranges in which a trace has all events of its CPUs.

use std::collections::BTreeMap;
use std::ops::Range;

use etl::{CpuStream, Trace, mode};
use rustc_hash::FxHashMap;

use crate::doubtful::MAX_WEIGHT_NS;
use crate::presence::{Presence, Samples};
use crate::table::cpus::MAX_CPUS;

/// Time ranges in which a trace has all events of each CPU.
///
/// For most traces, this is the whole time of the trace. But a ring buffer overwrites its oldest
/// buffers, so the events of one CPU may start later than the events of another CPU. If
/// a file was truncated or its session never stopped, the last buffers of each CPU are
/// missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// Time ranges of the CPUs whose range is limited. If only the start or only the end is limited, the
    /// other bound is `i64::MIN` or `i64::MAX`.
    cpus: BTreeMap<u16, Range<i64>>,
    /// CPUs that never switched threads. The values are the thread that ran all the time (0 is the idle
    /// thread), and the time of the CPU's first event.
    unswitched: BTreeMap<u16, (u32, i64)>,
    /// First and last sample of each CPU.
    samples: BTreeMap<u16, Samples>,
    /// True if a run without a switch at its start or end lasts only as far as samples show. This is true for a trace
    /// with samples, and for a relogged trace, because a relogger can leave out switches.
    needs_samples: bool,
    /// End of the last session, if all sessions have an end. Events about threads and images may be later
    /// than this end. The reason is that a trimmed trace keeps the original times of these events.
    stopped_ns: Option<i64>,
    /// True for a recording of Linux without lost events. Single switches may still be missing, because some kernels
    /// skip the tracepoint for switches from an idle thread and for a few other switches.
    pub(crate) may_skip_switches: bool,
}

impl Recorded {
    /// Computes the ranges of a trace from the events of its streams.
    pub(crate) fn new(trace: &Trace, streams: &[(CpuStream<'_>, Presence)]) -> Recorded {
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
        let samples: BTreeMap<u16, Samples> = (present.iter())
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
        Recorded {
            cpus,
            unswitched,
            needs_samples: is_relogged || !samples.is_empty(),
            samples,
            stopped_ns: ends.and_then(|ends| ends.into_iter().max()),
            may_skip_switches: false,
        }
    }

    /// Returns the end of the time range in which a trace shows the running threads. `last_ns` is the time of
    /// the last event. `last_switch_ns` is the time of the last context switch.
    pub(crate) fn until_ns(&self, last_ns: i64, last_switch_ns: i64) -> i64 {
        let stopped_ns = self.stopped_ns.unwrap_or(last_ns);
        last_ns.min(stopped_ns.max(last_switch_ns))
    }

    /// Returns the start of a CPU's range. Returns `None` if the range starts at the start of the trace.
    pub(crate) fn begin_ns(&self, cpu: u16) -> Option<i64> {
        let from = self.cpus.get(&cpu)?.start;
        (from != i64::MIN).then_some(from)
    }

    /// Returns the end of a CPU's range. Returns `None` if the range ends at the end of the trace.
    pub(crate) fn end_ns(&self, cpu: u16) -> Option<i64> {
        let until = self.cpus.get(&cpu)?.end;
        (until != i64::MAX).then_some(until)
    }

    /// Returns the start of a run whose start is not recorded. `run` is its longest possible time. If samples are needed,
    /// the run starts at the CPU's first sample, or has no length if this sample is of another thread. A gap of up to
    /// [`MAX_WEIGHT_NS`] before the sample counts for the run.
    pub(crate) fn shown_from_ns(&self, cpu: u16, thread_id: u32, run: Range<i64>) -> i64 {
        let sample = self.samples.get(&cpu).map(|(first, _)| *first);
        let shown_ns = self.shown_ns(sample, thread_id, run.end);
        let shown_ns = shown_ns.map_or(run.start, |ns| ns.min(run.end));
        match shown_ns.saturating_sub(run.start) <= MAX_WEIGHT_NS {
            true => run.start,
            false => shown_ns,
        }
    }

    /// Returns the end of a run whose end is not recorded. `run` is its longest possible time. If samples are needed,
    /// the run ends at the CPU's last sample, or has no length if this sample is of another thread. A gap of up to
    /// [`MAX_WEIGHT_NS`] behind the sample counts for the run.
    pub(crate) fn shown_until_ns(&self, cpu: u16, thread_id: u32, run: Range<i64>) -> i64 {
        let sample = self.samples.get(&cpu).map(|(_, last)| *last);
        let shown_ns = self.shown_ns(sample, thread_id, run.start);
        let shown_ns = shown_ns.map_or(run.end, |ns| ns.max(run.start));
        match run.end.saturating_sub(shown_ns) <= MAX_WEIGHT_NS {
            true => run.end,
            false => shown_ns,
        }
    }

    /// Returns the time of the sample that shows the thread on the CPU, or `switch_ns` if no sample shows it. Returns
    /// `None` if samples are not needed. Idle threads need no samples, because many CPUs take none while they are idle.
    fn shown_ns(&self, sample: Option<(i64, u32)>, thread_id: u32, switch_ns: i64) -> Option<i64> {
        let sample = sample.filter(|(_, sampled)| *sampled == thread_id);
        (self.needs_samples && thread_id != 0).then(|| sample.map_or(switch_ns, |(ns, _)| ns))
    }

    /// Returns the CPUs that never switched threads. Each element has the CPU, the thread that ran all the
    /// time, and the time of the CPU's first event.
    pub(crate) fn unswitched(&self) -> impl Iterator<Item = (u16, u32, i64)> + '_ {
        let all = self.unswitched.iter();
        all.map(|(cpu, (thread_id, first_ns))| (*cpu, *thread_id, *first_ns))
    }

    /// Returns the time range in which the trace has the events of all CPUs.
    pub(crate) fn complete_range(&self) -> Range<i64> {
        let from = self.cpus.values().map(|cpu| cpu.start).max();
        let until = self.cpus.values().map(|cpu| cpu.end).min();
        from.unwrap_or(i64::MIN)..until.unwrap_or(i64::MAX)
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
