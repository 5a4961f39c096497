//! Do DPCs and interrupt service routines keep CPUs from threads?

mod locked_cpus;
mod long_routines;
mod sampled;
mod victims;

pub(super) use locked_cpus::{Flood, LockedCpus, floods};
pub(super) use long_routines::LongRoutines;

use crate::survey::{RoutineUse, limit_ns};
use crate::{Case, Column, Evidence, Source, Unit};

const LIMITS: Source = Source {
    title: "Microsoft: Example 15: Measuring DPC/ISR Time (100 µs a DPC, 25 µs a service routine)",
    url: "https://learn.microsoft.com/en-us/windows-hardware/drivers/devtest/example-15--measuring-dpc-isr-time",
};

/// What the routines of this kind are called.
pub(super) fn called(kind: &str) -> &'static str {
    match kind {
        "isr" | "msi" | "passive_isr" => "service routines",
        _ => "DPCs",
    }
}

const ROUTINES: [Column; 8] = [
    Column::new("kind", "kind", Unit::None),
    Column::new("module", "module", Unit::None),
    Column::new("function", "function", Unit::None),
    Column::new("times", "times", Unit::Count),
    Column::new("exclusive_ns", "CPU time", Unit::Duration),
    Column::new("mean_ns", "mean piece", Unit::Duration),
    Column::new("longest_ns", "longest", Unit::Duration),
    Column::new("over_limit", "over the limit", Unit::Count),
];

/// Routines in rows; those of most time, of rows of `interrupts` for which the condition holds.
fn by_routine(case: &Case<'_>, title: &str, condition: &str, routines: &[RoutineUse]) -> Evidence {
    const SHOWN: usize = 12;
    let limit_of = |kind: &str| limit_ns(kind).unwrap_or(i64::MAX);
    let query = format!(
        "SELECT kind, module, function, times, exclusive_ns, mean_ns, longest_ns, over_limit FROM \
         (SELECT kind, image_row, routine, module(image_row) AS module, symbol(image_row, routine) \
         AS function, count(*) AS times, sum(exclusive_ns) AS exclusive_ns, CAST(sum(exclusive_ns) \
         AS DOUBLE) / sum(fragments) AS mean_ns, max(duration_ns) AS longest_ns, sum(CASE WHEN \
         kind IN ('dpc', 'timer_dpc', 'io_timer') AND exclusive_ns > {dpc} OR kind IN ('isr', \
         'msi') AND exclusive_ns > {isr} THEN 1 ELSE 0 END) AS over_limit FROM \
         interrupts{condition} GROUP BY kind, image_row, routine) ORDER BY exclusive_ns DESC NULLS \
         LAST, times DESC, routine DESC LIMIT {SHOWN}",
        dpc = limit_of("dpc"),
        isr = limit_of("isr"),
    );
    let mut evidence = Evidence::new(title, query, &ROUTINES);
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

/// The mean of the pieces into which other routines cut the runs, as Windows Performance Analyzer's
/// *Duration (Fragmented) Avg*.
fn mean_ns(used: &RoutineUse) -> Option<f64> {
    let pieces = Some(used.fragments).filter(|pieces| *pieces > 0)?;
    Some(used.exclusive_ns? as f64 / pieces as f64)
}

/// A routine's module and function in words: the function alone tells the module where symbols are
/// known.
fn name(case: &Case<'_>, used: &RoutineUse) -> String {
    let module = case
        .module_label(used.image_row)
        .unwrap_or("an unknown module");
    let function = case.symbol(used.image_row, used.routine);
    match function.split_once('!') {
        Some((_, function)) => format!("{module} ({function})"),
        None => module.to_owned(),
    }
}
