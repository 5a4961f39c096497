//! Threaded DPCs during a wait. They run in threads of the process System, so the trace shows the time of a driver as
//! time of System.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{InterruptsView, StoreError, Table};

use crate::chain::waiter::Waiter;
use crate::ranges::overlap;
use crate::thresholds::{CAUSE_PERCENT, is_share};
use crate::{Case, Evidence, Unit};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

/// Driver whose threaded DPCs ran for most of the time of a wait.
pub(crate) struct ThreadedDpcs {
    /// File name of the driver.
    pub(crate) module: String,
    /// Number of the driver's threaded DPCs that ended during the wait.
    pub(crate) times: u64,
    pub(crate) evidence: Evidence,
}

/// Finds the driver whose threaded DPCs lasted for most of the wait, on the CPUs for which the thread waited.
pub(crate) fn find(case: &Case<'_>, waiter: &Waiter) -> Result<Option<ThreadedDpcs>, StoreError> {
    let within = waiter.range.start..waiter.range.end.saturating_add(1);
    let mut modules: FxHashMap<Option<u32>, (u64, i64, i64)> = FxHashMap::default();
    let table = case.table(Table::Interrupts)?;
    let columns = [
        "start_ns",
        "end_ns",
        "cpu",
        "kind",
        "image_row",
        "duration_ns",
    ];
    for batch in case.batches(&table, within.clone(), &columns) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            let (end, start) = (view.end_ns[row], view.start_ns.get(row));
            if view.kind.get(row) != Some("threaded_dpc")
                || !waiter.waited_for(view.cpu[row])
                || !within.contains(&end)
            {
                continue;
            }
            let sums = modules.entry(view.image_row.get(row)).or_default();
            sums.0 += 1;
            sums.1 = sums
                .1
                .saturating_add(view.duration_ns.get(row).unwrap_or(0));
            let inside = start.and_then(|start| overlap(&(start..end), &waiter.range));
            sums.2 += inside.map_or(0, |inside| inside.end - inside.start);
        }
    }
    let mut modules: Vec<_> = modules.into_iter().collect();
    modules.sort_by_key(|(row, (_, ns, _))| (Reverse(*ns), *row));
    let most = modules
        .iter()
        .max_by_key(|(row, (_, _, inside_ns))| (*inside_ns, Reverse(*row)));
    let Some((image_row, (times, _, inside_ns))) = most else {
        return Ok(None);
    };
    let Some(module) = case.module_label(*image_row) else {
        return Ok(None);
    };
    if !is_share(*inside_ns, waiter.ready_ns(), CAUSE_PERCENT) {
        return Ok(None);
    }
    let limited = waiter.its_cpus();
    let selection = Selection::new(Table::Interrupts)
        .within("end_ns", within)
        .filter(Condition::is_text("kind", &["threaded_dpc"]))
        .filters(limited.map(|cpus| Condition::is_one_of("cpu", cpus)))
        .group_by(&["image_row"])
        .order(&[
            Order::descending("duration_ns"),
            Order::ascending("image_row").unknown_first(),
        ])
        .limit(SHOWN);
    let evidence = Evidence::from_selection("Threaded DPCs in this time, by driver", selection)
        .column(
            "module",
            "module",
            Unit::None,
            Expression::Module("image_row"),
        )
        .column("times", "times", Unit::Count, Expression::Count)
        .column(
            "duration_ns",
            "time",
            Unit::Duration,
            Expression::Sum("duration_ns"),
        );
    let evidence = modules
        .iter()
        .take(SHOWN)
        .fold(evidence, |evidence, (row, (times, ns, _))| {
            evidence.row([
                case.module_label(*row).map(Into::into),
                Some((*times).into()),
                Some((*ns).into()),
            ])
        });
    Ok(Some(ThreadedDpcs {
        module: module.to_owned(),
        times: *times,
        evidence,
    }))
}
