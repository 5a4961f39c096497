//! `laglab stack`: the modules or functions on the stacks of events, who calls them and whom they
//! call.

mod frames;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, SamplesView, StacksView, Table};

use super::place::PlaceOptions;
use super::process_filter::ProcessFilter;
use super::profile::SAMPLES;
use super::recorded::Recorded;
use super::writer::{Column, Layout, Value};
use super::{Recording, Report, Writer, percent};
use crate::cli::{self, Failure};
use crate::watch;
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
#[derive(clap::Args, Debug)]
pub(crate) struct Stack {
    /// The events whose stacks are counted
    #[arg(long, value_enum, default_value_t)]
    event: Stacked,
    /// Show callers and callees too, of what is on at least so many percent of the stacks
    #[arg(long, value_name = "MIN%", num_args = 0..=1, default_missing_value = "1")]
    butterfly: Option<f64>,
    #[command(flatten)]
    places: PlaceOptions,
    #[command(flatten)]
    processes: ProcessFilter,
}

/// Events that have stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stacked {
    /// Samples of the profile timer: where time is spent
    #[default]
    Profile,
    /// Switches to a thread: where it had waited
    Cswitch,
    /// Threads made ready: who ended their waits
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

    /// What to record where the trace has the events without their stacks.
    fn stacks(self) -> Recorded {
        let (what, xperf, wpr) = match self {
            Stacked::Profile => (
                "stacks of samples",
                "PROFILE+PROC_THREAD+LOADER -stackwalk Profile",
                "SampledProfile, with SampledProfile among the stacks,",
            ),
            Stacked::Cswitch => (
                "stacks of context switches",
                "CSWITCH+PROC_THREAD+LOADER -stackwalk CSwitch",
                "CSwitch, with CSwitch among the stacks,",
            ),
            Stacked::Readythread => (
                "stacks of threads made ready",
                "DISPATCHER+CSWITCH+PROC_THREAD+LOADER -stackwalk ReadyThread",
                "ReadyThread, with ReadyThread among the stacks,",
            ),
        };
        Recorded {
            table: Table::Stacks,
            what,
            xperf,
            wpr,
        }
    }
}

/// A stack of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    stack: u32,
    process_row: Option<u32>,
    process_id: Option<u32>,
}

/// How often a stack was logged, and when first: modules are looked up then.
#[derive(Clone, Copy)]
struct Hits {
    count: u64,
    first_ns: i64,
}

/// Stacks that a place is on, and those that it is at the end of.
#[derive(Clone, Copy, Default)]
struct Sum {
    inclusive: u64,
    exclusive: u64,
}

impl Report for Stack {
    fn tables(&self) -> Vec<Table> {
        vec![self.event.table(), Table::Stacks]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Failure> {
        let (hits, without) = self.hits(trace)?;
        let mut hits: Vec<(Key, Hits)> = hits.into_iter().collect();
        hits.sort_unstable_by_key(|(key, _)| *key);
        let all: u64 = hits.iter().map(|(_, hits)| hits.count).sum();

        let mut frames = Frames::new(trace, self.places.places(trace)?);
        let mut sums: Vec<Sum> = Vec::new();
        // Caller and callee, by their places.
        let mut calls: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let stacks = trace.tables.table(Table::Stacks)?;
        let (mut first, mut next) = (0u64, 0);
        for (chunk, about) in stacks.chunks().iter().enumerate() {
            watch::check()?;
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
                // What recurs on a stack is on it once.
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
            cli::say(&format!(
                "{without} of {} events have no stack",
                without + all
            ));
        }
        self.rows(out, &frames, &sums, &calls, all)?;
        frames.names.say_what_is_missing();
        Ok(())
    }
}

impl Stack {
    /// How often each stack was logged in the range, and how many events have none.
    fn hits(&self, trace: &Recording) -> Result<(FxHashMap<Key, Hits>, u64), Failure> {
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
        // Runs are sorted by their end, but asked for by their begin.
        let range = match self.event {
            Stacked::Cswitch => trace.range.start..i64::MAX,
            _ => trace.range.clone(),
        };
        for chunk in table.chunks_within(range) {
            watch::check()?;
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
                    // Idle threads wait for nothing.
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
            let missing = match table.rows() {
                0 if self.event == Stacked::Profile => SAMPLES.missing(),
                _ => self.event.stacks().missing(),
            };
            return Err(Failure::NotRecorded(missing));
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
    ) -> Result<(), Failure> {
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
        // Both directions of each call, the most frequent first.
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
