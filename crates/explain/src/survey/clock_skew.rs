//! By how much the processors' clocks disagree.
//!
//! A thread runs after it was made ready, and is made ready after it ran before. Where one processor
//! tells that it was made ready later than another tells of the run that this led to, the one's clock
//! is ahead by that much at least; where earlier than the end of the run before, the other's is. Which
//! runs these are is known once it is known how far clocks are off.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tables::StoreError;

use super::Complete;
use super::clock_offsets::{DISAGREE_NS, Offsets, SEVERAL};
use super::wakes::{self, Wakes};
use crate::Case;

/// Pairs that are kept of each clock that disagrees.
const KEPT: usize = 10;

/// A processor whose clock does not agree with those of most others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Its number.
    pub cpu: u16,
    /// Whether its clock is ahead of theirs; else it is behind.
    pub is_ahead: bool,
    /// By how much at least, in nanoseconds: what most other processors show.
    pub by_ns: i64,
    /// What any of them shows at most: another's clock may be off, too.
    pub most_ns: i64,
    /// What shows it: by how much each pair does, the most first.
    pub pairs: Vec<Pair>,
}

/// An event that made a thread ready, and the run of the thread that it led to, or the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The thread.
    pub thread_id: u32,
    /// When it was made ready.
    pub readied_ns: i64,
    /// By which CPU.
    pub readying_cpu: u16,
    /// When it ran.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// On which CPU.
    pub cpu: u16,
    /// Whether it is the run before, which ends too late; else the event's own, which begins too early.
    pub is_before: bool,
}

impl Pair {
    /// By how much the one clock is ahead of the other's at least: that of the CPU that made the thread
    /// ready or, if it is the run before, that of the CPU that it ran on.
    pub fn ahead_ns(&self) -> i64 {
        match self.is_before {
            true => self.end_ns.saturating_sub(self.readied_ns),
            false => self.readied_ns.saturating_sub(self.start_ns),
        }
    }
}

/// The processors whose clocks disagree, those of the largest difference first.
pub(super) fn read(case: &Case<'_>, complete: &Complete) -> Result<Vec<ClockSkew>, StoreError> {
    Ok(skews(&wakes::read(case, complete)?))
}

fn skews(threads: &[Wakes]) -> Vec<ClockSkew> {
    let offsets = Offsets::fit(threads);
    let cpus = offsets.cpus().into_iter();
    let mut skews: Vec<ClockSkew> = cpus
        .filter_map(|cpu| {
            // Both, of a clock that jumps to and fro: what it is off by most is told.
            let both = [true, false].map(|is_ahead| skew(threads, &offsets, cpu, is_ahead));
            let both = both.into_iter().flatten();
            both.max_by_key(|skew| (skew.by_ns, skew.is_ahead))
        })
        .collect();
    skews.sort_by_key(|skew| (Reverse(skew.by_ns), skew.cpu));
    skews
}

/// What shows that a clock is ahead of those that always agree, or behind, if several pairs do. When
/// exactly another jumped is not known.
fn skew(threads: &[Wakes], offsets: &Offsets, cpu: u16, is_ahead: bool) -> Option<ClockSkew> {
    let mut pairs = Vec::new();
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
            let (its, other) = match is_ahead == is_before {
                true => (end, event),
                false => (event, end),
            };
            let is_shown = its.cpu == cpu && offsets.is_never_off(other.cpu);
            if is_shown && pair.ahead_ns() > DISAGREE_NS {
                pairs.push(pair);
            }
        }
    }
    pairs.sort_by_key(|pair| {
        let by = Reverse(pair.ahead_ns());
        (by, pair.readied_ns, pair.thread_id, pair.cpu, pair.start_ns)
    });
    let most_ns = pairs.first()?.ahead_ns();
    let by_ns = beside_most(cpu, &pairs);
    let is_shown = pairs.len() >= SEVERAL;
    pairs.retain(|pair| pair.ahead_ns() <= by_ns);
    pairs.truncate(KEPT);
    is_shown.then_some(ClockSkew {
        cpu,
        is_ahead,
        by_ns,
        most_ns,
        pairs,
    })
}

/// By how much a clock is off beside at least half of the other processors that share pairs with it:
/// of one that has work for all its time, too little may show that its own is off.
fn beside_most(cpu: u16, pairs: &[Pair]) -> i64 {
    let mut beside: FxHashMap<u16, i64> = FxHashMap::default();
    for pair in pairs {
        let other = match pair.cpu == cpu {
            true => pair.readying_cpu,
            false => pair.cpu,
        };
        let most_ns = beside.entry(other).or_default();
        *most_ns = pair.ahead_ns().max(*most_ns);
    }
    let mut beside: Vec<i64> = beside.into_values().collect();
    beside.sort_unstable_by_key(|ns| Reverse(*ns));
    beside.get(beside.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::super::wakes::Moment;
    use super::*;

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;
    const S: i64 = 1_000_000_000;

    /// How soon a thread runs after it was made ready, and for how long.
    const AFTER_NS: i64 = 5 * US;
    const LONG_NS: i64 = 20 * US;

    /// CPUs wake threads on each other over ten seconds: some now and then, and one every 10 ms always
    /// of CPU 0 on CPU 1. Clocks are ahead by so much at some time.
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
    fn clocks_that_agree_are_not_told() {
        for cpus in [2, 8, 64] {
            assert_eq!(found(&machine(cpus, |_, _| 0)), []);
        }
        let near = |cpu, _| 20 * US * i64::from(cpu == 3);
        assert_eq!(found(&machine(8, near)), []);
    }

    #[test]
    fn clocks_ahead_and_behind_are_told_however_far() {
        for off in [MS / 2, 2 * MS, 10 * MS, 100 * MS, 300 * MS, S] {
            for (cpus, cpu) in [(4, 0), (8, 6), (32, 20)] {
                let one = |of: u16| i64::from(of == cpu);
                let by_ns = off - AFTER_NS;
                let ahead = machine(cpus, |of, _| off * one(of));
                assert_eq!(found(&ahead), [(cpu, true, by_ns)]);
                let behind = machine(cpus, |of, _| -off * one(of));
                assert_eq!(found(&behind), [(cpu, false, by_ns)]);
            }
        }
    }

    #[test]
    fn several_clocks_are_told_one_by_one() {
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

    /// A thread waits on its own CPU first, and then for a disk that interrupts another.
    #[test]
    fn a_clock_whose_cpu_makes_no_others_ready_is_told() {
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
    fn of_two_clocks_one_is_told() {
        let ahead = machine(2, |cpu, _| 7 * MS * i64::from(cpu == 1));
        assert_eq!(found(&ahead), [(1, true, 7 * MS - AFTER_NS)]);
    }

    /// Another clock that is off, and of which that is not known, does not make it more.
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
        assert_eq!(beside_most(4, &pairs), 5 * MS);
        assert_eq!(beside_most(4, &pairs[..3]), 5 * MS);
        assert_eq!(beside_most(4, &pairs[..2]), 16 * MS);
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
    fn a_clock_that_jumps_twice_is_told_by_its_farthest() {
        let jumps = |cpu, at| match (cpu, at / S) {
            (2, 0..3) => 3 * MS,
            (2, 3..6) => 30 * MS,
            (5, 6..) => -MS,
            _ => 0,
        };
        let told = [(2, true, 30 * MS - AFTER_NS), (5, false, MS - AFTER_NS)];
        assert_eq!(found(&machine(8, jumps)), told);
    }

    /// Where events are missing, the next one seems to be late.
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

    /// Threads that wait for the end of another's quantum wait equally long each time.
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
