//! Hints from samples about DPCs and service routines that are not recorded.

use rustc_hash::FxHashMap;
use tables::{SamplesView, StoreError, Table};

use crate::thresholds::{LOCKED_PERCENT, LOCKED_SAMPLES, is_share};
use crate::{Case, Column, Evidence, Outcome, Unit, grouped, listed};

/// Sums over the seconds in which a CPU has at least `LOCKED_PERCENT` of its samples inside routines: the number of
/// these seconds, the number of samples inside routines, and the number of all samples.
#[derive(Clone, Copy, Default)]
struct Full {
    seconds: i64,
    inside: i64,
    samples: i64,
}

/// Reports that DPCs and service routines are not recorded. Adds a hint about CPUs that had at least `LOCKED_PERCENT`
/// of their samples in a second inside routines.
pub(super) fn hint(case: &Case<'_>) -> Result<Outcome, StoreError> {
    let missing = "the trace has no DPCs and ISRs";
    let table = case.table(Table::Samples)?;
    let columns = ["time_ns", "cpu", "in_dpc", "in_isr"];
    let mut seconds: FxHashMap<(u16, i64), (i64, i64)> = FxHashMap::default();
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let is_inside =
                view.in_dpc.get(row) == Some(true) || view.in_isr.get(row) == Some(true);
            let second = view.time_ns[row] / 1_000_000_000;
            let (inside, samples) = seconds.entry((view.cpu[row], second)).or_default();
            *inside += i64::from(is_inside);
            *samples += 1;
        }
    }
    let mut cpus: FxHashMap<u16, Full> = FxHashMap::default();
    for ((cpu, _), (inside, samples)) in seconds {
        if samples >= LOCKED_SAMPLES && is_share(inside, samples, LOCKED_PERCENT) {
            let full = cpus.entry(cpu).or_default();
            full.seconds += 1;
            full.inside += inside;
            full.samples += samples;
        }
    }
    if cpus.is_empty() {
        return Ok(Outcome::NotRecorded(missing.to_owned()));
    }
    let mut cpus: Vec<(u16, Full)> = cpus.into_iter().collect();
    cpus.sort_unstable_by_key(|(cpu, full)| (-full.seconds, *cpu));
    let (_, most) = cpus[0];
    let shown = cpus.iter().take(SHOWN).map(|(cpu, _)| cpu);
    let because = format!(
        "{missing}, but samples show that {} {} were probably locked: on the first of these, {} of \
         {} samples in {} seconds are inside DPCs and ISRs",
        if cpus.len() == 1 { "CPU" } else { "CPUs" },
        listed(shown),
        grouped(most.inside.unsigned_abs()),
        grouped(most.samples.unsigned_abs()),
        most.seconds
    );
    Ok(Outcome::Hint(because, vec![evidence(&cpus)]))
}

const SHOWN: usize = 20;

fn evidence(cpus: &[(u16, Full)]) -> Evidence {
    let columns = [
        Column::new("cpu", "CPU", Unit::None),
        Column::new("seconds", "seconds", Unit::Count),
        Column::new("inside", "samples inside", Unit::Count),
        Column::new("samples", "of", Unit::Count),
    ];
    let query = format!(
        "SELECT cpu, count(*) AS seconds, sum(inside) AS inside, sum(samples) AS samples FROM \
         (SELECT cpu, time_ns / 1000000000 AS second, count(*) AS samples, sum(CASE WHEN in_dpc OR \
         in_isr THEN 1 ELSE 0 END) AS inside FROM samples GROUP BY 1, 2) WHERE samples >= \
         {LOCKED_SAMPLES} AND inside * 100 >= samples * {LOCKED_PERCENT} GROUP BY cpu ORDER BY seconds DESC, cpu LIMIT \
         {SHOWN}"
    );
    let title = "Seconds in which 80 % of a CPU's samples are inside DPCs and ISRs";
    let mut evidence = Evidence::new(title, query, &columns);
    for (cpu, full) in cpus.iter().take(SHOWN) {
        evidence = evidence.row([
            Some((*cpu).into()),
            Some(full.seconds.into()),
            Some(full.inside.into()),
            Some(full.samples.into()),
        ]);
    }
    evidence
}
