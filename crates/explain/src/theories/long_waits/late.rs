//! Late samples of a probe: the parts of each sample's delay, and the cause of the longest wait for a CPU within the
//! delay.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use tables::{CpuRunsView, Identities, InterruptsView, Options, Store, StoreError, Table};
use wording::Sentence;

use crate::chain::cpu_wait;
use crate::chain::path::{Runs, Thread};
use crate::ranges::{overlap, union};
use crate::survey::{self, Wait};
use crate::{Case, Reader, Scope};

/// Assumed maximum length of an interrupt or softirq, in nanoseconds.
const LONGEST_ROUTINE_NS: i64 = 100_000_000;

/// Threads that may have made a sample late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// Thread that took the sample.
    Thread(u32),
    /// Several threads of a process took the sample. Only the thread that was ready without a CPU for the longest time
    /// is examined.
    Process {
        /// Id of the process.
        id: u32,
        /// Id of a thread of the process that did not take the sample.
        except: u32,
    },
}

/// Sample of a probe that was late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Threads that took the sample.
    pub sampler: Sampler,
    /// Time range for which the sample was late, in nanoseconds since the trace's start.
    pub during: Range<i64>,
}

/// Parts of the time for which a sample was late, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Thread that was late.
    pub thread_id: u32,
    /// Time before the thread was woken: the timer was late, or the thread waited for something other than a CPU.
    pub waited_ns: i64,
    /// Time for which the thread was ready without a CPU.
    pub ready_ns: i64,
    /// Time for which the thread ran.
    pub ran_ns: i64,
    /// Part of `ran_ns` for which interrupts and softirqs used the thread's CPU.
    pub interrupted_ns: i64,
    /// Time that the trace does not show.
    pub unknown_ns: i64,
    /// Interrupt or softirq with most time in `interrupted_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted_by: Option<String>,
    /// Longest wait of the thread for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<CpuWait>,
}

/// Wait for a CPU with its cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuWait {
    /// Length in nanoseconds.
    pub ready_ns: i64,
    /// CPU on which the thread ran after the wait.
    pub cpu: u16,
    /// Name of the cause, such as "higher priority"; `None` if no cause explains half of the wait.
    pub cause: Option<&'static str>,
    /// Name and id of the process with most CPU time during the wait.
    pub by: Option<(String, Option<u32>)>,
    /// Clause that states the cause.
    pub because: Sentence,
}

/// Divides the delays of late samples. The result has one entry per sample. An entry is `None` if the trace has no run
/// of the thread after the delay began.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn late_samples(
    store: &Store,
    late: &[Late],
    options: Options<'_>,
) -> Result<Vec<Option<Lateness>>, StoreError> {
    store.make(&crate::tables(), options)?;
    let size = store.info().size_bytes;
    let is_cancelled = || !(options.progress)(size);
    let names = Arc::new(Identities::read(store, Options::default())?);
    let case = Case::read(
        Reader::new(store, names, None, &is_cancelled),
        Scope::default(),
    )?;
    let mut runs = Runs::new(&case)?;
    let mut divided = Vec::new();
    for one in late {
        divided.push(divide(&case, &mut runs, one)?);
    }
    let waits: Vec<Wait> = divided
        .iter()
        .flatten()
        .filter_map(|(_, wait)| *wait)
        .collect();
    let mut causes = FxHashMap::default();
    for examined in cpu_wait::examine(&case, &waits)? {
        let wait = examined.wait;
        let most = examined.most.map(|(row, id)| case.names.process(row, id));
        let by = most.and_then(|most| Some((most.name?.to_owned(), most.id)));
        let cause = CpuWait {
            ready_ns: wait.ready_ns,
            cpu: wait.cpu,
            cause: examined.cause,
            by,
            because: examined.because.into(),
        };
        causes.insert((wait.thread_id, wait.start_ns), cause);
    }
    let complete = |(mut lateness, wait): (Lateness, Option<Wait>)| {
        lateness.wait = wait.and_then(|it| causes.get(&(it.thread_id, it.start_ns)).cloned());
        lateness
    };
    Ok(divided.into_iter().map(|one| one.map(complete)).collect())
}

type DividedWait = (Lateness, Option<Wait>);

fn divide(
    case: &Case<'_>,
    runs: &mut Runs<'_>,
    late: &Late,
) -> Result<Option<DividedWait>, StoreError> {
    let threads = match late.sampler {
        Sampler::Thread(id) => vec![id],
        Sampler::Process { id, except } => threads_of(case, id, except, &late.during)?,
    };
    let mut longest: Option<DividedWait> = None;
    for id in threads {
        let divided = of_thread(case, runs, id, &late.during)?;
        let ready = |one: &DividedWait| one.0.ready_ns;
        if divided.as_ref().map(ready) > longest.as_ref().map(ready) {
            longest = divided;
        }
    }
    Ok(longest)
}

/// Finds the threads of a process that ran, or waited for a CPU, in a time range.
fn threads_of(
    case: &Case<'_>,
    process_id: u32,
    except: u32,
    during: &Range<i64>,
) -> Result<Vec<u32>, StoreError> {
    let table = case.table(Table::CpuRuns)?;
    let columns = ["start_ns", "end_ns", "ready_ns", "thread_id", "process_id"];
    let mut threads = FxHashSet::default();
    for batch in case.batches(&table, during.start..i64::MAX, &columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let since = view.start_ns[row].saturating_sub(view.ready_ns.get(row).unwrap_or(0));
            let is_own =
                view.process_id.get(row) == Some(process_id) && view.thread_id[row] != except;
            if is_own && overlap(&(since..view.end_ns[row]), during).is_some() {
                threads.insert(view.thread_id[row]);
            }
        }
    }
    let mut threads: Vec<u32> = threads.into_iter().collect();
    threads.sort_unstable();
    Ok(threads)
}

/// Divides a time range of a thread into its parts. Also returns the thread's longest wait for a CPU that overlaps the
/// range.
fn of_thread(
    case: &Case<'_>,
    runs: &mut Runs<'_>,
    thread_id: u32,
    during: &Range<i64>,
) -> Result<Option<DividedWait>, StoreError> {
    let length = |range: Range<i64>| range.end.saturating_sub(range.start);
    let within = |range: Range<i64>| overlap(&range, during).map_or(0, length);
    let thread = Thread {
        id: thread_id,
        row: None,
    };
    let table = case.table(Table::CpuRuns)?;
    let mut lateness = Lateness {
        thread_id,
        ..Lateness::default()
    };
    let (mut longest, mut longest_ns) = (None, 0);
    let mut ran = Vec::new();
    let mut at = during.start;
    while at < during.end
        && let Some((chunk, row)) = runs.next_after(thread, at)?
    {
        let batch = table.read(chunk, &survey::COLUMNS)?;
        let view = CpuRunsView::new(&batch)?;
        let ready_ns = view.ready_ns.get(row);
        let wait = Wait::read(&view, row, ready_ns.unwrap_or(0));
        let Range { start: since, end } = wait.range();
        let ready = within(since..end);
        lateness.ready_ns += ready;
        if ready > longest_ns {
            (longest, longest_ns) = (Some(wait), ready);
        }
        // If the wait before the run is not recorded, the time before the run is unknown.
        if ready_ns.is_some() {
            lateness.waited_ns += within(at.min(since)..since);
        }
        lateness.ran_ns += within(wait.start_ns..wait.end_ns);
        ran.push((wait.cpu, wait.start_ns..wait.end_ns));
        at = wait.end_ns.max(at.saturating_add(1));
    }
    if ran.is_empty() {
        return Ok(None);
    }
    let known_ns = lateness.waited_ns + lateness.ready_ns + lateness.ran_ns;
    lateness.unknown_ns = length(during.clone()).saturating_sub(known_ns).max(0);
    let ran: Vec<(u16, Range<i64>)> = ran
        .into_iter()
        .filter_map(|(cpu, range)| Some((cpu, overlap(&range, during)?)))
        .collect();
    (lateness.interrupted_ns, lateness.interrupted_by) = interrupted(case, &ran)?;
    Ok(Some((lateness, longest)))
}

/// Returns the time of interrupts and softirqs within runs, and the name of the interrupt or softirq with most time.
fn interrupted(
    case: &Case<'_>,
    ran: &[(u16, Range<i64>)],
) -> Result<(i64, Option<String>), StoreError> {
    let bounds = ran.first().zip(ran.last());
    let Some((first, last)) = bounds else {
        return Ok((0, None));
    };
    // The rows are sorted by their ends. A routine that interrupts a run may end after the last range, so rows up to
    // `LONGEST_ROUTINE_NS` later are read.
    let whole = first.1.start..last.1.end.saturating_add(LONGEST_ROUTINE_NS);
    let table = case.table(Table::Interrupts)?;
    let columns = ["start_ns", "end_ns", "cpu", "kind", "exclusive_ns", "name"];
    let mut ranges = Vec::new();
    let mut names: FxHashMap<String, i64> = FxHashMap::default();
    for batch in case.batches(&table, whole, &columns) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let Some(start) = view.start_ns.get(row) else {
                continue;
            };
            if view.kind.get(row) == Some("threaded_dpc") {
                continue;
            }
            let routine = start..view.end_ns[row];
            for (cpu, run) in ran {
                if let Some(both) = overlap(&routine, run).filter(|_| *cpu == view.cpu[row]) {
                    let ns = view
                        .exclusive_ns
                        .get(row)
                        .unwrap_or(0)
                        .min(both.end - both.start);
                    *names
                        .entry(view.name.get(row).unwrap_or_default().to_owned())
                        .or_default() += ns;
                    ranges.push(both);
                }
            }
        }
    }
    let total = union(ranges)
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    let most = names
        .into_iter()
        .max_by_key(|(name, ns)| (*ns, Reverse(name.clone())));
    Ok((total, most.map(|(name, _)| name)))
}
