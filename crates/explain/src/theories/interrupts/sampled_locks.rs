//! Locked CPUs of traces that do not record DPCs and service routines, by samples.

use std::cmp::Reverse;
use std::ops::Range;

use tables::StoreError;

use super::locked_cpus::{ABOUT, ModuleSamples};
use super::victims::Victims;
use crate::chain::floods::Flood;
use crate::survey::{SampledLock, cpu_names};
use crate::thresholds::{LOCKED_PERCENT, LOCKED_SAMPLES};
use crate::{
    Case, Column, Evidence, Finding, Outcome, Severity, Subject, Unit, grouped, moment, percent,
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 20;

/// Reports that these routines are not recorded, or that samples show locked CPUs.
pub(super) fn judge(case: &Case<'_>, missing: &str) -> Result<Outcome, StoreError> {
    let locks = &case.survey.interrupts.sampled;
    let Some(first) = locks.iter().map(|lock| lock.during.start).min() else {
        return Ok(Outcome::NotRecorded(format!("the trace has no {missing}")));
    };
    let last = locks
        .iter()
        .map(|lock| lock.during.end)
        .max()
        .unwrap_or(first);
    let mut cpus: Vec<u16> = locks.iter().map(|lock| lock.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let flood = Flood {
        locked_ns: locked_ns(locks),
        during: first..last,
        cpus,
    };
    Ok(Outcome::For(vec![finding(case, &flood, missing)?]))
}

/// Returns the time during which at least one CPU was locked, in nanoseconds.
fn locked_ns(locks: &[SampledLock]) -> i64 {
    let ranges = locks.iter().map(|lock| lock.during.clone()).collect();
    let ranges: Vec<Range<i64>> = crate::ranges::union(ranges);
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn finding(case: &Case<'_>, flood: &Flood, missing: &str) -> Result<Finding, StoreError> {
    let locks = &case.survey.interrupts.sampled;
    let inside: i64 = locks.iter().map(|lock| lock.inside).sum();
    let samples: i64 = locks.iter().map(|lock| lock.samples).sum();
    let cpus = cpu_names(&flood.cpus);
    let modules = ModuleSamples::read(case, flood)?;
    let victims = Victims::read(case, flood)?;
    let mut sentence = format!(
        "{cpus} probably ran almost only DPCs and ISRs between {} and {}: {} of {} samples ({}) are inside them.",
        moment(flood.during.start),
        moment(flood.during.end),
        grouped(inside.unsigned_abs()),
        grouped(samples.unsigned_abs()),
        percent(inside, samples)
    );
    sentence += &modules.sentence();
    sentence += &victims.sentence(case);
    let mut finding = Finding::new(&ABOUT, Severity::Warning, sentence)
        .during(flood.during.clone())
        .delay(
            flood.locked_ns,
            format!("during which threads could hardly use {cpus}"),
        )
        .subjects(flood.cpus.iter().map(|cpu| Subject::Cpu { number: *cpu }))
        .subjects(victims.subjects(case))
        .with(evidence(locks))
        .doubt(format!(
            "{missing} are not recorded: only samples show them. Record again with xperf -on DPC+INTERRUPT, or with the \
             WPR keywords DPC and Interrupt"
        ));
    finding.evidence.extend(modules.evidence(flood));
    finding.evidence.extend(victims.evidence(case, flood));
    Ok(match modules.remedy() {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    })
}

fn evidence(locks: &[SampledLock]) -> Evidence {
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
    let mut cpus: Vec<(u16, i64, i64, i64)> = Vec::new();
    for lock in locks {
        let seconds = (lock.during.end - lock.during.start) / 1_000_000_000;
        match cpus.last_mut() {
            Some((cpu, all, inside, samples)) if *cpu == lock.cpu => {
                *all += seconds;
                *inside += lock.inside;
                *samples += lock.samples;
            }
            _ => cpus.push((lock.cpu, seconds, lock.inside, lock.samples)),
        }
    }
    cpus.sort_unstable_by_key(|(cpu, seconds, ..)| (Reverse(*seconds), *cpu));
    let title = "Seconds in which 80 % of a CPU's samples are inside DPCs and ISRs";
    let mut evidence = Evidence::new(title, query, &columns);
    for (cpu, seconds, inside, samples) in cpus.into_iter().take(SHOWN) {
        evidence = evidence.row([
            Some(cpu.into()),
            Some(seconds.into()),
            Some(inside.into()),
            Some(samples.into()),
        ]);
    }
    evidence
}
