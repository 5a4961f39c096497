//! How far each processor's clock is ahead of the others', and from when until when.
//!
//! Most threads run at once after they were made ready. By clocks that agree, nearly every run begins
//! so soon after the event that led to it; where a clock is off, runs and events that its processor
//! shares with others find no partner. The clocks are those under which most find one. Who is off is
//! the one whose change helps most: a processor shares as much with each of many that agree.
//!
//! Threads may wait for a CPU, and equally long each time. What shows that a clock is off is that a
//! thread seems to run that nothing made ready since it ran before.
//!
//! A thread that wakes strictly periodically finds partners under any multiple of its period, too.
//! That is no gain, since it had partners before.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::wakes::{Moment, Wakes};

/// A thread can be made ready while it is being switched out, and a processor takes some time to be
/// told: by less than this clocks do not disagree.
pub(super) const DISAGREE_NS: i64 = 50_000;

/// An idle processor runs a thread that it is given within this time.
const PROMPT_NS: i64 = 1_000_000;

/// Fewer pairs show nothing: around lost events one or two seem late.
pub(super) const SEVERAL: usize = 3;

/// Clocks that are off by more are not looked for.
const FARTHEST_NS: i64 = 10_000_000_000;

/// So many runs without an event before and after an event without a run may be its own.
const NEAR: usize = 16;

/// Intervals that are looked at in one go, at most.
const VOTES: usize = 1 << 20;

/// How often a clock is changed at most, and of how many the one that helps most.
const CHANGES: usize = 128;
const TRIED: usize = 4;

/// By how much clocks are off; those of which nothing is said are not.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    /// Of each CPU, during which times of its clock it is ahead by how much; the last that holds does.
    of_cpu: FxHashMap<u16, Vec<(Range<i64>, i64)>>,
}

/// Places in [`Wakes`] of what made a thread ready and of the run that it led to.
pub(super) type Places = (usize, usize);

impl Offsets {
    /// The clocks under which most threads ran at once.
    pub(super) fn fit(threads: &[Wakes]) -> Offsets {
        let mut offsets = Offsets::default();
        for _ in 0..CHANGES {
            let peaks = offsets.peaks(threads);
            let tried = peaks.into_iter().take(TRIED);
            // Of what is shared the one end is where runs begin as soon as can be.
            let tried = tried.flat_map(|(_, ends, cpu)| ends.map(|ahead_ns| (ahead_ns, cpu)));
            let changes = tried.filter_map(|(ahead_ns, cpu)| {
                let change = offsets.changed(threads, cpu, ahead_ns)?;
                Some((change.0, ahead_ns > 0, change.1))
            });
            // Of two that help as much the first.
            let best = changes.reduce(|one, other| match (other.0, other.1) > (one.0, one.1) {
                true => other,
                false => one,
            });
            match best {
                Some((_, _, better)) => offsets = better,
                None => break,
            }
        }
        offsets
    }

    /// CPUs whose clocks are off at any time, in order.
    pub(super) fn cpus(&self) -> Vec<u16> {
        let mut cpus: Vec<u16> = self.of_cpu.keys().copied().collect();
        cpus.sort_unstable();
        cpus
    }

    /// Whether a clock agrees with most others all the time.
    pub(super) fn is_never_off(&self, cpu: u16) -> bool {
        !self.of_cpu.contains_key(&cpu)
    }

    /// By how much a clock is ahead when it tells this time.
    fn ahead_ns(&self, moment: Moment) -> i64 {
        let times = self.of_cpu.get(&moment.cpu).into_iter().flatten().rev();
        let mut holding = times.filter(|(range, _)| range.contains(&moment.ns));
        holding.next().map_or(0, |(_, ahead_ns)| *ahead_ns)
    }

    /// Which runs of a thread began at once after which events that made it ready.
    pub(super) fn pairs(&self, wakes: &Wakes) -> Vec<Places> {
        let readied = self.in_order(&wakes.readied);
        let mut pairs = Vec::new();
        let mut next = 0;
        for (start_ns, ran) in self.in_order(&wakes.ran) {
            // Too early for this run, or the thread was made ready again before it.
            while readied.get(next).is_some_and(|(ns, _)| {
                *ns < start_ns.saturating_sub(PROMPT_NS)
                    || readied.get(next + 1).is_some_and(|(ns, _)| *ns < start_ns)
            }) {
                next += 1;
            }
            if let Some((ns, event)) = readied.get(next)
                && *ns <= start_ns.saturating_add(DISAGREE_NS)
            {
                pairs.push((*event, ran));
                next += 1;
            }
        }
        pairs
    }

    /// Of these pairs, the events and the runs that the threads ended before they waited for them.
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

    /// When a thread ran that nothing had made ready since it ran before: what cannot be, unless events
    /// are missing. Of its first run nothing is known.
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
            let from_ns = ended_ns.saturating_sub(DISAGREE_NS);
            let to_ns = two[1].0.saturating_add(DISAGREE_NS);
            let next = readied.partition_point(|(ns, _)| *ns < from_ns);
            let mut between = readied[next..].iter().take(NEAR);
            let is_possible = between
                .any(|(ns, event)| *ns <= to_ns && led_to[*event].is_none_or(|its| its == run));
            (!is_possible).then_some(wakes.ran[run].ns)
        });
        runs.collect()
    }

    /// Moments by clocks that agree, in order, and their places.
    fn in_order(&self, moments: &[Moment]) -> Vec<(i64, usize)> {
        let moments = moments.iter().enumerate();
        let mut order: Vec<(i64, usize)> = moments
            .map(|(place, moment)| (moment.ns.saturating_sub(self.ahead_ns(*moment)), place))
            .collect();
        order.sort_unstable();
        order
    }

    /// Of each CPU by how much its clock would be ahead for most of what finds no partner: how many
    /// these are, by how much at least and at most (the one closest to 0 first), and which CPU; the
    /// most first.
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
                    let is_near = readied_ns.saturating_sub(*start_ns).abs() <= FARTHEST_NS;
                    if event.cpu == run.cpu || !is_near {
                        continue;
                    }
                    // It began at once if the one's clock is ahead by so much, or the other's.
                    let least = event.ns.saturating_sub(*start_ns);
                    let its = votes.entry(event.cpu).or_default();
                    its.push(least..least.saturating_add(PROMPT_NS));
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
            .filter(|(count, ..)| *count >= SEVERAL)
            .collect();
        peaks.sort_unstable_by_key(|(count, ends, cpu)| (Reverse(*count), ends[0] < 0, *cpu));
        peaks
    }

    /// What is better if the clock is ahead by so much while that helps most, and by how many pairs;
    /// nothing if it does not help, if what is impossible does not become less, or if most that the CPU
    /// shares finds no partner even so.
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
        // Threads may all wait for so long. But none can run before it is made ready.
        let is_needed = count(&impossible) >= count(&still) + SEVERAL;
        let is_shown = is_needed && count(&paired) >= count(&alone);
        (is_shown && gain >= SEVERAL).then(|| (gain, self.with(cpu, during, ahead_ns)))
    }

    fn with(&self, cpu: u16, during: Range<i64>, ahead_ns: i64) -> Offsets {
        let mut with = self.clone();
        with.of_cpu.entry(cpu).or_default().push((during, ahead_ns));
        with
    }
}

/// When a pair was by the clock of a CPU that shares it with another.
fn by_clock_of(cpu: u16, wakes: &Wakes, (event, run): Places) -> Option<i64> {
    let (event, run) = (wakes.readied[event], wakes.ran[run]);
    match (event.cpu == cpu, run.cpu == cpu) {
        (true, false) => Some(event.ns),
        (false, true) => Some(run.ns),
        _ => None,
    }
}

/// All but some places.
fn without(order: Vec<(i64, usize)>, places: impl Iterator<Item = usize>) -> Vec<(i64, usize)> {
    let mut is_out = vec![false; order.len()];
    places.for_each(|place| is_out[place] = true);
    let mut order = order;
    order.retain(|(_, place)| !is_out[*place]);
    order
}

/// The times of a CPU's moments at all but some places.
fn moments_of(cpu: u16, moments: &[Moment], places: impl Iterator<Item = usize>) -> Vec<i64> {
    let order = (0..moments.len()).map(|place| (moments[place].ns, place));
    let others = without(order.collect(), places).into_iter();
    let its = others.filter(|(_, place)| moments[*place].cpu == cpu);
    its.map(|(ns, _)| ns).collect()
}

/// How many intervals have numbers in common at most, and the ends of these numbers, the one closest
/// to 0 first.
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

/// The range of time over which the steps add up to most, and to how much.
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
        // Made ready again before it ran; by a little after it ran; too early and too late.
        assert_eq!(pairs(&[5, 7], &[9]), [(1, 0)]);
        assert_eq!(pairs(&[5 + DISAGREE_NS], &[5]), [(0, 0)]);
        assert_eq!(pairs(&[5, 9 * ms], &[3 * ms]), []);
    }
}
