//! How long each CPU logged nothing.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a CPU logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CpuActivity {
    /// The CPU.
    pub(crate) cpu: u16,
    /// Events.
    pub(crate) events: u64,
    /// Time of the first, in nanoseconds since the trace's start.
    pub(crate) first_ns: i64,
    /// Time of the last.
    pub(crate) last_ns: i64,
    /// The longest time between two events.
    pub(crate) longest_silence_ns: i64,
    /// When that began.
    pub(crate) longest_silence_from_ns: i64,
}

/// Collects the stretches of time in which CPUs logged events.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    stretches: BTreeMap<u16, Vec<(i64, i64)>>,
    events: BTreeMap<u16, u64>,
}

impl Activity {
    /// Takes in the times of a buffer's events, in order.
    pub(crate) fn buffer(&mut self, cpu: u16, times: impl Iterator<Item = i64>) {
        let mut count = 0;
        let mut first = None;
        let mut last = i64::MIN;
        // A buffer's longest silence splits it in two stretches; it is enough to know of that one
        // per buffer, since one of all of them is the CPU's longest.
        let mut gap: Option<(i64, i64)> = None;
        for time in times {
            let silence = time.saturating_sub(last);
            if first.is_some() && gap.is_none_or(|(a, b)| silence > b.saturating_sub(a)) {
                gap = Some((last, time));
            }
            first.get_or_insert(time);
            last = time;
            count += 1;
        }
        let Some(first) = first else { return };
        *self.events.entry(cpu).or_default() += count;
        let stretches = self.stretches.entry(cpu).or_default();
        match gap {
            Some((before, after)) => stretches.extend([(first, before), (after, last)]),
            None => stretches.push((first, last)),
        }
    }

    /// Joins what others took in.
    pub(crate) fn merge(&mut self, other: Activity) {
        for (cpu, stretches) in other.stretches {
            self.stretches.entry(cpu).or_default().extend(stretches);
        }
        for (cpu, events) in other.events {
            *self.events.entry(cpu).or_default() += events;
        }
    }

    /// The CPUs that logged anything. Where several sessions' buffers overlap in time, a silence
    /// is one of all of them, though a longer one can be overlooked.
    pub(crate) fn cpus(mut self) -> Vec<CpuActivity> {
        let mut cpus = Vec::new();
        for (cpu, stretches) in &mut self.stretches {
            stretches.sort_unstable();
            let Some(&(first_ns, mut last_ns)) = stretches.first() else {
                continue;
            };
            let mut longest = (0, first_ns);
            for &(from, to) in &*stretches {
                if from.saturating_sub(last_ns) > longest.0 {
                    longest = (from.saturating_sub(last_ns), last_ns);
                }
                last_ns = last_ns.max(to);
            }
            cpus.push(CpuActivity {
                cpu: *cpu,
                events: self.events.get(cpu).copied().unwrap_or(0),
                first_ns,
                last_ns,
                longest_silence_ns: longest.0,
                longest_silence_from_ns: longest.1,
            });
        }
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silence_is_found_inside_and_between_buffers() {
        let mut activity = Activity::default();
        activity.buffer(1, [100, 110, 150, 155].into_iter());
        activity.buffer(1, [0, 10, 30].into_iter());
        let inside = activity.cpus();
        assert_eq!(inside.len(), 1);
        assert_eq!((inside[0].first_ns, inside[0].last_ns), (0, 155));
        assert_eq!(inside[0].events, 7);
        assert_eq!(inside[0].longest_silence_ns, 70);
        assert_eq!(inside[0].longest_silence_from_ns, 30);

        // Another session logs while the first is silent.
        let mut activity = Activity::default();
        activity.buffer(0, [0, 100].into_iter());
        activity.buffer(0, [40, 50].into_iter());
        assert_eq!(activity.cpus()[0].longest_silence_ns, 50);
        assert!(Activity::default().cpus().is_empty());
    }
}
