//! CPU time of interrupts and softirqs of Linux, by name.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{InterruptsView, StoreError, Table};

use crate::{Case, Evidence, Unit};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

/// Interrupts or softirqs with one name.
pub(crate) struct RoutineTime {
    /// Name, such as `softirq NET_RX`.
    pub(crate) name: String,
    /// Number of the softirq; `None` for an interrupt.
    pub(crate) softirq: Option<u64>,
    pub(crate) runs: u64,
    /// Time in nanoseconds without nested interrupts.
    pub(crate) ns: i64,
}

/// Interrupts and softirqs that ended within a time range on some CPUs, those with most time first.
pub(crate) struct RoutineTimes {
    pub(crate) routines: Vec<RoutineTime>,
    within: Range<i64>,
    /// CPUs of the routines; `None` for all CPUs.
    cpus: Option<Vec<u16>>,
    /// True if softirqs in threads count.
    in_threads: bool,
}

impl RoutineTimes {
    pub(crate) fn read(
        case: &Case<'_>,
        within: Range<i64>,
        cpus: Option<&[u16]>,
        in_threads: bool,
    ) -> Result<RoutineTimes, StoreError> {
        let table = case.table(Table::Interrupts)?;
        let mut names: FxHashMap<String, RoutineTime> = FxHashMap::default();
        for batch in case.batches(&table, within.clone(), &COLUMNS) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row);
                if kind == Some("threaded_dpc") && !in_threads
                    || cpus.is_some_and(|cpus| !cpus.contains(&view.cpu[row]))
                    || !within.contains(&view.end_ns[row])
                {
                    continue;
                }
                let name = view.name.get(row).unwrap_or_default();
                let routine = names.entry(name.to_owned());
                let routine = routine.or_insert_with(|| RoutineTime {
                    name: name.to_owned(),
                    softirq: (kind != Some("isr")).then(|| view.routine[row]),
                    runs: 0,
                    ns: 0,
                });
                routine.runs += 1;
                let ns = view.exclusive_ns.get(row).unwrap_or(0);
                routine.ns = routine.ns.saturating_add(ns);
            }
        }
        let mut routines: Vec<RoutineTime> = names.into_values().collect();
        routines.sort_by(|a, b| (Reverse(a.ns), &a.name).cmp(&(Reverse(b.ns), &b.name)));
        Ok(RoutineTimes {
            routines,
            within,
            cpus: cpus.map(<[u16]>::to_vec),
            in_threads,
        })
    }

    pub(crate) fn evidence(&self, title: &str) -> Evidence {
        let threads = Condition::IsNotText("kind", vec!["threaded_dpc".to_owned()]);
        let cpus = self.cpus.iter();
        let selection = Selection::new(Table::Interrupts)
            .within("end_ns", self.within.clone())
            .filters((!self.in_threads).then_some(threads))
            .filters(cpus.map(|cpus| Condition::is_one_of("cpu", cpus)))
            .group_by(&["name"])
            .order(&[Order::descending("cpu_ns"), Order::ascending("name")])
            .limit(SHOWN);
        let time = Expression::Sum("exclusive_ns");
        let evidence = Evidence::from_selection(title, selection)
            .column("name", "name", Unit::None, Expression::TextOrEmpty("name"))
            .column("times", "runs", Unit::Count, Expression::Count)
            .column("cpu_ns", "CPU time", Unit::Duration, time);
        let shown = self.routines.iter().take(SHOWN);
        shown.fold(evidence, |evidence, routine| {
            evidence.row([
                Some(routine.name.as_str().into()),
                Some(routine.runs.into()),
                Some(routine.ns.into()),
            ])
        })
    }
}

/// Columns of the table `interrupts` that are read.
pub(crate) const COLUMNS: [&str; 7] = [
    "start_ns",
    "end_ns",
    "cpu",
    "kind",
    "routine",
    "exclusive_ns",
    "name",
];
