//! How long threads that could run waited for a CPU.
//!
//! A thread's ready time ends when it is switched in. It begins with its last ReadyThread event
//! after it was switched out; or, if it was switched out while it could still run (preempted, or
//! at the end of its quantum), with that switch itself. A thread that waited for something else
//! and whose ReadyThread event is not in the trace has no known ready time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use rustc_hash::FxHashMap;
use serde::Serialize;
use tables::{ContextSwitches, ReadyThreads, Tables};

use super::names::{Names, Process};
use super::{TOP, follows, largest};
use crate::watch::{self, Interrupted};

/// Thread states in which a thread can run: ready, standby, deferred ready.
const RUNNABLE: [u8; 3] = [1, 3, 7];

/// Waits for a CPU.
#[derive(Debug, Serialize)]
pub(crate) struct Waits {
    /// The trace holds ReadyThread events. Without them only the waits of threads that lost their
    /// CPU are known.
    pub(crate) has_ready_events: bool,
    /// Waits whose length is known.
    pub(crate) known: u64,
    /// Waits whose length is unknown for want of a ReadyThread event.
    pub(crate) unknown: u64,
    /// Waits left out because switches are missing on the CPU while they lasted.
    pub(crate) in_gaps: u64,
    /// Sum of the known waits.
    pub(crate) total_ns: i64,
    /// The longest waits.
    pub(crate) longest: Vec<Wait>,
    /// The threads that waited longest in sum.
    pub(crate) threads: Vec<ThreadWaits>,
}

/// One wait of a thread that could run.
#[derive(Debug, Serialize)]
pub(crate) struct Wait {
    /// The thread's process.
    pub(crate) process: Process,
    /// The thread.
    pub(crate) thread_id: u32,
    /// When it could run, in nanoseconds since the trace's start.
    pub(crate) ready_ns: i64,
    /// How long it waited.
    pub(crate) wait_ns: i64,
    /// The CPU on which it ran at last.
    pub(crate) cpu: u16,
    /// It was made ready by another thread or a DPC; otherwise it had lost its CPU.
    pub(crate) readied: bool,
    /// Who made it ready.
    pub(crate) readied_by: Option<ReadiedBy>,
    /// Its priority when it ran at last.
    pub(crate) priority: i8,
    /// Its rank, if recorded: when the run that followed ended, or else when it was last switched
    /// out.
    pub(crate) rank: Option<u8>,
    /// What ran on that CPU meanwhile, most first.
    pub(crate) meanwhile: Vec<Meanwhile>,
}

/// Who made a thread ready.
#[derive(Debug, Serialize)]
pub(crate) struct ReadiedBy {
    /// A DPC did; the thread is only the one that it interrupted.
    pub(crate) dpc: bool,
    /// The thread that ran on the CPU, if that is known.
    pub(crate) thread_id: Option<u32>,
    /// Its process.
    pub(crate) process: Option<Process>,
}

/// A process that ran on the CPU a thread waited for.
#[derive(Debug, Serialize)]
pub(crate) struct Meanwhile {
    /// The process; the idle process if the CPU was idle.
    pub(crate) process: Process,
    /// How long.
    pub(crate) ran_ns: i64,
    /// The lowest priority its threads had.
    pub(crate) lowest_priority: i8,
}

/// A thread's waits in sum.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadWaits {
    /// The thread's process.
    pub(crate) process: Process,
    /// The thread.
    pub(crate) thread_id: u32,
    /// Known waits.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) total_ns: i64,
    /// The longest.
    pub(crate) longest_ns: i64,
}

/// What is known of a thread that is not running.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// When and in which state it was last switched out.
    out: Option<(i64, u8)>,
    rank: Option<u8>,
    /// When it was last made ready, and by whom.
    ready: Option<(i64, Readier)>,
    last_in_ns: Option<i64>,
    count: u64,
    total_ns: i64,
    longest_ns: i64,
}

/// Who made a thread ready, before names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Readier {
    dpc: bool,
    thread_id: Option<u32>,
}

/// A wait that may be among the longest, before names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    wait_ns: i64,
    ready_ns: i64,
    thread_id: u32,
    table: usize,
    row: usize,
    readier: Option<Readier>,
    rank: Option<u8>,
}

/// # Errors
/// If the user stopped it.
pub(super) fn read(tables: &Tables, names: &Names<'_>) -> Result<Option<Waits>, Interrupted> {
    /// Events between two looks at Ctrl-C.
    const STEP: u64 = 1 << 16;
    if tables.context_switches.is_empty() {
        return Ok(None);
    }
    let mut threads: FxHashMap<u32, Thread> = FxHashMap::default();
    let mut longest: BinaryHeap<Reverse<Candidate>> = BinaryHeap::new();
    let gaps: Vec<Vec<i64>> = tables.context_switches.iter().map(gaps).collect();
    let (mut known, mut unknown, mut in_gaps, mut total) = (0, 0, 0, 0i64);
    let mut merge = Merge::new(&tables.context_switches, &tables.ready_threads);
    // Who runs on each CPU.
    let mut running: FxHashMap<u16, u32> = FxHashMap::default();
    let mut seen = 0u64;
    while let Some(event) = merge.next() {
        if seen.is_multiple_of(STEP) {
            watch::check()?;
        }
        seen += 1;
        match event {
            Event::Ready { table, row } => {
                let ready = &tables.ready_threads[table];
                let thread_id = running.get(&ready.cpu[row]).copied();
                let readier = Readier {
                    dpc: ready.by_dpc[row],
                    thread_id,
                };
                let thread = threads.entry(ready.thread_id[row]).or_default();
                thread.ready = Some((ready.time_ns[row], readier));
            }
            Event::Switch { table, row } => {
                let switches = &tables.context_switches[table];
                let time = switches.time_ns[row];
                let (old, new) = (switches.old_thread_id[row], switches.new_thread_id[row]);
                running.insert(switches.cpu[row], new);
                if old != 0 {
                    let thread = threads.entry(old).or_default();
                    thread.out = Some((time, switches.old_state[row]));
                    thread.rank = switches.old_rank.get(row);
                }
                if new == 0 {
                    continue;
                }
                let thread = threads.entry(new).or_default();
                let out = thread.out.take();
                // A ready event just before the switch-out belongs to this wait too: the other
                // CPU was quicker.
                let ready = thread
                    .ready
                    .take()
                    .filter(|(ready, _)| thread.last_in_ns.is_none_or(|last| *ready >= last));
                thread.last_in_ns = Some(time);
                let (since, readier) = match (ready, out) {
                    (Some((ready, by)), Some((out, _))) => (ready.max(out), Some(by)),
                    (Some((ready, by)), None) => (ready, Some(by)),
                    (None, Some((out, state))) if RUNNABLE.contains(&state) => (out, None),
                    (None, _) => {
                        unknown += 1;
                        continue;
                    }
                };
                let gap = gaps[table].partition_point(|gap| *gap <= since);
                if gaps[table].get(gap).is_some_and(|gap| *gap <= time) {
                    in_gaps += 1;
                    continue;
                }
                let wait_ns = time.saturating_sub(since);
                known += 1;
                total = total.saturating_add(wait_ns);
                thread.count += 1;
                thread.total_ns = thread.total_ns.saturating_add(wait_ns);
                thread.longest_ns = thread.longest_ns.max(wait_ns);
                let rank = thread.rank;
                let candidate = Candidate {
                    wait_ns,
                    ready_ns: since,
                    thread_id: new,
                    table,
                    row,
                    readier,
                    rank,
                };
                longest.push(Reverse(candidate));
                if longest.len() > TOP {
                    longest.pop();
                }
            }
        }
    }
    let mut candidates: Vec<Candidate> = longest.into_iter().map(|c| c.0).collect();
    candidates.sort_by(|a, b| b.cmp(a));
    let end = tables
        .context_switches
        .iter()
        .filter_map(|s| s.time_ns.last())
        .max()
        .copied();
    let sums = threads
        .into_iter()
        .filter(|(_, t)| t.count > 0)
        .map(|(thread_id, t)| ThreadWaits {
            process: names.owner(thread_id, end.unwrap_or(0)),
            thread_id,
            count: t.count,
            total_ns: t.total_ns,
            longest_ns: t.longest_ns,
        });
    Ok(Some(Waits {
        has_ready_events: !tables.ready_threads.is_empty(),
        known,
        unknown,
        in_gaps,
        total_ns: total,
        longest: candidates
            .into_iter()
            .map(|c| wait(&tables.context_switches, names, c))
            .collect(),
        threads: largest(sums.collect(), |t| (t.total_ns, Reverse(t.thread_id))),
    }))
}

/// Times of the switches that do not fit the one before on their CPU: in between, others are
/// missing.
fn gaps(switches: &ContextSwitches) -> Vec<i64> {
    (1..switches.len())
        .filter(|row| !follows(switches, *row))
        .map(|row| switches.time_ns[row])
        .collect()
}

fn wait(tables: &[ContextSwitches], names: &Names<'_>, of: Candidate) -> Wait {
    let switches = &tables[of.table];
    let time = switches.time_ns[of.row];
    let next = of.row + 1;
    let ended = switches.old_thread_id.get(next) == Some(&of.thread_id);
    let after = ended.then(|| switches.old_rank.get(next)).flatten();
    Wait {
        process: names.owner(of.thread_id, time),
        thread_id: of.thread_id,
        ready_ns: of.ready_ns,
        wait_ns: of.wait_ns,
        cpu: switches.cpu[of.row],
        readied: of.readier.is_some(),
        readied_by: of.readier.map(|by| ReadiedBy {
            dpc: by.dpc,
            thread_id: by.thread_id,
            process: by.thread_id.map(|thread| names.owner(thread, of.ready_ns)),
        }),
        priority: switches.new_priority[of.row],
        rank: after.or(of.rank),
        meanwhile: meanwhile(switches, names, of.ready_ns, of.row),
    }
}

/// Who ran on the CPU from `from` until the switch in `last`.
fn meanwhile(
    switches: &ContextSwitches,
    names: &Names<'_>,
    from: i64,
    last: usize,
) -> Vec<Meanwhile> {
    let first = switches.time_ns.partition_point(|time| *time <= from);
    let mut ran: HashMap<Process, (i64, i8)> = HashMap::new();
    for row in first..=last {
        let begun = if row == 0 {
            from
        } else {
            switches.time_ns[row - 1].max(from)
        };
        let time = switches.time_ns[row].saturating_sub(begun);
        let process = names.owner(switches.old_thread_id[row], begun);
        let priority = switches.old_priority[row];
        let of = ran.entry(process).or_insert((0, priority));
        *of = (of.0.saturating_add(time), of.1.min(priority));
    }
    let ran = ran
        .into_iter()
        .filter(|(_, (ns, _))| *ns > 0)
        .map(|(process, (ran_ns, lowest))| Meanwhile {
            process,
            ran_ns,
            lowest_priority: lowest,
        });
    let mut ran = largest(ran.collect(), |m: &Meanwhile| {
        (m.ran_ns, Reverse(m.process.clone()))
    });
    ran.truncate(3);
    ran
}

enum Event {
    Ready { table: usize, row: usize },
    Switch { table: usize, row: usize },
}

/// Ready events and switches of all CPUs in time order.
struct Merge<'t> {
    switches: &'t [ContextSwitches],
    ready: &'t [ReadyThreads],
    /// Time of the next row of each stream; ready events come before switches of the same time.
    heap: BinaryHeap<Reverse<(i64, bool, usize, usize)>>,
}

impl<'t> Merge<'t> {
    fn new(switches: &'t [ContextSwitches], ready: &'t [ReadyThreads]) -> Merge<'t> {
        let ready_heads = ready
            .iter()
            .enumerate()
            .filter_map(|(i, t)| Some(Reverse((*t.time_ns.first()?, false, i, 0))));
        let switch_heads = switches
            .iter()
            .enumerate()
            .filter_map(|(i, t)| Some(Reverse((*t.time_ns.first()?, true, i, 0))));
        Merge {
            switches,
            ready,
            heap: ready_heads.chain(switch_heads).collect(),
        }
    }

    fn next(&mut self) -> Option<Event> {
        let mut head = self.heap.peek_mut()?;
        let Reverse((_, is_switch, table, row)) = *head;
        let times = if is_switch {
            &self.switches[table].time_ns
        } else {
            &self.ready[table].time_ns
        };
        match times.get(row + 1) {
            Some(next) => *head = Reverse((*next, is_switch, table, row + 1)),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        Some(match is_switch {
            true => Event::Switch { table, row },
            false => Event::Ready { table, row },
        })
    }
}
