//! Intended start times of samples.

use serde::Serialize;

/// Sequence of slots at equal time intervals. No slot is skipped.
///
/// After a stall, the missed slots are still returned, one after the other, with their intended
/// times. Each sample that was due during the stall is therefore late. A pacing that starts over
/// after a stall would hide these samples (coordinated omission).
#[derive(Clone, Debug)]
pub struct Pacing {
    interval_ns: i64,
    next_ns: i64,
    given: u64,
}

/// Intended start of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Number of the slot, from 0.
    pub number: u64,
    /// Intended start in nanoseconds.
    pub intended_ns: i64,
}

/// Lateness of sample starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Number of samples that started at least one interval late, so that the next sample was
    /// already due.
    pub missed: u64,
    /// Largest delay of a sample start, in nanoseconds.
    pub worst_ns: i64,
}

impl Lateness {
    /// Computes the lateness from start delays in nanoseconds. The delay of an early start is negative.
    pub fn from_delays(delays_ns: impl Iterator<Item = i64>, interval_ns: i64) -> Lateness {
        let mut lateness = Lateness::default();
        for late_ns in delays_ns {
            lateness.missed += u64::from(late_ns >= interval_ns.max(1));
            lateness.worst_ns = lateness.worst_ns.max(late_ns);
        }
        lateness
    }

    /// Adds the lateness of another run.
    pub fn merge(&mut self, other: Lateness) {
        self.missed += other.missed;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

impl Pacing {
    /// Returns slots every `interval_ns` (at least 1), starting at `start_ns`.
    pub fn every(interval_ns: i64, start_ns: i64) -> Pacing {
        Pacing {
            interval_ns: interval_ns.max(1),
            next_ns: start_ns,
            given: 0,
        }
    }

    /// Returns the next slot. The caller must wait until the intended start of the slot. If this time has
    /// already passed, the caller starts at once.
    pub fn slot(&mut self) -> Slot {
        let slot = Slot {
            number: self.given,
            intended_ns: self.next_ns,
        };
        self.given += 1;
        self.next_ns = self.next_ns.saturating_add(self.interval_ns);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Simulates one operation every millisecond for 3 s. Each operation takes 0.1 ms. The machine stalls
    /// from 1 s to 2 s. Returns two results: the times from the intended start of each sample to its end, and
    /// the lateness of the starts.
    fn responses() -> (Vec<i64>, Lateness) {
        let mut now_ns = 0;
        let mut pacing = Pacing::every(MS, 0);
        let (mut responses, mut delays) = (Vec::new(), Vec::new());
        for _ in 0..3_000 {
            let slot = pacing.slot();
            now_ns = now_ns.max(slot.intended_ns);
            delays.push(now_ns - slot.intended_ns);
            now_ns += MS / 10;
            if (1_000 * MS..2_000 * MS).contains(&now_ns) {
                now_ns = 2_000 * MS;
            }
            responses.push(now_ns - slot.intended_ns);
        }
        (responses, Lateness::from_delays(delays.into_iter(), MS))
    }

    #[test]
    fn a_stall_shows_in_later_samples() {
        let (responses, lateness) = responses();
        assert_eq!(responses.len(), 3_000);
        // The sample that is due at 1 s ends at 2 s, because of the stall. Each later sample is due 1 ms
        // after the previous sample, but ends only 0.1 ms after the end of the previous sample. The backlog
        // therefore shrinks by 0.9 ms per sample, and is gone after 1,000 / 0.9 samples.
        let late = |k: i64| 1_000 * MS - k * MS + k * MS / 10;
        for k in [0, 1, 500, 1_000] {
            assert_eq!(responses[1_000 + k as usize], late(k), "{k}");
        }
        let over = |ns: i64| responses.iter().filter(|r| **r > ns).count();
        assert_eq!(over(500 * MS), 556);
        assert_eq!(responses[999], MS / 10);
        assert_eq!(responses[2_500], MS / 10);
        // Each late sample starts when the previous sample ends, and takes 0.1 ms. The start of the k-th sample is
        // therefore 999.9 − 0.9 k ms late. This delay is at least one slot (1 ms) up to k = 1,109. A pacing that hides
        // stalls would count no missed samples.
        assert_eq!(lateness.worst_ns, late(1) - MS / 10);
        assert_eq!(lateness.missed, 1_109);
    }

    #[test]
    fn slots_are_numbered_without_end() {
        let mut pacing = Pacing::every(10, 100);
        let slots: Vec<Slot> = (0..3).map(|_| pacing.slot()).collect();
        assert_eq!((slots[2].number, slots[2].intended_ns), (2, 120));
        // Extreme values do not panic.
        let mut odd = Pacing::every(0, i64::MAX);
        odd.slot();
        assert_eq!(odd.slot().intended_ns, i64::MAX);
    }

    #[test]
    fn a_start_a_slot_late_counts_as_missed() {
        let lateness = |delays: &[i64]| Lateness::from_delays(delays.iter().copied(), 10);
        assert_eq!(lateness(&[-5, 0]), Lateness::default());
        let lateness_of = |missed, worst_ns| Lateness { missed, worst_ns };
        assert_eq!(lateness(&[0, 9]), lateness_of(0, 9));
        assert_eq!(lateness(&[10, 3, 25]), lateness_of(2, 25));
    }
}
