//! Processors whose clocks disagree with other clocks.
//!
//! A thread is readied after its previous run ends, and before its next run starts. If the recorded times contradict
//! this order, one of the two clocks is wrong. There are two cases:
//!
//! - The next run seems to start before the event that readied the thread. Then the clock of the event's processor is
//!   ahead of the clock of the next run's processor.
//! - The previous run seems to end after the event. Then the clock of the previous run's processor is ahead of the
//!   clock of the event's processor.
//!
//! In both cases, the difference of the times is a lower bound of the clock's offset. A difference of up to
//! `CLOCKS_AGREE_NS` does not count. The module `clock_offsets` decides which run belongs to which event.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tables::StoreError;

use super::Complete;
use super::clock_offsets::Offsets;
use super::wakes::{self, Wakes};
use crate::Reader;
use crate::thresholds::{CLOCK_PAIRS, CLOCKS_AGREE_NS};

/// Maximum number of pairs kept for each clock.
const KEPT: usize = 10;

/// Processor whose clock disagrees with the clocks of most other processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Number of the processor.
    pub cpu: u16,
    /// True if its clock is ahead of the other clocks, false if it is behind.
    pub is_ahead: bool,
    /// Lower bound of the clock's offset, in nanoseconds. At least half of the other processors show this
    /// offset.
    pub by_ns: i64,
    /// Largest offset that any other processor shows, in nanoseconds. It can be too large, because the clock
    /// of that processor may be wrong, too.
    pub most_ns: i64,
    /// True if most pairs show the offset. If the trace is damaged, other offsets do not count: around missing and wrong
    /// events, some events of one run seem to belong to another run.
    pub is_shown_by_most: bool,
    /// Pairs of an event and a run that show the offset, the pair with the largest offset first.
    pub pairs: Vec<Pair>,
}

/// Event that readied a thread, and a run of the thread after or before the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Id of the thread.
    pub thread_id: u32,
    /// Time of the event, in nanoseconds since the trace's start.
    pub readied_ns: i64,
    /// CPU of the event.
    pub readying_cpu: u16,
    /// Start of the run, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// End of the run, in nanoseconds since the trace's start.
    pub end_ns: i64,
    /// CPU of the run.
    pub cpu: u16,
    /// True if the run precedes the event and ends too late; false if the run follows the event and
    /// begins too early.
    pub is_before: bool,
}

impl Pair {
    /// Returns the nanoseconds by which one clock must at least be ahead of the other. If the run comes after
    /// the event but seems to begin before it, the clock of the readying CPU is ahead. If the run comes before
    /// the event but seems to end after it, the clock of the run's CPU is ahead.
    pub fn ahead_ns(&self) -> i64 {
        if self.is_before {
            self.end_ns.saturating_sub(self.readied_ns)
        } else {
            self.readied_ns.saturating_sub(self.start_ns)
        }
    }
}

/// Finds the processors whose clocks disagree. Processors with the largest offset come first.
pub(super) fn read(reader: &Reader<'_>, complete: &Complete) -> Result<Vec<ClockSkew>, StoreError> {
    Ok(skews(&wakes::read(reader, complete)?))
}

fn skews(threads: &[Wakes]) -> Vec<ClockSkew> {
    let offsets = Offsets::fit(threads);
    let cpus = offsets.cpus().into_iter();
    let mut skews: Vec<ClockSkew> = cpus
        .filter_map(|cpu| {
            // A clock that is ahead at some times and behind at others is listed with its larger
            // offset.
            let both = [true, false].map(|is_ahead| skew(threads, &offsets, cpu, is_ahead));
            let both = both.into_iter().flatten();
            both.max_by_key(|skew| (skew.by_ns, skew.is_ahead))
        })
        .collect();
    skews.sort_by_key(|skew| (Reverse(skew.by_ns), skew.cpu));
    skews
}

/// Finds the pairs that show a wrong clock of `cpu`. If `is_ahead` is true, the pairs show that the clock is ahead of
/// other clocks; otherwise, that it is behind them. Returns `None` if there are too few pairs. Only clocks that always
/// agree are used for the comparison, because the moment at which another clock jumped is not known.
fn skew(threads: &[Wakes], offsets: &Offsets, cpu: u16, is_ahead: bool) -> Option<ClockSkew> {
    let (mut pairs, mut compared) = (Vec::new(), 0);
    for wakes in threads {
        let led_to = offsets.pairs(wakes);
        let before = offsets.runs_before(wakes, &led_to);
        let both = [(led_to, false), (before, true)];
        let both = both.into_iter().flat_map(|(all, is_before)| {
            let all = all.into_iter();
            all.map(move |places| (places, is_before))
        });
        for ((event, run), is_before) in both {
            let (event, end) = (wakes.readied[event], wakes.ended[run]);
            let pair = Pair {
                thread_id: wakes.thread_id,
                readied_ns: event.ns,
                readying_cpu: event.cpu,
                start_ns: wakes.ran[run].ns,
                end_ns: end.ns,
                cpu: end.cpu,
                is_before,
            };
            let (its, other) = if is_ahead == is_before {
                (end, event)
            } else {
                (event, end)
            };
            if its.cpu == cpu && offsets.is_never_off(other.cpu) {
                compared += 1;
                pairs.extend((pair.ahead_ns() > CLOCKS_AGREE_NS).then_some(pair));
            }
        }
    }
    pairs.sort_by_key(|pair| {
        let by = Reverse(pair.ahead_ns());
        (by, pair.readied_ns, pair.thread_id, pair.cpu, pair.start_ns)
    });
    let most_ns = pairs.first()?.ahead_ns();
    let by_ns = offset_for_most(cpu, &pairs);
    let is_shown = pairs.len() >= CLOCK_PAIRS;
    let is_shown_by_most = pairs.len() * 2 > compared;
    pairs.retain(|pair| pair.ahead_ns() <= by_ns);
    pairs.truncate(KEPT);
    is_shown.then_some(ClockSkew {
        cpu,
        is_ahead,
        by_ns,
        most_ns,
        is_shown_by_most,
        pairs,
    })
}

/// Returns the offset that at least half of the other processors show. A single processor may show
/// a larger offset because its own clock is wrong.
fn offset_for_most(cpu: u16, pairs: &[Pair]) -> i64 {
    let mut of_others: FxHashMap<u16, i64> = FxHashMap::default();
    for pair in pairs {
        let other = if pair.cpu == cpu {
            pair.readying_cpu
        } else {
            pair.cpu
        };
        let most_ns = of_others.entry(other).or_default();
        *most_ns = pair.ahead_ns().max(*most_ns);
    }
    let mut of_others: Vec<i64> = of_others.into_values().collect();
    of_others.sort_unstable_by_key(|ns| Reverse(*ns));
    of_others.get(of_others.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::super::wakes::Moment;
    use super::*;

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;
    const S: i64 = 1_000_000_000;

    /// Time from the event that readies a thread to the run of the thread.
    const AFTER_NS: i64 = 5 * US;
    /// Length of a run.
    const LONG_NS: i64 = 20 * US;

    /// Simulates CPUs that wake threads on each other for ten seconds. Most threads wake at random
    /// times on random CPUs. One thread is woken by CPU 0 and runs on CPU 1 every 10 ms. `ahead`
    /// returns the offset of a CPU's clock at a time.
    fn machine(cpus: u16, ahead: impl Fn(u16, i64) -> i64) -> Vec<Wakes> {
        let mut rng = Rng(u64::from(cpus));
        let mut threads = Vec::new();
        for thread in 0..4 * u32::from(cpus) {
            let mut wakes = Wakes {
                thread_id: thread,
                ..Wakes::default()
            };
            let mut at = 0;
            while at < 10 * S {
                let any = |rng: &mut Rng| rng.below(cpus.into()) as u16;
                let (one, other) = match thread {
                    0 => (0, 1),
                    _ => (any(&mut rng), any(&mut rng)),
                };
                wakes.readied.push(Moment {
                    ns: at + ahead(one, at),
                    cpu: one,
                });
                let ns = at + AFTER_NS + ahead(other, at);
                wakes.ran.push(Moment { ns, cpu: other });
                let ns = ns + LONG_NS;
                wakes.ended.push(Moment { ns, cpu: other });
                at += match thread {
                    0 => 10 * MS,
                    _ => 5 * MS + rng.below(100 * MS as usize) as i64,
                };
            }
            threads.push(wakes);
        }
        threads
    }

    fn found(threads: &[Wakes]) -> Vec<(u16, bool, i64)> {
        let skews = skews(threads).into_iter();
        skews.map(|s| (s.cpu, s.is_ahead, s.by_ns)).collect()
    }

    #[test]
    fn clocks_that_agree_are_not_reported() {
        for cpus in [2, 8, 64] {
            assert_eq!(found(&machine(cpus, |_, _| 0)), []);
        }
        let near = |cpu, _| 20 * US * i64::from(cpu == 3);
        assert_eq!(found(&machine(8, near)), []);
    }

    #[test]
    fn clocks_ahead_and_behind_are_reported_at_any_distance() {
        for off in [MS / 2, 2 * MS, 10 * MS, 100 * MS, 300 * MS, S] {
            for (cpus, cpu) in [(4, 0), (8, 6), (32, 20)] {
                let one = |number: u16| i64::from(number == cpu);
                let by_ns = off - AFTER_NS;
                let ahead = machine(cpus, |number, _| off * one(number));
                assert_eq!(found(&ahead), [(cpu, true, by_ns)]);
                let behind = machine(cpus, |number, _| -off * one(number));
                assert_eq!(found(&behind), [(cpu, false, by_ns)]);
            }
        }
    }

    #[test]
    fn several_clocks_are_reported_one_by_one() {
        let ahead = |cpu, _| match cpu {
            3 => 20 * MS,
            4 => 5 * MS,
            1 => -2 * MS,
            _ => 0,
        };
        let all = [(3, true, 20 * MS), (4, true, 5 * MS), (1, false, 2 * MS)];
        let all = all.map(|(cpu, is_ahead, by_ns)| (cpu, is_ahead, by_ns - AFTER_NS));
        assert_eq!(found(&machine(8, ahead)), all);
    }

    /// Tests a clock that is 20 ms ahead on CPU 9, which readies no threads of other CPUs. A thread on CPU 9
    /// is first woken by its own CPU, then by a disk that interrupts CPU 3.
    #[test]
    fn a_clock_whose_cpu_readies_no_other_thread_is_reported() {
        let mut threads = machine(8, |_, _| 0);
        let mut wakes = Wakes {
            thread_id: 80,
            ..Wakes::default()
        };
        for at in (1..10).map(|second| second * S) {
            for (at, by) in [(at, 9), (at + 100 * US, 3)] {
                let own_ns = at + 20 * MS;
                let readied_ns = if by == 9 { own_ns } else { at };
                wakes.readied.push(Moment {
                    ns: readied_ns,
                    cpu: by,
                });
                wakes.ran.push(Moment {
                    ns: own_ns + AFTER_NS,
                    cpu: 9,
                });
                let ns = own_ns + AFTER_NS + LONG_NS;
                wakes.ended.push(Moment { ns, cpu: 9 });
            }
        }
        threads.push(wakes);
        let by_ns = 20 * MS + AFTER_NS + LONG_NS - 100 * US;
        assert_eq!(found(&threads), [(9, true, by_ns)]);
    }

    #[test]
    fn one_of_two_clocks_is_reported() {
        let ahead = machine(2, |cpu, _| 7 * MS * i64::from(cpu == 1));
        assert_eq!(found(&ahead), [(1, true, 7 * MS - AFTER_NS)]);
    }

    /// Checks that one other CPU with a wrong clock does not increase the offset.
    #[test]
    fn a_clock_is_off_by_what_most_others_show() {
        let pair = |cpu, ahead_ns| Pair {
            thread_id: 1,
            readied_ns: ahead_ns,
            readying_cpu: 4,
            start_ns: 0,
            end_ns: 0,
            cpu,
            is_before: false,
        };
        let pairs = [
            pair(5, 16 * MS),
            pair(5, 9 * MS),
            pair(3, 5 * MS),
            pair(7, 4 * MS),
        ];
        assert_eq!(offset_for_most(4, &pairs), 5 * MS);
        assert_eq!(offset_for_most(4, &pairs[..3]), 5 * MS);
        assert_eq!(offset_for_most(4, &pairs[..2]), 16 * MS);
    }

    #[test]
    fn a_clock_that_jumps_is_ahead_from_then_on() {
        for from in [2 * S, 5 * S, 9 * S] {
            let jumps = |cpu, at| 10 * MS * i64::from(cpu == 2 && at >= from);
            let skews = skews(&machine(4, jumps));
            assert_eq!((skews.len(), skews[0].cpu, skews[0].is_ahead), (1, 2, true));
            assert_eq!(skews[0].by_ns, 10 * MS - AFTER_NS);
            assert!(skews[0].pairs.iter().all(|pair| pair.start_ns >= from));
        }
    }

    #[test]
    fn a_clock_that_jumps_twice_is_reported_by_its_longest_jump() {
        let jumps = |cpu, at| match (cpu, at / S) {
            (2, 0..3) => 3 * MS,
            (2, 3..6) => 30 * MS,
            (5, 6..) => -MS,
            _ => 0,
        };
        let expected = [(2, true, 30 * MS - AFTER_NS), (5, false, MS - AFTER_NS)];
        assert_eq!(found(&machine(8, jumps)), expected);
    }

    #[test]
    fn a_clock_that_is_always_wrong_is_shown_by_most_pairs() {
        let from = |from| move |cpu, at| 10 * MS * i64::from(cpu == 2 && at >= from);
        let by_most = |from_ns| skews(&machine(4, from(from_ns)))[0].is_shown_by_most;
        assert!(by_most(0) && !by_most(9 * S));
    }

    /// Removes events and runs. The first event after missing events seems to be late, although no
    /// clock is wrong.
    #[test]
    fn missing_events_are_no_disagreement() {
        let mut rng = Rng(1);
        let mut threads = machine(8, |_, _| 0);
        let is_lost = |moment: &Moment| moment.cpu == 3 && (2 * S..3 * S).contains(&moment.ns);
        for wakes in &mut threads {
            wakes
                .readied
                .retain(|moment| !is_lost(moment) && rng.below(10) > 0);
            let runs = wakes.ran.iter().zip(&wakes.ended);
            (wakes.ran, wakes.ended) = runs.filter(|_| rng.below(10) > 0).unzip();
        }
        assert_eq!(found(&threads), []);
    }

    /// Delays each run on CPU 3 by 31.25 ms, as if the thread waited for the end of a quantum.
    /// Equal waits are not a wrong clock.
    #[test]
    fn equal_waits_are_no_disagreement() {
        let mut threads = machine(8, |_, _| 0);
        for wakes in &mut threads {
            let mut waited_ns = 0;
            let runs = wakes.ran.iter_mut().zip(&mut wakes.ended);
            for (event, (start, end)) in wakes.readied.iter_mut().zip(runs) {
                event.ns += waited_ns;
                waited_ns += 31_250 * US * i64::from(start.cpu == 3);
                start.ns += waited_ns;
                end.ns += waited_ns;
            }
        }
        assert_eq!(found(&threads), []);
    }
}
