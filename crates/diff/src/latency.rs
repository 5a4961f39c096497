//! Change of the latency of a thread, divided into the parts of its critical path.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use explain::{PathPart, PathTime};
use rustc_hash::FxHashMap;
use serde::Serialize;
use tables::{CpuRunsView, Identities, MarksView, Options, Store, StoreError, Table};
use wording::listed;

/// Thread and intervals of time whose critical path is divided into parts.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Name of the thread or of its program. If several threads match, the thread that ran most is used.
    pub thread: String,
    /// Texts of the marks at the start and end of an interval. `None` for one interval: the whole compared
    /// time.
    pub marks: Option<[String; 2]>,
    /// Compared part of the trace, in nanoseconds since the trace's start. `None` for the whole trace.
    pub during: Option<Range<i64>>,
}

/// Reason why there is no critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// No thread and no program with this name ran.
    NoThread,
    /// No interval between the two marks was found.
    NoMarks,
}

/// Critical path of a thread in the intervals of a recording.
#[derive(Clone, Debug)]
pub struct PathTimes {
    intervals: usize,
    parts: BTreeMap<PathPart, i64>,
}

/// Maximum number of intervals of a recording. Later intervals are ignored.
const INTERVALS: usize = 1_000;

impl PathTimes {
    /// Divides the time of a thread by its critical path.
    ///
    /// # Errors
    /// Returns an error if a table cannot be made or read, or if the progress callback requests a stop.
    pub fn read(
        store: &Store,
        interval: &Interval,
        options: Options<'_>,
    ) -> Result<Result<PathTimes, NoPath>, StoreError> {
        store.make(&[Table::CpuRuns, Table::Marks], options)?;
        let names = Identities::read(store, options)?;
        let Some((thread, ran)) = thread(store, &names, interval, options)? else {
            return Ok(Err(NoPath::NoThread));
        };
        let ranges = match &interval.marks {
            None => vec![interval.during.clone().unwrap_or(ran)],
            Some(marks) => between(store, marks, interval.during.as_ref(), options)?,
        };
        if ranges.is_empty() {
            return Ok(Err(NoPath::NoMarks));
        }
        let parts = explain::divided(store, thread, &ranges, options)?;
        Ok(Ok(PathTimes {
            intervals: ranges.len(),
            parts,
        }))
    }
}

/// Returns the thread that ran most in the compared part. Its name, or the name of its program, must match.
/// Also returns the time from the first to the last run of any thread.
fn thread(
    store: &Store,
    names: &Identities,
    interval: &Interval,
    options: Options<'_>,
) -> Result<Option<(u32, Range<i64>)>, StoreError> {
    let thread_name = interval.thread.to_lowercase();
    let is_it = |name: Option<&str>| name.is_some_and(|name| name.to_lowercase() == thread_name);
    let programs: BTreeSet<u32> = (0..)
        .zip(names.processes())
        .filter(|(_, process)| is_it(process.name))
        .map(|(row, _)| row)
        .collect();
    let all = i64::MIN..i64::MAX;
    let during = interval.during.clone().unwrap_or(all);
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let mut ran: FxHashMap<u32, i64> = FxHashMap::default();
    let table = store.table(Table::CpuRuns, options)?;
    let columns = ["start_ns", "end_ns", "thread_row", "process_row"];
    for chunk in table.chunks_within(during.clone()) {
        let batch = table.read(chunk, &columns)?;
        let runs = CpuRunsView::new(&batch)?;
        for row in 0..runs.len() {
            let start = runs.start_ns[row].max(during.start);
            let end = runs.end_ns[row].min(during.end);
            (first, last) = (first.min(start), last.max(end));
            let Some(thread) = runs.thread_row.get(row) else {
                continue;
            };
            let of_program = (runs.process_row.get(row)).is_some_and(|it| programs.contains(&it));
            if of_program || is_it(names.thread_name(thread)) {
                *ran.entry(thread).or_default() += end.saturating_sub(start).max(0);
            }
        }
    }
    let most = ran
        .into_iter()
        .max_by_key(|(row, ns)| (*ns, u32::MAX - row));
    Ok(most.map(|(thread, _)| (thread, first..last)))
}

/// Returns the intervals that begin at a mark with the text `from` and end at the next mark with the text
/// `to`.
fn between(
    store: &Store,
    [from, to]: &[String; 2],
    during: Option<&Range<i64>>,
    options: Options<'_>,
) -> Result<Vec<Range<i64>>, StoreError> {
    let table = store.table(Table::Marks, options)?;
    let mut ranges = Vec::new();
    let mut start = None;
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["time_ns", "text"])?;
        let marks = MarksView::new(&batch)?;
        for row in 0..marks.len() {
            let (at, text) = (marks.time_ns[row], marks.text.get(row));
            if during.is_some_and(|during| !during.contains(&at)) || ranges.len() >= INTERVALS {
                continue;
            }
            match start {
                Some(from) if text == Some(to) && from < at => {
                    ranges.push(from..at);
                    start = None;
                }
                None if text == Some(from) => start = Some(at),
                _ => {}
            }
        }
    }
    Ok(ranges)
}

/// Change of the latency of a thread. Times are means in nanoseconds per interval.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Number of intervals before the change.
    pub intervals_before: usize,
    /// Number of intervals after the change.
    pub intervals_after: usize,
    /// Mean length of an interval before the change, in nanoseconds.
    pub before_ns: f64,
    /// Mean length of an interval after the change, in nanoseconds.
    pub after_ns: f64,
    /// Parts of the critical path, sorted by descending change. The changes of the parts and the residual sum up to the
    /// change of the length of an interval.
    pub parts: Vec<LatencyPart>,
    /// Change of the time that the critical path does not explain, in nanoseconds.
    pub residual_ns: f64,
    /// Share of the time before the change that the critical paths cover. A path has a maximum number of steps, so the
    /// share can be less than 1. In this case, the parts before the change are scaled to the whole time.
    pub reached_before: f64,
    /// Share of the time after the change that the critical paths cover, and to which the parts after the change are
    /// scaled.
    pub reached_after: f64,
}

/// Part of the critical path.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyPart {
    /// Program of the thread on the path; `None` for the examined thread.
    pub program: Option<String>,
    /// State of the thread on the path.
    pub state: String,
    /// Time of this part before the change, in nanoseconds per interval.
    pub before_ns: f64,
    /// Time of this part after the change, in nanoseconds per interval.
    pub after_ns: f64,
}

impl Latency {
    /// Compares the critical paths of both sides.
    pub fn compare(before: &[PathTimes], after: &[PathTimes]) -> Latency {
        let sides = [before, after];
        let intervals = sides.map(|side| {
            side.iter()
                .map(|recording| recording.intervals)
                .sum::<usize>()
        });
        let mean = |side: usize, ns: i64| ns as f64 / intervals[side].max(1) as f64;
        let lengths = [0, 1].map(|side| {
            let all = sides[side]
                .iter()
                .flat_map(|recording| recording.parts.values());
            mean(side, all.sum())
        });
        let mut parts: BTreeMap<&PathPart, [f64; 2]> = BTreeMap::new();
        for (side, all) in sides.iter().enumerate() {
            for (part, ns) in all.iter().flat_map(|recording| &recording.parts) {
                parts.entry(part).or_default()[side] += mean(side, *ns);
            }
        }
        // A path has a limited number of steps and begins at the end of an interval. The parts must be scaled:
        // otherwise, the parts of a path that covers a quarter of the time would be compared with the parts of a whole
        // path.
        let reached = [0, 1].map(|side| {
            let too_far = parts.iter().filter(|(part, _)| part.1 == PathTime::TooFar);
            let missed: f64 = too_far.map(|(_, ns)| ns[side]).sum();
            if missed > 0.0 {
                (1.0 - missed / lengths[side]).max(f64::MIN_POSITIVE)
            } else {
                1.0
            }
        });
        parts.retain(|part, _| part.1 != PathTime::TooFar);
        for ns in parts.values_mut() {
            *ns = [0, 1].map(|side| ns[side] / reached[side]);
        }
        let is_residual = |part: &PathPart| part.1 == PathTime::Unknown;
        let residual = parts.iter().filter(|(part, _)| is_residual(part));
        let residual_ns = residual.map(|(_, [old, new])| new - old).sum();
        let known = parts.into_iter().filter(|(part, _)| !is_residual(part));
        let mut parts: Vec<LatencyPart> = known
            .map(|((program, time), [before_ns, after_ns])| LatencyPart {
                program: program.clone(),
                state: state(time),
                before_ns,
                after_ns,
            })
            .collect();
        let size = |part: &LatencyPart| (part.after_ns - part.before_ns).abs();
        parts.sort_by(|a, b| size(b).total_cmp(&size(a)));
        Latency {
            intervals_before: intervals[0],
            intervals_after: intervals[1],
            before_ns: lengths[0],
            after_ns: lengths[1],
            parts,
            residual_ns,
            reached_before: reached[0],
            reached_after: reached[1],
        }
    }

    /// Returns the doubt about scaled parts, if the critical paths do not cover the whole time.
    pub fn doubt(&self) -> Option<String> {
        let sides = [
            (self.reached_before, "before"),
            (self.reached_after, "after"),
        ];
        let cut = sides.into_iter().filter(|(share, _)| *share < 1.0);
        let cut = cut.map(|(share, when)| {
            let percent = (share * 100.0).floor();
            format!("the last {percent} % of the time {when} the change")
        });
        let cut: Vec<String> = cut.collect();
        (!cut.is_empty()).then(|| {
            format!(
                "The path has too many steps to cover the whole time: it covers only {}. Its parts are scaled to the \
                 whole time, as if the rest had the same shares. Compare a shorter time (--before-between, \
                 --after-between) for exact parts",
                listed(cut)
            )
        })
    }
}

fn state(time: &PathTime) -> String {
    match time {
        PathTime::Ran => "ran".to_owned(),
        PathTime::Interrupted => "interrupted by DPCs and ISRs".to_owned(),
        PathTime::Ready => "ready without a CPU".to_owned(),
        PathTime::Disk => "waited for a disk".to_owned(),
        PathTime::Page => "waited for a page".to_owned(),
        PathTime::Network => "waited for the network".to_owned(),
        PathTime::Driver(module) => format!("waited for a DPC of {module}"),
        PathTime::Waited(u8::MAX) => "waited".to_owned(),
        PathTime::Waited(reason) => format!("waited ({})", explain::wait_reason(*reason)),
        PathTime::Suspended => "machine suspended".to_owned(),
        PathTime::Unknown | PathTime::TooFar => "unknown".to_owned(),
    }
}
