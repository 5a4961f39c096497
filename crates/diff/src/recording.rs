//! Sums of one recording.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use explain::Reader;
use facts::Info;
use tables::{DoubtfulRuns, Functions, Identities, Options, Store, StoreError, Table};

use crate::blocks::Blocks;
use crate::distribution::Distribution;
use crate::dpc_code::DpcCode;
use crate::functions::FunctionNames;
use crate::interrupts::RoutineTimes;
use crate::other_differences::Drivers;
use crate::stacks::Stacks;
use crate::sums::{Rows, Sums};
use crate::wakes::Wakes;
use crate::{Kind, Work, interrupts, requests, runs, samples, work};

/// Tables that are read to compute the sums of a recording.
const TABLES: [Table; 9] = [
    Table::CpuRuns,
    Table::Interrupts,
    Table::Samples,
    Table::ReadyThreads,
    Table::DiskIo,
    Table::Network,
    Table::Packets,
    Table::Marks,
    Table::Stacks,
];

/// Tables with a time column. Their first and last times give the length of the trace.
const TIMED: [Table; 6] = [
    Table::CpuRuns,
    Table::Interrupts,
    Table::Samples,
    Table::ReadyThreads,
    Table::DiskIo,
    Table::Network,
];

/// Maximum share of time in rows without a name. A kind of rows that exceeds this share counts as not recorded:
/// otherwise, a row that has a name only in the other recording would seem to be missing here.
const MOST_UNNAMED: f64 = 0.2;

/// Part of a trace, and unit of work, for which the sums are computed.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// Part of the trace, in nanoseconds since the trace's start. `None` for the whole trace.
    pub during: Option<Range<i64>>,
    /// Unit of work to which times are related. `None` if the user requested none.
    pub work: Option<Work>,
    /// Source of the names of functions. `None` without symbols.
    pub functions: Option<&'a dyn Functions>,
}

/// Sums of one recording by row and block of time.
#[derive(Debug)]
pub struct Recording {
    /// Facts about the trace.
    pub(crate) info: Info,
    /// Names of processes, threads and images.
    pub(crate) names: Arc<Identities>,
    pub(crate) doubtful: DoubtfulRuns,
    /// Length of the compared time, in seconds.
    pub seconds: f64,
    /// Kinds of rows that were recorded.
    pub(crate) recorded: BTreeSet<Kind>,
    /// Amounts of work in each block, by unit of work. A unit of work is absent if it did not occur or was
    /// not recorded.
    pub(crate) work: BTreeMap<Work, Vec<f64>>,
    pub(crate) blocks: Blocks,
    pub(crate) drivers: Drivers,
    /// Number of sent packets by the mark of the packets (DSCP).
    pub(crate) marked: BTreeMap<u8, u64>,
    /// Sums of each row.
    pub(crate) rows: Rows,
    /// Rows of the table `threads`, by the name of the compared row to which the thread belongs. Names are in
    /// lower case.
    pub(crate) threads: BTreeMap<String, Vec<u32>>,
    /// Stacks of waits, by the name of the compared row to which the wait belongs. Names are in lower case.
    pub(crate) wait_stacks: BTreeMap<String, Vec<u32>>,
    /// Modules with and without names of functions, in lower case.
    pub(crate) symbols: Symbols,
    /// Time of DPCs and service routines on each CPU, in nanoseconds.
    pub(crate) interrupts_ns: BTreeMap<u16, f64>,
    /// Time of DPCs and service routines on each CPU, by module.
    pub(crate) routines_ns: RoutineTimes,
    pub(crate) dpc_code: DpcCode,
    /// Sampled stacks.
    pub(crate) stacks: Stacks,
    /// Durations of DPCs.
    pub(crate) dpcs: Distribution,
    /// Waits of ready threads for a CPU.
    pub(crate) ready: Distribution,
    /// Waits of programs by the program that ended them.
    pub(crate) wakes: Wakes,
}

/// Modules with and without names of functions, in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    pub(crate) named: BTreeSet<Box<str>>,
    pub(crate) unnamed: BTreeSet<Box<str>>,
}

impl Recording {
    /// Returns the name of the recorded computer, if the trace has it.
    pub fn computer(&self) -> Option<&str> {
        self.info.system.computer.as_deref()
    }

    /// Returns true if rows of this kind were recorded.
    pub fn has(&self, kind: Kind) -> bool {
        self.recorded.contains(&kind)
    }

    /// Returns true if this work occurred and was recorded.
    pub fn has_work(&self, work: &Work) -> bool {
        self.work.contains_key(work)
    }

    /// Returns the number of CPUs of the recorded machine, if the trace has it.
    pub(crate) fn cpus(&self) -> Option<u32> {
        self.info.cpus.stated
    }

    /// Returns the compared time: start and end, in nanoseconds since the trace's start. The end is exclusive.
    pub fn range_ns(&self) -> [i64; 2] {
        self.blocks.range_ns()
    }

    /// Returns true if both recordings are of the same trace, and their compared times overlap.
    pub fn overlaps(&self, other: &Recording) -> bool {
        let [a, b] = [self, other].map(|recording| &recording.info.trace);
        let ([from, to], [other_from, other_to]) = (self.range_ns(), other.range_ns());
        let is_same = a.start.is_some()
            && (&a.start, a.size_bytes, a.events) == (&b.start, b.size_bytes, b.events);
        // A model can give traces of different machines the same start and the same number of events. Whole traces must
        // therefore also have the same sums.
        let whole = self.part_ns().is_none() && other.part_ns().is_none();
        is_same
            && from < other_to
            && other_from < to
            && (!whole || (&self.rows, &self.marked) == (&other.rows, &other.marked))
    }

    /// Returns the compared part of the trace. Returns `None` if the whole trace is compared.
    pub(crate) fn part_ns(&self) -> Option<[i64; 2]> {
        self.blocks.part.as_ref().map(|part| [part.start, part.end])
    }

    /// Returns the tables that `Recording::read` needs for a unit of work.
    pub fn tables(work: Option<&Work>) -> Vec<Table> {
        let mut tables = [&TABLES[..], &Info::TABLES, &Identities::TABLES].concat();
        tables.extend(
            work.filter(|work| **work == Work::Frames)
                .map(|_| Table::Events),
        );
        tables
    }

    /// Computes the sums of a trace or of a part of the trace.
    ///
    /// # Errors
    /// Returns an error if a table cannot be made or read, or if the progress callback requests a stop.
    pub fn read(
        store: &Store,
        read_options: &ReadOptions<'_>,
        options: Options<'_>,
    ) -> Result<Recording, StoreError> {
        store.make(&Recording::tables(read_options.work.as_ref()), options)?;
        let info = Info::read(store, options)?;
        let names = Arc::new(Identities::read(store, options)?);
        let doubtful = DoubtfulRuns::read(store, options)?;
        let is_cancelled = || !(options.progress)(0);
        let reader = Reader::new(
            store,
            Arc::clone(&names),
            read_options.functions,
            &is_cancelled,
        );
        let blocks = Blocks::new(time(&reader)?, read_options.during.clone());
        let mut sums = Sums::new(blocks.clone());
        let mut functions = FunctionNames::new(&names, read_options.functions);
        let runs = runs::add(&reader, &doubtful, &mut functions, &mut sums)?;
        let mut recorded = BTreeSet::new();
        if runs.has_switches {
            recorded.extend([Kind::Program, Kind::Thread]);
        }
        if runs.has_switches && reader.has(Table::ReadyThreads)? {
            recorded.extend([Kind::Ready, Kind::Wait]);
            recorded.extend((!runs.wait_stacks.is_empty()).then_some(Kind::WaitCode));
        }
        if reader.has(Table::DiskIo)? {
            recorded.extend([Kind::Disk, Kind::File]);
        }
        let interrupts = interrupts::add(&reader, &mut functions, &mut sums)?;
        recorded.extend(interrupts.recorded);
        let samples = samples::add(&reader, &mut functions, &mut sums)?;
        recorded.extend(samples.recorded);
        requests::add(&reader, &mut sums)?;
        let rows = sums.finish();
        recorded.retain(|kind| {
            let unnamed = rows.unnamed.get(kind).map_or(0.0, |sum| sum.ns);
            unnamed <= MOST_UNNAMED * rows.of_kind(*kind).0
        });
        let work = work::read(
            &reader,
            &blocks,
            &interrupts.dpcs,
            read_options.work.as_ref(),
        )?;
        let stacks = Stacks::read(&reader, &mut functions, samples.stacks)?;
        Ok(Recording {
            info,
            doubtful,
            seconds: blocks.seconds(),
            work,
            drivers: Drivers::read(&reader)?,
            marked: work::marked(&reader, &blocks)?,
            blocks,
            rows,
            recorded,
            threads: runs.threads,
            wait_stacks: runs.wait_stacks,
            symbols: functions.symbols(),
            interrupts_ns: interrupts.by_cpu,
            routines_ns: interrupts.by_routine,
            dpcs: interrupts.durations,
            ready: runs.ready,
            wakes: runs.wakes,
            dpc_code: samples.dpc_code,
            stacks,
            names,
        })
    }
}

/// Returns the time from the first to the last row of the tables `TIMED`.
fn time(reader: &Reader<'_>) -> Result<Range<i64>, StoreError> {
    let (mut start, mut end) = (i64::MAX, i64::MIN);
    for table in TIMED {
        for chunk in reader.table(table)?.chunks() {
            start = start.min(chunk.first);
            end = end.max(chunk.last);
        }
    }
    Ok(if start < end { start..end } else { 0..1 })
}
