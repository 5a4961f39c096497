//! The first explanation of a trace: who used the CPUs, who waited for them, what interrupted
//! them, what the disks did, and what the trace cannot say.

mod cpu;
mod disk;
mod interrupts;
mod modules;
mod names;
mod ranks;
mod waits;

pub(crate) use disk::ProcessRequests;
pub(crate) use waits::Wait;

use std::collections::HashSet;

use etl::Trace;
use serde::Serialize;
use tables::{ContextSwitches, Options, Table, Tables};

use crate::watch::{self, Interrupted, Watch};
use names::Names;

/// Rows kept of a list that is shown by rank.
const TOP: usize = 10;

/// What the tables of a trace say at first sight. A part is `None` if the trace does not hold the
/// events it rests on.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// From the first to the last sample or context switch.
    pub(crate) span_ns: i64,
    /// CPUs with samples or context switches.
    pub(crate) cpus: usize,
    /// CPU time by process.
    pub(crate) cpu: Option<cpu::CpuTime>,
    /// Modules that CPUs were executing.
    pub(crate) modules: Option<modules::Modules>,
    /// DPCs and service routines.
    pub(crate) interrupts: Option<interrupts::Interrupts>,
    /// Waits of ready threads for a CPU.
    pub(crate) waits: Option<waits::Waits>,
    /// Ranks, quanta and priorities.
    pub(crate) ranks: Option<ranks::Ranks>,
    /// Requests to disks.
    pub(crate) disk: Option<disk::Disk>,
    /// Hard page faults.
    pub(crate) hard_faults: Option<disk::HardFaults>,
    /// Events that a table should hold but whose payload could not be read.
    pub(crate) unreadable_events: u64,
}

/// What is read to explain a trace.
const WANTED: [Table; 9] = [
    Table::ContextSwitches,
    Table::ReadyThreads,
    Table::Samples,
    Table::Interrupts,
    Table::DiskIo,
    Table::HardFaults,
    Table::Processes,
    Table::Threads,
    Table::Images,
];

/// Builds the tables and reads them.
///
/// # Errors
/// If the user stopped it.
pub(crate) fn explain(trace: &Trace) -> Result<Explanation, Interrupted> {
    let watch = Watch::new("building tables", trace.size_bytes());
    let progress = |done: u64| watch.reach(done).is_ok();
    let tables = tables::build(
        trace,
        &WANTED,
        Options {
            progress: &progress,
        },
    );
    read(&tables.map_err(|_| Interrupted)?)
}

fn read(tables: &Tables) -> Result<Explanation, Interrupted> {
    let names = Names::new(tables);
    let switches = tables.context_switches.iter().map(|s| s.time_ns.as_slice());
    let samples = tables.samples.iter().map(|s| s.time_ns.as_slice());
    let columns: Vec<&[i64]> = switches.chain(samples).collect();
    let first = columns
        .iter()
        .filter_map(|c| c.first())
        .min()
        .copied()
        .unwrap_or(0);
    let last = columns
        .iter()
        .filter_map(|c| c.last())
        .max()
        .copied()
        .unwrap_or(first);
    let with_switches = tables.context_switches.iter().map(|s| s.cpu[0]);
    let cpus = distinct(with_switches.chain(tables.samples.iter().map(|s| s.cpu[0])));
    let cpu = cpu::read(tables, &names, (first, last));
    watch::check()?;
    let modules = modules::read(tables, &names);
    watch::check()?;
    let interrupts = interrupts::read(tables, &names);
    let waits = waits::read(tables, &names)?;
    let ranks = ranks::read(tables, &names);
    watch::check()?;
    Ok(Explanation {
        span_ns: last.saturating_sub(first),
        cpus,
        cpu,
        modules,
        interrupts,
        waits,
        ranks,
        disk: disk::read(tables, &names),
        hard_faults: disk::read_hard_faults(tables, &names),
        unreadable_events: tables.unreadable.iter().map(|u| u.count).sum(),
    })
}

/// How many different CPUs there are among these.
fn distinct(cpus: impl Iterator<Item = u16>) -> usize {
    cpus.collect::<HashSet<u16>>().len()
}

/// Whether the thread that left the CPU at `row`, which must not be the first, is the one that the
/// switch before brought there. If not, switches in between are missing.
fn follows(switches: &ContextSwitches, row: usize) -> bool {
    switches.old_thread_id[row] == switches.new_thread_id[row - 1]
}

/// The `TOP` largest of `items` by `size`, the largest first; ties keep their order.
fn largest<T, K: Ord>(mut items: Vec<T>, size: impl Fn(&T) -> K) -> Vec<T> {
    items.sort_by_cached_key(|item| std::cmp::Reverse(size(item)));
    items.truncate(TOP);
    items
}
