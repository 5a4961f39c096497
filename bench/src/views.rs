//! Benchmarks of the aggregation kernels of the crate `views`. Each is compared with a simple pass over the columns
//! that it reads.

use std::fmt::Write as _;
use std::hint::black_box;

use views::{IdSet, Intervals, Lanes, Pivot, PivotSpec, Rows, TimeBuckets, TimeRange, Timeline};

use crate::{Outcome, medians_by};

/// Number of rows of the large table. A busy machine makes this number of context switches in half an hour.
const ROWS: usize = 50_000_000;
const PROCESSES: u32 = 300;
const CPUS: u32 = 16;
const BUCKETS: usize = 1_000;

/// Generated columns. They are the same in every run.
struct Columns {
    starts: Vec<i64>,
    ends: Vec<i64>,
    spans: Vec<i64>,
    processes: Vec<u32>,
    cpus: Vec<u32>,
}

impl Columns {
    /// Generates rows. Their starts are about `gap` nanoseconds apart, and their durations are up to 16 ×
    /// `gap`. A few processes have most of the rows.
    fn new(rows: usize, gap: u64) -> Columns {
        let mut columns = Columns {
            starts: Vec::with_capacity(rows),
            ends: Vec::with_capacity(rows),
            spans: Vec::with_capacity(rows),
            processes: Vec::with_capacity(rows),
            cpus: Vec::with_capacity(rows),
        };
        let (mut bits, mut start) = (0x9E37_79B9_7F4A_7C15_u64, 0i64);
        for _ in 0..rows {
            // xorshift64, a random generator that is quick and reproducible.
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            start += (bits % (2 * gap)) as i64;
            let span = ((bits >> 20) % (16 * gap)) >> (bits >> 16 & 7);
            let any = (bits >> 40) as u32 % PROCESSES;
            columns.starts.push(start);
            columns.ends.push(start + span as i64);
            columns.spans.push(span as i64);
            columns.processes.push(any >> (bits >> 60 & 3));
            columns.cpus.push((bits >> 32) as u32 % CPUS);
        }
        columns
    }

    fn intervals(&self) -> Intervals<'_> {
        Intervals {
            starts: &self.starts,
            ends: &self.ends,
            keys: &self.cpus,
        }
    }
}

/// Reads columns and does as little as possible with their values.
fn pass(times: &[&[i64]], ids: &[&[u32]]) {
    for column in times {
        black_box(
            column
                .iter()
                .fold(0i64, |sum, value| sum.wrapping_add(*value)),
        );
    }
    for column in ids {
        black_box(
            column
                .iter()
                .fold(0u32, |sum, value| sum.wrapping_add(*value)),
        );
    }
}

fn group(columns: &Columns, rows: &Rows<'_>, percentiles: bool) -> Outcome<()> {
    let mut pivot = Pivot::new(PivotSpec {
        bounds: vec![PROCESSES],
        path: vec![],
        measures: 1,
        percentiles,
    })?;
    pivot.add(&[&columns.processes], &[&columns.spans], rows)?;
    black_box(pivot.finish());
    Ok(())
}

fn timeline(columns: &Columns, rows: &Rows<'_>, spread: bool) -> Outcome<()> {
    let end = columns.starts.last().map_or(0, |last| last + 1);
    let buckets = TimeBuckets::new(TimeRange::new(0, end), BUCKETS);
    let mut timeline = Timeline::new(buckets, Lanes::every(PROCESSES))?;
    let keys = &columns.processes;
    if spread {
        let intervals = Intervals {
            keys,
            ..columns.intervals()
        };
        timeline.add_intervals(intervals, rows)?;
    } else {
        timeline.add_values(&columns.starts, keys, &columns.spans, rows)?;
    }
    black_box(timeline.finish());
    Ok(())
}

/// Returns the seconds for which this thread ran on a CPU, so that the time of other programs does not count. Returns 0
/// on systems other than Linux.
pub(crate) fn on_cpu() -> f64 {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = status
        .split(' ')
        .next()
        .and_then(|first| first.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Name of a kernel, the kernel itself, and the pass over the columns that the kernel reads.
type Task<'a> = (&'a str, &'a dyn Fn() -> Outcome<()>, &'a dyn Fn());

/// Measures each kernel over 50 M rows.
pub(crate) fn kernels(report: &mut String) -> Outcome<()> {
    *report += "\n## View kernels\n\n50 M generated rows, one thread, CPU seconds. Limit of the first four: \
        0.15 s. For comparison: a plain pass over the columns that the kernel reads.\n\n\
        | kernel | seconds | M rows/s | pass, seconds | kernel / pass |\n|---|---|---|---|---|\n";
    let all = Columns::new(ROWS, 40_000);
    let rows = Rows::from_range(0..ROWS);
    let half = IdSet::new(CPUS).with(0..CPUS / 2);
    let (times, spans, ends) = (&all.starts[..], &all.spans[..], &all.ends[..]);
    let (processes, cpus) = (&all.processes[..], &all.cpus[..]);
    let tasks: [Task<'_>; 6] = [
        (
            "group by 300 processes: count, sum, min, max",
            &|| group(&all, &rows, false),
            &|| pass(&[spans], &[processes]),
        ),
        (
            "group by 300 processes, half of the CPUs",
            &|| group(&all, &rows.clone().keep(cpus, &half), false),
            &|| pass(&[spans], &[processes, cpus]),
        ),
        (
            "timeline of values, 1,000 buckets × 300 processes",
            &|| timeline(&all, &rows, false),
            &|| pass(&[times, spans], &[processes]),
        ),
        (
            "timeline of intervals, 1,000 buckets × 300 processes",
            &|| timeline(&all, &rows, true),
            &|| pass(&[times, ends], &[processes]),
        ),
        (
            "group by process, the first tenth of the time",
            &|| {
                let range = TimeRange::new(0, times[ROWS / 10]);
                group(
                    &all,
                    &Rows::from_range(views::rows_within(times, range)),
                    false,
                )
            },
            &|| pass(&[&spans[..ROWS / 10]], &[&processes[..ROWS / 10]]),
        ),
        (
            "group by process with percentiles",
            &|| group(&all, &rows, true),
            &|| pass(&[spans], &[processes]),
        ),
    ];
    for (name, kernel, pass) in tasks {
        let mut result = Ok(());
        let [seconds, limit] = medians_by(on_cpu, [&mut || result = kernel(), &mut || pass()]);
        result?;
        writeln!(
            report,
            "| {name} | {seconds:.3} | {:.0} | {limit:.3} | {:.1} |",
            ROWS as f64 / seconds / 1e6,
            seconds / limit,
        )?;
    }
    Ok(())
}
