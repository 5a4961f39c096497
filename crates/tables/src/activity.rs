//! Number of events of each CPU, and the longest time without events.

use std::collections::BTreeMap;

/// Times at which one stream logged events.
#[derive(Debug, Default)]
pub struct Activity {
    events: u64,
    /// Time ranges without long gaps. A buffer has at most two such ranges.
    ranges: Vec<(i64, i64)>,
    present: Option<Buffer>,
}

/// Times of the events of one buffer.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    first_ns: i64,
    last_ns: i64,
    /// Start and end of the longest time between two consecutive events of the buffer. Only the longest gap
    /// of a CPU is needed. So one gap per buffer is enough.
    gap: Option<(i64, i64)>,
}

/// Number and times of the events of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuActivity {
    /// Number of events.
    pub events: u64,
    /// Time of the first event.
    pub first_ns: i64,
    /// Time of the last event.
    pub last_ns: i64,
    /// Longest time between two consecutive events.
    pub longest_gap_ns: i64,
    /// Start of the longest time between two consecutive events.
    pub longest_gap_start_ns: i64,
}

impl Activity {
    /// Adds the time of an event of the current buffer.
    #[inline]
    pub fn add(&mut self, time_ns: i64) {
        self.events += 1;
        let Some(buffer) = &mut self.present else {
            self.present = Some(Buffer {
                first_ns: time_ns,
                last_ns: time_ns,
                gap: None,
            });
            return;
        };
        let length = time_ns.saturating_sub(buffer.last_ns);
        if buffer
            .gap
            .is_none_or(|(from, to)| length > to.saturating_sub(from))
        {
            buffer.gap = Some((buffer.last_ns, time_ns));
        }
        buffer.last_ns = time_ns;
    }

    /// Adds the events of other buffers of the same stream.
    pub fn merge(&mut self, other: Activity) {
        self.events += other.events;
        self.ranges.extend(other.ranges);
    }

    /// Ends the current buffer.
    pub fn end_buffer(&mut self) {
        let Some(buffer) = self.present.take() else {
            return;
        };
        match buffer.gap {
            Some((from, to)) => {
                (self.ranges).extend([(buffer.first_ns, from), (to, buffer.last_ns)]);
            }
            None => self.ranges.push((buffer.first_ns, buffer.last_ns)),
        }
    }
}

/// Returns the activity of the CPUs that have events. If several sessions recorded a CPU, a gap is a time in
/// which no session has an event. In this case, the longest gap may be missed, because only one gap per
/// buffer is stored.
pub fn by_cpu<'a>(
    streams: impl Iterator<Item = (u16, &'a Activity)>,
) -> BTreeMap<u16, CpuActivity> {
    let mut cpus: BTreeMap<u16, (u64, Vec<(i64, i64)>)> = BTreeMap::new();
    for (cpu, activity) in streams {
        let (events, ranges) = cpus.entry(cpu).or_default();
        *events += activity.events;
        ranges.extend(&activity.ranges);
    }
    let cpus = cpus.into_iter();
    cpus.filter_map(|(cpu, (events, ranges))| Some((cpu, merged(events, ranges)?)))
        .collect()
}

fn merged(events: u64, mut ranges: Vec<(i64, i64)>) -> Option<CpuActivity> {
    ranges.sort_unstable();
    let (first_ns, mut last_ns) = *ranges.first()?;
    let mut longest = (0, first_ns);
    for (from, to) in ranges {
        let gap = from.saturating_sub(last_ns);
        if gap > longest.0 {
            longest = (gap, last_ns);
        }
        last_ns = last_ns.max(to);
    }
    Some(CpuActivity {
        events,
        first_ns,
        last_ns,
        longest_gap_ns: longest.0,
        longest_gap_start_ns: longest.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(buffers: &[&[i64]]) -> Activity {
        let mut activity = Activity::default();
        for buffer in buffers {
            buffer.iter().for_each(|time_ns| activity.add(*time_ns));
            activity.end_buffer();
        }
        activity
    }

    #[test]
    fn the_longest_gap_is_found_inside_and_between_buffers() {
        let one = activity(&[&[100, 110, 150, 155], &[0, 10, 30]]);
        let cpus = by_cpu([(1, &one)].into_iter());
        let expected = CpuActivity {
            events: 7,
            first_ns: 0,
            last_ns: 155,
            longest_gap_ns: 70,
            longest_gap_start_ns: 30,
        };
        assert_eq!(cpus, BTreeMap::from([(1, expected)]));
    }

    #[test]
    fn other_sessions_fill_a_gap() {
        let (one, other) = (activity(&[&[0, 100]]), activity(&[&[40, 50]]));
        let cpus = by_cpu([(0, &one), (0, &other)].into_iter());
        assert_eq!(cpus[&0].longest_gap_ns, 50);
        assert!(by_cpu([(0, &Activity::default())].into_iter()).is_empty());
    }
}
