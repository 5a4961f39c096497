//! What samples show of DPCs and service routines that are not recorded.

use rustc_hash::FxHashMap;
use tables::{SamplesView, StoreError, Table};

use crate::{Case, Column, Evidence, Outcome, Unit, grouped, listed};

/// Fewer samples of a CPU in a second make no share.
const AT_LEAST: i64 = 20;

/// Seconds of a CPU of which samples found four fifths inside routines, and these samples.
#[derive(Clone, Copy, Default)]
struct Full {
    seconds: i64,
    inside: i64,
    samples: i64,
}

/// That no routine is recorded, and which CPUs samples found inside them nearly all the time.
pub(super) fn hint(case: &Case<'_>) -> Result<Outcome, StoreError> {
    let missing = "the trace holds no DPC and no service routine";
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
        if samples >= AT_LEAST && inside * 5 >= samples * 4 {
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
        "{missing}; samples found {} {} inside such routines for four fifths of a second or more, the \
         first of them {} of {} times in {} such seconds: likely locked",
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
         {AT_LEAST} AND inside * 5 >= samples * 4 GROUP BY cpu ORDER BY seconds DESC, cpu LIMIT \
         {SHOWN}"
    );
    let title = "Seconds of which samples found four fifths inside DPCs and service routines";
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
