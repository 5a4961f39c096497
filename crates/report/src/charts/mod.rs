//! Data of the page's charts: tables of a trace, summed over time buckets.
//!
//! The page embeds the data as JSON. Times are nanoseconds since the trace's start. Shares are millionths of
//! a bucket's time.

mod activity;
mod cpu_runs;
mod interrupts;
mod samples;

use std::ops::Range;

use explain::Severity;
use serde::Serialize;
use session::TraceTables;
use tables::{Identities, Table};
use views::{Lane, Series, TimeBuckets, TimeRange};
use wording::Printable;

use crate::{Error, Explained};
pub(super) use activity::{Track, Tracks};
pub(super) use cpu_runs::RankLine;
pub(super) use interrupts::InterruptSpread;

/// Number of time buckets. A screen can show about this many.
const BUCKETS: usize = 480;

/// Maximum number of processes with a separate colour.
const PROCESSES: usize = 9;

/// Maximum number of CPUs with a separate row.
const MOST_CPUS: usize = 256;

/// Maximum share of unrecorded time that is ignored, in millionths. A small share is normal: shares are rounded down to
/// millionths, and a CPU's first run starts a little after the trace.
const LEAST_UNTOLD: u32 = 1_000;

/// Data of all charts.
#[derive(Debug, Serialize)]
pub(super) struct Charts {
    start_ns: i64,
    end_ns: i64,
    /// Length of a bucket in nanoseconds. The last bucket may be shorter.
    bucket_ns: i64,
    buckets: usize,
    /// CPU time by process.
    pub(super) processes: Option<Stack>,
    /// CPU time by priority and by rank.
    pub(super) priorities: Option<Stack>,
    /// Time in threads, DPCs and service routines, by CPU.
    pub(super) cpus: Cpus,
    /// Ranks of processes that have a thread with a rank above 0.
    pub(super) ranks: Vec<RankLine>,
    /// Number of DPCs by end time and duration.
    pub(super) dpc_durations: Option<HeatMap>,
    /// Rows that show focus, freezes and input.
    pub(super) tracks: Tracks,
    /// Time ranges of findings.
    pub(super) markers: Vec<Marker>,
    /// Distribution of the durations of interrupts. It is shown as histograms, not over time.
    #[serde(skip)]
    pub(super) interrupts: Option<InterruptSpread>,
}

/// Shares of CPU time that are drawn on top of each other.
#[derive(Debug, Serialize)]
pub(super) struct Stack {
    /// True if the shares come from samples instead of context switches.
    pub(super) is_sampled: bool,
    /// Layers, ordered from bottom to top.
    pub(super) layers: Vec<Layer>,
}

/// Layer: the share of CPU time of one process or priority over time.
#[derive(Debug, Serialize)]
pub(super) struct Layer {
    /// Label of the layer.
    pub(super) name: String,
    /// Meaning of the layer's colour.
    kind: LayerKind,
    /// Share of the time of all CPUs, in millionths by bucket.
    shares: Vec<u32>,
    /// Share of the time of all CPUs in the whole time range, from 0 to 1.
    #[serde(skip)]
    pub(super) total: f64,
}

/// Meaning of a layer's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LayerKind {
    /// Process or group of priorities. The number selects its colour.
    One(usize),
    /// Sum of all processes without their own layer.
    Other,
    /// Time whose process or priority is unknown.
    Unknown,
    /// Idle time.
    Idle,
    /// Time without a known run or sample.
    Untold,
}

/// Time in threads, DPCs and service routines, by CPU.
#[derive(Debug, Default, Serialize)]
pub(super) struct Cpus {
    /// Numbers of the CPUs that are shown.
    pub(super) numbers: Vec<u16>,
    /// Number of CPUs that are not shown.
    pub(super) left_out: usize,
    /// Share of time in threads other than the idle thread, by CPU and bucket. `None` if not recorded.
    pub(super) busy: Option<Vec<Vec<u32>>>,
    /// Share of time without runs or samples, by CPU and bucket. `None` for a CPU with a negligible share.
    pub(super) untold: Vec<Option<Vec<u32>>>,
    /// Share of time in DPCs, by CPU and bucket; `None` for a CPU without DPCs, and for a trace without DPCs.
    pub(super) dpc: Option<Vec<Option<Vec<u32>>>>,
    /// Share of time in service routines, by CPU and bucket. `None` in the same cases as in `dpc`.
    pub(super) isr: Option<Vec<Option<Vec<u32>>>>,
}

/// Number of DPCs by time bucket and class of duration.
#[derive(Debug, Serialize)]
pub(super) struct HeatMap {
    /// Upper bounds of the classes in nanoseconds. The last class has no upper bound and no entry here.
    bounds_ns: Vec<i64>,
    /// Maximum duration that Microsoft's guidance allows, in nanoseconds.
    limit_ns: i64,
    /// Cells that are not empty: bucket, class and count of the first cell, then of the second, and so on.
    cells: Vec<u64>,
}

/// Time range of a finding.
#[derive(Debug, Serialize)]
pub(super) struct Marker {
    /// Number of the finding on the page.
    number: usize,
    severity: Severity,
    from_ns: i64,
    to_ns: i64,
}

impl Charts {
    /// Tables that the charts need.
    pub(super) const TABLES: [Table; 6] = [
        Table::CpuRuns,
        Table::Samples,
        Table::Interrupts,
        Table::Focus,
        Table::Input,
        Table::ProcessFreezes,
    ];

    pub(super) fn read(tables: &TraceTables, explained: &Explained) -> Result<Charts, Error> {
        let explanation = &explained.explanation;
        let time = Time::of(span(tables, explained)?);
        let mut numbers: Vec<u16> = match explanation.survey.cpus.as_slice() {
            [] => explained.info.cpus.seen.iter().map(|c| c.cpu).collect(),
            cpus => cpus.iter().map(|used| used.cpu).collect(),
        };
        numbers.sort_unstable();
        let places = CpuPlaces::new(&numbers);
        let left_out = numbers.len() - places.shown;
        let mut charts = Charts {
            start_ns: time.range().start,
            end_ns: time.range().end,
            bucket_ns: i64::try_from(time.buckets.bucket(0).span()).unwrap_or(i64::MAX),
            buckets: time.buckets.len(),
            processes: None,
            priorities: None,
            cpus: Cpus::default(),
            ranks: Vec::new(),
            dpc_durations: None,
            tracks: activity::read(tables, &explanation.names, &time)?,
            markers: markers(explained, &time),
            interrupts: None,
        };
        if let Some(runs) = cpu_runs::read(tables, explanation, &time, &places)? {
            charts.processes = Some(runs.processes);
            charts.priorities = Some(runs.priorities);
            (charts.cpus.busy, charts.cpus.untold) = (Some(runs.busy), runs.untold);
            charts.ranks = runs.ranks;
        } else if let Some(samples) = samples::read(tables, &explanation.names, &time, &places)? {
            charts.processes = Some(samples.processes);
            (charts.cpus.busy, charts.cpus.untold) = (Some(samples.busy), samples.untold);
        }
        if let Some(interrupts) = interrupts::read(tables, &time, &places)? {
            let recorded = |counts: &[u64]| !counts.is_empty();
            charts.cpus.dpc = recorded(&interrupts.spread.dpc).then_some(interrupts.dpc);
            charts.cpus.isr = recorded(&interrupts.spread.isr).then_some(interrupts.isr);
            charts.dpc_durations = interrupts.durations;
            charts.interrupts = Some(interrupts.spread);
        }
        numbers.truncate(places.shown);
        (charts.cpus.numbers, charts.cpus.left_out) = (numbers, left_out);
        Ok(charts)
    }

    /// Returns the time range of the charts, in nanoseconds since the trace's start.
    pub(super) fn range(&self) -> Range<i64> {
        self.start_ns..self.end_ns
    }

    /// Returns true if the time range is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.buckets == 0
    }
}

impl Stack {
    /// Adds a layer for the time without runs or samples, unless this time is negligible.
    fn with_untold(mut self) -> Stack {
        let total = self.layers.iter().map(|layer| layer.total).sum::<f64>();
        let buckets = self.layers.first().map_or(0, |layer| layer.shares.len());
        if total < 1.0 - f64::from(LEAST_UNTOLD) / 1e6 {
            let covered = |bucket| {
                self.layers
                    .iter()
                    .map(move |layer| layer.shares[bucket])
                    .sum()
            };
            let untold = |bucket| 1_000_000u32.saturating_sub(covered(bucket));
            self.layers.push(Layer {
                name: "not known".to_owned(),
                kind: LayerKind::Untold,
                shares: (0..buckets).map(untold).collect(),
                total: 1.0 - total,
            });
        }
        self
    }

    /// Returns a text with the name of each layer and its share of the whole time range.
    pub(super) fn summary(&self) -> String {
        let layers = self.layers.iter();
        let shares: Vec<String> = layers
            .map(|layer| format!("{} {:.1} %", layer.name, layer.total * 100.0))
            .collect();
        shares.join(", ")
    }
}

/// Time range of the charts, cut into buckets.
struct Time {
    buckets: TimeBuckets,
}

impl Time {
    fn of(span: Range<i64>) -> Time {
        let range = TimeRange::new(span.start, span.end);
        Time {
            buckets: TimeBuckets::new(range, BUCKETS),
        }
    }

    fn range(&self) -> Range<i64> {
        let range = self.buckets.range();
        range.start()..range.end()
    }

    /// Converts a series to its share of the time of `cpus` CPUs, in millionths by bucket.
    fn shares(&self, series: &Series, cpus: usize) -> Vec<u32> {
        let buckets = series.buckets.iter().enumerate();
        let share = |(bucket, sum): (usize, &views::Summary)| {
            let whole = i128::from(self.buckets.bucket(bucket).span()) * cpus.max(1) as i128;
            let part = i128::from(sum.sum().unwrap_or(0));
            let millionths = part * 1_000_000 / whole.max(1);
            millionths.clamp(0, 1_000_000) as u32
        };
        buckets.map(share).collect()
    }

    /// Converts a series to a layer with its share of the time of `cpus` CPUs.
    fn layer(&self, name: String, kind: LayerKind, series: &Series, cpus: usize) -> Layer {
        let whole = self.buckets.range().span() as f64 * cpus.max(1) as f64;
        Layer {
            name,
            kind,
            shares: self.shares(series, cpus),
            total: series.total.sum().unwrap_or(0) as f64 / whole.max(1.0),
        }
    }

    /// Returns the shares of each CPU by bucket; `None` for a CPU without values.
    fn by_cpu(&self, series: &[Series], cpus: usize) -> Vec<Option<Vec<u32>>> {
        let mut by_cpu = vec![None; cpus];
        for one in series {
            if let Lane::Id(place) = one.lane
                && let Some(shares) = by_cpu.get_mut(place as usize)
            {
                *shares = Some(self.shares(one, 1));
            }
        }
        by_cpu
    }
}

/// Returns the share of each CPU's time that `covered` does not include, by bucket. Returns `None` if it is
/// negligible.
fn left_over(covered: Vec<Option<Vec<u32>>>, buckets: usize) -> Vec<Option<Vec<u32>>> {
    let left = |covered: Option<Vec<u32>>| {
        let covered = covered.unwrap_or_else(|| vec![0; buckets]);
        let left = covered
            .iter()
            .map(|share| 1_000_000u32.saturating_sub(*share));
        let left: Vec<u32> = left.collect();
        left.iter()
            .any(|share| *share > LEAST_UNTOLD)
            .then_some(left)
    };
    covered.into_iter().map(left).collect()
}

/// Rows in the chart for CPUs.
struct CpuPlaces {
    of: Vec<u32>,
    shown: usize,
    all: usize,
}

impl CpuPlaces {
    /// Assigns rows to CPUs in the order of their numbers, up to the maximum number of rows.
    fn new(numbers: &[u16]) -> CpuPlaces {
        let shown = numbers.len().min(MOST_CPUS);
        let mut of = Vec::new();
        for (place, number) in (0..).zip(&numbers[..shown]) {
            of.resize(usize::from(*number) + 1, views::NULL_ID);
            of[usize::from(*number)] = place;
        }
        CpuPlaces {
            of,
            shown,
            all: numbers.len(),
        }
    }

    fn of(&self, cpu: u16) -> u32 {
        let place = self.of.get(usize::from(cpu));
        place.copied().unwrap_or(views::NULL_ID)
    }
}

/// Returns the time range of the charts: from the first to the last run. If there are no runs, it is the
/// range of samples and interrupts. If there are no samples and interrupts either, it is the range of all
/// events.
fn span(tables: &TraceTables, explained: &Explained) -> Result<Range<i64>, Error> {
    let ran = &explained.explanation.span;
    if !ran.is_empty() {
        return Ok(ran.clone());
    }
    let mut span: Option<Range<i64>> = None;
    for table in [Table::Samples, Table::Interrupts] {
        let table = tables.table(table)?;
        if let [first, .., last] | [first @ last] = table.chunks() {
            let known = span.get_or_insert(first.first..last.last);
            *known = known.start.min(first.first)..known.end.max(last.last.saturating_add(1));
        }
    }
    let extent = &explained.info.trace;
    let events = extent.first_event_ns.zip(extent.last_event_ns);
    let span = span.or(events.map(|(first, last)| first..last.saturating_add(1)));
    Ok(span.unwrap_or(0..0))
}

/// Returns markers for the most important findings that have a limited time range.
fn markers(explained: &Explained, time: &Time) -> Vec<Marker> {
    /// Maximum length of a marked finding, as a share of the trace. A marker of a longer finding would cover
    /// nearly everything.
    const LONGEST: f64 = 0.9;
    /// Maximum number of markers. Findings are ordered by importance, so the first ones are marked.
    const MOST: usize = 12;
    let whole = time.buckets.range().span() as f64;
    let findings = (1..).zip(&explained.explanation.findings);
    findings
        .filter_map(|(number, finding)| {
            let during = finding.during.as_ref()?;
            let length = during.end.saturating_sub(during.start);
            (length as f64 <= LONGEST * whole).then_some(Marker {
                number,
                severity: finding.severity,
                from_ns: during.start,
                to_ns: during.end,
            })
        })
        .take(MOST)
        .collect()
}

/// Returns the name and id of the process with a row.
pub(super) fn process(names: &Identities, row: u32) -> String {
    let process = names.process(Some(row), None);
    match (process.name, process.id) {
        (Some(name), Some(id)) => format!("{} ({id})", Printable(name)),
        (Some(name), None) => Printable(name).to_string(),
        (None, Some(id)) => format!("process {id}"),
        (None, None) => "an unknown process".to_owned(),
    }
}
