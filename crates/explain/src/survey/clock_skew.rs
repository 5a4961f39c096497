//! By how much the processors' clocks disagree.
//!
//! A thread runs after it was made ready. Where the event that made it ready, of one processor, is
//! later than the run that it led to, of another, the one's clock is ahead. Each such pair bounds the
//! difference of two clocks from one side, and pairs the other way round from the other side: a
//! difference is told only where both agree. Where events are missing, the next one seems to be late:
//! between two processors the most pairs tell.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, StoreError, Table};

use crate::Case;

/// A thread can be made ready while it is being switched out, and a processor takes some time to be
/// told: by less than this clocks do not disagree.
const DISAGREE_NS: i64 = 50_000;

/// An event that made a thread ready belongs to no run that begins so much later or earlier.
const STALE_NS: i64 = 10_000_000_000;

/// Into how many stretches the time is cut at most, and how long they are at least: a clock that
/// jumps disagrees from then on.
const STRETCHES: i64 = 64;
const SHORTEST_NS: i64 = 250_000_000;

/// An idle processor runs a thread that it is given within this time.
const PROMPT_NS: i64 = 1_000_000;

/// How often the differences of all clocks are worked out at most.
const ATTEMPTS: usize = 64;

/// So often a thread runs at once before what led to its runs before is given up.
const AGAIN: u32 = 8;

/// Fewer pairs show nothing: around lost events one or two seem late.
const SEVERAL: u64 = 3;

/// Pairs that are kept of each clock that disagrees.
const KEPT: usize = 10;

/// A processor whose clock does not agree with those of most others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Its number.
    pub cpu: u16,
    /// Whether its clock is ahead of theirs; else it is behind.
    pub is_ahead: bool,
    /// By how much at least, in nanoseconds.
    pub by_ns: i64,
    /// What shows it: by how much each pair does, the most first.
    pub pairs: Vec<Pair>,
}

/// An event that made a thread ready, and the run of the thread that it led to.
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
    /// On which CPU.
    pub cpu: u16,
}

impl Pair {
    /// By how much the clock of the CPU that made the thread ready is ahead of the other's at least.
    pub fn ahead_ns(&self) -> i64 {
        self.readied_ns.saturating_sub(self.start_ns)
    }
}

/// The processors whose clocks disagree, those of the largest difference first.
pub(super) fn read(case: &Case<'_>) -> Result<Vec<ClockSkew>, StoreError> {
    let mut pairs = Pairs::new(case)?;
    pairs.read(case)?;
    Ok(pairs.skews())
}

/// Pairs of two CPUs: the one that made threads ready, and the one that they ran on.
#[derive(Clone, Copy, Debug, Default)]
struct OfTwo {
    /// How many say that the one's clock is ahead of the other's, and the one that says most.
    late: u64,
    latest: Option<Pair>,
    /// How many say that it is not.
    prompt: u64,
    /// Of those that are not late the one that bounds the difference most closely.
    closest: Option<Pair>,
}

impl OfTwo {
    fn add(&mut self, other: &OfTwo) {
        let more = |one: Option<Pair>, other: Option<Pair>| {
            let both = one.into_iter().chain(other);
            both.max_by_key(Pair::ahead_ns)
        };
        self.late += other.late;
        self.prompt += other.prompt;
        self.latest = more(self.latest, other.latest);
        self.closest = more(self.closest, other.closest);
    }

    /// Whether it is this way for a part of the time, and that way for another.
    fn is_mixed(&self) -> bool {
        let tenth = (self.late + self.prompt) / 10;
        tenth > 0 && self.late >= tenth && self.prompt >= tenth
    }

    /// What most pairs say.
    fn bound(&self) -> Option<Pair> {
        match self.late > self.prompt {
            true => self.latest,
            false => self.closest,
        }
    }
}

/// The pairs of each stretch of time and two CPUs.
struct Pairs {
    start_ns: i64,
    width_ns: i64,
    of_two: FxHashMap<(u32, u16, u16), OfTwo>,
    threads: FxHashMap<u32, Pending>,
    is_any_impossible: bool,
}

/// Of a thread: what made it ready and led to no run yet, when and by which CPU; and runs that
/// nothing led to yet.
#[derive(Default)]
struct Pending {
    readied: VecDeque<(i64, u16)>,
    ran: VecDeque<(i64, u16)>,
    /// How often it ran at once since the last of these.
    prompt: u32,
}

impl Pending {
    /// The first run that what made it ready then may belong to, as late as it is.
    fn ran_before(&mut self, readied_ns: i64) -> Option<(i64, u16)> {
        self.drop_stale(readied_ns);
        self.ran
            .pop_front_if(|(start_ns, _)| *start_ns < readied_ns)
    }

    fn drop_stale(&mut self, now_ns: i64) {
        let is_stale = |(time_ns, _): &(i64, u16)| now_ns.saturating_sub(*time_ns) >= STALE_NS;
        while self.ran.pop_front_if(|ran| is_stale(ran)).is_some() {}
        while self.readied.pop_front_if(|ready| is_stale(ready)).is_some() {}
    }
}

const READY: [&str; 3] = ["time_ns", "cpu", "thread_id"];
const RUNS: [&str; 5] = ["start_ns", "end_ns", "cpu", "thread_id", "previous_state"];

/// The state of a thread that waits.
const WAITING: u8 = 5;

impl Pairs {
    fn new(case: &Case<'_>) -> Result<Pairs, StoreError> {
        let runs = case.table(Table::CpuRuns)?;
        let ends = runs.chunks().first().zip(runs.chunks().last());
        let span = ends.map_or(0..0, |(first, last)| first.first.min(0)..last.last);
        let length = span.end.saturating_sub(span.start).max(1);
        Ok(Pairs {
            start_ns: span.start,
            width_ns: (length / STRETCHES + 1).max(SHORTEST_NS),
            of_two: FxHashMap::default(),
            threads: FxHashMap::default(),
            is_any_impossible: false,
        })
    }

    fn read(&mut self, case: &Case<'_>) -> Result<(), StoreError> {
        let readied = case.table(Table::ReadyThreads)?;
        let runs = case.table(Table::CpuRuns)?;
        let mut batches = case.batches(&readied, i64::MIN..i64::MAX, &READY);
        let mut events: Option<(RecordBatch, usize)> = None;
        for run in case.batches(&runs, i64::MIN..i64::MAX, &RUNS) {
            let run = run?;
            let view = CpuRunsView::new(&run)?;
            let mut row = 0;
            while row < view.len() {
                // The events until the run's end, and then the run: one may take no time at all.
                let until = view.end_ns[row];
                let (batch, next) = match &mut events {
                    Some((batch, next)) if *next < batch.num_rows() => (batch, next),
                    _ => match batches.next() {
                        Some(batch) => {
                            events = Some((batch?, 0));
                            continue;
                        }
                        None => {
                            self.run(&view, row);
                            row += 1;
                            continue;
                        }
                    },
                };
                let ready = ReadyThreadsView::new(batch)?;
                while *next < ready.len() && ready.time_ns[*next] <= until {
                    let (time_ns, cpu) = (ready.time_ns[*next], ready.cpu[*next]);
                    self.readied(ready.thread_id[*next], time_ns, cpu);
                    *next += 1;
                }
                if *next == ready.len() {
                    continue;
                }
                // Runs that end before the next event, in one go.
                let upto = ready.time_ns[*next];
                while row < view.len() && view.end_ns[row] < upto {
                    self.run(&view, row);
                    row += 1;
                }
            }
        }
        Ok(())
    }

    fn readied(&mut self, thread_id: u32, time_ns: i64, cpu: u16) {
        let pending = self.threads.entry(thread_id).or_default();
        // It was made ready twice, and did not run between: the first belongs to a run before.
        let first = pending.readied.front().copied();
        let late = first.and_then(|readied| Some((readied, pending.ran_before(readied.0)?)));
        if late.is_some() {
            pending.readied.pop_front();
        }
        pending.readied.push_back((time_ns, cpu));
        if let Some((readied, ran)) = late {
            self.pair(thread_id, readied, ran);
        }
    }

    fn run(&mut self, view: &CpuRunsView<'_>, row: usize) {
        let (thread_id, start_ns, cpu) = (view.thread_id[row], view.start_ns[row], view.cpu[row]);
        if thread_id == 0 {
            return;
        }
        // Of its first run nothing is known: most threads waited before.
        if view
            .previous_state
            .get(row)
            .is_some_and(|state| state != WAITING)
        {
            return;
        }
        let pending = self.threads.entry(thread_id).or_default();
        pending.drop_stale(start_ns);
        let mut late = Vec::new();
        let mut its = None;
        while let Some(readied) = pending.readied.pop_front() {
            // A thread that runs at once was made ready for that; where that is so again and again,
            // what led to the runs before is missing.
            let is_prompt = (0..=PROMPT_NS).contains(&start_ns.saturating_sub(readied.0));
            let before = match is_prompt {
                true => {
                    pending.prompt += 1;
                    if pending.prompt > AGAIN {
                        pending.ran.clear();
                    }
                    None
                }
                false => pending.ran_before(readied.0),
            };
            match before {
                Some(before) => late.push((readied, before)),
                None => {
                    its = Some(readied);
                    break;
                }
            }
        }
        if its.is_none() {
            pending.ran.push_back((start_ns, cpu));
            pending.prompt = 0;
        }
        for (readied, ran) in late {
            self.pair(thread_id, readied, ran);
        }
        if let Some(readied) = its {
            self.pair(thread_id, readied, (start_ns, cpu));
        }
    }

    fn pair(&mut self, thread_id: u32, readied: (i64, u16), ran: (i64, u16)) {
        let pair = Pair {
            thread_id,
            readied_ns: readied.0,
            readying_cpu: readied.1,
            start_ns: ran.0,
            cpu: ran.1,
        };
        if pair.readying_cpu == pair.cpu {
            return;
        }
        self.is_any_impossible |= pair.ahead_ns() > DISAGREE_NS;
        let stretch = (pair.readied_ns.max(pair.start_ns) - self.start_ns).max(0) / self.width_ns;
        let key = (stretch as u32, pair.readying_cpu, pair.cpu);
        let is_late = pair.ahead_ns() > DISAGREE_NS;
        self.of_two.entry(key).or_default().add(&OfTwo {
            late: u64::from(is_late),
            latest: Some(pair).filter(|_| is_late),
            prompt: u64::from(!is_late && -pair.ahead_ns() <= PROMPT_NS),
            closest: Some(pair).filter(|_| !is_late),
        });
    }

    /// The clocks that disagree in any stretch of time in which all pairs agree on that.
    fn skews(self) -> Vec<ClockSkew> {
        if !self.is_any_impossible {
            return Vec::new();
        }
        let mut all: Vec<((u32, u16, u16), OfTwo)> = self.of_two.into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let last = all.last().map_or(0, |((stretch, ..), _)| *stretch);
        let mut open = VecDeque::new();
        open.push_back(0..last + 1);
        let mut disagree: BTreeMap<(u16, u16), Vec<OfTwo>> = BTreeMap::new();
        for _ in 0..ATTEMPTS {
            let Some(range) = open.pop_front() else {
                break;
            };
            let from = all.partition_point(|((stretch, ..), _)| *stretch < range.start);
            let to = all.partition_point(|((stretch, ..), _)| *stretch < range.end);
            let mut of_two: BTreeMap<(u16, u16), OfTwo> = BTreeMap::new();
            for ((_, one, other), pairs) in &all[from..to] {
                of_two.entry((*one, *other)).or_default().add(pairs);
            }
            let is_mixed = of_two.values().any(OfTwo::is_mixed);
            let bounds = Bounds::of(&of_two);
            if (is_mixed || !bounds.agree()) && range.len() > 1 {
                let middle = range.start.midpoint(range.end);
                open.extend([range.start..middle, middle..range.end]);
            } else if bounds.agree() {
                of_two.retain(|(one, other), pairs| {
                    pairs.late > pairs.prompt && bounds.is_ahead(*one, *other)
                });
                for (two, pairs) in of_two {
                    disagree.entry(two).or_default().push(pairs);
                }
            }
        }
        named(disagree)
    }
}

/// The fewest clocks that the others disagree with: first the one that most do.
fn named(mut disagree: BTreeMap<(u16, u16), Vec<OfTwo>>) -> Vec<ClockSkew> {
    let mut skews = Vec::new();
    while !disagree.is_empty() {
        // Of each clock how many it is ahead of, how many behind, and by how much at most.
        let mut clocks: BTreeMap<u16, (usize, usize, i64)> = BTreeMap::new();
        for ((one, other), pairs) in &disagree {
            let by_ns = pairs.iter().filter_map(|of_two| of_two.latest);
            let by_ns = by_ns.map(|pair| pair.ahead_ns()).max().unwrap_or(0);
            let ahead = clocks.entry(*one).or_default();
            (ahead.0, ahead.2) = (ahead.0 + 1, ahead.2.max(by_ns));
            let behind = clocks.entry(*other).or_default();
            (behind.1, behind.2) = (behind.1 + 1, behind.2.max(by_ns));
        }
        let most = clocks.iter().max_by_key(|(cpu, (ahead, behind, by_ns))| {
            (*ahead.max(behind), *by_ns, ahead, Reverse(**cpu))
        });
        let Some((cpu, (ahead, behind, _))) = most else {
            break;
        };
        let (cpu, is_ahead) = (*cpu, ahead >= behind);
        let (mut pairs, mut late) = (Vec::new(), 0);
        disagree.retain(|(one, other), of_two| {
            let is_its = if is_ahead { *one == cpu } else { *other == cpu };
            if is_its {
                pairs.extend(of_two.iter().filter_map(|of_two| of_two.latest));
                late += of_two.iter().map(|of_two| of_two.late).sum::<u64>();
            }
            !is_its
        });
        pairs.sort_by_key(|pair: &Pair| {
            let by = Reverse(pair.ahead_ns());
            (by, pair.readied_ns, pair.thread_id, pair.cpu)
        });
        pairs.truncate(KEPT);
        let by_ns = pairs.first().map_or(0, Pair::ahead_ns);
        if late >= SEVERAL {
            skews.push(ClockSkew {
                cpu,
                is_ahead,
                by_ns,
                pairs,
            });
        }
    }
    skews.sort_by_key(|skew| (Reverse(skew.by_ns), skew.cpu));
    skews
}

/// How far each clock is behind each other at most; negative where it is ahead for certain.
struct Bounds {
    cpus: Vec<u16>,
    /// Rows are the clock that made ready, columns the one that ran. Nothing bounds what is `MAX`.
    ns: Vec<i64>,
}

impl Bounds {
    fn of(of_two: &BTreeMap<(u16, u16), OfTwo>) -> Bounds {
        let both = of_two.keys().flat_map(|(one, other)| [*one, *other]);
        let mut cpus: Vec<u16> = both.collect();
        cpus.sort_unstable();
        cpus.dedup();
        let count = cpus.len();
        let mut bounds = Bounds {
            ns: vec![i64::MAX; count * count],
            cpus,
        };
        for place in 0..count {
            bounds.ns[place * count + place] = 0;
        }
        for pair in of_two.values().filter_map(OfTwo::bound) {
            let (from, to) = (bounds.place(pair.readying_cpu), bounds.place(pair.cpu));
            bounds.ns[from * count + to] = -pair.ahead_ns();
        }
        bounds.close();
        bounds
    }

    fn place(&self, cpu: u16) -> usize {
        self.cpus.binary_search(&cpu).unwrap_or(0)
    }

    /// Two clocks are bounded by way of a third, too (Floyd and Warshall).
    fn close(&mut self) {
        let count = self.cpus.len();
        for by in 0..count {
            for from in 0..count {
                let first = self.ns[from * count + by];
                if first == i64::MAX {
                    continue;
                }
                for to in 0..count {
                    let second = self.ns[by * count + to];
                    if second != i64::MAX {
                        let bound = &mut self.ns[from * count + to];
                        *bound = (*bound).min(first.saturating_add(second));
                    }
                }
            }
        }
    }

    /// Whether no pairs contradict each other.
    fn agree(&self) -> bool {
        let count = self.cpus.len();
        (0..count).all(|place| self.ns[place * count + place] >= 0)
    }

    /// Whether a clock is ahead of another for certain: not only for want of pairs the other way
    /// round.
    fn is_ahead(&self, one: u16, other: u16) -> bool {
        let (count, one, other) = (self.cpus.len(), self.place(one), self.place(other));
        self.ns[one * count + other] < -DISAGREE_NS && self.ns[other * count + one] != i64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// CPUs wake threads on each other every 10 ms, which run 5 µs later; clocks are off by so much
    /// from some moment on.
    fn pairs(cpus: u16, off: impl Fn(u16, i64) -> i64) -> Pairs {
        let mut pairs = Pairs {
            start_ns: 0,
            width_ns: SHORTEST_NS,
            of_two: FxHashMap::default(),
            threads: FxHashMap::default(),
            is_any_impossible: false,
        };
        for step in 0..1_000 {
            let (one, other) = (step as u16 % cpus, (step / 7 + 1) as u16 % cpus);
            let at = step * 10 * MS;
            let (readied_ns, start_ns) = (at + off(one, at), at + 5_000 + off(other, at));
            pairs.pair(8, (readied_ns, one), (start_ns, other));
        }
        pairs
    }

    fn found(pairs: Pairs) -> Vec<(u16, bool, i64)> {
        let skews = pairs.skews().into_iter();
        skews.map(|s| (s.cpu, s.is_ahead, s.by_ns)).collect()
    }

    #[test]
    fn clocks_that_agree_are_not_told() {
        assert_eq!(found(pairs(8, |_, _| 0)), []);
        assert_eq!(found(pairs(8, |cpu, _| 20_000 * i64::from(cpu == 3))), []);
    }

    #[test]
    fn clocks_ahead_and_behind_are_told() {
        let off = |cpu, _| match cpu {
            3 => 20 * MS,
            4 => 5 * MS,
            _ => 0,
        };
        let ahead = [(3, true, 20 * MS - 5_000), (4, true, 5 * MS - 5_000)];
        assert_eq!(found(pairs(8, off)), ahead);
        let behind = found(pairs(8, |cpu, _| -2 * MS * i64::from(cpu == 6)));
        assert_eq!(behind, [(6, false, 2 * MS - 5_000)]);
    }

    #[test]
    fn a_clock_that_jumps_is_ahead_from_then_on() {
        let jumps = |cpu, at| 7 * MS * i64::from(cpu == 2 && at > 6_100 * MS);
        let found = pairs(4, jumps).skews();
        assert_eq!((found.len(), found[0].cpu, found[0].is_ahead), (1, 2, true));
        assert!(found[0].pairs.iter().all(|pair| pair.start_ns > 6_100 * MS));
    }

    /// Where no event tells what made a thread ready, the next seems to come too late.
    #[test]
    fn a_missing_event_is_no_disagreement() {
        let mut pairs = pairs(4, |_, _| 0);
        for (from, to) in [(0, 1), (2, 1), (1, 3)] {
            pairs.pair(9, (5_060 * MS, from), (5_000 * MS, to));
        }
        assert_eq!(found(pairs), []);
    }
}
