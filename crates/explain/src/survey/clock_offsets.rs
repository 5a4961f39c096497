//! Offsets of the processors' clocks, and the times during which they apply.
//!
//! Most threads run as soon as they are readied. If the clocks agree, nearly every run begins promptly after the event
//! that readied its thread, so events and runs can be paired. If one clock is wrong, events on its processor cannot be
//! paired with runs on other processors. Runs on its processor cannot be paired with events on other processors either.
//! The function `Offsets::fit` finds the offsets with which most events and runs can be paired. In each step, it
//! corrects the clock whose correction adds most pairs. This clock is the wrong one, because its correction restores
//! the pairs with all other processors. The correction of a good clock would restore only the pairs with the wrong
//! clock.
//!
//! If ready threads always wait equally long for a CPU, their events and runs look as if a clock were wrong. But a wait
//! never makes a thread run before it is readied. So a clock counts as wrong only if its correction removes impossible
//! runs. A run is impossible if no event readied the thread between its previous run and this run.
//!
//! The events and runs of a strictly periodic thread can be paired with any offset that is a multiple of its period.
//! Such an offset adds no pairs, because the events and runs can also be paired without it.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::wakes::{Moment, Wakes};
use crate::thresholds::{CLOCK_PAIRS, CLOCKS_AGREE_NS, CLOCKS_APART_MAX_NS, PROMPT_NS};

/// Number of runs that are examined before an unpaired event, and also after it. One of these runs may belong to the
/// event.
const NEAR: usize = 16;

/// Maximum number of possible pairs that are examined for one change of an offset.
const VOTES: usize = 1 << 20;

/// Maximum number of changes that are made to the offsets.
const CHANGES: usize = 128;
/// Maximum number of candidates (CPU and offset) that are tried for one change of an offset.
const TRIED: usize = 4;

/// Offsets of the CPUs' clocks. Clocks without an entry agree with each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    /// For each CPU: time ranges by its clock, and the nanoseconds by which the clock is ahead in
    /// each range. If several ranges contain a time, the last of them applies.
    of_cpu: FxHashMap<u16, Vec<(Range<i64>, i64)>>,
}

/// Indices in [`Wakes`] of an event that readied a thread and of the run that followed.
pub(super) type Places = (usize, usize);

impl Offsets {
    /// Finds the offsets of the clocks with which most events and runs can be paired.
    pub(super) fn fit(threads: &[Wakes]) -> Offsets {
        let mut offsets = Offsets::default();
        for _ in 0..CHANGES {
            let peaks = offsets.peaks(threads);
            let tried = peaks.into_iter().take(TRIED);
            // Each peak is a range of offsets. At one end of the range, the runs begin as early as possible
            // after their events, so only the two ends are tried.
            let tried = tried.flat_map(|(_, ends, cpu)| ends.map(|ahead_ns| (ahead_ns, cpu)));
            let changes = tried.filter_map(|(ahead_ns, cpu)| {
                let change = offsets.changed(threads, cpu, ahead_ns)?;
                Some((change.0, ahead_ns > 0, change.1))
            });
            // If two changes are equally good, the first one is used.
            let best = changes.reduce(|one, other| {
                if (other.0, other.1) > (one.0, one.1) {
                    other
                } else {
                    one
                }
            });
            match best {
                Some((_, _, better)) => offsets = better,
                None => break,
            }
        }
        offsets
    }

    /// Returns the CPUs whose clocks are wrong at some time, in order.
    pub(super) fn cpus(&self) -> Vec<u16> {
        let mut cpus: Vec<u16> = self.of_cpu.keys().copied().collect();
        cpus.sort_unstable();
        cpus
    }

    /// Returns true if a clock always agrees with most others.
    pub(super) fn is_never_off(&self, cpu: u16) -> bool {
        !self.of_cpu.contains_key(&cpu)
    }

    /// Returns the nanoseconds by which a clock is ahead when it shows this moment.
    fn ahead_ns(&self, moment: Moment) -> i64 {
        let times = self.of_cpu.get(&moment.cpu).into_iter().flatten().rev();
        let mut holding = times.filter(|(range, _)| range.contains(&moment.ns));
        holding.next().map_or(0, |(_, ahead_ns)| *ahead_ns)
    }

    /// Pairs events that readied a thread with the runs that began promptly after them.
    pub(super) fn pairs(&self, wakes: &Wakes) -> Vec<Places> {
        let readied = self.in_order(&wakes.readied);
        let mut pairs = Vec::new();
        let mut next = 0;
        for (start_ns, ran) in self.in_order(&wakes.ran) {
            // Skip events that are too early for this run. Also skip an event if the thread was
            // readied again before this run.
            while readied.get(next).is_some_and(|(ns, _)| {
                *ns < start_ns.saturating_sub(PROMPT_NS)
                    || readied.get(next + 1).is_some_and(|(ns, _)| *ns < start_ns)
            }) {
                next += 1;
            }
            if let Some((ns, event)) = readied.get(next)
                && *ns <= start_ns.saturating_add(CLOCKS_AGREE_NS)
            {
                pairs.push((*event, ran));
                next += 1;
            }
        }
        pairs
    }

    /// Returns an entry for each pair: the pair's event, and the thread's run before the pair's run. This
    /// earlier run must have ended before the event; otherwise a clock is wrong. Pairs without an earlier run
    /// have no entry.
    pub(super) fn runs_before(&self, wakes: &Wakes, pairs: &[Places]) -> Vec<Places> {
        let order = self.in_order(&wakes.ran);
        let mut before = vec![None; order.len()];
        for two in order.windows(2) {
            before[two[1].1] = Some(two[0].1);
        }
        let pairs = pairs.iter();
        pairs
            .filter_map(|(event, run)| Some((*event, before[*run]?)))
            .collect()
    }

    /// Returns the starts of impossible runs. A run is impossible if no event readied the thread between its previous
    /// run and this run. Impossible runs occur only if events are missing or a clock is wrong. The first run of a
    /// thread does not count.
    fn impossible(&self, wakes: &Wakes, pairs: &[Places]) -> Vec<i64> {
        let mut led_to = vec![None; wakes.readied.len()];
        for (event, run) in pairs {
            led_to[*event] = Some(*run);
        }
        let readied = self.in_order(&wakes.readied);
        let order = self.in_order(&wakes.ran);
        let runs = order.windows(2).filter_map(|two| {
            let (ended, run) = (wakes.ended[two[0].1], two[1].1);
            let ended_ns = ended.ns.saturating_sub(self.ahead_ns(ended));
            let from_ns = ended_ns.saturating_sub(CLOCKS_AGREE_NS);
            let to_ns = two[1].0.saturating_add(CLOCKS_AGREE_NS);
            let next = readied.partition_point(|(ns, _)| *ns < from_ns);
            let mut between = readied[next..].iter().take(NEAR);
            let is_possible = between
                .any(|(ns, event)| *ns <= to_ns && led_to[*event].is_none_or(|its| its == run));
            (!is_possible).then_some(wakes.ran[run].ns)
        });
        runs.collect()
    }

    /// Returns the moments, corrected by the offsets of their clocks and sorted, with their
    /// indices.
    fn in_order(&self, moments: &[Moment]) -> Vec<(i64, usize)> {
        let moments = moments.iter().enumerate();
        let mut order: Vec<(i64, usize)> = moments
            .map(|(place, moment)| (moment.ns.saturating_sub(self.ahead_ns(*moment)), place))
            .collect();
        order.sort_unstable();
        order
    }

    /// Returns for each CPU the range of offsets of its clock that would pair most of the unpaired events and runs. An
    /// entry has the number of these pairs, the two ends of the range (the end closer to 0 first), and the CPU. Entries
    /// are sorted by the number of pairs, largest first.
    fn peaks(&self, threads: &[Wakes]) -> Vec<(usize, [i64; 2], u16)> {
        let mut votes: FxHashMap<u16, Vec<Range<i64>>> = FxHashMap::default();
        let mut count = 0;
        for wakes in threads {
            if count >= VOTES {
                break;
            }
            let pairs = self.pairs(wakes);
            let readied = without(
                self.in_order(&wakes.readied),
                pairs.iter().map(|pair| pair.0),
            );
            let ran = without(self.in_order(&wakes.ran), pairs.iter().map(|pair| pair.1));
            for (readied_ns, event) in &readied {
                let event = wakes.readied[*event];
                let place = ran.partition_point(|(start_ns, _)| start_ns < readied_ns);
                let near = place.saturating_sub(NEAR)..ran.len().min(place + NEAR);
                for (start_ns, run) in &ran[near] {
                    let run = wakes.ran[*run];
                    let is_near = readied_ns.saturating_sub(*start_ns).abs() <= CLOCKS_APART_MAX_NS;
                    if event.cpu == run.cpu || !is_near {
                        continue;
                    }
                    // If the offset of the event's clock is in this range, the run began promptly after the event.
                    let least = event.ns.saturating_sub(*start_ns);
                    let its = votes.entry(event.cpu).or_default();
                    its.push(least..least.saturating_add(PROMPT_NS));
                    // If the offset of the run's clock is in this range, the run began promptly after the event.
                    let most = run.ns.saturating_sub(*readied_ns);
                    let its = votes.entry(run.cpu).or_default();
                    its.push(most.saturating_sub(PROMPT_NS)..most);
                    count += 1;
                }
            }
        }
        let votes = votes.into_iter();
        let mut peaks: Vec<(usize, [i64; 2], u16)> = votes
            .filter_map(|(cpu, votes)| peak(&votes).map(|(count, ends)| (count, ends, cpu)))
            .filter(|(count, ..)| *count >= CLOCK_PAIRS)
            .collect();
        peaks.sort_unstable_by_key(|(count, ends, cpu)| (Reverse(*count), ends[0] < 0, *cpu));
        peaks
    }

    /// Changes the offset of a clock in one time range: the range in which the change adds most pairs.
    /// Returns the number of added pairs and the new offsets. Returns `None` if too few pairs are added, if
    /// too few impossible runs disappear, or if most events and runs of the CPU remain unpaired.
    fn changed(&self, threads: &[Wakes], cpu: u16, ahead_ns: i64) -> Option<(usize, Offsets)> {
        let always = self.with(cpu, i64::MIN..i64::MAX, ahead_ns);
        let mut steps: Vec<(i64, isize)> = Vec::new();
        let (mut paired, mut alone) = (Vec::new(), Vec::new());
        let (mut impossible, mut still) = (Vec::new(), Vec::new());
        for wakes in threads {
            let mut is_its = wakes.readied.iter().chain(&wakes.ran);
            if !is_its.any(|moment| moment.cpu == cpu) {
                continue;
            }
            let pairs = self.pairs(wakes);
            let shared = pairs.iter().filter_map(|p| by_clock_of(cpu, wakes, *p));
            steps.extend(shared.map(|ns| (ns, -1)));
            impossible.extend(self.impossible(wakes, &pairs));
            let pairs = always.pairs(wakes);
            let shared = pairs.iter().filter_map(|p| by_clock_of(cpu, wakes, *p));
            paired.extend(shared);
            still.extend(always.impossible(wakes, &pairs));
            let events = pairs.iter().map(|pair| pair.0);
            alone.extend(moments_of(cpu, &wakes.readied, events));
            let runs = pairs.iter().map(|pair| pair.1);
            alone.extend(moments_of(cpu, &wakes.ran, runs));
        }
        steps.extend(paired.iter().map(|ns| (*ns, 1)));
        let (gain, during) = most_gained(steps)?;
        let count = |times: &[i64]| times.iter().filter(|ns| during.contains(ns)).count();
        // All threads may wait equally long, but no thread can run before it is readied. So the
        // change must remove impossible runs.
        let is_needed = count(&impossible) >= count(&still) + CLOCK_PAIRS;
        let is_shown = is_needed && count(&paired) >= count(&alone);
        (is_shown && gain >= CLOCK_PAIRS).then(|| (gain, self.with(cpu, during, ahead_ns)))
    }

    fn with(&self, cpu: u16, during: Range<i64>, ahead_ns: i64) -> Offsets {
        let mut with = self.clone();
        with.of_cpu.entry(cpu).or_default().push((during, ahead_ns));
        with
    }
}

/// Returns the time that the clock of `cpu` shows for a pair, if exactly one of the event and the run is on this CPU.
/// Otherwise, returns `None`.
fn by_clock_of(cpu: u16, wakes: &Wakes, (event, run): Places) -> Option<i64> {
    let (event, run) = (wakes.readied[event], wakes.ran[run]);
    match (event.cpu == cpu, run.cpu == cpu) {
        (true, false) => Some(event.ns),
        (false, true) => Some(run.ns),
        _ => None,
    }
}

/// Returns all entries except those with the given indices.
fn without(order: Vec<(i64, usize)>, places: impl Iterator<Item = usize>) -> Vec<(i64, usize)> {
    let mut is_out = vec![false; order.len()];
    places.for_each(|place| is_out[place] = true);
    let mut order = order;
    order.retain(|(_, place)| !is_out[*place]);
    order
}

/// Returns the times of a CPU's moments, except those with the given indices.
fn moments_of(cpu: u16, moments: &[Moment], places: impl Iterator<Item = usize>) -> Vec<i64> {
    let order = (0..moments.len()).map(|place| (moments[place].ns, place));
    let others = without(order.collect(), places).into_iter();
    let its = others.filter(|(_, place)| moments[*place].cpu == cpu);
    its.map(|(ns, _)| ns).collect()
}

/// Finds the point that lies in the largest number of intervals. Returns this number, and the two ends of the
/// intersection of these intervals, the end closer to 0 first.
fn peak(votes: &[Range<i64>]) -> Option<(usize, [i64; 2])> {
    let mut starts: Vec<i64> = votes.iter().map(|vote| vote.start).collect();
    let mut ends: Vec<i64> = votes.iter().map(|vote| vote.end).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut over = 0;
    let begun = starts.iter().enumerate();
    let depths = begun.map(|(before, start)| {
        while ends[over] < *start {
            over += 1;
        }
        let mut ends = [*start, ends[over]];
        ends.sort_unstable_by_key(|end| end.saturating_abs());
        (before + 1 - over, ends)
    });
    depths.max_by_key(|(depth, ends)| (*depth, Reverse(ends[0].saturating_abs())))
}

/// Finds the time range in which the sum of the steps is largest. Returns the sum and the range.
fn most_gained(mut steps: Vec<(i64, isize)>) -> Option<(usize, Range<i64>)> {
    steps.sort_unstable_by_key(|(ns, _)| *ns);
    let (mut sum, mut from, mut best) = (0, 0, None);
    for same in steps.chunk_by(|one, other| one.0 == other.0) {
        let step: isize = same.iter().map(|(_, step)| step).sum();
        if sum <= 0 {
            (sum, from) = (0, same[0].0);
        }
        sum += step;
        if sum > best.as_ref().map_or(0, |(sum, _)| *sum) {
            best = Some((sum, from..same[0].0.saturating_add(1)));
        }
    }
    best.map(|(sum, during)| (sum.unsigned_abs(), during))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_what_most_intervals_share_closest_to_zero() {
        assert_eq!(peak(&[]), None);
        assert_eq!(peak(&[20..21, 4..9]), Some((1, [4, 9])));
        assert_eq!(peak(&[-9..-4, -6..-2, 5..7]), Some((2, [-4, -6])));
        assert_eq!(peak(&[-2..3, -1..5, 5..6]), Some((2, [-1, 3])));
    }

    #[test]
    fn the_most_is_gained_between_losses() {
        let steps = vec![
            (9, 1),
            (1, 1),
            (3, -1),
            (3, -1),
            (7, 1),
            (5, 1),
            (9, -1),
            (10, -1),
        ];
        assert_eq!(most_gained(steps), Some((2, 5..8)));
        assert_eq!(most_gained(vec![(1, -1), (2, -1)]), None);
    }

    #[test]
    fn runs_are_paired_with_what_led_to_them_at_once() {
        let at = |times: &[i64]| times.iter().map(|ns| Moment { ns: *ns, cpu: 0 }).collect();
        let pairs = |readied: &[i64], ran: &[i64]| {
            let (readied, ran) = (at(readied), at(ran));
            Offsets::default().pairs(&Wakes {
                readied,
                ran,
                ..Wakes::default()
            })
        };
        let ms = 1_000_000;
        assert_eq!(pairs(&[5, 5], &[5, 5]), [(0, 0), (1, 1)]);
        // The cases are: the thread is readied again before it runs; the event comes shortly after
        // the start of the run; one event is too early and the other too late.
        assert_eq!(pairs(&[5, 7], &[9]), [(1, 0)]);
        assert_eq!(pairs(&[5 + CLOCKS_AGREE_NS], &[5]), [(0, 0)]);
        assert_eq!(pairs(&[5, 9 * ms], &[3 * ms]), []);
    }
}
