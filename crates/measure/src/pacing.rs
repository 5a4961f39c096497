//! When samples are to start.

use serde::Serialize;

/// Slots at equal distances, none of which is ever left out.
///
/// After a stall, the slots that passed meanwhile are still given, one after the other, with the
/// start they should have had. So what was late shows in as many samples as it would have hit; a
/// pacing that waits for the machine first and then counts anew would hide just the stalls that are
/// looked for (coordinated omission).
#[derive(Clone, Debug)]
pub struct Pacing {
    interval_ns: i64,
    next_ns: i64,
    given: u64,
}

/// A moment at which a sample is to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its number, from 0.
    pub number: u64,
    /// When the sample is to start.
    pub intended_ns: i64,
}

/// How well the slots were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Samples that began a whole slot too late, or more: the next one had begun.
    pub missed: u64,
    /// The most that a sample began too late.
    pub worst_ns: i64,
}

impl Lateness {
    /// Of samples that began so much after their slots' starts, in nanoseconds; earlier is negative.
    pub fn of(delays_ns: impl Iterator<Item = i64>, interval_ns: i64) -> Lateness {
        let mut lateness = Lateness::default();
        for late_ns in delays_ns {
            lateness.missed += u64::from(late_ns >= interval_ns.max(1));
            lateness.worst_ns = lateness.worst_ns.max(late_ns);
        }
        lateness
    }

    /// Adds that of another run.
    pub fn merge(&mut self, other: Lateness) {
        self.missed += other.missed;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }
}

impl Pacing {
    /// A slot every `interval_ns` (at least 1) from `start_ns` on.
    pub fn every(interval_ns: i64, start_ns: i64) -> Pacing {
        Pacing {
            interval_ns: interval_ns.max(1),
            next_ns: start_ns,
            given: 0,
        }
    }

    /// The next slot. The caller waits for its start if that is to come, and starts at once if it is
    /// over.
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

    /// Samples an operation of 0.1 ms every millisecond for three seconds, during which the machine
    /// stands still from 1 s to 2 s. Gives what each sample shows to one who counts from its
    /// intended start, and how late the samples began.
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
        (responses, Lateness::of(delays.into_iter(), MS))
    }

    #[test]
    fn a_stall_shows_in_the_samples_after_it() {
        let (responses, lateness) = responses();
        assert_eq!(responses.len(), 3_000);
        // By arithmetic: the sample of 1 s ends after 1 s; the k-th after it is worked off 0.1 ms
        // later but was due 1 ms later, until nothing is left after 1,000 / 0.9 samples.
        let late = |k: i64| 1_000 * MS - k * MS + k * MS / 10;
        for k in [0, 1, 500, 1_000] {
            assert_eq!(responses[1_000 + k as usize], late(k), "{k}");
        }
        let over = |ns: i64| responses.iter().filter(|r| **r > ns).count();
        assert_eq!(over(500 * MS), 556);
        assert_eq!(responses[999], MS / 10);
        assert_eq!(responses[2_500], MS / 10);
        // The k-th begins when the one before it ends, 0.1 ms sooner: 999.9 - 0.9 k ms late,
        // which is a slot and more up to k = 1,109. A pacing that hides stalls would miss none.
        assert_eq!(lateness.worst_ns, late(1) - MS / 10);
        assert_eq!(lateness.missed, 1_109);
    }

    #[test]
    fn slots_are_numbered_and_end_nowhere() {
        let mut pacing = Pacing::every(10, 100);
        let slots: Vec<Slot> = (0..3).map(|_| pacing.slot()).collect();
        assert_eq!((slots[2].number, slots[2].intended_ns), (2, 120));
        // Nonsense ends in no panic.
        let mut odd = Pacing::every(0, i64::MAX);
        odd.slot();
        assert_eq!(odd.slot().intended_ns, i64::MAX);
    }

    #[test]
    fn what_begins_a_slot_too_late_has_missed_it() {
        let lateness = |delays: &[i64]| Lateness::of(delays.iter().copied(), 10);
        assert_eq!(lateness(&[-5, 0]), Lateness::default());
        let told = |missed, worst_ns| Lateness { missed, worst_ns };
        assert_eq!(lateness(&[0, 9]), told(0, 9));
        assert_eq!(lateness(&[10, 3, 25]), told(2, 25));
    }
}
