//! What the page's charts show: a trace's tables summed over buckets of time.
//!
//! This is what goes into the page as JSON. Times are nanoseconds since the trace's start, shares
//! are millionths of a bucket.

mod activity;
mod cpu_runs;
mod interrupts;
mod samples;

use std::ops::Range;

use explain::Severity;
use serde::Serialize;
use tables::{Identities, Table};
use views::{Lane, Series, TimeBuckets, TimeRange};

use crate::cli::{Explained, Failure, TraceTables};
pub(super) use activity::{Track, Tracks};
pub(super) use cpu_runs::RankLine;
pub(super) use interrupts::InterruptSpread;

/// Into how many stretches of time the trace is cut: about as many as a screen can tell apart.
const BUCKETS: usize = 480;

/// Processes that have a colour of their own.
const PROCESSES: usize = 9;

/// CPUs that are shown one by one.
const MOST_CPUS: usize = 256;

/// Time of which nothing tells is passed over if it is no more: shares are cut to whole millionths,
/// and a CPU's first run begins a little after the trace.
const LEAST_UNTOLD: u32 = 1_000;

/// All of them.
#[derive(Debug, Serialize)]
pub(super) struct Charts {
    start_ns: i64,
    end_ns: i64,
    /// The length of a bucket; the last may be shorter.
    bucket_ns: i64,
    buckets: usize,
    /// CPU time by process.
    pub(super) processes: Option<Stack>,
    /// CPU time by priority and rank.
    pub(super) priorities: Option<Stack>,
    /// What each CPU did.
    pub(super) cpus: Cpus,
    /// Ranks of threads of processes that had any but 0.
    pub(super) ranks: Vec<RankLine>,
    /// DPCs by when they ended and how long they were.
    pub(super) dpc_durations: Option<HeatMap>,
    /// Focus, freezes, input.
    pub(super) tracks: Tracks,
    /// When findings were.
    pub(super) markers: Vec<Marker>,
    /// What is not drawn over time.
    #[serde(skip)]
    pub(super) interrupts: Option<InterruptSpread>,
}

/// Shares that lie on top of each other.
#[derive(Debug, Serialize)]
pub(super) struct Stack {
    /// They come from samples, not from context switches.
    pub(super) is_sampled: bool,
    /// The lowest first.
    pub(super) layers: Vec<Layer>,
}

/// One share of the CPUs over time.
#[derive(Debug, Serialize)]
pub(super) struct Layer {
    /// What it shows.
    pub(super) name: String,
    /// What its colour says.
    kind: LayerKind,
    /// Millionths of all CPUs' time, by bucket.
    shares: Vec<u32>,
    /// The same over the whole time.
    #[serde(skip)]
    pub(super) total: f64,
}

/// What a layer's colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LayerKind {
    /// One of a list, in its order.
    One(usize),
    /// All others together.
    Other,
    /// Whose it was is not known.
    Unknown,
    /// Nobody's.
    Idle,
    /// No run or sample tells.
    Untold,
}

/// What each CPU did.
#[derive(Debug, Default, Serialize)]
pub(super) struct Cpus {
    /// Their numbers.
    pub(super) numbers: Vec<u16>,
    /// How many more there are.
    pub(super) left_out: usize,
    /// Threads other than the idle one, by CPU and bucket; none if nothing tells.
    pub(super) busy: Option<Vec<Vec<u32>>>,
    /// Time of which no run or sample tells; none for a CPU that has little of it.
    pub(super) untold: Vec<Option<Vec<u32>>>,
    /// DPCs, by CPU; none for a CPU that had none, and nothing if the trace holds none.
    pub(super) dpc: Option<Vec<Option<Vec<u32>>>>,
    /// Service routines.
    pub(super) isr: Option<Vec<Option<Vec<u32>>>>,
}

/// Counts by bucket and class of value.
#[derive(Debug, Serialize)]
pub(super) struct HeatMap {
    /// Upper bounds of all classes but the last, in nanoseconds.
    bounds_ns: Vec<i64>,
    /// What Microsoft's guidance allows.
    limit_ns: i64,
    /// Bucket, class, count of each cell that is not empty, one after the other.
    cells: Vec<u64>,
}

/// When a finding was.
#[derive(Debug, Serialize)]
pub(super) struct Marker {
    /// Its number on the page.
    number: usize,
    severity: Severity,
    from_ns: i64,
    to_ns: i64,
}

impl Charts {
    /// The tables that they are made of.
    pub(super) const TABLES: [Table; 6] = [
        Table::CpuRuns,
        Table::Samples,
        Table::Interrupts,
        Table::Focus,
        Table::Input,
        Table::ProcessFreezes,
    ];

    pub(super) fn read(tables: &TraceTables, explained: &Explained) -> Result<Charts, Failure> {
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

    /// The time that is shown, in nanoseconds since the trace's start.
    pub(super) fn range(&self) -> Range<i64> {
        self.start_ns..self.end_ns
    }

    /// Whether there is any time to show.
    pub(super) fn is_empty(&self) -> bool {
        self.buckets == 0
    }
}

impl Stack {
    /// Adds what all layers leave over of the time, if that is worth a word: nobody knows who had it.
    fn with_untold(mut self) -> Stack {
        let total = self.layers.iter().map(|layer| layer.total).sum::<f64>();
        let buckets = self.layers.first().map_or(0, |layer| layer.shares.len());
        if total < 1.0 - f64::from(LEAST_UNTOLD) / 1e6 {
            let told = |bucket| {
                self.layers
                    .iter()
                    .map(move |layer| layer.shares[bucket])
                    .sum()
            };
            let untold = |bucket| 1_000_000u32.saturating_sub(told(bucket));
            self.layers.push(Layer {
                name: "not known".to_owned(),
                kind: LayerKind::Untold,
                shares: (0..buckets).map(untold).collect(),
                total: 1.0 - total,
            });
        }
        self
    }

    /// The layers with their shares of the whole time, in words.
    pub(super) fn summary(&self) -> String {
        let layers = self.layers.iter();
        let shares: Vec<String> = layers
            .map(|layer| format!("{} {:.1} %", layer.name, layer.total * 100.0))
            .collect();
        shares.join(", ")
    }
}

/// The time that is shown, cut into buckets.
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

    /// What a series has of so many CPUs, as millionths by bucket.
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

    /// A series as a layer of so many CPUs.
    fn layer(&self, name: String, kind: LayerKind, series: &Series, cpus: usize) -> Layer {
        let whole = self.buckets.range().span() as f64 * cpus.max(1) as f64;
        Layer {
            name,
            kind,
            shares: self.shares(series, cpus),
            total: series.total.sum().unwrap_or(0) as f64 / whole.max(1.0),
        }
    }

    /// What each CPU had, by bucket; nothing where a CPU had none.
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

/// What is left of each CPU's time, by bucket; nothing where that is little.
fn left_over(told: Vec<Option<Vec<u32>>>, buckets: usize) -> Vec<Option<Vec<u32>>> {
    let left = |told: Option<Vec<u32>>| {
        let told = told.unwrap_or_else(|| vec![0; buckets]);
        let left = told.iter().map(|share| 1_000_000u32.saturating_sub(*share));
        let left: Vec<u32> = left.collect();
        left.iter()
            .any(|share| *share > LEAST_UNTOLD)
            .then_some(left)
    };
    told.into_iter().map(left).collect()
}

/// The place of each CPU that is shown.
struct CpuPlaces {
    of: Vec<u32>,
    shown: usize,
    all: usize,
}

impl CpuPlaces {
    /// Of CPUs in the order of their numbers.
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

/// From when to when is shown: while threads ran, if the trace tells, else from the first to the
/// last of what it tells.
fn span(tables: &TraceTables, explained: &Explained) -> Result<Range<i64>, Failure> {
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

/// The findings that were at a time of their own.
fn markers(explained: &Explained, time: &Time) -> Vec<Marker> {
    /// What lasts nearly as long as the trace marks nothing.
    const LONGEST: f64 = 0.9;
    /// Findings that are marked; the first matter most.
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

/// A process by its row, in words.
pub(super) fn process(names: &Identities, row: u32) -> String {
    let process = names.process(Some(row), None);
    match (process.name, process.id) {
        (Some(name), Some(id)) => format!("{name} ({id})"),
        (Some(name), None) => name.to_owned(),
        (None, Some(id)) => format!("process {id}"),
        (None, None) => "an unknown process".to_owned(),
    }
}

impl From<views::Cancelled> for Failure {
    fn from(_: views::Cancelled) -> Failure {
        Failure::Interrupted
    }
}

impl From<views::TooLarge> for Failure {
    fn from(error: views::TooLarge) -> Failure {
        Failure::Input(error.to_string())
    }
}
