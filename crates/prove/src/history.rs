//! Changes in a history of measurements.

use serde::Serialize;
use statistics::change_points::{changes, least_p};
use statistics::dependence::{beside_changes, beside_changes_error};
use statistics::planning::samples_per_run;
use statistics::shift_function::RunQuantiles;

use crate::summary::{median, quantiles};
use crate::{Error, Group, Metric, Run, Unit};

/// History of one measured thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Name of the measured thing.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Name of the column of the values, if a user named it.
    pub column: Option<String>,
    /// Names of the points, in order: files, or runs of one file.
    pub points: Vec<String>,
    /// Names of the points that are left out, because they have no value.
    pub left_out: Vec<String>,
    /// History of each metric.
    pub lines: Vec<HistoryLine>,
}

/// History of one metric of a measured thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryLine {
    /// Metric that turns each run into one number.
    pub metric: Metric,
    /// Value of each point: the median of the values of its runs.
    pub values: Vec<f64>,
    /// Segments between changes, in order. Without changes, there is only one segment.
    pub segments: Vec<Segment>,
    /// Reason why changes were not searched for. `None` if they were searched for.
    pub not_searched: Option<String>,
    /// Correlation of neighbouring points, if chance hardly explains it; otherwise `None`. A correlation shows that the
    /// history drifts, and the search may report drift as changes.
    pub correlation: Option<f64>,
}

/// Segment of a history in which a metric did not change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Index of the first point.
    pub first: usize,
    /// Index of the last point.
    pub last: usize,
    /// Median of the points.
    pub median: f64,
}

/// Points of one measured thing, each with its runs.
struct Points {
    name: String,
    unit: Unit,
    column: Option<String>,
    points: Vec<(String, Vec<Run>)>,
}

/// Points of one measured thing, with the quantiles of their runs that have values.
struct ReadPoints {
    name: String,
    unit: Unit,
    column: Option<String>,
    points: Vec<String>,
    /// Names of the points without a value.
    left_out: Vec<String>,
    runs: Vec<Vec<RunQuantiles>>,
}

impl ReadPoints {
    fn read(points: Points) -> Result<ReadPoints, Error> {
        let mut read = ReadPoints {
            name: points.name,
            unit: points.unit,
            column: points.column,
            points: Vec::new(),
            left_out: Vec::new(),
            runs: Vec::new(),
        };
        for (name, runs) in points.points {
            let mut runs = quantiles(&runs)?;
            runs.retain(|run| run.samples > 0);
            if runs.is_empty() {
                read.left_out.push(name)
            } else {
                read.points.push(name);
                read.runs.push(runs);
            }
        }
        Ok(read)
    }
}

/// Correlation of neighbouring points, in standard errors. Above this limit, the points count as dependent.
const SURE: f64 = 2.0;

/// Minimum number of points in which a change can be found. A change needs 5 points on each side.
const LEAST_POINTS: usize = 10;

/// Maximum number of points. The time of the search is proportional to the square of the number of points.
const MOST_POINTS: usize = 1_000;

/// Quantiles whose histories are shown.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Maximum probability that a change is found although no history has a change. It holds for all metrics of all
/// measured things together.
const ALPHA: f64 = 0.05;

/// Searches for changes in the histories of all measured things. If there are several files, each file is a
/// point. `files` contains the name of each file. If there is a single file, each of its runs is a point.
///
/// # Errors
/// Returns an error if a file cannot be read, or if the files contain no runs.
pub fn histories(files: Vec<(String, Vec<Group>)>) -> Result<Vec<History>, Error> {
    let is_single = files.len() == 1;
    let mut all: Vec<Points> = Vec::new();
    for (file, groups) in files {
        for group in groups {
            let points = if is_single {
                (group.runs.into_iter())
                    .map(|run| (run.name.clone(), vec![run]))
                    .collect()
            } else {
                vec![(file.clone(), group.runs)]
            };
            match all.iter_mut().find(|known| known.name == group.name) {
                Some(known) => known.points.extend(points),
                None => all.push(Points {
                    name: group.name,
                    unit: group.unit,
                    column: group.column,
                    points,
                }),
            }
        }
    }
    if all.is_empty() {
        return Err(Error::Sides("there are no runs in the files".to_owned()));
    }
    let read: Vec<ReadPoints> =
        (all.into_iter().map(ReadPoints::read)).collect::<Result<_, _>>()?;
    let count: usize = read.iter().map(|points| metrics(&points.runs).len()).sum();
    let history = |points: ReadPoints| History {
        lines: (metrics(&points.runs).into_iter())
            .map(|metric| HistoryLine::new(metric, &points.runs, count))
            .collect(),
        name: points.name,
        unit: points.unit,
        column: points.column,
        points: points.points,
        left_out: points.left_out,
    };
    Ok(read.into_iter().map(history).collect())
}

/// Returns the metrics for which every run has enough samples.
fn metrics(points: &[Vec<RunQuantiles>]) -> Vec<Metric> {
    let samples = || points.iter().flatten().map(|run| run.samples);
    if samples().all(|samples| samples == 1) {
        return vec![Metric::Value];
    }
    let shortest = samples().min().unwrap_or(0);
    let allowed = QUANTILES.into_iter();
    let allowed = allowed.filter(|share| shortest >= samples_per_run(*share));
    allowed.map(Metric::Quantile).collect()
}

impl HistoryLine {
    /// Searches the history of a metric for changes. `count` is the number of histories that are searched at once.
    fn new(metric: Metric, points: &[Vec<RunQuantiles>], count: usize) -> HistoryLine {
        let alpha = ALPHA / count.max(1) as f64;
        let value = |runs: &Vec<RunQuantiles>| {
            let each = runs.iter().filter_map(|run| run.at(metric.share()));
            median(&each.collect::<Vec<f64>>())
        };
        // Each point has a value, because every run has enough samples for the metric.
        let values: Vec<f64> = points.iter().filter_map(value).collect();
        let not_searched = match values.len() {
            few @ 0..LEAST_POINTS => Some(format!(
                "too few points ({few}; a change needs 5 on each side)"
            )),
            many if many > MOST_POINTS => Some(format!(
                "too many points ({many}; the maximum is {MOST_POINTS})"
            )),
            points if least_p(points) > alpha => {
                let enough = (points..MOST_POINTS).find(|points| least_p(*points) <= alpha);
                Some(match enough {
                    Some(enough) => format!(
                        "too few points for {count} metrics at once ({points}; they need {enough})"
                    ),
                    None => format!("too many metrics at once: {count}; give files with fewer"),
                })
            }
            _ => None,
        };
        let is_positive = values.iter().all(|value| *value > 0.0);
        let on_scale = values
            .iter()
            .map(|value| if is_positive { value.ln() } else { *value });
        let on_scale: Vec<f64> = on_scale.collect();
        let changes = match not_searched {
            Some(_) => Vec::new(),
            None => changes(&on_scale, alpha),
        };
        let correlation = beside_changes(&on_scale);
        let starts = std::iter::once(0).chain(changes.iter().copied());
        let ends = changes.iter().copied().chain([values.len()]);
        let segment = |(start, end): (usize, usize)| {
            Some(Segment {
                first: start,
                last: end.checked_sub(1)?,
                median: median(&values[start..end])?,
            })
        };
        HistoryLine {
            metric,
            segments: starts.zip(ends).filter_map(segment).collect(),
            values,
            not_searched,
            correlation: correlation.filter(|it| *it > SURE * beside_changes_error(points.len())),
        }
    }
}
