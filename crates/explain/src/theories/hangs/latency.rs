//! Division of the time of a thread by its critical path, for comparisons of two traces.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tables::{Identities, InterruptsView, Options, Store, StoreError, Table};

use super::chain::{self, What, Who};
use super::details::Details;
use super::wakers::Wakers;
use crate::ranges::overlap;
use crate::survey::blocks_thread;
use crate::theories::long_waits::path::{self, Leg, Runs, Thread};
use crate::{Case, Reader, Scope};

/// Maximum number of steps of a path.
const LEGS: usize = 20_000;

/// State of a thread on a critical path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathTime {
    /// The thread ran.
    Ran,
    /// A DPC or service routine interrupted the thread.
    Interrupted,
    /// The thread was ready, but had no CPU.
    Ready,
    /// The thread waited for its request to a disk.
    Disk,
    /// The thread waited for a page.
    Page,
    /// The thread waited for data from the network.
    Network,
    /// The thread waited until a DPC of this driver readied it.
    Driver(String),
    /// The thread waited for this reason; 255 if the reason is unknown.
    Waited(u8),
    /// The machine was suspended.
    Suspended,
    /// The path does not reach this time.
    Unknown,
    /// The path does not reach this time, because it has the maximum number of steps.
    TooFar,
}

/// Key of a part of a critical path's time: the program of the thread on the path, and the state of this thread. The
/// program is `None` for the thread whose time is divided.
pub type PathPart = (Option<String>, PathTime);

/// Divides the time of the thread `thread_row` within the ranges by its critical path. While the thread waited for
/// another thread, the path follows the other thread. The values of the parts are nanoseconds; their sum is the total
/// length of the ranges.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn divided(
    store: &Store,
    thread_row: u32,
    ranges: &[Range<i64>],
    options: Options<'_>,
) -> Result<BTreeMap<PathPart, i64>, StoreError> {
    store.make(&crate::theories::tables(), options)?;
    let names = Arc::new(Identities::read(store, options)?);
    let is_cancelled = || !(options.progress)(0);
    let reader = Reader::new(store, Arc::clone(&names), None, &is_cancelled);
    let case = Case::read(reader, Scope::default())?;
    let id = names.thread_id(thread_row).unwrap_or(0);
    let thread = Thread {
        id,
        row: Some(thread_row),
    };
    let details = Details::read(&case, ranges.to_vec())?;
    let mut runs = Runs::new(&case)?;
    let mut sums: BTreeMap<PathPart, i64> = BTreeMap::new();
    let own = Who {
        process_row: None,
        process_id: None,
        thread_id: id,
        thread_row: Some(thread_row),
    };
    let paths = ranges.iter();
    let paths = paths.map(|range| path::path(&mut runs, thread, range, LEGS));
    let paths: Vec<Vec<Leg>> = paths.collect::<Result<_, StoreError>>()?;
    let wakers = Wakers::read(&case, paths.iter().flatten())?;
    for (range, path) in ranges.iter().zip(&paths) {
        for part in chain::parts(path, &details, &wakers, own, range) {
            let time = match part.what {
                What::Ran => PathTime::Ran,
                What::Ready => PathTime::Ready,
                What::Disk(_) => PathTime::Disk,
                What::Page => PathTime::Page,
                What::Network(_) => PathTime::Network,
                What::Driver(image) => {
                    let module = names.module(Some(image)).unwrap_or("unknown modules");
                    PathTime::Driver(module.to_owned())
                }
                What::Waited(reason) => PathTime::Waited(reason),
                What::MachineSuspended => PathTime::Suspended,
                What::Unknown if path.len() >= LEGS => PathTime::TooFar,
                What::Unknown => PathTime::Unknown,
            };
            *sums
                .entry((program(&names, thread, part.who), time))
                .or_default() += part.ns;
        }
    }
    for (program, ns) in interrupted(&case, &names, thread, paths.iter().flatten())? {
        let ran = sums.entry((program.clone(), PathTime::Ran)).or_default();
        let ns = ns.min(*ran);
        *ran -= ns;
        *sums.entry((program, PathTime::Interrupted)).or_default() += ns;
    }
    sums.retain(|_, ns| *ns > 0);
    Ok(sums)
}

/// Time range of a run on the path, and the program of the run's thread (see `PathPart`).
type OnPath = (Range<i64>, Option<String>);

/// Returns the program of a thread on the path. Returns `None` for the thread whose time is divided.
fn program(names: &Identities, thread: Thread, who: Who) -> Option<String> {
    let is_own = who.thread_id == thread.id && who.thread_row == thread.row;
    let process = names.process(who.process_row, who.process_id);
    (!is_own).then(|| process.name.unwrap_or("unknown processes").to_owned())
}

/// Returns the time of the DPCs and service routines that interrupted the runs of a path, by program.
fn interrupted<'l>(
    case: &Case<'_>,
    names: &Identities,
    thread: Thread,
    legs: impl Iterator<Item = &'l Leg>,
) -> Result<BTreeMap<Option<String>, i64>, StoreError> {
    // Runs on the path for each CPU, in order of time.
    let mut runs: FxHashMap<u16, Vec<OnPath>> = FxHashMap::default();
    for leg in legs {
        let run = &leg.run;
        let who = Who {
            process_row: run.process_row,
            process_id: run.process_id,
            thread_id: run.thread_id,
            thread_row: run.thread_row,
        };
        let ran = run.start_ns.max(leg.range.start)..leg.range.end;
        if ran.start < ran.end {
            let of_cpu = runs.entry(run.cpu).or_default();
            of_cpu.push((ran, program(names, thread, who)));
        }
    }
    runs.values_mut()
        .for_each(|of_cpu| of_cpu.sort_by_key(|(ran, _)| ran.start));
    let mut sums = BTreeMap::new();
    let table = case.table(Table::Interrupts)?;
    let columns = ["start_ns", "end_ns", "cpu", "kind", "exclusive_ns"];
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let times = view.start_ns.get(row).zip(view.exclusive_ns.get(row));
            let Some((start, exclusive)) = times.filter(|_| blocks_thread(&view, row)) else {
                continue;
            };
            let routine = start..view.end_ns[row];
            let Some(of_cpu) = runs.get(&view.cpu[row]) else {
                continue;
            };
            let first = of_cpu.partition_point(|(ran, _)| ran.end <= routine.start);
            let inside = of_cpu[first..]
                .iter()
                .take_while(|(ran, _)| ran.start < routine.end);
            for (ran, program) in inside {
                if let Some(both) = overlap(ran, &routine) {
                    let ns = (both.end - both.start).min(exclusive);
                    *sums.entry(program.clone()).or_default() += ns;
                }
            }
        }
    }
    Ok(sums)
}
