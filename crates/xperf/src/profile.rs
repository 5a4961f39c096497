//! `laglab profile`: CPU use by process and module, from samples of the profile timer.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tables::{MAX_WEIGHT_NS, SamplesView, Table};

use crate::place::PlaceOptions;
use crate::process_filter::ProcessFilter;
use crate::writer::{Column, Layout, Value};
use crate::{Error, Recording, Report, Writer, percent};

static BY_PROCESS: Layout = Layout {
    name: "profile",
    labelled: false,
    columns: &[
        Column::process("Process Name ( PID)", ""),
        Column::new("    Weight", "weight_ns"),
        Column::new("% Usage", "cpu_percent"),
        Column::new("     Count", "samples"),
    ],
};

static BY_MODULE: Layout = Layout {
    name: "profile_detail",
    labelled: false,
    columns: &[
        Column::process("Process Name ( PID)", ""),
        Column::new("    Weight", "weight_ns"),
        Column::new("% Usage", "cpu_percent"),
        Column::new("Module!Function", "module"),
        Column::data_only("samples"),
    ],
};

/// Options of `laglab profile`.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// True to show the modules or functions of each process.
    pub detail: bool,
    /// Grouping of addresses.
    pub places: PlaceOptions,
    /// Filter by process.
    pub processes: ProcessFilter,
}

/// Sum over samples.
#[derive(Default)]
struct Sum {
    samples: u64,
    weight_ns: Option<i64>,
}

impl Sum {
    fn add(&mut self, samples: u64, weight_ns: Option<i64>) {
        self.samples += samples;
        if let Some(weight) = weight_ns {
            self.weight_ns = Some(self.weight_ns.unwrap_or(0).saturating_add(weight));
        }
    }
}

/// Row of a process in the table of processes, and its id.
type ProcessKey = (Option<u32>, Option<u32>);

impl Report for Profile {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Samples, Table::Cpus, Table::Damages]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let table = trace.tables.recorded(Table::Samples)?;
        let span = trace.span(&[&table]);
        let wanted = self.processes.wanted(&trace.names);
        let places = self.places.places(trace)?;
        let cpus = trace.cpus()?;
        let mut sums: FxHashMap<(ProcessKey, Option<u32>, u64), Sum> = FxHashMap::default();
        // After lost samples, the weight of the next sample includes the time of all lost samples. Such a weight is too
        // large, so it is limited.
        let most_ns = if trace.is_damaged()? {
            MAX_WEIGHT_NS
        } else {
            i64::MAX
        };
        let columns = [
            "time_ns",
            "address",
            "process_row",
            "process_id",
            "image_row",
            "weight_ns",
            "count",
        ];
        for batch in trace.tables.batches(&table, trace.range.clone(), &columns) {
            let batch = batch?;
            let view = SamplesView::new(&batch)?;
            for row in 0..view.len() {
                let process = (view.process_row.get(row), view.process_id.get(row));
                if !trace.range.contains(&view.time_ns[row]) {
                    continue;
                }
                if !wanted.has(process.0, process.1) {
                    continue;
                }
                let (image, address) = if self.detail {
                    (view.image_row.get(row), places.within(view.address[row]))
                } else {
                    (None, 0)
                };
                // If a row has the count 0, it is still one interrupt of the timer.
                let samples = u64::from(view.count[row].max(1));
                let sum = sums.entry((process, image, address)).or_default();
                sum.add(samples, view.weight_ns.get(row).map(|ns| ns.min(most_ns)));
            }
        }
        let all_ns = (span.end - span.start).saturating_mul(cpus.len() as i64);
        let share = |sum: &Sum| match sum.weight_ns {
            Some(weight) => Value::Percent(percent(weight, all_ns)),
            None => Value::Unknown,
        };
        if !self.detail {
            let mut rows: Vec<_> = sums
                .iter()
                .map(|((process, ..), sum)| (process, sum))
                .collect();
            rows.sort_by_key(|(process, sum)| {
                (std::cmp::Reverse((sum.weight_ns, sum.samples)), **process)
            });
            out.table(&BY_PROCESS)?;
            for ((row, id), sum) in rows {
                let process = Value::Process(trace.names.process(*row, *id));
                let weight = Value::time(sum.weight_ns);
                out.row(
                    "",
                    &[process, weight, share(sum), Value::count(sum.samples)],
                )?;
            }
            return Ok(());
        }
        let mut named: BTreeMap<(ProcessKey, Option<String>), Sum> = BTreeMap::new();
        for ((process, image, address), sum) in &sums {
            let place = places.name(*image, *address);
            named
                .entry((*process, place))
                .or_default()
                .add(sum.samples, sum.weight_ns);
        }
        let mut rows: Vec<_> = named.iter().collect();
        rows.sort_by_key(|(key, sum)| (std::cmp::Reverse((sum.weight_ns, sum.samples)), *key));
        out.table(&BY_MODULE)?;
        for (((row, id), place), sum) in rows {
            let values = [
                Value::Process(trace.names.process(*row, *id)),
                Value::time(sum.weight_ns),
                share(sum),
                Value::Module(place.as_deref()),
                Value::count(sum.samples),
            ];
            out.row("", &values)?;
        }
        places.warn_of_missing_symbols(out);
        Ok(())
    }
}
