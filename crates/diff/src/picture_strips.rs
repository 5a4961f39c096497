//! Use of each CPU over time, before and after the change.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use explore::{ExploreError, Number, TimelineAnswer, TimelineRequest};
use serde::Serialize;
use ts_rs::TS;

use crate::Kind;
use crate::picture::{Source, is_dpc, is_recorded, of_runs};

/// Use of the CPUs in the traces of both sides. Time buckets have the same length in all traces, and times count from
/// the start of each recording.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Strips {
    /// Kind of work that used the CPUs.
    pub work: CpuWork,
    /// Length of a time bucket, in nanoseconds.
    pub bucket_ns: i64,
    /// Use of the CPUs in each trace before the change.
    pub before: Vec<CpuStrips>,
    /// Use of the CPUs in each trace after the change.
    pub after: Vec<CpuStrips>,
    /// Number of traces that are left out, because there are too many.
    pub omitted: usize,
}

/// Work that uses CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CpuWork {
    /// Threads, including the DPCs and ISRs that interrupted them.
    Threads,
    /// DPCs, including the ISRs that interrupted them.
    Dpcs,
}

/// Use of the CPUs in one trace.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct CpuStrips {
    /// Name of the trace.
    pub trace: String,
    /// Use of each CPU, sorted by the number of the CPU.
    pub cpus: Vec<CpuStrip>,
    /// Number of CPUs that are left out because there are too many. They are the least used CPUs.
    pub omitted: usize,
}

/// Use of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct CpuStrip {
    /// Number of the CPU.
    pub cpu: i64,
    /// Used share of each time bucket. A share is from 0 to 1, rounded to thousandths.
    pub shares: Vec<f64>,
}

/// Number of time buckets of the longer recording.
const BUCKETS: i64 = 240;

/// Maximum number of shown CPUs of a trace.
const MOST_CPUS: u32 = 64;

/// Maximum number of traces of a side.
const MOST_TRACES: usize = 12;

/// Returns the strips of each kind of work that all traces recorded.
pub(crate) fn strips(
    sides: [&[Source<'_>]; 2],
    cancel: &AtomicBool,
) -> Result<Vec<Strips>, ExploreError> {
    let shown = sides.map(|side| &side[..side.len().min(MOST_TRACES)]);
    let longest = shown
        .into_iter()
        .flatten()
        .map(|source| span_ns(*source))
        .max();
    let bucket_ns = (longest.unwrap_or(0) / BUCKETS).max(1);
    let mut strips = Vec::new();
    for (kind, work) in [
        (Kind::Program, CpuWork::Threads),
        (Kind::Dpc, CpuWork::Dpcs),
    ] {
        if is_recorded(sides, kind) {
            let [before, after] = shown.map(|side| {
                let traces = side
                    .iter()
                    .map(|source| cpus(*source, work, bucket_ns, cancel));
                traces.collect::<Result<Vec<CpuStrips>, ExploreError>>()
            });
            strips.push(Strips {
                work,
                bucket_ns,
                before: before?,
                after: after?,
                omitted: sides.map(<[_]>::len).iter().sum::<usize>()
                    - shown.map(<[_]>::len).iter().sum::<usize>(),
            });
        }
    }
    Ok(strips)
}

fn span_ns(source: Source<'_>) -> i64 {
    let [start, end] = source.recording.range_ns();
    end.saturating_sub(start)
}

fn cpus(
    source: Source<'_>,
    work: CpuWork,
    bucket_ns: i64,
    cancel: &AtomicBool,
) -> Result<CpuStrips, ExploreError> {
    let [start, _] = source.recording.range_ns();
    let span = span_ns(source);
    let buckets = span.saturating_add(bucket_ns - 1) / bucket_ns;
    let (table, filter) = match work {
        CpuWork::Threads => ("cpu_runs", of_runs()),
        CpuWork::Dpcs => ("interrupts", vec![is_dpc()]),
    };
    let request = TimelineRequest {
        table: table.to_owned(),
        by: Some("cpu".to_owned()),
        measure: Some("time".to_owned()),
        function: None,
        // The requested range is a multiple of `bucket_ns`, because only then each bucket has the length
        // `bucket_ns`.
        range: Some([
            start,
            start.saturating_add(buckets.saturating_mul(bucket_ns)),
        ]),
        filter,
        buckets: u32::try_from(buckets).unwrap_or(u32::MAX),
        first: MOST_CPUS,
    };
    let answer = source.explorer.timeline(&request, cancel)?;
    // The last bucket may end after the recording. In this case, only its recorded part counts.
    let length = |bucket: usize| {
        let before = bucket_ns.saturating_mul(bucket as i64);
        span.saturating_sub(before).clamp(1, bucket_ns)
    };
    let mut cpus = shares(&answer, length);
    let omitted = answer.rest.map_or(0, |rest| rest.count);
    // A CPU without rows did no work of this kind, so its shares are 0.
    if let Some(stated) = source.recording.info.cpus.stated.filter(|_| omitted == 0) {
        for cpu in 0..stated.min(MOST_CPUS) {
            let idle = || vec![0.0; buckets.max(0) as usize];
            cpus.entry(i64::from(cpu)).or_insert_with(idle);
        }
    }
    let cpus = cpus.into_iter();
    Ok(CpuStrips {
        trace: source.name.to_owned(),
        cpus: cpus.map(|(cpu, shares)| CpuStrip { cpu, shares }).collect(),
        omitted,
    })
}

/// Returns the used shares of the time buckets of each CPU. `length` returns the length of the recorded part
/// of a bucket, in nanoseconds.
fn shares(answer: &TimelineAnswer, length: impl Fn(usize) -> i64) -> BTreeMap<i64, Vec<f64>> {
    let share = |(bucket, value): (usize, &Option<Number>)| {
        let ns = match value {
            Some(Number::Integer(ns)) => *ns as f64,
            Some(Number::Real(ns)) => *ns,
            None => 0.0,
        };
        let share = (ns / length(bucket) as f64).clamp(0.0, 1.0);
        (share * 1e3).round() / 1e3
    };
    let known = answer.series.iter().filter_map(|series| {
        let values = series.values.iter().enumerate();
        Some((series.id?, values.map(share).collect()))
    });
    known.collect()
}
