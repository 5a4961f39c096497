//! CPU use and durations of DPCs and interrupt service routines.

use explain::limit_ns;
use session::TraceTables;
use tables::{InterruptsView, Table};
use views::{Bounds, Histogram, Intervals, Lanes, NULL, NULL_ID, Rows, Timeline};

use super::{CpuPlaces, HeatMap, Time};
use crate::Error;

const DPC: u32 = 0;
const ISR: u32 = 1;

/// Charts of interrupts over time, and the distribution of their durations.
pub(super) struct Interrupts {
    /// Share of time in DPCs, by CPU and bucket.
    pub(super) dpc: Vec<Option<Vec<u32>>>,
    pub(super) isr: Vec<Option<Vec<u32>>>,
    pub(super) durations: Option<HeatMap>,
    pub(super) spread: InterruptSpread,
}

/// Number of DPCs and interrupt service routines by duration. Durations do not include interruptions.
#[derive(Debug)]
pub(in super::super) struct InterruptSpread {
    /// Upper bounds of the classes in nanoseconds. The last class has no upper bound and no entry here.
    pub(in super::super) bounds_ns: Vec<i64>,
    /// Number of DPCs by class; empty if there are none.
    pub(in super::super) dpc: Vec<u64>,
    /// Number of service routines by class; empty if there are none.
    pub(in super::super) isr: Vec<u64>,
}

/// Returns the lane of a DPC or service routine in the timeline. Routines that run in threads have no lane,
/// because they delay no other code.
fn kind(name: Option<&str>) -> u32 {
    match name {
        Some("dpc" | "timer_dpc" | "io_timer") => DPC,
        Some("isr" | "msi") => ISR,
        _ => NULL_ID,
    }
}

/// Sums the DPCs and service routines. Returns `None` if there are none.
pub(super) fn read(
    tables: &TraceTables,
    time: &Time,
    places: &CpuPlaces,
) -> Result<Option<Interrupts>, Error> {
    let table = tables.table(Table::Interrupts)?;
    if table.rows() == 0 {
        return Ok(None);
    }
    let bounds = bounds();
    let cpus = || Timeline::new(time.buckets, Lanes::every(places.shown as u32));
    let mut used = [cpus()?, cpus()?];
    let mut heat = views::HeatMap::new(time.buckets, bounds.clone())?;
    let mut histogram = Histogram::new(bounds.clone(), 2)?;
    for batch in tables.batches(
        &table,
        i64::MIN..i64::MAX,
        &["end_ns", "cpu", "kind", "exclusive_ns"],
    ) {
        let batch = batch?;
        let view = InterruptsView::new(&batch)?;
        let rows = 0..view.len();
        let kinds: Vec<u32> = rows.clone().map(|row| kind(view.kind.get(row))).collect();
        let took = |row| view.exclusive_ns.get(row).unwrap_or(NULL);
        let took: Vec<i64> = rows.clone().map(took).collect();
        // The time of interruptions is cut from the start of the routine. The sums of time are exact, but the drawn
        // position may be wrong by the time of interruptions.
        let start = |row: usize| match took[row] {
            NULL => NULL,
            ns => view.end_ns[row].saturating_sub(ns),
        };
        let starts: Vec<i64> = rows.clone().map(start).collect();
        let of_cpu: Vec<u32> = view.cpu.iter().map(|cpu| places.of(*cpu)).collect();
        let all = Rows::of(rows);
        histogram.add(&kinds, &took, &all)?;
        for (kind, used) in (DPC..).zip(&mut used) {
            let of_kind = all.clone().keep_if(|row| kinds[row] == kind);
            let intervals = Intervals {
                starts: &starts,
                ends: view.end_ns,
                keys: &of_cpu,
            };
            used.add_intervals(intervals, &of_kind)?;
            if kind == DPC {
                heat.add(view.end_ns, &took, &of_kind)?;
            }
        }
    }
    let [dpc, isr] = used.map(|used| time.by_cpu(&used.finish(), places.shown));
    let mut counts = histogram.finish();
    let mut of_kind = |kind| {
        let found = counts.iter_mut().find(|(id, _)| *id == Some(kind));
        found.map_or_else(Vec::new, |(_, counts)| std::mem::take(counts))
    };
    let spread = InterruptSpread {
        bounds_ns: bounds.upper().to_vec(),
        dpc: of_kind(DPC),
        isr: of_kind(ISR),
    };
    Ok(Some(Interrupts {
        dpc,
        isr,
        durations: limit_ns("dpc")
            .filter(|_| !spread.dpc.is_empty())
            .map(|limit_ns| HeatMap {
                bounds_ns: spread.bounds_ns.clone(),
                limit_ns,
                cells: cells(&heat.finish()),
            }),
        spread,
    }))
}

/// Returns the upper bounds of the classes. They are 1, 2.5 and 5 µs, multiplied by powers of ten, up to 10
/// s. Microsoft's limits for durations are among these bounds.
fn bounds() -> Bounds {
    let decades = (0..7).map(|power| 1_000 * 10i64.pow(power));
    let steps = decades.flat_map(|unit| [unit, unit / 2 * 5, unit * 5]);
    Bounds::new(steps.chain([10_000_000_000]).collect())
}

/// Returns the bucket, class and count of each cell that is not empty, in one flat list.
fn cells(counts: &[Vec<u64>]) -> Vec<u64> {
    let mut cells = Vec::new();
    for (bucket, classes) in (0..).zip(counts) {
        for (class, count) in (0..).zip(classes).filter(|(_, count)| **count > 0) {
            cells.extend([bucket, class, *count]);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_with_a_limit_are_counted_and_limits_are_bounds_of_classes() {
        let bounds = bounds();
        assert_eq!(bounds.upper()[..4], [1_000, 2_500, 5_000, 10_000]);
        assert_eq!(bounds.upper().last(), Some(&10_000_000_000));
        for (name, of) in [
            ("dpc", DPC),
            ("timer_dpc", DPC),
            ("io_timer", DPC),
            ("isr", ISR),
            ("msi", ISR),
        ] {
            assert_eq!(kind(Some(name)), of);
            assert!(bounds.upper().contains(&limit_ns(name).unwrap()));
        }
        for name in ["threaded_dpc", "passive_isr"] {
            assert_eq!((kind(Some(name)), limit_ns(name)), (NULL_ID, None));
        }
    }
}
