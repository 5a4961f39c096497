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
    lateness: Lateness,
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
    /// Slots that were over, the next one having begun, before they were asked for.
    pub missed: u64,
    /// The most that a slot was asked for too late.
    pub worst_ns: i64,
}

impl Lateness {
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
            lateness: Lateness::default(),
        }
    }

    /// The next slot, asked for at `now_ns`. The caller waits for its start if that is to come, and
    /// starts at once if it is over.
    pub fn slot(&mut self, now_ns: i64) -> Slot {
        let slot = Slot {
            number: self.given,
            intended_ns: self.next_ns,
        };
        let late_ns = now_ns.saturating_sub(slot.intended_ns).max(0);
        self.lateness.missed += u64::from(late_ns >= self.interval_ns);
        self.lateness.worst_ns = self.lateness.worst_ns.max(late_ns);
        self.given += 1;
        self.next_ns = self.next_ns.saturating_add(self.interval_ns);
        slot
    }

    /// How well the slots were kept so far.
    pub fn lateness(&self) -> Lateness {
        self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Samples an operation of 0.1 ms every millisecond for three seconds, during which the machine
    /// stands still from 1 s to 2 s. Gives what each sample shows to one who counts from its
    /// intended start.
    fn responses() -> (Vec<i64>, Lateness) {
        let mut now_ns = 0;
        let mut pacing = Pacing::every(MS, 0);
        let mut responses = Vec::new();
        for _ in 0..3_000 {
            let slot = pacing.slot(now_ns);
            now_ns = now_ns.max(slot.intended_ns) + MS / 10;
            if (1_000 * MS..2_000 * MS).contains(&now_ns) {
                now_ns = 2_000 * MS;
            }
            responses.push(now_ns - slot.intended_ns);
        }
        (responses, pacing.lateness())
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
        // The k-th is asked for when the one before it ends, 0.1 ms sooner: 999.9 - 0.9 k ms late,
        // which is a slot and more up to k = 1,109. A pacing that hides stalls would miss none.
        assert_eq!(lateness.worst_ns, late(1) - MS / 10);
        assert_eq!(lateness.missed, 1_109);
    }

    #[test]
    fn slots_kept_are_not_late() {
        let mut pacing = Pacing::every(10, 100);
        let numbers: Vec<Slot> = [90, 105, 120].map(|now| pacing.slot(now)).into();
        assert_eq!(numbers[2].intended_ns, 120);
        assert_eq!(numbers[2].number, 2);
        assert_eq!(pacing.lateness(), Lateness::default());
        pacing.slot(139);
        assert_eq!(
            pacing.lateness(),
            Lateness {
                missed: 0,
                worst_ns: 9
            }
        );
        pacing.slot(150);
        assert_eq!(
            pacing.lateness(),
            Lateness {
                missed: 1,
                worst_ns: 10
            }
        );
        // Nonsense ends in no panic.
        let mut odd = Pacing::every(0, i64::MAX);
        odd.slot(i64::MIN);
        assert_eq!(odd.slot(i64::MAX).intended_ns, i64::MAX);
    }
}
