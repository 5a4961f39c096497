//! The kernels behind the pictures, each beside a plain pass over the columns it reads.

use std::fmt::Write as _;
use std::hint::black_box;

use views::{
    Aggregate, AsOfJoin, IdSet, Intervals, Lanes, Order, OverlapJoin, Pivot, PivotSpec, Rows,
    TimeBuckets, TimeRange, Timeline,
};

use crate::{Outcome, medians_by};

/// Rows of the big table: half an hour of a busy machine's context switches.
const ROWS: usize = 50_000_000;
/// Rows of the small one: its samples, or its interrupts.
const FEW: usize = ROWS / 10;
const PROCESSES: u32 = 300;
const CPUS: u32 = 16;
const BUCKETS: usize = 1_000;

/// Made-up columns, the same in every run.
struct Columns {
    starts: Vec<i64>,
    ends: Vec<i64>,
    spans: Vec<i64>,
    processes: Vec<u32>,
    cpus: Vec<u32>,
}

impl Columns {
    /// Rows whose starts are some `gap` nanoseconds apart and whose runs are up to 16 times as long;
    /// a few processes have most of the rows.
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
            // xorshift64: fixed and quick; nothing more is needed of it.
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

/// Reads columns and does the least with them.
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
    let order = Order {
        by: Aggregate::Sum(0),
        descending: true,
    };
    black_box(pivot.finish(order, 20));
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
    black_box(timeline.finish(20));
    Ok(())
}

fn as_of(few: &Columns, columns: &Columns) -> Outcome<()> {
    let mut join = AsOfJoin::new(&few.starts, &few.cpus, CPUS)?;
    join.add(&columns.starts, &columns.cpus, &Rows::of(0..ROWS))?;
    black_box(join.finish());
    Ok(())
}

fn overlaps(few: &Columns, columns: &Columns) -> Outcome<()> {
    let mut join = OverlapJoin::new(few.intervals(), CPUS)?;
    let mut taken = vec![0i64; FEW];
    let mut add = |pair: views::Overlap| taken[pair.first as usize] += pair.span;
    join.add(columns.intervals(), &Rows::of(0..ROWS), &mut add)?;
    join.finish(add);
    black_box(taken);
    Ok(())
}

/// Seconds that this thread has been on a CPU. Others share the machine, and a kernel takes longer
/// than the scheduler lets a thread run. 0 where the system is not Linux: there is no such file.
fn on_cpu() -> f64 {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = status
        .split(' ')
        .next()
        .and_then(|first| first.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// One kernel: its name, itself, and the pass over what it reads.
type Task<'a> = (&'a str, &'a dyn Fn() -> Outcome<()>, &'a dyn Fn());

/// Each kernel over 50 M rows.
pub(crate) fn kernels(report: &mut String) -> Outcome<()> {
    *report += "\n## View kernels\n\n50 M made-up rows, one thread, seconds on its CPU; at most 0.15 s is asked for of \
        the first five. The limit is a plain pass over the columns that the kernel reads.\n\n\
        | kernel | seconds | M rows/s | pass, seconds | kernel / pass |\n|---|---|---|---|---|\n";
    let all = Columns::new(ROWS, 40_000);
    let few = Columns::new(FEW, 400_000);
    let rows = Rows::of(0..ROWS);
    let half = IdSet::new(CPUS).with(0..CPUS / 2);
    let (times, spans, ends) = (&all.starts[..], &all.spans[..], &all.ends[..]);
    let (processes, cpus) = (&all.processes[..], &all.cpus[..]);
    let few_starts = (&few.starts[..], &few.cpus[..]);
    let tasks: [Task<'_>; 8] = [
        (
            "group by 300 processes: count, sum, min, max",
            &|| group(&all, &rows, false),
            &|| pass(&[spans], &[processes]),
        ),
        (
            "the same of half the CPUs",
            &|| group(&all, &rows.clone().keep(cpus, &half), false),
            &|| pass(&[spans], &[processes, cpus]),
        ),
        (
            "timeline of values, 1,000 buckets × 300 processes",
            &|| timeline(&all, &rows, false),
            &|| pass(&[times, spans], &[processes]),
        ),
        (
            "timeline of intervals, the same",
            &|| timeline(&all, &rows, true),
            &|| pass(&[times, ends], &[processes]),
        ),
        ("as-of join of 5 M samples", &|| as_of(&few, &all), &|| {
            pass(&[times, few_starts.0], &[cpus, few_starts.1])
        }),
        (
            "group by process, the first tenth of the time",
            &|| {
                let range = TimeRange::new(0, times[ROWS / 10]);
                group(&all, &Rows::of(views::rows_within(times, range)), false)
            },
            &|| pass(&[&spans[..ROWS / 10]], &[&processes[..ROWS / 10]]),
        ),
        (
            "group by process with percentiles",
            &|| group(&all, &rows, true),
            &|| pass(&[spans], &[processes]),
        ),
        (
            "overlap join of 5 M interrupts",
            &|| overlaps(&few, &all),
            &|| pass(&[times, ends, &few.starts, &few.ends], &[cpus, &few.cpus]),
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
