//! Extraction of a workload from the tables of a trace: bursts, waits and their ends, interrupts, and the settings of
//! the machine.
//!
//! A burst is the processor time of a thread between two waits, without the DPCs and interrupts on its processor.
//! Preemption and the end of a quantum do not end it.

mod disks;
mod interrupts;
mod machine;
mod rows;
mod sleeps;
mod threads;

use std::ops::Range;
use std::sync::Arc;

use explain::Reader;
use sim::replay::{Process, Workload};
use tables::{Identities, Options, Store, StoreError, Table};

use crate::recorded_workload::{RecordedWorkload, Refusal};

/// Tables that [`extract`] reads.
pub const TABLES: [Table; 16] = [
    Table::CpuRuns,
    Table::Cpus,
    Table::Damages,
    Table::DiskIo,
    Table::Focus,
    Table::Images,
    Table::Interrupts,
    Table::Priorities,
    Table::ProcessFreezes,
    Table::Processes,
    Table::ReadyThreads,
    Table::Samples,
    Table::Sessions,
    Table::SystemConfig,
    Table::Threads,
    Table::TimerRequests,
];

/// Extracts the workload of a trace. Waits and processor time are measured within `measured`, or in the whole trace.
/// The inner error names the missing evidence without which no replay is possible.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or if the progress callback requests a stop.
pub fn extract(
    store: &Store,
    measured: Option<Range<u64>>,
    options: Options<'_>,
) -> Result<Result<RecordedWorkload, Refusal>, StoreError> {
    store.make(&TABLES, options)?;
    let names = Arc::new(Identities::read(store, options)?);
    let is_cancelled = || !(options.progress)(0);
    let reader = Reader::new(store, Arc::clone(&names), None, &is_cancelled);
    let facts = machine::Facts::read(&reader)?;
    if let Err(refusal) = facts.check() {
        return Ok(Err(refusal));
    }
    let rows = rows::Rows::read(&reader)?;
    if rows.wakes.iter().all(Vec::is_empty) {
        return Ok(Err(Refusal::NoReadyEvents));
    }
    let mut interrupts = interrupts::Interrupts::read(&reader, facts.cpus)?;
    let requests = disks::Requests::read(&reader, &rows, &interrupts)?;
    let known = threads::ThreadFacts::read(&reader, &rows, facts.cpus)?;
    let mut moments = machine::moments(&reader, &rows)?;

    let mut waits = threads::Waits::find(&rows, &interrupts, &requests, &known);
    moments.sort_by_key(|moment| moment.at_ns);
    let sleeps = sleeps::ask(&rows, &waits, &moments, &facts);
    let requests = requests.into_workload(&mut waits, &mut interrupts);
    let (threads, records) = threads::build(
        &rows,
        &waits,
        &sleeps,
        &interrupts,
        &known,
        measured.as_ref(),
    );

    let separation = facts.separation(&rows, &moments);
    let mut machine = facts.machine(separation, &waits);
    machine.clock_phase_ns = sleeps.phase_ns;
    let mut workload = Workload {
        machine,
        duration_ns: rows.end_ns,
        processes: (rows.processes.iter().enumerate())
            .map(|(n, (row, id))| {
                let process = names.process(*row, *id);
                Process {
                    id: process.id.unwrap_or(0),
                    name: process.name.map(str::to_owned),
                    idle_class: known.is_idle_class(n),
                }
            })
            .collect(),
        threads,
        interrupts: Vec::new(),
        requests,
        moments,
    };
    let unknown = interrupts.unknown;
    workload.interrupts = interrupts.into_workload(&waits, &names);
    for thread in &mut workload.threads {
        // A thread of a damaged trace can refer to a processor that the trace does not have.
        let last = workload.machine.cpus - 1;
        (thread.ideal, thread.first_cpu) = (thread.ideal.min(last), thread.first_cpu.min(last));
    }
    let notes = facts.notes(separation, &waits, &sleeps, &workload, unknown);
    Ok(Ok(RecordedWorkload {
        workload,
        threads: records,
        notes,
        measured: measured.map(|range| (range.start, range.end)),
    }))
}
