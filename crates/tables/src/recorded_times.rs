//! Time ranges in which a trace has all events of its CPUs.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::doubtful::MAX_WEIGHT_NS;

/// Maximum time without events at the end of the trace. If a CPU has no events for a longer time, it was not
/// recorded until the end.
pub const LATE_NS: i64 = 1_000_000_000;

/// First and last sample of a CPU. Each has a time in nanoseconds and a thread.
pub type FirstAndLast = ((i64, u32), (i64, u32));

/// Time ranges in which a trace has all events of each CPU.
///
/// For most traces, this is the whole time of the trace. But a ring buffer overwrites its oldest
/// buffers, so the events of one CPU may start later than the events of another CPU. If
/// a file was truncated or its session never stopped, the last buffers of each CPU are
/// missing.
#[derive(Clone, Debug, Default)]
pub struct RecordedTimes {
    /// Time ranges of the CPUs whose range is limited. If only the start or only the end is limited, the
    /// other bound is `i64::MIN` or `i64::MAX`.
    pub cpus: BTreeMap<u16, Range<i64>>,
    /// CPUs that never switched threads. The values are the thread that ran all the time (0 is the idle
    /// thread), and the time of the CPU's first event.
    pub unswitched: BTreeMap<u16, (u32, i64)>,
    /// First and last sample of each CPU.
    pub samples: BTreeMap<u16, FirstAndLast>,
    /// True if a run without a switch at its start or end lasts only as far as samples show. This is true for a trace
    /// with samples, and for a relogged trace, because a relogger can leave out switches.
    pub needs_samples: bool,
    /// End of the last session, if all sessions have an end. Events about threads and images may be later
    /// than this end. The reason is that a trimmed trace keeps the original times of these events.
    pub stopped_ns: Option<i64>,
    /// True for a recording of Linux. Single switches may be missing although no event was lost, because some kernels
    /// skip the tracepoint for switches from an idle thread and for a few other switches.
    pub skips_switches: bool,
    /// Time ranges in which events of a CPU may be lost, sorted and disjoint. The key `None` stands for all CPUs. They
    /// are only known for recordings of Linux.
    pub losses: BTreeMap<Option<u16>, Vec<Range<i64>>>,
}

impl RecordedTimes {
    /// Returns the end of the time range in which a trace shows the running threads. `last_ns` is the time of
    /// the last event. `last_switch_ns` is the time of the last context switch.
    pub fn until_ns(&self, last_ns: i64, last_switch_ns: i64) -> i64 {
        let stopped_ns = self.stopped_ns.unwrap_or(last_ns);
        last_ns.min(stopped_ns.max(last_switch_ns))
    }

    /// Returns true if the kernel may have skipped a switch of the CPU within the range. Returns false if events of the
    /// CPU may be lost within it, because then any number of switches may be missing.
    pub fn may_skip_switch(&self, cpu: u16, range: Range<i64>) -> bool {
        let has_loss = |cpu| {
            let losses = self.losses.get(&cpu).map_or(&[][..], Vec::as_slice);
            let first = losses.partition_point(|loss| loss.end <= range.start);
            losses.get(first).is_some_and(|loss| loss.start < range.end)
        };
        self.skips_switches && !has_loss(Some(cpu)) && !has_loss(None)
    }

    /// Returns the start of a CPU's range. Returns `None` if the range starts at the start of the trace.
    pub fn begin_ns(&self, cpu: u16) -> Option<i64> {
        let from = self.cpus.get(&cpu)?.start;
        (from != i64::MIN).then_some(from)
    }

    /// Returns the end of a CPU's range. Returns `None` if the range ends at the end of the trace.
    pub fn end_ns(&self, cpu: u16) -> Option<i64> {
        let until = self.cpus.get(&cpu)?.end;
        (until != i64::MAX).then_some(until)
    }

    /// Returns the start of a run whose start is not recorded. `run` is its longest possible time. If samples are needed,
    /// the run starts at the CPU's first sample, or has no length if this sample is of another thread. A gap of up to
    /// [`MAX_WEIGHT_NS`] before the sample counts for the run.
    pub fn shown_from_ns(&self, cpu: u16, thread_id: u32, run: Range<i64>) -> i64 {
        let sample = self.samples.get(&cpu).map(|(first, _)| *first);
        let shown_ns = self.shown_ns(sample, thread_id, run.end);
        let shown_ns = shown_ns.map_or(run.start, |ns| ns.min(run.end));
        if shown_ns.saturating_sub(run.start) <= MAX_WEIGHT_NS {
            run.start
        } else {
            shown_ns
        }
    }

    /// Returns the end of a run whose end is not recorded. `run` is its longest possible time. If samples are needed,
    /// the run ends at the CPU's last sample, or has no length if this sample is of another thread. A gap of up to
    /// [`MAX_WEIGHT_NS`] behind the sample counts for the run.
    pub fn shown_until_ns(&self, cpu: u16, thread_id: u32, run: Range<i64>) -> i64 {
        let sample = self.samples.get(&cpu).map(|(_, last)| *last);
        let shown_ns = self.shown_ns(sample, thread_id, run.start);
        let shown_ns = shown_ns.map_or(run.end, |ns| ns.max(run.start));
        if run.end.saturating_sub(shown_ns) <= MAX_WEIGHT_NS {
            run.end
        } else {
            shown_ns
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
    pub fn unswitched(&self) -> impl Iterator<Item = (u16, u32, i64)> + '_ {
        let all = self.unswitched.iter();
        all.map(|(cpu, (thread_id, first_ns))| (*cpu, *thread_id, *first_ns))
    }

    /// Returns the time range in which the trace has the events of all CPUs.
    pub fn complete_range(&self) -> Range<i64> {
        let from = self.cpus.values().map(|cpu| cpu.start).max();
        let until = self.cpus.values().map(|cpu| cpu.end).min();
        from.unwrap_or(i64::MIN)..until.unwrap_or(i64::MAX)
    }
}
