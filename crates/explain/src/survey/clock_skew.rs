//! By how much the processors' clocks disagree.
//!
//! A thread runs after it was made ready. Where the event that made it ready, of one processor, is
//! later than the run that it led to, of another, the one's clock is ahead. Each such pair bounds the
//! difference of two clocks from one side, and pairs the other way round from the other side: a
//! difference is told only where both agree. Where events are missing, the next one seems to be late:
//! between two processors the most pairs tell.

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
    /// Of each thread: events that made it ready and led to no run yet, runs that none led to yet.
    threads: FxHashMap<u32, Pending>,
    is_any_impossible: bool,
}

#[derive(Default)]
struct Pending {
    /// When, and by which CPU.
    readied: VecDeque<(i64, u16)>,
    ran: VecDeque<(i64, u16)>,
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
                // The events before the run's end, and then the run.
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
                while *next < ready.len() && ready.time_ns[*next] < until {
                    let (time_ns, cpu) = (ready.time_ns[*next], ready.cpu[*next]);
                    self.readied(ready.thread_id[*next], time_ns, cpu);
                    *next += 1;
                }
                if *next == ready.len() {
                    continue;
                }
                // Runs that end before the next event, in one go.
                let upto = ready.time_ns[*next];
                while row < view.len() && view.end_ns[row] <= upto {
                    self.run(&view, row);
                    row += 1;
                }
            }
        }
        Ok(())
    }

    fn readied(&mut self, thread_id: u32, time_ns: i64, cpu: u16) {
        let pending = self.threads.entry(thread_id).or_default();
        while let Some((start_ns, on_cpu)) = pending.ran.pop_front() {
            if time_ns.saturating_sub(start_ns) < STALE_NS {
                self.pair(Pair {
                    thread_id,
                    readied_ns: time_ns,
                    readying_cpu: cpu,
                    start_ns,
                    cpu: on_cpu,
                });
                return;
            }
        }
        pending.readied.push_back((time_ns, cpu));
    }

    fn run(&mut self, view: &CpuRunsView<'_>, row: usize) {
        let (thread_id, start_ns, cpu) = (view.thread_id[row], view.start_ns[row], view.cpu[row]);
        if thread_id == 0 {
            return;
        }
        let pending = self.threads.entry(thread_id).or_default();
        // Of its first run nothing is known: most threads waited before.
        if view
            .previous_state
            .get(row)
            .is_some_and(|state| state != WAITING)
        {
            return;
        }
        while let Some((readied_ns, readying_cpu)) = pending.readied.pop_front() {
            if start_ns.saturating_sub(readied_ns) < STALE_NS {
                self.pair(Pair {
                    thread_id,
                    readied_ns,
                    readying_cpu,
                    start_ns,
                    cpu,
                });
                return;
            }
        }
        pending.ran.push_back((start_ns, cpu));
    }

    fn pair(&mut self, pair: Pair) {
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
        let mut open = VecDeque::from([0..last + 1]);
        let mut skews: Vec<ClockSkew> = Vec::new();
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
            let pairs: Vec<Pair> = of_two.values().filter_map(OfTwo::bound).collect();
            let found = match is_mixed && range.len() > 1 {
                true => None,
                false => Bounds::of(&pairs).skews(&pairs),
            };
            match found {
                Some(mut found) => {
                    found.retain(|skew| late(&of_two, skew) >= SEVERAL);
                    found.into_iter().for_each(|skew| add(&mut skews, skew));
                }
                None if range.len() > 1 => {
                    let middle = range.start.midpoint(range.end);
                    open.extend([range.start..middle, middle..range.end]);
                }
                None => {}
            }
        }
        skews.sort_by_key(|skew| (std::cmp::Reverse(skew.by_ns), skew.cpu));
        skews
    }
}

/// How many pairs show it.
fn late(of_two: &BTreeMap<(u16, u16), OfTwo>, skew: &ClockSkew) -> u64 {
    let of_it = of_two
        .iter()
        .filter(|((one, other), _)| match skew.is_ahead {
            true => *one == skew.cpu,
            false => *other == skew.cpu,
        });
    of_it.map(|(_, pairs)| pairs.late).sum()
}

/// Joins what was found at several times.
fn add(skews: &mut Vec<ClockSkew>, skew: ClockSkew) {
    let mut known = skews.iter_mut();
    let known = known.find(|known| known.cpu == skew.cpu && known.is_ahead == skew.is_ahead);
    let Some(known) = known else {
        skews.push(skew);
        return;
    };
    known.by_ns = known.by_ns.max(skew.by_ns);
    known.pairs.extend(skew.pairs);
    sort(&mut known.pairs);
}

fn sort(pairs: &mut Vec<Pair>) {
    pairs.sort_by_key(|pair| {
        let by = std::cmp::Reverse(pair.ahead_ns());
        (by, pair.readied_ns, pair.thread_id, pair.cpu)
    });
    pairs.truncate(KEPT);
}

/// How far each clock is behind each other at most; negative where it is ahead for certain.
struct Bounds {
    cpus: Vec<u16>,
    /// Rows are the clock that made ready, columns the one that ran. Nothing bounds what is `MAX`.
    ns: Vec<i64>,
}

impl Bounds {
    fn of(pairs: &[Pair]) -> Bounds {
        let both = pairs.iter().flat_map(|pair| [pair.readying_cpu, pair.cpu]);
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
        for pair in pairs {
            let (from, to) = (bounds.place(pair.readying_cpu), bounds.place(pair.cpu));
            let bound = &mut bounds.ns[from * count + to];
            *bound = (*bound).min(-pair.ahead_ns());
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

    /// The clocks that are ahead of or behind half of the others or more; `None` if pairs
    /// contradict each other.
    fn skews(&self, pairs: &[Pair]) -> Option<Vec<ClockSkew>> {
        let count = self.cpus.len();
        if (0..count).any(|place| self.ns[place * count + place] < 0) {
            return None;
        }
        let is_ahead = |one: usize, other: usize| {
            self.ns[one * count + other] < -DISAGREE_NS && self.ns[other * count + one] != i64::MAX
        };
        let mut skews = Vec::new();
        for place in 0..count {
            let others = (0..count).filter(|other| *other != place);
            let ahead_of = others.clone().filter(|other| is_ahead(place, *other));
            let behind = others.filter(|other| is_ahead(*other, place));
            let is_half = |of: usize| of * 2 + 1 >= count;
            let (is_ahead_of, is_behind) = (is_half(ahead_of.count()), is_half(behind.count()));
            // Of two clocks, none is the right one: the one ahead is named.
            if !is_ahead_of && (!is_behind || count == 2) {
                continue;
            }
            let cpu = self.cpus[place];
            let of_it = |pair: &&Pair| match is_ahead_of {
                true => pair.readying_cpu == cpu,
                false => pair.cpu == cpu,
            };
            let shows = |pair: &&Pair| of_it(pair) && pair.ahead_ns() > DISAGREE_NS;
            let mut pairs: Vec<Pair> = pairs.iter().filter(shows).copied().collect();
            sort(&mut pairs);
            if let Some(most) = pairs.first() {
                skews.push(ClockSkew {
                    cpu,
                    is_ahead: is_ahead_of,
                    by_ns: most.ahead_ns(),
                    pairs,
                });
            }
        }
        Some(skews)
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
            pairs.pair(Pair {
                thread_id: 8,
                readied_ns: at + off(one, at),
                readying_cpu: one,
                start_ns: at + 5_000 + off(other, at),
                cpu: other,
            });
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
            pairs.pair(Pair {
                thread_id: 9,
                readied_ns: 5_060 * MS,
                readying_cpu: from,
                start_ns: 5_000 * MS,
                cpu: to,
            });
        }
        assert_eq!(found(pairs), []);
    }
}
