//! `laglab stack`: modules or functions on the stacks of events, their callers and callees.

mod frames;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use record::Kind;
use record::needs::TableNeeds;
use rustc_hash::FxHashMap;
use session::NotRecorded;
use tables::{StacksView, Table};
use wording::{counted, grouped};

use crate::layout::Format::{Module, Plain};
use crate::layout::{Column, Layout, ProcessKey, Stored, Value};
use crate::place::{PlaceOptions, Places};
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer, percent};
use frames::Frames;

static LAYOUT: Layout = Layout {
    name: "stack",
    columns: &[
        Column::new("                         Module!Function", "module", Module),
        Column::new("Relation", "relation", Plain),
        Column::new("                  Caller or Callee", "other", Module),
        Column::new("Inclusive Hits", "inclusive", Plain),
        Column::new("Inclusive %", "inclusive_percent", Plain),
        Column::new("Exclusive Hits", "exclusive", Plain),
        Column::new("Exclusive %", "exclusive_percent", Plain),
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
        use Kind::{Images, Processes};
        let (rows, kinds): (_, &[Kind]) = match self {
            Stacked::Profile => {
                let kinds = &[Processes, Images, Kind::Samples, Kind::SampleStacks];
                ("stacks of samples", kinds)
            }
            Stacked::Cswitch => {
                let kinds = &[Processes, Images, Kind::ContextSwitches, Kind::SwitchStacks];
                ("stacks of context switches", kinds)
            }
            Stacked::Readythread => {
                let kinds = &[Processes, Images, Kind::ReadyThreads, Kind::ReadyStacks];
                ("stacks of threads made ready", kinds)
            }
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
    process: ProcessKey,
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
                    .stack(addresses, key.process.1, hits.first_ns)
                    .to_vec();
                sums.resize(frames.places.count(), Sum::default());
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
        self.rows(trace, out, &frames.places, &sums, &calls, all)?;
        frames.places.warn_of_missing_symbols(out);
        Ok(())
    }
}

impl Stack {
    /// Returns the number of selected events for each stack. Also returns the number of selected events
    /// without a stack.
    fn hits(&self, trace: &Recording) -> Result<(FxHashMap<Key, Hits>, u64), Error> {
        let table = trace.tables.table(self.event.table())?;
        let (time, process) = match self.event {
            Stacked::Profile => ("time_ns", ["process_row", "process_id"]),
            Stacked::Cswitch => ("start_ns", ["process_row", "process_id"]),
            Stacked::Readythread => ("time_ns", ["readying_process_row", "readying_process_id"]),
        };
        let mut hits: FxHashMap<Key, Hits> = FxHashMap::default();
        let mut without = 0;
        let events = trace.select(table, Times::At(time)).by_process(process);
        let columns = [time, process[0], process[1], "stack_id", "thread_id"];
        events.for_each(&columns, |batch, rows| {
            let [times, process_row, process_id, stack, thread] =
                columns.map(|name| Stored::new(batch, name));
            // Idle threads do not wait, so their stacks are left out.
            let is_idle = |row| self.event == Stacked::Cswitch && thread.id(row) == Some(0);
            for &row in rows.iter().filter(|row| !is_idle(**row)) {
                let Some(stack) = stack.id(row) else {
                    without += 1;
                    continue;
                };
                let process = (process_row.id(row), process_id.id(row));
                let hits = hits.entry(Key { stack, process }).or_insert(Hits {
                    count: 0,
                    first_ns: times.value(row).number().unwrap_or(0),
                });
                hits.count += 1;
            }
            Ok(())
        })?;
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
        trace: &Recording,
        out: &mut Writer,
        places: &Places<'_>,
        sums: &[Sum],
        calls: &BTreeMap<(u32, u32), u64>,
        all: u64,
    ) -> Result<(), Error> {
        let share = |hits: u64, of: u64| percent(hits as i64, of as i64);
        let least = self.butterfly.unwrap_or(0.0);
        let mut shown: Vec<(u32, &Sum)> = (0..).zip(sums).collect();
        shown.retain(|(_, sum)| share(sum.inclusive, all) >= least);
        shown.sort_by_key(|(place, sum)| {
            (Reverse((sum.inclusive, sum.exclusive)), places.name(*place))
        });
        // Callers and callees of each module or function. The code below sorts them by number of stacks.
        let mut around: FxHashMap<u32, Vec<(&'static str, u32, u64)>> = FxHashMap::default();
        for ((caller, callee), hits) in calls {
            let callers = around.entry(*callee).or_default();
            callers.push(("caller", *caller, *hits));
            let callees = around.entry(*caller).or_default();
            callees.push(("callee", *callee, *hits));
        }
        let name = |place: u32| Value::from(places.name(place).map(|name| &**name));
        let share = |hits: u64, of: u64| Value::Share(share(hits, of));
        let mut table = out.table(&LAYOUT, &trace.names);
        for (place, sum) in shown {
            table.row(&[
                name(place),
                "itself".into(),
                Value::Absent,
                sum.inclusive.into(),
                share(sum.inclusive, all),
                sum.exclusive.into(),
                share(sum.exclusive, all),
            ])?;
            let mut others = around.remove(&place).unwrap_or_default();
            others.sort_by_key(|(relation, other, hits)| {
                (*relation == "callee", Reverse(*hits), places.name(*other))
            });
            for (relation, other, hits) in others {
                table.row(&[
                    name(place),
                    relation.into(),
                    name(other),
                    hits.into(),
                    share(hits, sum.inclusive),
                    Value::Absent,
                    Value::Absent,
                ])?;
            }
        }
        Ok(())
    }
}
