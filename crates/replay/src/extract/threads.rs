//! Waits of threads and their ends, and the steps of threads.

use std::collections::BTreeSet;
use std::ops::Range;

use explain::{Reader, SLEEP_REASONS, is_kernel};
use rustc_hash::FxHashMap;
use sim::replay::{self, Step, Thread, Wait as End};
use tables::{PrioritiesView, ProcessFreezesView, StoreError, Table, ThreadsView};

use super::disks::Requests;
use super::interrupts::Interrupts;
use super::rows::{After, Rows, Run, Wake};
use super::sleeps::Sleeps;
use crate::recorded_workload::{Lack, Record};
use crate::summary::Summary;

/// Wait reasons of a suspended or frozen thread: `Suspended` and `WrSuspended`.
const SUSPENDED: [u8; 2] = [5, 12];
/// Wait reason of a thread that a cap of its group stopped: `WrCpuRateControl`.
const RATE_CONTROL: u8 = 24;

/// Facts about threads from other tables than `cpu_runs`.
#[derive(Debug, Default)]
pub(super) struct ThreadFacts {
    base: Vec<Option<u8>>,
    /// Processors of the machine on which each thread may run.
    affinity: Vec<Option<Vec<u16>>>,
    /// Number of processors of the machine.
    cpus: u16,
    names: Vec<Option<String>>,
    /// Threads whose affinity changed.
    moved: BTreeSet<u32>,
    /// First boost of each thread that starved.
    starved_ns: FxHashMap<u32, u64>,
    /// Processes that were frozen.
    frozen: BTreeSet<u32>,
    idle_class: Vec<bool>,
    kernel: BTreeSet<u32>,
}

impl ThreadFacts {
    pub(super) fn read(
        reader: &Reader<'_>,
        rows: &Rows,
        cpus: u16,
    ) -> Result<ThreadFacts, StoreError> {
        let threads = rows.threads.len();
        let mut known = ThreadFacts {
            base: vec![None; threads],
            affinity: vec![None; threads],
            cpus,
            names: vec![None; threads],
            ..ThreadFacts::default()
        };
        let by_row: FxHashMap<u32, usize> = (rows.threads.iter().enumerate())
            .filter_map(|(n, (row, ..))| Some(((*row)?, n)))
            .collect();
        let table = reader.table(Table::Threads)?;
        let columns = ["thread_id", "base_priority", "affinity", "name"];
        let mut first = 0;
        for chunk in 0..table.chunks().len() {
            reader.check()?;
            let batch = table.read(chunk, &columns)?;
            let view = ThreadsView::new(&batch)?;
            for row in 0..view.len() {
                if let Some(n) = by_row.get(&(first + row as u32)) {
                    known.base[*n] = view.base_priority.get(row).filter(|base| *base < 32);
                    known.affinity[*n] =
                        view.affinity.get(row).and_then(|mask| cpus_of(mask, cpus));
                    known.names[*n] = view.name.get(row).map(str::to_owned);
                }
            }
            first += view.len() as u32;
        }
        let table = reader.table(Table::Priorities)?;
        let columns = ["time_ns", "kind", "thread_id", "thread_row"];
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = PrioritiesView::new(&batch)?;
            for row in 0..view.len() {
                let thread = rows.thread_index(view.thread_row.get(row), view.thread_id[row]);
                let Some(thread) = thread else { continue };
                match view.kind.get(row) {
                    Some("affinity") => {
                        known.moved.insert(thread);
                    }
                    Some("anti_starvation_boost") => {
                        let at_ns = view.time_ns[row].max(0) as u64;
                        known.starved_ns.entry(thread).or_insert(at_ns);
                    }
                    _ => {}
                }
            }
        }
        let table = reader.table(Table::ProcessFreezes)?;
        for chunk in 0..table.chunks().len() {
            let batch = table.read(chunk, &["process_id", "process_row"])?;
            let view = ProcessFreezesView::new(&batch)?;
            for row in 0..view.len() {
                let process = rows.process(view.process_row.get(row), Some(view.process_id[row]));
                known.frozen.extend(process);
            }
        }
        known.idle_class = vec![true; rows.processes.len()];
        for ((_, _, process), base) in rows.threads.iter().zip(&known.base) {
            known.idle_class[*process as usize] &= base.is_some_and(|base| base <= 4);
        }
        known.kernel = (0..reader.names.images.base_address.len() as u32)
            .filter(|row| reader.names.module(Some(*row)).is_some_and(is_kernel))
            .collect();
        Ok(known)
    }

    pub(super) fn is_idle_class(&self, process: usize) -> bool {
        self.idle_class.get(process).copied().unwrap_or(false)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// Index of the run before the wait. `None` if the thread waited when the recording began.
    pub(super) after_run: Option<usize>,
    pub(super) out_ns: u64,
    pub(super) reason: u8,
    pub(super) wake: Option<Wake>,
    pub(super) ended: WaitEnd,
}

/// Cause of a wait's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// Another thread.
    Thread,
    /// The clock.
    Clock,
    /// The disk request that completed in this DPC. `Requests::into_workload` replaces it by `Request`.
    Disk(u32),
    /// The disk request with this index.
    Request(u32),
    /// An event outside of the model, at its recorded time.
    Outside,
    /// No event, because the wait lasts until the end of the recording.
    Never,
}

/// Waits of all threads.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Waits of each thread, in order.
    pub(super) per_thread: Vec<Vec<Wait>>,
    /// Wakes by each thread, in order.
    by_thread: Vec<Vec<(u64, replay::Wake)>>,
    /// Wakes by routines.
    pub(super) in_routines: FxHashMap<u32, Vec<(u64, replay::Wake)>>,
    /// Wakes outside of routines: time, processor and wake.
    pub(super) outside: Vec<(u64, u16, replay::Wake)>,
    /// Number of waits that the clock ended outside of logged routines, and number of all waits that the clock ended.
    pub(super) clock: (u64, u64),
    /// Number of waits that events outside of the model ended. The replay keeps the times of these events.
    pub(super) open: u64,
}

impl Waits {
    /// Finds all waits, and the cause of each end.
    pub(super) fn find(
        rows: &Rows,
        interrupts: &Interrupts,
        requests: &Requests,
        known: &ThreadFacts,
    ) -> Waits {
        let mut waits = Waits {
            by_thread: vec![Vec::new(); rows.threads.len()],
            ..Waits::default()
        };
        for thread in 0..rows.threads.len() {
            let list = waits.of_thread(thread as u32, rows, interrupts, requests, known);
            waits.per_thread.push(list);
        }
        for wakes in &mut waits.by_thread {
            wakes.sort_by_key(|(at_ns, _)| *at_ns);
        }
        for wakes in waits.in_routines.values_mut() {
            wakes.sort_by_key(|(at_ns, _)| *at_ns);
        }
        waits
    }

    fn of_thread(
        &mut self,
        thread: u32,
        rows: &Rows,
        interrupts: &Interrupts,
        requests: &Requests,
        known: &ThreadFacts,
    ) -> Vec<Wait> {
        let n = thread as usize;
        let (runs, wakes) = (&rows.runs[n], &rows.wakes[n]);
        let process = rows.threads[n].2;
        let mut list: Vec<Wait> = Vec::new();
        let mut next_wake = 0;
        let mut take = |until_ns: u64| {
            let mut last = None;
            while let Some(wake) = wakes.get(next_wake).filter(|wake| wake.at_ns <= until_ns) {
                last = Some(*wake);
                next_wake += 1;
            }
            last
        };
        let until = |run: usize| runs.get(run).map_or(u64::MAX, |run| run.start_ns);
        let first = take(until(0));
        if let Some(wake) = first {
            let wait = Wait {
                after_run: None,
                out_ns: 0,
                reason: 0,
                wake: Some(wake),
                ended: WaitEnd::Outside,
            };
            list.push(wait);
        }
        for (at, run) in runs.iter().enumerate() {
            if run.after != After::Waiting {
                continue;
            }
            let wake = take(until(at + 1));
            if SUSPENDED.contains(&run.wait_reason) && known.frozen.contains(&process) {
                continue;
            }
            list.push(Wait {
                after_run: Some(at),
                out_ns: run.end_ns,
                reason: run.wait_reason,
                wake,
                ended: WaitEnd::Outside,
            });
        }
        for (number, wait) in list.iter_mut().enumerate() {
            let Some(wake) = wait.wake else {
                wait.ended = WaitEnd::Never;
                continue;
            };
            let token = replay::Wake {
                thread,
                wait: number as u32,
                boost: wake.boost,
            };
            if let Some(by) = wake.by {
                wait.ended = WaitEnd::Thread;
                self.by_thread[by as usize].push((wake.at_ns, token));
                continue;
            }
            let routine = if wake.by_dpc {
                interrupts.at(wake.cpu, wake.at_ns)
            } else {
                None
            };
            let is_first = wait.after_run.is_none();
            let is_clock = wake.by_dpc && wake.boost == 0 && {
                routine.is_none_or(|routine| interrupts.is_timer(routine, &known.kernel))
            };
            match routine {
                _ if !is_first && (SLEEP_REASONS.contains(&wait.reason) || is_clock) => {
                    wait.ended = WaitEnd::Clock;
                    self.clock.0 += u64::from(routine.is_none());
                    self.clock.1 += 1;
                }
                Some(dpc) if !is_first && requests.ended(dpc, thread, wait.out_ns) => {
                    wait.ended = WaitEnd::Disk(dpc);
                }
                Some(routine) => {
                    self.open += 1;
                    let wakes = self.in_routines.entry(routine).or_default();
                    wakes.push((wake.at_ns, token));
                }
                None => {
                    self.open += 1;
                    self.outside.push((wake.at_ns, wake.cpu, token));
                }
            }
        }
        list
    }
}

/// Returns the threads with their steps, and the recorded use of the processors by each of them.
pub(super) fn build(
    rows: &Rows,
    waits: &Waits,
    sleeps: &Sleeps,
    interrupts: &Interrupts,
    known: &ThreadFacts,
    measured: Option<&Range<u64>>,
) -> (Vec<Thread>, Vec<Record>) {
    let mut threads = Vec::new();
    let mut records = Vec::new();
    for n in 0..rows.threads.len() {
        let (_, id, process) = rows.threads[n];
        let runs = &rows.runs[n];
        let list = &waits.per_thread[n];
        let first = runs.first();
        let base = (known.base[n]).or_else(|| runs.iter().find_map(|run| run.base));
        let is_waiting = list.first().is_some_and(|wait| wait.after_run.is_none());
        let mut steps = Steps::default();
        if is_waiting {
            steps.list.push(Step::Wait(End::Wake));
        }
        let ends = steps.add(n, rows, waits, sleeps, interrupts, known, base);
        threads.push(Thread {
            id,
            name: known.names[n].clone(),
            process,
            base_priority: base.unwrap_or(8),
            // A list of all processors is left out.
            affinity: (known.affinity[n].clone())
                .filter(|some| some.len() < usize::from(known.cpus)),
            ideal: (runs.iter().find_map(|run| run.ideal)).map_or(0, u16::from),
            first_cpu: first.map_or(0, |run| run.cpu),
            starts_ns: if is_waiting {
                None
            } else {
                Some(first.map_or(0, |run| if run.is_begun { run.start_ns } else { 0 }))
            },
            repeats: !ends,
            steps: steps.list,
        });
        let facts = (rows, waits, interrupts, known);
        let mut used = record(n, facts, base, measured);
        if known.affinity[n].is_none() {
            used.lacks.push(Lack::Affinity);
        }
        records.push(used);
    }
    (threads, records)
}

/// Returns the processors of a mask that the machine has, or `None` if it has none of them.
fn cpus_of(mask: u64, cpus: u16) -> Option<Vec<u16>> {
    let allowed: Vec<u16> = (0..cpus.min(64))
        .filter(|cpu| mask >> cpu & 1 != 0)
        .collect();
    (!allowed.is_empty()).then_some(allowed)
}

/// Steps of a thread under construction.
#[derive(Debug, Default)]
struct Steps {
    list: Vec<Step>,
    pending_ns: u64,
}

impl Steps {
    fn push(&mut self, step: Step) {
        self.flush();
        self.list.push(step);
    }

    /// Adds the processor time since the last step.
    fn flush(&mut self) {
        if self.pending_ns > 0 {
            self.list.push(Step::Run(self.pending_ns));
            self.pending_ns = 0;
        }
    }

    /// Adds the steps of a thread. Returns true if the thread ended.
    #[expect(clippy::too_many_arguments, reason = "the tables of one thread")]
    fn add(
        &mut self,
        n: usize,
        rows: &Rows,
        waits: &Waits,
        sleeps: &Sleeps,
        interrupts: &Interrupts,
        known: &ThreadFacts,
        base: Option<u8>,
    ) -> bool {
        let (runs, list) = (&rows.runs[n], &waits.per_thread[n]);
        let mut wakes = waits.by_thread[n].iter().peekable();
        let mut next_wait = list.partition_point(|wait| wait.after_run.is_none());
        let mut base = base.unwrap_or(8);
        let mut has_ended = false;
        let mut burst_ns = 0;
        for (at, run) in runs.iter().enumerate() {
            burst_ns += interrupts.net_ns(run.cpu, run.start_ns, run.end_ns);
            if let Some(now) = base_of(run, known.starved_ns.get(&(n as u32)))
                && now != base
            {
                base = now;
                self.push(Step::Base(base));
            }
            let mut from_ns = run.start_ns;
            while let Some((at_ns, wake)) = wakes.next_if(|(at_ns, _)| *at_ns <= run.end_ns) {
                let to_ns = (*at_ns).max(from_ns);
                self.pending_ns += interrupts.net_ns(run.cpu, from_ns, to_ns);
                self.push(Step::Wake(*wake));
                from_ns = to_ns;
            }
            self.pending_ns += interrupts.net_ns(run.cpu, from_ns, run.end_ns);
            if run.after == After::Ended {
                self.push(Step::Exit);
                has_ended = true;
            }
            let Some(wait) = list
                .get(next_wait)
                .filter(|wait| wait.after_run == Some(at))
            else {
                continue;
            };
            self.push(Step::Wait(match wait.ended {
                WaitEnd::Clock => End::Sleep(sleeps.asked_ns(n, next_wait)),
                WaitEnd::Request(request) => End::Disk(request),
                WaitEnd::Never if SLEEP_REASONS.contains(&wait.reason) => {
                    End::Sleep(sleeps.asked_ns(n, next_wait))
                }
                WaitEnd::Outside => {
                    let woken_ns = wait.wake.map_or(wait.out_ns, |wake| wake.at_ns);
                    End::Event(woken_ns.saturating_sub(wait.out_ns))
                }
                _ => End::Wake,
            }));
            next_wait += 1;
            burst_ns = 0;
        }
        if !has_ended {
            // The recording ends within a burst, so the rest of the burst is unknown. Without a rest, processors would
            // be idle in the replay as soon as one of several threads has used its recorded time. The guess is that
            // the burst lasts twice as long as recorded.
            self.pending_ns += burst_ns;
        }
        self.flush();
        has_ended
    }
}

/// Returns the base priority of a thread at the start of a run. Returns `None` if it is unknown. After the boost of a
/// starving thread, 15 is also unknown, because the trace does not separate this boost from the base priority.
fn base_of(run: &Run, starved_ns: Option<&u64>) -> Option<u8> {
    let base = run.base.filter(|base| (1..32).contains(base))?;
    let is_starved = base == 15 && starved_ns.is_some_and(|at_ns| *at_ns <= run.start_ns);
    (!is_starved).then_some(base)
}

/// Returns the time from which on a thread is ready at `at_ns`. Returns `None` if it runs, waits or has ended then.
fn ready_since(runs: &[Run], wakes: &[Wake], at_ns: u64) -> Option<u64> {
    let begun = runs.partition_point(|run| run.start_ns < at_ns);
    let mut waits = (None, 0);
    if let Some(run) = runs[..begun].last() {
        match run.after {
            _ if run.end_ns >= at_ns => return None,
            After::Ready => return Some(run.end_ns),
            After::Running | After::Ended => return None,
            After::Waiting => waits = (Some(run.start_ns), run.end_ns),
        }
    }
    let (from_ns, out_ns) = waits;
    let wake = wakes.iter().rev().find(|wake| wake.at_ns < at_ns)?;
    (Some(wake.at_ns) > from_ns).then(|| wake.at_ns.max(out_ns))
}

/// Returns the recorded use of the processors by a thread, and the reasons why the replay cannot reproduce it.
fn record(
    n: usize,
    (rows, waits, interrupts, known): (&Rows, &Waits, &Interrupts, &ThreadFacts),
    base: Option<u8>,
    measured: Option<&Range<u64>>,
) -> Record {
    let is_measured = |at_ns: u64| measured.is_none_or(|range| range.contains(&at_ns));
    let (from_ns, to_ns) = measured.map_or((0, rows.end_ns), |range| {
        (range.start, range.end.min(rows.end_ns))
    });
    let (runs, wakes) = (&rows.runs[n], &rows.wakes[n]);
    let mut lacks = BTreeSet::new();
    if base.is_none() {
        lacks.insert(Lack::Priority);
    }
    if runs.is_empty() {
        lacks.insert(Lack::NeverRan);
    }
    if runs.iter().any(|run| run.is_doubtful) {
        lacks.insert(Lack::Doubtful);
    }
    if wakes.iter().any(|wake| wake.is_paged_out) {
        lacks.insert(Lack::PagedOut);
    }
    if known.moved.contains(&(n as u32)) {
        lacks.insert(Lack::AffinityChanges);
    }
    let is_capped = |run: &Run| run.after == After::Waiting && run.wait_reason == RATE_CONTROL;
    if runs.iter().any(is_capped) {
        lacks.insert(Lack::RateCap);
    }
    let is_frozen = known.frozen.contains(&rows.threads[n].2);
    let is_suspended =
        |run: &Run| run.after == After::Waiting && SUSPENDED.contains(&run.wait_reason);
    if !is_frozen && runs.iter().any(is_suspended) {
        lacks.insert(Lack::Suspended);
    }
    let begun = runs.iter().filter(|run| is_measured(run.start_ns));
    let mut ready: Vec<u64> = begun.filter_map(|run| run.ready_ns).collect();
    ready.extend(ready_since(runs, wakes, to_ns).map(|since_ns| to_ns - since_ns));
    let cpu = runs.iter();
    let cpu_ns = cpu.map(|run| {
        let (start_ns, end_ns) = (run.start_ns.max(from_ns), run.end_ns.min(to_ns));
        interrupts.net_ns(run.cpu, start_ns.min(end_ns), end_ns)
    });
    let mut response = Vec::new();
    let last = runs.last().filter(|run| run.after == After::Ended);
    let last_ns = last.map_or(u64::MAX, |run| run.end_ns);
    let ends = waits.per_thread[n].iter().skip(1).map(|wait| wait.out_ns);
    for (wait, end_ns) in waits.per_thread[n].iter().zip(ends.chain([last_ns])) {
        let Some(wake) = wait.wake else { continue };
        let since_ns = wake.at_ns.max(wait.out_ns);
        if since_ns < to_ns && end_ns >= from_ns {
            response.push(end_ns.min(to_ns).saturating_sub(since_ns));
        }
    }
    Record {
        summary: Summary::new(cpu_ns.sum(), ready, response),
        lacks: lacks.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_cut_to_the_machine() {
        assert_eq!(cpus_of(0b101, 4), Some(vec![0, 2]));
        assert_eq!(cpus_of(u64::MAX, 2), Some(vec![0, 1]));
        assert_eq!(cpus_of(1 << 63, 64), Some(vec![63]));
        assert_eq!(cpus_of(0b11_0000, 4), None);
    }
}
