//! `laglab stack`: modules or functions on the stacks of events, their callers and callees.

mod frames;

use std::collections::{BTreeMap, BTreeSet};

use record::Kind;
use record::needs::TableNeeds;
use rustc_hash::FxHashMap;
use session::NotRecorded;
use tables::{CpuRunsView, ReadyThreadsView, SamplesView, StacksView, Table};
use wording::{counted, grouped};

use crate::place::PlaceOptions;
use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer, percent};
use frames::Frames;

static LAYOUT: Layout = Layout {
    name: "stack",
    labelled: false,
    columns: &[
        Column::new("                         Module!Function", "module"),
        Column::new("Relation", "relation"),
        Column::new("                  Caller or Callee", "other"),
        Column::new("Inclusive Hits", "inclusive"),
        Column::new("Inclusive %", "inclusive_percent"),
        Column::new("Exclusive Hits", "exclusive"),
        Column::new("Exclusive %", "exclusive_percent"),
    ],
};

/// Options of `laglab stack`.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Kind of events whose stacks are counted.
    pub event: Stacked,
    /// Minimum percentage of stacks that contain a module or function. If given, callers and callees of such
    /// modules or functions are shown.
    pub butterfly: Option<f64>,
    /// Grouping of addresses.
    pub places: PlaceOptions,
    /// Filter by process.
    pub processes: ProcessFilter,
}

/// Kinds of events with stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stacked {
    /// Samples of the profile timer: code that used the CPU.
    #[default]
    Profile,
    /// Switches to a thread: code that waited.
    Cswitch,
    /// Wakes of threads: code that ended waits.
    Readythread,
}

impl Stacked {
    fn table(self) -> Table {
        match self {
            Stacked::Profile => Table::Samples,
            Stacked::Cswitch => Table::CpuRuns,
            Stacked::Readythread => Table::ReadyThreads,
        }
    }

    /// Returns the error for a trace, or a recording of Linux, that lacks the stacks of this kind of events. It lists the
    /// events to record.
    fn stacks(self, is_linux: bool) -> NotRecorded {
        if is_linux {
            let (rows, theory) = match self {
                Stacked::Profile => ("call chains of samples", "samples"),
                Stacked::Cswitch => ("call chains of context switches", "switch-stacks"),
                Stacked::Readythread => ("call chains of wakes", "switch-stacks"),
            };
            let record = record::linux::for_theory(theory);
            return NotRecorded::Linux {
                rows,
                record: record.map(ToString::to_string).unwrap_or_default(),
            };
        }
        let (rows, kinds): (&str, &[Kind]) = match self {
            Stacked::Profile => (
                "stacks of samples",
                &[
                    Kind::Processes,
                    Kind::Images,
                    Kind::Samples,
                    Kind::SampleStacks,
                ],
            ),
            Stacked::Cswitch => (
                "stacks of context switches",
                &[
                    Kind::Processes,
                    Kind::Images,
                    Kind::ContextSwitches,
                    Kind::SwitchStacks,
                ],
            ),
            Stacked::Readythread => (
                "stacks of threads made ready",
                &[
                    Kind::Processes,
                    Kind::Images,
                    Kind::ReadyThreads,
                    Kind::ReadyStacks,
                ],
            ),
        };
        NotRecorded::Windows(TableNeeds {
            table: Table::Stacks.name(),
            rows,
            kinds,
            remark: "",
        })
    }
}

/// Stack with the process in which it occurred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    stack: u32,
    process_row: Option<u32>,
    process_id: Option<u32>,
}

/// Number of events with the same stack in the same process. Also has the time of the first of these events in
/// nanoseconds, because the images that were loaded at this time resolve the addresses.
#[derive(Clone, Copy)]
struct Hits {
    count: u64,
    first_ns: i64,
}

/// Counts for one module or function. `inclusive` is the number of events whose stacks contain the module or function.
/// `exclusive` is the number of events whose innermost frame is in the module or function.
#[derive(Clone, Copy, Default)]
struct Sum {
    inclusive: u64,
    exclusive: u64,
}

impl Report for Stack {
    fn tables(&self) -> Vec<Table> {
        vec![self.event.table(), Table::Stacks, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let (hits, without) = self.hits(trace)?;
        let mut hits: Vec<(Key, Hits)> = hits.into_iter().collect();
        hits.sort_unstable_by_key(|(key, _)| *key);
        let all: u64 = hits.iter().map(|(_, hits)| hits.count).sum();

        let mut frames = Frames::new(trace, self.places.places(trace)?);
        let mut sums: Vec<Sum> = Vec::new();
        // Number of stacks that contain a call. The key is the number of the calling and of the called module or
        // function.
        let mut calls: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let stacks = trace.tables.table(Table::Stacks)?;
        let (mut first, mut next) = (0u64, 0);
        for (chunk, about) in stacks.chunks().iter().enumerate() {
            trace.tables.check()?;
            let batch = stacks.read(chunk, &["addresses"])?;
            let view = StacksView::new(&batch)?;
            let end = first + about.rows as u64;
            while let Some((key, hits)) = hits.get(next).filter(|(k, _)| u64::from(k.stack) < end) {
                next += 1;
                let addresses = view.addresses.get((u64::from(key.stack) - first) as usize);
                let places = frames
                    .places(addresses, key.process_id, hits.first_ns)
                    .to_vec();
                sums.resize(frames.count(), Sum::default());
                if let Some(innermost) = places.first() {
                    sums[*innermost as usize].exclusive += hits.count;
                }
                // A module or function that occurs several times on a stack counts once.
                for place in places.iter().copied().collect::<BTreeSet<u32>>() {
                    sums[place as usize].inclusive += hits.count;
                }
                if self.butterfly.is_none() {
                    continue;
                }
                let pairs = places.windows(2).map(|pair| (pair[1], pair[0]));
                for call in pairs.collect::<BTreeSet<(u32, u32)>>() {
                    *calls.entry(call).or_default() += hits.count;
                }
            }
            first = end;
        }
        if without > 0 {
            out.warn(format!(
                "{} of {} no stack",
                grouped(without),
                counted(without + all, "event has", "events have")
            ));
        }
        self.rows(out, &frames, &sums, &calls, all)?;
        frames.names.warn_of_missing_symbols(out);
        Ok(())
    }
}

impl Stack {
    /// Returns the number of selected events for each stack. Also returns the number of selected events
    /// without a stack.
    fn hits(&self, trace: &Recording) -> Result<(FxHashMap<Key, Hits>, u64), Error> {
        let table = trace.tables.table(self.event.table())?;
        let wanted = self.processes.wanted(&trace.names);
        let mut hits: FxHashMap<Key, Hits> = FxHashMap::default();
        let mut without = 0;
        let mut add = |time_ns: i64, stack: Option<u32>, process: (Option<u32>, Option<u32>)| {
            if !trace.range.contains(&time_ns) || !wanted.has(process.0, process.1) {
                return;
            }
            let Some(stack) = stack else {
                without += 1;
                return;
            };
            let key = Key {
                stack,
                process_row: process.0,
                process_id: process.1,
            };
            let new = Hits {
                count: 0,
                first_ns: time_ns,
            };
            hits.entry(key).or_insert(new).count += 1;
        };
        // The table is sorted by the end of runs, but the runs are selected by their start. So all later chunks may
        // contain selected runs.
        let range = match self.event {
            Stacked::Cswitch => trace.range.start..i64::MAX,
            _ => trace.range.clone(),
        };
        for chunk in table.chunks_within(range) {
            trace.tables.check()?;
            let ids = ["stack_id", "process_row", "process_id", "thread_id"];
            let columns = |time| [&[time], &ids[..]].concat();
            match self.event {
                Stacked::Profile => {
                    let batch = table.read(chunk, &columns("time_ns"))?;
                    let view = SamplesView::new(&batch)?;
                    for row in 0..view.len() {
                        let process = (view.process_row.get(row), view.process_id.get(row));
                        add(view.time_ns[row], view.stack_id.get(row), process);
                    }
                }
                Stacked::Cswitch => {
                    let batch = table.read(chunk, &columns("start_ns"))?;
                    let view = CpuRunsView::new(&batch)?;
                    // Idle threads do not wait, so their stacks are left out.
                    for row in (0..view.len()).filter(|row| view.thread_id[*row] != 0) {
                        let process = (view.process_row.get(row), view.process_id.get(row));
                        add(view.start_ns[row], view.stack_id.get(row), process);
                    }
                }
                Stacked::Readythread => {
                    let columns = ["readying_process_row", "readying_process_id"];
                    let columns = [&["time_ns", "stack_id"], &columns[..]].concat();
                    let batch = table.read(chunk, &columns)?;
                    let view = ReadyThreadsView::new(&batch)?;
                    for row in 0..view.len() {
                        let row_of = view.readying_process_row.get(row);
                        let process = (row_of, view.readying_process_id.get(row));
                        add(view.time_ns[row], view.stack_id.get(row), process);
                    }
                }
            }
        }
        if hits.is_empty() {
            if self.event == Stacked::Profile {
                trace.tables.recorded(Table::Samples)?;
            }
            let missing = self.event.stacks(trace.tables.store().info().is_linux());
            return Err(session::Error::NotRecorded(missing).into());
        }
        Ok((hits, without))
    }

    fn rows(
        &self,
        out: &mut Writer,
        frames: &Frames<'_>,
        sums: &[Sum],
        calls: &BTreeMap<(u32, u32), u64>,
        all: u64,
    ) -> Result<(), Error> {
        let share = |hits: u64, of: u64| percent(hits as i64, of as i64);
        let least = self.butterfly.unwrap_or(0.0);
        let mut shown: Vec<(usize, &Sum)> = sums.iter().enumerate().collect();
        shown.retain(|(_, sum)| share(sum.inclusive, all) >= least);
        shown.sort_by_key(|(place, sum)| {
            (
                std::cmp::Reverse((sum.inclusive, sum.exclusive)),
                frames.name(*place as u32),
            )
        });
        // Callers and callees of each module or function. The code below sorts them by number of stacks.
        let mut around: FxHashMap<u32, Vec<(&'static str, u32, u64)>> = FxHashMap::default();
        for ((caller, callee), hits) in calls {
            around
                .entry(*callee)
                .or_default()
                .push(("caller", *caller, *hits));
            around
                .entry(*caller)
                .or_default()
                .push(("callee", *callee, *hits));
        }
        out.table(&LAYOUT)?;
        for (place, sum) in shown {
            let place = place as u32;
            let name = Value::Module(frames.name(place));
            let values = [
                name,
                Value::Word("itself"),
                Value::Unknown,
                Value::count(sum.inclusive),
                Value::Percent(share(sum.inclusive, all)),
                Value::count(sum.exclusive),
                Value::Percent(share(sum.exclusive, all)),
            ];
            out.row("", &values)?;
            let Some(others) = around.get_mut(&place) else {
                continue;
            };
            others.sort_by_key(|(relation, other, hits)| {
                (
                    *relation == "callee",
                    std::cmp::Reverse(*hits),
                    frames.name(*other),
                )
            });
            for (relation, other, hits) in others {
                let values = [
                    name,
                    Value::Word(relation),
                    Value::Module(frames.name(*other)),
                    Value::count(*hits),
                    Value::Percent(share(*hits, sum.inclusive)),
                    Value::Unknown,
                    Value::Unknown,
                ];
                out.row("", &values)?;
            }
        }
        Ok(())
    }
}
