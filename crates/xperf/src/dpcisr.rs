//! `laglab dpcisr`: durations of DPCs and interrupt service routines by module, and their use of
//! each CPU. It stays code: histograms and intervals are no sums of rows, and its text is a page instead of a table.

mod page;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tables::{InterruptsView, Table};

use crate::intervals::{Intervals, Usage};
use crate::layout::Format::{Module, Plain, Time};
use crate::layout::{Column, Layout, Value};
use crate::place::PlaceOptions;
use crate::rows::Times;
use crate::{Error, Recording, Report, Writer, percent};

static USAGE: Layout = Layout {
    name: "dpcisr_usage",
    columns: &[
        Column::new("", "kind", Plain),
        Column::new("", "module", Module),
        Column::new("", "cpu", Plain),
        Column::new("", "exclusive_ns", Time),
        Column::new("", "cpu_percent", Plain),
    ],
};

static HISTOGRAM: Layout = Layout {
    name: "dpcisr_histogram",
    columns: &[
        Column::new("", "kind", Plain),
        Column::new("", "module", Module),
        Column::new("", "over_ns", Time),
        Column::new("", "up_to_ns", Time),
        Column::new("", "count", Plain),
        Column::new("", "percent", Plain),
    ],
};

static INTERVALS: Layout = Layout {
    name: "dpcisr_intervals",
    columns: &[
        Column::new("", "kind", Plain),
        Column::new("", "start_ns", Time),
        Column::new("", "end_ns", Time),
        Column::new("", "cpu", Plain),
        Column::new("", "exclusive_ns", Time),
        Column::new("", "cpu_percent", Plain),
    ],
};

static DISTRIBUTION: Layout = Layout {
    name: "dpcisr_distribution",
    columns: &[
        Column::new("", "kind", Plain),
        Column::new("", "cpu", Plain),
        Column::new("", "over_percent", Plain),
        Column::new("", "up_to_percent", Plain),
        Column::new("", "intervals", Plain),
    ],
};

/// Upper bounds of the classes of CPU use in an interval, in percent. The output of xperf has only the first two
/// classes.
const CLASSES: [i64; 7] = [1, 5, 10, 25, 50, 75, 100];

/// Number of classes of durations in the histogram: up to 1 µs, 2 µs, 4 µs, ….
const POWERS: usize = 44;

/// Options of `laglab dpcisr`. If no part of the report is chosen, the report has all parts.
#[derive(Clone, Debug, Default)]
pub struct DpcIsr {
    /// True to show DPCs. If only `dpc` is true, interrupt service routines are left out.
    pub dpc: bool,
    /// True to show interrupt service routines. If only `isr` is true, DPCs are left out.
    pub isr: bool,
    /// True to show CPU use by module.
    pub summary: bool,
    /// True to show a histogram of durations by module, with classes of 1, 2, 4, … µs.
    pub histogram: bool,
    /// Length of intervals in nanoseconds. If given, the report shows CPU use in each interval.
    pub interval: Option<i64>,
    /// Length of intervals in nanoseconds. If given, the report shows a histogram of CPU use in intervals of
    /// this length.
    pub bucket: Option<i64>,
    /// Grouping of addresses.
    pub places: PlaceOptions,
}

/// DPC or interrupt service routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Dpc,
    Isr,
}

impl Kind {
    /// Returns the kind of routine for a value of the column `kind` of the table `interrupts`.
    fn from_name(name: Option<&str>) -> Kind {
        match name {
            Some("isr" | "msi" | "passive_isr") => Kind::Isr,
            _ => Kind::Dpc,
        }
    }

    fn value(self) -> Value<'static> {
        match self {
            Kind::Dpc => Value::Text("dpc"),
            Kind::Isr => Value::Text("isr"),
        }
    }
}

/// Sums over executions of routines.
#[derive(Clone, Debug)]
struct Sum {
    count: u64,
    /// Number of executions by duration. The durations include interruptions. Class n has durations of up to
    /// 2^n µs.
    histogram: [u64; POWERS],
    /// Execution time on each CPU, in nanoseconds. It does not include interruptions.
    exclusive_ns: FxHashMap<u16, i64>,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum {
            count: 0,
            histogram: [0; POWERS],
            exclusive_ns: FxHashMap::default(),
        }
    }
}

/// Returns the class of a duration: the exponent of the smallest power of two that is at least the duration
/// in µs.
fn power(duration_ns: i64) -> usize {
    let us = duration_ns.max(0).unsigned_abs().div_ceil(1000).max(1);
    (us.next_power_of_two().trailing_zeros() as usize).min(POWERS - 1)
}

impl Sum {
    fn add(&mut self, cpu: u16, inclusive: Option<i64>, exclusive: Option<i64>) {
        self.count += 1;
        if let Some(inclusive) = inclusive {
            self.histogram[power(inclusive)] += 1;
        }
        if let Some(exclusive) = exclusive {
            let sum = self.exclusive_ns.entry(cpu).or_default();
            *sum = sum.saturating_add(exclusive);
        }
    }

    fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        for (mine, others) in self.histogram.iter_mut().zip(other.histogram) {
            *mine += others;
        }
        for (cpu, ns) in &other.exclusive_ns {
            let sum = self.exclusive_ns.entry(*cpu).or_default();
            *sum = sum.saturating_add(*ns);
        }
    }

    /// Returns the lower bound, the upper bound and the count of each class that is not empty. Bounds are in
    /// nanoseconds.
    fn classes(&self) -> impl Iterator<Item = (i64, i64, u64)> {
        let counts = self.histogram.iter().enumerate();
        counts
            .filter(|(_, count)| **count > 0)
            .map(|(power, count)| {
                let over = if power == 0 {
                    0
                } else {
                    1000i64 << (power - 1)
                };
                (over, 1000i64 << power, *count)
            })
    }
}

/// CPU time of DPCs and interrupt service routines by kind and CPU, in each interval.
struct OverTime {
    intervals: Intervals,
    used: BTreeMap<(Kind, u16), Usage>,
}

impl OverTime {
    fn new(span: Range<i64>, length: i64, cpus: usize) -> Result<OverTime, Error> {
        Ok(OverTime {
            intervals: Intervals::new(span, length, cpus.saturating_mul(2))?,
            used: BTreeMap::new(),
        })
    }

    fn add(&mut self, kind: Kind, cpu: u16, ran: Range<i64>, exclusive_ns: i64) {
        let usage = self.used.entry((kind, cpu));
        let usage = usage.or_insert_with(|| Usage::new(&self.intervals));
        usage.add(&self.intervals, ran, exclusive_ns);
    }

    fn finish(&self, kind: Kind, cpu: u16) -> Vec<i64> {
        match self.used.get(&(kind, cpu)) {
            Some(usage) => usage.finish(),
            None => vec![0; self.intervals.count()],
        }
    }
}

/// Data of the report.
struct Figures {
    span: Range<i64>,
    cpus: Vec<u16>,
    by_module: BTreeMap<Kind, BTreeMap<Option<Arc<str>>, Sum>>,
    over_time: Option<OverTime>,
    buckets: Option<OverTime>,
}

impl Report for DpcIsr {
    fn tables(&self) -> Vec<Table> {
        vec![Table::Interrupts, Table::Cpus]
    }

    fn write(&self, trace: &Recording, out: &mut Writer) -> Result<(), Error> {
        let shown = if self.parts() > 0 {
            self.clone()
        } else {
            DpcIsr {
                summary: true,
                histogram: true,
                interval: Some(1_000_000_000),
                bucket: Some(2_000_000_000),
                ..self.clone()
            }
        };
        if !out.holds_several() && shown.parts() > 1 {
            return Err(Error::SeveralTables);
        }
        let figures = shown.figures(trace, out)?;
        match out.page() {
            Some(page) => Ok(page::write(page, &figures, &shown)?),
            None => figures.rows(trace, &shown, out),
        }
    }
}

impl DpcIsr {
    /// Returns the number of parts that are chosen.
    fn parts(&self) -> usize {
        let chosen = [
            self.summary,
            self.histogram,
            self.interval.is_some(),
            self.bucket.is_some(),
        ];
        chosen.into_iter().map(usize::from).sum()
    }

    fn wants(&self, kind: Kind) -> bool {
        match kind {
            Kind::Dpc => self.dpc || !self.isr,
            Kind::Isr => self.isr || !self.dpc,
        }
    }

    /// Reads the table of interrupts. A routine counts if it ended within the requested time range.
    fn figures(&self, trace: &Recording, out: &mut Writer) -> Result<Figures, Error> {
        let routines = trace.rows(Table::Interrupts, Times::At("end_ns"))?;
        let span = routines.span();
        let mut places = self.places.places(trace)?;
        let mut cpus = trace.cpus()?;
        let over_time = |length: Option<i64>| {
            length
                .map(|length| OverTime::new(span.clone(), length, cpus.len()))
                .transpose()
        };
        let (mut by_interval, mut buckets) = (over_time(self.interval)?, over_time(self.bucket)?);
        let mut sums: FxHashMap<(Kind, u32), Sum> = FxHashMap::default();
        let columns = [
            "start_ns",
            "cpu",
            "kind",
            "routine",
            "duration_ns",
            "exclusive_ns",
            "image_row",
            "name",
        ];
        routines.for_each(&columns, |batch, rows| {
            let view = InterruptsView::new(batch)?;
            let kind_of = |row: usize| Kind::from_name(view.kind.get(row));
            for &row in rows.iter().filter(|row| self.wants(kind_of(**row))) {
                let (kind, cpu) = (kind_of(row), view.cpu[row]);
                let place = match (view.image_row.get(row), view.name.get(row)) {
                    // Routines of Linux have names and no address.
                    (None, Some(name)) => places.with_name(Some(name.to_owned())),
                    (image, _) => places.place(image, view.routine[row]),
                };
                let exclusive = view.exclusive_ns.get(row);
                let sum = sums.entry((kind, place)).or_default();
                sum.add(cpu, view.duration_ns.get(row), exclusive);
                if let (Some(start), Some(exclusive)) = (view.start_ns.get(row), exclusive) {
                    for over_time in [&mut by_interval, &mut buckets].into_iter().flatten() {
                        over_time.add(kind, cpu, start..view.end_ns[row], exclusive);
                    }
                }
            }
            Ok(())
        })?;
        let kinds = [Kind::Dpc, Kind::Isr].into_iter();
        let kinds = kinds.filter(|kind| self.wants(*kind));
        let mut by_module: BTreeMap<_, BTreeMap<_, _>> =
            kinds.map(|kind| (kind, BTreeMap::new())).collect();
        for ((kind, place), sum) in sums {
            let modules = by_module.entry(kind).or_default();
            modules.insert(places.name(place).cloned(), sum);
        }
        places.warn_of_missing_symbols(out);
        let filter = &trace.filter.cpu;
        cpus.retain(|cpu| filter.is_empty() || filter.contains(cpu));
        Ok(Figures {
            span,
            cpus: cpus.into_iter().collect(),
            by_module,
            over_time: by_interval,
            buckets,
        })
    }
}

impl Figures {
    fn length(&self) -> i64 {
        self.span.end - self.span.start
    }

    /// Returns the number of intervals in each class of [`CLASSES`].
    fn distribution(&self, used: &[i64], intervals: &Intervals) -> [u64; CLASSES.len()] {
        let mut counts = [0; CLASSES.len()];
        for (index, used) in used.iter().enumerate() {
            let bounds = intervals.bounds(index);
            let length = (bounds.end - bounds.start).max(1);
            let over = CLASSES.iter().position(|class| {
                i128::from(*used) * 100 <= i128::from(*class) * i128::from(length)
            });
            counts[over.unwrap_or(CLASSES.len() - 1)] += 1;
        }
        counts
    }

    fn rows(&self, trace: &Recording, shown: &DpcIsr, out: &mut Writer) -> Result<(), Error> {
        let names = &trace.names;
        let sums = || {
            self.by_module.iter().flat_map(|(kind, modules)| {
                let named = modules.iter();
                named.map(|(module, sum)| (kind.value(), module.as_deref().into(), sum))
            })
        };
        let lanes = || {
            let kinds = self.by_module.keys();
            kinds.flat_map(|kind| self.cpus.iter().map(|cpu| (*kind, *cpu)))
        };
        if shown.summary {
            let mut table = out.table(&USAGE, names);
            for (kind, module, sum) in sums() {
                for cpu in &self.cpus {
                    let used = sum.exclusive_ns.get(cpu).copied().unwrap_or(0);
                    let share = Value::Share(percent(used, self.length()));
                    table.row(&[kind, module, (*cpu).into(), used.into(), share])?;
                }
            }
        }
        if shown.histogram {
            let mut table = out.table(&HISTOGRAM, names);
            for (kind, module, sum) in sums() {
                for (over, up_to, count) in sum.classes() {
                    let share = Value::Share(percent(count as i64, sum.count as i64));
                    table.row(&[kind, module, over.into(), up_to.into(), count.into(), share])?;
                }
            }
        }
        if let Some(over_time) = &self.over_time {
            let mut table = out.table(&INTERVALS, names);
            for (kind, cpu) in lanes() {
                for (index, used) in over_time.finish(kind, cpu).into_iter().enumerate() {
                    let Range { start, end } = over_time.intervals.bounds(index);
                    let share = Value::Share(percent(used, end - start));
                    let cpu = cpu.into();
                    table.row(&[
                        kind.value(),
                        start.into(),
                        end.into(),
                        cpu,
                        used.into(),
                        share,
                    ])?;
                }
            }
        }
        if let Some(buckets) = &self.buckets {
            let mut table = out.table(&DISTRIBUTION, names);
            for (kind, cpu) in lanes() {
                let used = buckets.finish(kind, cpu);
                let counts = self.distribution(&used, &buckets.intervals);
                let overs = [0].iter().chain(&CLASSES);
                for ((over, up_to), count) in overs.zip(&CLASSES).zip(counts) {
                    let (over, up_to) = ((*over).into(), (*up_to).into());
                    table.row(&[kind.value(), cpu.into(), over, up_to, count.into()])?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_classed_by_the_power_of_two_they_do_not_exceed() {
        let classes = [
            (0, 0),
            (1_000, 0),
            (1_001, 1),
            (2_000, 1),
            (2_001, 2),
            (1_024_000, 10),
            (1_024_001, 11),
            (-5, 0),
            (i64::MAX, POWERS - 1),
        ];
        for (ns, expected) in classes {
            assert_eq!(power(ns), expected, "{ns}");
        }
    }
}
