//! Times during which DPCs and service routines locked CPUs.

use std::ops::Range;

use crate::Case;
use crate::ranges::{overlap, union};
use crate::thresholds::{LOCKED_PERCENT, is_share};

/// Time range during which some CPUs were locked.
pub(crate) struct Flood {
    /// Examined time range. It is the time during which at least one of the CPUs was locked, or else the time
    /// range in scope.
    pub(crate) during: Range<i64>,
    /// Time within the examined range during which at least one of the CPUs was locked, in
    /// nanoseconds.
    pub(crate) locked_ns: i64,
    /// Numbers of the locked CPUs.
    pub(crate) cpus: Vec<u16>,
}

/// Finds the times during which CPUs were locked. CPUs that were locked at the same time form one flood. If the time
/// range in scope is shorter than a second, the whole flood is examined. If CPUs were locked for most of the time
/// range in scope, the whole time range in scope is examined. Otherwise, the part of the flood within the time range
/// in scope is examined.
pub(crate) fn floods(case: &Case<'_>) -> Vec<Flood> {
    let locked = &case.survey.interrupts.locked;
    let range = case.scope.during.clone().unwrap_or(i64::MIN..i64::MAX);
    let asked_ns = range.end.saturating_sub(range.start);
    let whole = union(locked.iter().map(|locked| locked.during.clone()).collect());
    let floods = whole.into_iter().filter_map(|flood| {
        let within = overlap(&flood, &range)?;
        let within_ns = within.end.saturating_sub(within.start);
        let (during, locked_ns) = match within_ns {
            _ if asked_ns < 1_000_000_000 => (flood.clone(), flood.end - flood.start),
            _ if is_share(within_ns, asked_ns, LOCKED_PERCENT) => (range.clone(), within_ns),
            _ => (within, within_ns),
        };
        let of_it = locked
            .iter()
            .filter(|locked| overlap(&locked.during, &during).is_some());
        let mut cpus: Vec<u16> = of_it.map(|locked| locked.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Some(Flood {
            during,
            locked_ns,
            cpus,
        })
    });
    floods.collect()
}
