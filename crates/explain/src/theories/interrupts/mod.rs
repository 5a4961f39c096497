//! Theories about DPCs and interrupt service routines, and about interrupts and softirqs of Linux.

mod interrupted_cpus;
mod locked_cpus;
mod long_interrupts;
mod long_routines;
mod sampled_locks;
mod victims;

use std::ops::Range;

pub(super) use interrupted_cpus::InterruptedCpus;
pub(super) use locked_cpus::LockedCpus;
pub(super) use long_interrupts::LongInterrupts;
pub(super) use long_routines::LongRoutines;

use selection::{Condition, Expression, Order, Selection};
use tables::Table;

use crate::chain::routine_name;
use crate::survey::{RoutineUse, blocking_kinds, limit_ns};
use crate::{Case, Evidence, Source, Unit};

const LIMITS: Source = Source {
    title: "Microsoft: Example 15: Measuring DPC/ISR Time (100 µs a DPC, 25 µs an ISR)",
    url: Some(
        "https://learn.microsoft.com/en-us/windows-hardware/drivers/devtest/example-15--measuring-dpc-isr-time",
    ),
};

/// Expression for the function of a routine in the table `interrupts`.
const FUNCTION: Expression = Expression::Function {
    image_row: "image_row",
    address: "routine",
};

/// Returns evidence with routines, the routines with most CPU time first. If `ended` is set, the evidence has the
/// routines that ended within this range and blocked the running thread. Otherwise, it has all routines of the trace.
fn by_routine(
    case: &Case<'_>,
    title: &str,
    ended: Option<&Range<i64>>,
    routines: &[RoutineUse],
) -> Evidence {
    const SHOWN: usize = 12;
    let longer_than_allowed = |kinds: &[&str]| {
        let limit = kinds.iter().find_map(|kind| limit_ns(kind));
        Condition::All(vec![
            Condition::is_text("kind", kinds),
            Condition::AtLeast("exclusive_ns", limit.map_or(i64::MAX, |ns| ns + 1)),
        ])
    };
    let over_limit = Condition::Any(vec![
        longer_than_allowed(&["dpc", "timer_dpc", "io_timer"]),
        longer_than_allowed(&["isr", "msi"]),
    ]);
    let selection = Selection::new(Table::Interrupts)
        .group_by(&["kind", "image_row", "routine"])
        .order(&[
            Order::descending("exclusive_ns"),
            Order::descending("times"),
            Order::descending("routine"),
        ])
        .limit(SHOWN);
    let selection = match ended {
        Some(range) => selection
            .within("end_ns", range.clone())
            .filter(Condition::is_text("kind", &blocking_kinds())),
        None => selection,
    };
    let module = Expression::Module("image_row");
    let total = Expression::Sum("exclusive_ns");
    let mean = "avg(exclusive_ns)".to_owned();
    let longest = Expression::Max("duration_ns");
    let over = Expression::count_if(over_limit);
    let mut evidence = Evidence::from_selection(title, selection)
        .stored("kind", "kind", Unit::None)
        .column("module", "module", Unit::None, module)
        .column("function", "function", Unit::None, FUNCTION)
        .column("times", "times", Unit::Count, Expression::Count)
        .column("exclusive_ns", "CPU time", Unit::Duration, total)
        .column("mean_ns", "mean", Unit::Duration, Expression::Formula(mean))
        .column("longest_ns", "longest", Unit::Duration, longest)
        .column("over_limit", "over the limit", Unit::Count, over);
    for used in routines.iter().take(SHOWN) {
        let mean_ns = mean_ns(used);
        evidence = evidence.row([
            Some(used.kind.into()),
            case.module_label(used.image_row).map(Into::into),
            Some(case.symbol(used.image_row, used.routine).into()),
            Some(used.times.into()),
            used.exclusive_ns.map(Into::into),
            mean_ns.map(Into::into),
            used.longest_ns.map(Into::into),
            Some(used.over_limit.into()),
        ]);
    }
    evidence
}

/// Returns the mean time of the runs without nested interrupts, in nanoseconds. *Duration (Fragmented) Avg* of Windows
/// Performance Analyzer is shorter: it is the mean of the pieces into which nested interrupts cut the runs.
fn mean_ns(used: &RoutineUse) -> Option<f64> {
    let runs = Some(used.timed).filter(|runs| *runs > 0)?;
    Some(used.exclusive_ns? as f64 / runs as f64)
}

/// Returns the name of a routine: its module and, if symbols are known, its function.
fn name(case: &Case<'_>, used: &RoutineUse) -> String {
    routine_name(case, used.image_row, used.routine)
}
