//! CPU use while threads waited for a CPU.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, InterruptsView, StoreError, StoredTable, Table};

use crate::Case;
use crate::ranges::{overlap, union};
use crate::system::run_priority;

/// User of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    /// A thread. A rank, priority or process that is not known is `None`.
    Thread {
        rank: Option<u8>,
        priority: Option<i8>,
        /// Nice value of a fair thread of Linux.
        nice: Option<i8>,
        process_row: Option<u32>,
        process_id: Option<u32>,
    },
    Idle,
    Isr,
    Dpc,
    /// The machine was suspended, so no user had the CPU.
    Suspended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    slice: u32,
    cpu: u16,
    what: What,
}

/// CPU time of a user.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Time {
    /// Time without interrupts and suspend gaps, in nanoseconds.
    pub(crate) net_ns: i64,
    /// Time including interrupts and suspend gaps, in nanoseconds.
    pub(crate) gross_ns: i64,
}

/// CPU use in slices of time.
pub(crate) struct Holders {
    /// Times at which slices begin and end.
    borders: Vec<i64>,
    /// CPU time for each slice, CPU and user, sorted by these three.
    times: Vec<(Key, Time)>,
    pub(crate) is_linux: bool,
}

impl Holders {
    /// Sums up the CPU use within all time ranges in one pass over the runs. The ranges may overlap. Slices
    /// begin and end where the time ranges begin and end.
    pub(crate) fn read(case: &Case<'_>, windows: &[Range<i64>]) -> Result<Holders, StoreError> {
        let mut borders: Vec<i64> = windows.iter().flat_map(|w| [w.start, w.end]).collect();
        borders.sort_unstable();
        borders.dedup();
        let stretches = union(windows.to_vec());
        let is_linux = case.is_linux();
        let mut pass = Pass {
            is_linux,
            borders: &borders,
            stretches: &stretches,
            silences: &case.survey.suspend_gaps.ranges,
            times: FxHashMap::default(),
            pending: Vec::new(),
            reached: Vec::new(),
        };
        pass.read(case)?;
        let mut times: Vec<(Key, Time)> = pass.times.into_iter().collect();
        times.sort_unstable_by_key(|(key, _)| *key);
        Ok(Holders {
            borders,
            times,
            is_linux,
        })
    }

    /// Returns the CPU use within a range whose ends are borders of slices. Each entry has the CPU,
    /// the user and the time.
    pub(crate) fn within(
        &self,
        range: &Range<i64>,
    ) -> impl Iterator<Item = (u16, What, Time)> + '_ {
        let slice = |border: i64| self.borders.partition_point(|b| *b <= border) as u32;
        let (first, last) = (slice(range.start), slice(range.end));
        let from = self.times.partition_point(|(key, _)| key.slice < first);
        let to = self.times.partition_point(|(key, _)| key.slice < last);
        let times = self.times[from..to.max(from)].iter();
        times.map(|(key, time)| (key.cpu, key.what, *time))
    }
}

/// DPC or service routine that interrupted a run.
struct Interrupt {
    range: Range<i64>,
    cpu: u16,
    is_isr: bool,
}

struct Pass<'p> {
    is_linux: bool,
    borders: &'p [i64],
    stretches: &'p [Range<i64>],
    silences: &'p [Range<i64>],
    times: FxHashMap<Key, Time>,
    /// For each CPU: the routines that interrupted the current run.
    pending: Vec<Vec<Interrupt>>,
    /// For each CPU: the end of the last run that was read.
    reached: Vec<i64>,
}

const RUN_COLUMNS: [&str; 12] = [
    "start_ns",
    "end_ns",
    "cpu",
    "thread_id",
    "process_id",
    "process_row",
    "priority",
    "priority_out",
    "nice",
    "rank_out",
    "previous_rank",
    "cpu_ns",
];

impl Pass<'_> {
    fn read(&mut self, case: &Case<'_>) -> Result<(), StoreError> {
        let table = case.table(Table::CpuRuns)?;
        let interrupts = case.table(Table::Interrupts)?;
        let mut interrupts = Interrupts::new(&interrupts, self.stretches);
        let cpus = case.survey.cpus.len();
        let Some(first) = self.stretches.first() else {
            return Ok(());
        };
        for chunk in table.chunks_within(first.start..i64::MAX) {
            let of_chunk = table.chunks()[chunk];
            if !self.matters(of_chunk.first, of_chunk.last, cpus) {
                continue;
            }
            case.check()?;
            let batch = table.read(chunk, &RUN_COLUMNS)?;
            let view = CpuRunsView::new(&batch)?;
            for row in 0..view.len() {
                let end = view.end_ns[row];
                while let Some(interrupt) = interrupts.before(case, end)? {
                    of_cpu(&mut self.pending, interrupt.cpu).push(interrupt);
                }
                self.run(&view, row);
            }
        }
        Ok(())
    }

    /// Returns true if runs that end between `first` and `last` may overlap a range.
    fn matters(&self, first: i64, last: i64, cpus: usize) -> bool {
        let at = self
            .stretches
            .partition_point(|stretch| stretch.end <= first);
        let begins = self.stretches.get(at).is_some_and(|s| s.start < last);
        // A run that was active at the end of the previous range may also end between `first` and `last`.
        let before = at.checked_sub(1).and_then(|at| self.stretches.get(at));
        let is_open = before.is_some_and(|before| {
            let over = self.reached.iter().filter(|end| **end >= before.end);
            over.count() < cpus
        });
        begins || is_open
    }

    fn run(&mut self, runs: &CpuRunsView<'_>, row: usize) {
        let (start, end, cpu) = (runs.start_ns[row], runs.end_ns[row], runs.cpu[row]);
        *of_cpu(&mut self.reached, cpu) = end;
        let mut interrupts = std::mem::take(of_cpu(&mut self.pending, cpu));
        let what = match runs.thread_id[row] {
            0 => What::Idle,
            _ => What::Thread {
                rank: runs.rank_out.get(row).or(runs.previous_rank.get(row)),
                priority: run_priority(self.is_linux, runs, row),
                nice: runs.nice.get(row),
                process_row: runs.process_row.get(row),
                process_id: runs.process_id.get(row),
            },
        };
        let at = self
            .stretches
            .partition_point(|stretch| stretch.end <= start);
        for stretch in &self.stretches[at..] {
            let Some(within) = overlap(&(start..end), stretch) else {
                break;
            };
            let mut from = within.start;
            while from < within.end {
                let slice = self.borders.partition_point(|border| *border <= from);
                let border = self.borders.get(slice).unwrap_or(&within.end);
                let border = within.end.min(*border);
                self.piece(slice as u32, cpu, what, from..border, &interrupts);
                from = border;
            }
        }
        interrupts.clear();
        *of_cpu(&mut self.pending, cpu) = interrupts;
    }

    /// Adds the part of a run that lies in one slice.
    fn piece(
        &mut self,
        slice: u32,
        cpu: u16,
        what: What,
        range: Range<i64>,
        interrupts: &[Interrupt],
    ) {
        let length = range.end - range.start;
        let mut silences = self.silences.iter();
        let silent = silences.any(|silence| overlap(silence, &range).is_some());
        let mut ns = [length, 0, 0, 0];
        if silent || !interrupts.is_empty() {
            ns = self.split_by_user(&range, interrupts);
        }
        let [thread, dpc, isr, suspended] = ns;
        let mut add = |what: What, net_ns: i64, gross_ns: i64| {
            let time = self.times.entry(Key { slice, cpu, what }).or_default();
            time.net_ns += net_ns;
            time.gross_ns += gross_ns;
        };
        add(what, thread, length);
        for (what, ns) in [
            (What::Dpc, dpc),
            (What::Isr, isr),
            (What::Suspended, suspended),
        ] {
            if ns > 0 {
                add(what, ns, ns);
            }
        }
    }

    /// Splits a time range into the time of the thread, of DPCs, of service routines and of suspension. If several of
    /// them overlap, the time counts for the last of them in this order.
    fn split_by_user(&self, range: &Range<i64>, interrupts: &[Interrupt]) -> [i64; 4] {
        let mut edges: Vec<(i64, usize, i32)> = Vec::new();
        let mut add = |part: &Range<i64>, level: usize| {
            if let Some(part) = overlap(part, range) {
                edges.extend([(part.start, level, 1), (part.end, level, -1)]);
            }
        };
        for interrupt in interrupts {
            add(&interrupt.range, 1 + usize::from(interrupt.is_isr));
        }
        for silence in self.silences {
            add(silence, 3);
        }
        edges.sort_unstable();
        let mut ns = [0; 4];
        let mut depths = [1, 0, 0, 0];
        let mut last = range.start;
        for (at, level, step) in edges {
            let highest = depths.iter().rposition(|depth| *depth > 0).unwrap_or(0);
            ns[highest] += at - last;
            depths[level] += step;
            last = at;
        }
        ns[0] += range.end - last;
        ns
    }
}

/// Returns the entry of a CPU. Adds missing entries.
fn of_cpu<T: Default>(all: &mut Vec<T>, cpu: u16) -> &mut T {
    let place = usize::from(cpu);
    if place >= all.len() {
        all.resize_with(place + 1, T::default);
    }
    &mut all[place]
}

/// Reader of the interrupts that overlap `stretches`. The interrupts are sorted by end.
struct Interrupts<'i> {
    table: &'i StoredTable,
    stretches: &'i [Range<i64>],
    chunk: usize,
    read: std::vec::IntoIter<Interrupt>,
}

impl<'i> Interrupts<'i> {
    fn new(table: &'i StoredTable, stretches: &'i [Range<i64>]) -> Interrupts<'i> {
        Interrupts {
            table,
            stretches,
            chunk: 0,
            read: Vec::new().into_iter(),
        }
    }

    /// Returns the next interrupt if it does not end after `end_ns`.
    fn before(&mut self, case: &Case<'_>, end_ns: i64) -> Result<Option<Interrupt>, StoreError> {
        loop {
            if let Some(next) = self.read.as_slice().first() {
                return Ok(if next.range.end <= end_ns {
                    self.read.next()
                } else {
                    None
                });
            }
            let chunk = self.table.chunks().get(self.chunk);
            let Some(chunk) = chunk.filter(|chunk| chunk.first <= end_ns) else {
                return Ok(None);
            };
            if self.reaches_in(chunk.first.saturating_sub(LONGEST_NS), chunk.last) {
                case.check()?;
                self.read = self.next_chunk()?.into_iter();
            }
            self.chunk += 1;
        }
    }

    fn reaches_in(&self, from: i64, to: i64) -> bool {
        let at = self
            .stretches
            .partition_point(|stretch| stretch.end <= from);
        self.stretches
            .get(at)
            .is_some_and(|stretch| stretch.start < to)
    }

    fn next_chunk(&self) -> Result<Vec<Interrupt>, StoreError> {
        let batch = self
            .table
            .read(self.chunk, &["start_ns", "end_ns", "cpu", "kind"])?;
        let view = InterruptsView::new(&batch)?;
        let mut interrupts = Vec::new();
        for row in 0..view.len() {
            let (Some(start), end) = (view.start_ns.get(row), view.end_ns[row]) else {
                continue;
            };
            if start >= end || !self.reaches_in(start, end) {
                continue;
            }
            // Routines that run in threads count as time of the threads.
            let is_isr = match view.kind.get(row) {
                Some("threaded_dpc" | "passive_isr") | None => continue,
                Some("isr" | "msi") => true,
                Some(_) => false,
            };
            interrupts.push(Interrupt {
                range: start..end,
                cpu: view.cpu[row],
                is_isr,
            });
        }
        Ok(interrupts)
    }
}

/// Assumed maximum length of a routine, in nanoseconds.
const LONGEST_NS: i64 = 10_000_000_000;
