//! How busy the CPUs were over time.

use std::ops::Range;

use tables::CpuRunsView;

use crate::silence::SHORTEST_NS as SHORTEST_SILENCE_NS;

/// Into how many stretches the time is cut at most.
const MOST: i64 = 1 << 14;

/// The shortest stretch.
const SHORTEST_NS: i64 = 50_000_000;

/// How busy the CPUs were, stretch by stretch, and when no run of a thread ended on any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    start_ns: i64,
    width_ns: i64,
    /// How long threads other than idle ones ran in each stretch, on all CPUs together.
    busy_ns: Vec<i64>,
    /// When no CPU switched to another thread for long.
    pub(super) gaps: Vec<Range<i64>>,
    last_end_ns: Option<i64>,
}

impl Load {
    /// Of a trace from and to these moments.
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

    /// Adds runs, and whether each is doubtful: such tell of no load.
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, is_doubtful: &[bool]) {
        for (row, is_doubtful) in is_doubtful.iter().enumerate() {
            let (start, end) = (runs.start_ns[row], runs.end_ns[row]);
            if let Some(before) = self.last_end_ns.replace(end)
                && end.saturating_sub(before) >= SHORTEST_SILENCE_NS
            {
                self.gaps.push(before..end);
            }
            if runs.thread_id[row] != 0 && !is_doubtful {
                self.spread(start, end);
            }
        }
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

    /// Stretches in which the CPUs were busy for at least this share (of 1,000) of their time, and
    /// that lasted at least so long; one that pauses for no longer than a stretch goes on.
    pub fn busier_than(&self, per_mille: i64, cpus: usize, at_least_ns: i64) -> Vec<Range<i64>> {
        let limit = self.width_ns / 1_000 * per_mille * cpus as i64;
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
