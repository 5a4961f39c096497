//! Time of the DPCs and service routines that interrupted the threads of chains.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{InterruptsView, StoreError, Table};

use crate::Case;
use crate::chain::path::Leg;
use crate::ranges::overlap;
use crate::survey::blocks_thread;

/// Time of routines interruptions the runs of chains.
#[derive(Default)]
pub(crate) struct Interruptions {
    /// Runs of chains, by CPU and start. The runs of a CPU do not overlap.
    runs: FxHashMap<u16, BTreeMap<i64, Inner>>,
}

/// Run with its parts that belong to chains.
struct Inner {
    end_ns: i64,
    /// Time ranges, each with the time of routines in it in nanoseconds.
    parts: Vec<(Range<i64>, i64)>,
}

impl Interruptions {
    pub(crate) fn read<'l>(
        case: &Case<'_>,
        legs: impl Iterator<Item = &'l Leg>,
    ) -> Result<Interruptions, StoreError> {
        let mut interruptions = Interruptions::default();
        let (mut first_ns, mut last_ns) = (i64::MAX, i64::MIN);
        for leg in legs {
            let ran = ran(leg);
            if ran.is_empty() {
                continue;
            }
            (first_ns, last_ns) = (first_ns.min(ran.start), last_ns.max(ran.end));
            let of_cpu = interruptions.runs.entry(leg.run.cpu).or_default();
            let inner = of_cpu.entry(leg.run.start_ns).or_insert(Inner {
                end_ns: leg.run.end_ns,
                parts: Vec::new(),
            });
            if !inner.parts.iter().any(|(part, _)| *part == ran) {
                inner.parts.push((ran, 0));
            }
        }
        let table = case.table(Table::Interrupts)?;
        let columns = ["start_ns", "end_ns", "cpu", "kind", "exclusive_ns"];
        // Without runs, the range is empty.
        for batch in case.batches(&table, first_ns..last_ns, &columns) {
            let batch = batch?;
            let view = InterruptsView::new(&batch)?;
            for row in 0..view.len() {
                let times = view.start_ns.get(row).zip(view.exclusive_ns.get(row));
                if let Some((start_ns, exclusive_ns)) = times.filter(|_| blocks_thread(&view, row))
                {
                    interruptions.add(view.cpu[row], &(start_ns..view.end_ns[row]), exclusive_ns);
                }
            }
        }
        Ok(interruptions)
    }

    fn add(&mut self, cpu: u16, routine: &Range<i64>, exclusive_ns: i64) {
        let Some(of_cpu) = self.runs.get_mut(&cpu) else {
            return;
        };
        let runs = of_cpu.range_mut(..routine.end).rev();
        for (_, inner) in runs.take_while(|(_, inner)| routine.start < inner.end_ns) {
            for (part, ns) in &mut inner.parts {
                let both = overlap(part, routine).map_or(0, |both| both.end - both.start);
                *ns = ns.saturating_add(both.min(exclusive_ns));
            }
        }
    }

    /// Returns the time of routines that interrupted the thread while it ran in a step, in nanoseconds.
    pub(crate) fn time_ns(&self, leg: &Leg) -> i64 {
        let ran = ran(leg);
        let inner = self.runs.get(&leg.run.cpu);
        let inner = inner.and_then(|of_cpu| of_cpu.get(&leg.run.start_ns));
        let parts = inner.into_iter().flat_map(|inner| &inner.parts);
        let mut times = parts.filter(|(part, _)| *part == ran).map(|(_, ns)| *ns);
        times.next().unwrap_or(0)
    }
}

/// Returns the time range of a step in which its thread ran.
fn ran(leg: &Leg) -> Range<i64> {
    leg.run.start_ns.max(leg.range.start)..leg.range.end
}
