//! Places of lost events and of throttled events.

use std::collections::BTreeMap;

use crate::damage::{Damage, Gap, GapKind};

/// Maximum number of places of losses, and of records about throttling.
const MOST: usize = 1 << 14;

/// Maximum number of CPUs whose last record is stored. It is the maximum number of CPUs that Linux supports.
const MOST_CPUS: usize = 8192;

/// State of the search for gaps in the records of a recording.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Time of the last record of each CPU.
    last_ns: BTreeMap<Option<u32>, u64>,
    lost: Vec<Gap>,
    throttles: Vec<Throttle>,
}

/// Start or end of the throttling of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Throttle {
    /// Number that the kernel gave to the event: the field `stream_id`.
    event: u64,
    time_ns: u64,
    cpu: Option<u32>,
    is_end: bool,
}

impl Gaps {
    /// Adds a record of a CPU.
    pub(crate) fn see(&mut self, cpu: Option<u32>, time_ns: u64) {
        if self.last_ns.len() < MOST_CPUS || self.last_ns.contains_key(&cpu) {
            self.last_ns.insert(cpu, time_ns);
        }
    }

    /// Adds a loss. The kernel reports it with the next record that fits into the CPU's ring buffer. So the events were
    /// lost between the record before and this time.
    pub(crate) fn add_lost(&mut self, cpu: Option<u32>, time_ns: u64, count: u64) {
        let last = self.last_ns.get(&cpu).copied();
        if self.lost.len() < MOST && count > 0 {
            self.lost.push(Gap {
                kind: GapKind::Lost(count),
                cpu,
                start_ns: last.filter(|last| *last <= time_ns),
                end_ns: Some(time_ns),
            });
        }
    }

    /// Adds the start or the end of the throttling of an event.
    pub(crate) fn add_throttle(
        &mut self,
        event: u64,
        cpu: Option<u32>,
        time_ns: u64,
        is_end: bool,
    ) {
        if self.throttles.len() < MOST {
            self.throttles.push(Throttle {
                event,
                time_ns,
                cpu,
                is_end,
            });
        }
    }

    /// Adds the gaps to `damage`.
    pub(crate) fn finish(mut self, damage: &mut Damage) {
        damage.gaps.append(&mut self.lost);
        self.throttles.sort_unstable();
        for of_event in self.throttles.chunk_by(|a, b| a.event == b.event) {
            let mut open: Vec<Gap> = Vec::new();
            for throttle in of_event {
                if !throttle.is_end {
                    open.push(Gap {
                        kind: GapKind::Throttled,
                        cpu: throttle.cpu,
                        start_ns: Some(throttle.time_ns),
                        end_ns: None,
                    });
                    continue;
                }
                // An event of a thread can go on on another CPU.
                let same = open.iter().rposition(|gap| gap.cpu == throttle.cpu);
                if let Some(at) = same.or(open.len().checked_sub(1)) {
                    let end_ns = Some(throttle.time_ns);
                    damage.gaps.push(Gap {
                        end_ns,
                        ..open.remove(at)
                    });
                }
            }
            damage.gaps.append(&mut open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttled(cpu: u32, start: u64, end: Option<u64>) -> Gap {
        Gap {
            kind: GapKind::Throttled,
            cpu: Some(cpu),
            start_ns: Some(start),
            end_ns: end,
        }
    }

    #[test]
    fn throttling_ends_with_the_next_record_of_the_same_event() {
        let mut gaps = Gaps::default();
        // Each CPU writes its own records, so they are not in time order.
        for (event, cpu, time_ns, is_end) in [
            (7, 0, 10, false),
            (7, 0, 30, true),
            (7, 0, 50, false),
            (8, 1, 12, false),
            (8, 1, 14, true),
            (8, 1, 40, false),
            // The thread moved to another CPU while its event was throttled.
            (8, 2, 44, true),
            (9, 1, 60, true),
        ] {
            gaps.add_throttle(event, Some(cpu), time_ns, is_end);
        }
        let mut damage = Damage::default();
        gaps.finish(&mut damage);
        let expected = [
            throttled(0, 10, Some(30)),
            throttled(0, 50, None),
            throttled(1, 12, Some(14)),
            throttled(1, 40, Some(44)),
        ];
        assert_eq!(damage.gaps, expected);
    }

    #[test]
    fn the_number_of_places_is_limited() {
        let mut gaps = Gaps::default();
        for time_ns in 0..2 * MOST as u64 {
            gaps.see(Some(time_ns as u32), time_ns);
            gaps.add_lost(Some(time_ns as u32), time_ns, 1);
            gaps.add_throttle(1, None, time_ns, false);
        }
        assert_eq!(gaps.last_ns.len(), MOST_CPUS);
        let mut damage = Damage::default();
        gaps.finish(&mut damage);
        assert_eq!(damage.gaps.len(), 2 * MOST);
    }
}
