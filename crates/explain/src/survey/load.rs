//! CPU load over time.

use std::ops::Range;

use tables::CpuRunsView;

use crate::thresholds::SUSPEND_MIN_NS;

/// Maximum number of intervals into which a trace is divided.
const MOST: i64 = 1 << 14;

/// Shortest interval, in nanoseconds.
const SHORTEST_NS: i64 = 50_000_000;

/// CPU load in equal intervals, and gaps in which no run ended on any CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    start_ns: i64,
    width_ns: i64,
    /// Busy time of all CPUs in each interval, in nanoseconds. It is the time of all threads except idle
    /// threads, plus the time of DPCs and service routines that interrupted idle threads.
    busy_ns: Vec<i64>,
    /// Gaps in which no CPU switched threads.
    pub(super) gaps: Vec<Range<i64>>,
    last_end_ns: Option<i64>,
}

impl Load {
    /// Creates an empty load for a trace with this time span.
    pub(super) fn new(span: Range<i64>) -> Load {
        let length = span.end.saturating_sub(span.start).max(1);
        let width_ns = (length / MOST + 1).max(SHORTEST_NS);
        Load {
            start_ns: span.start,
            width_ns,
            busy_ns: vec![0; (length / width_ns + 1) as usize],
            gaps: Vec::new(),
            last_end_ns: None,
        }
    }

    /// Adds runs. Doubtful runs do not count as load.
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, is_doubtful: &[bool]) {
        for (row, is_doubtful) in is_doubtful.iter().enumerate() {
            let (start, end) = (runs.start_ns[row], runs.end_ns[row]);
            if let Some(before) = self.last_end_ns.replace(end)
                && end.saturating_sub(before) >= SUSPEND_MIN_NS
            {
                self.gaps.push(before..end);
            }
            if runs.thread_id[row] != 0 && !is_doubtful {
                self.spread(start, end);
            }
        }
    }

    /// Adds a DPC or service routine that interrupted an idle thread.
    pub(super) fn interrupted_idle(&mut self, end_ns: i64, took_ns: i64) {
        self.spread(end_ns.saturating_sub(took_ns), end_ns);
    }

    fn spread(&mut self, start: i64, end: i64) {
        let mut from = start.max(self.start_ns);
        while from < end {
            let place = (from - self.start_ns) / self.width_ns;
            let next = self.start_ns + (place + 1) * self.width_ns;
            let Some(busy) = self.busy_ns.get_mut(place as usize) else {
                break;
            };
            *busy = busy.saturating_add(end.min(next) - from);
            from = next;
        }
    }

    /// Returns the time ranges of at least `at_least_ns` in which the CPUs were busy for at least `percent` of their
    /// time. If the CPUs were less busy for only one interval, the range continues after it.
    pub fn busier_than(&self, percent: i64, cpus: usize, at_least_ns: i64) -> Vec<Range<i64>> {
        let limit = self.width_ns / 100 * percent * cpus as i64;
        let mut stretches: Vec<Range<i64>> = Vec::new();
        for (place, busy) in (0..).zip(&self.busy_ns) {
            if *busy < limit {
                continue;
            }
            let from = self.start_ns + place * self.width_ns;
            match stretches.last_mut() {
                Some(last) if from - last.end <= self.width_ns => last.end = from + self.width_ns,
                _ => stretches.push(from..from + self.width_ns),
            }
        }
        stretches.retain(|stretch| stretch.end - stretch.start >= at_least_ns);
        stretches
    }
}
