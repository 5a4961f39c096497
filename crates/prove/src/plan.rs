//! Plans of comparisons, computed from a pilot. A plan states the number of pairs of runs that can show a
//! change.

use serde::Serialize;
use statistics::paired::MOST;
use statistics::planning::{Forecast, samples_per_run};
use statistics::{Design, Incomparable, Interval, Scale, quantile};

use crate::summary::{Side, in_waves};
use crate::{Error, Group, Line, Metric, Question, Sides, Summary, Unit, judge};

/// Plan of a comparison of one measured thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the measured thing.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Number of pairs in the pilot.
    pub pilot: usize,
    /// Plan of each metric.
    pub lines: Vec<PlanLine>,
}

/// Plan of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanLine {
    /// Metric that turns each run into one number.
    pub metric: Metric,
    /// Median of the values of the runs before the change.
    pub before: Option<f64>,
    /// Forecast from the pilot. `None` if the pilot does not allow a forecast.
    pub forecast: Option<Forecast>,
    /// Number of pairs with which a change as large as the margin is found with a probability of 90 %. `None`
    /// if there is no plan.
    pub pairs: Option<u64>,
    /// Expected half width of the 95 % confidence interval with `pairs` pairs. It is a share or a difference,
    /// depending on the scale of the forecast.
    pub half_width: Option<Interval>,
    /// For several numbers of pairs, the change that is found with a probability of 90 %.
    pub detectable: Vec<Detectable>,
    /// Share of the variance of the pairs that comes from chance within the runs. Longer runs reduce only
    /// this share. More pairs reduce the effect of the whole variance.
    pub within_runs: Option<f64>,
    /// Reason why there is no plan. `None` if there is a plan.
    pub not_planned: Option<String>,
}

/// Minimum change that a number of pairs can find.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Detectable {
    /// Number of pairs.
    pub pairs: u64,
    /// Minimum change. It is a share or a difference, depending on the scale of the forecast.
    pub change: f64,
}

/// Numbers of pairs for which the detectable change is computed.
const PAIRS: [u64; 5] = [8, 16, 32, 64, 128];

/// Probability with which a planned comparison must find the change.
const POWER: f64 = 0.9;

/// Plans a comparison with the same kind of runs as the pilot. `summary` must be the summary of `pilot`.
///
/// # Errors
/// Returns an error if a file cannot be read, or if the runs of the pilot are not paired.
pub fn plan(pilot: &Sides, summary: &Summary, question: Question) -> Result<Plan, Error> {
    if pilot.design == Design::Unpaired {
        return Err(Error::Sides(
            "cannot plan from runs that did not alternate: a plan needs pairs of runs; measure both variants \
             together, for example with `laglab measure … --vs`"
                .to_owned(),
        ));
    }
    let judged = judge(pilot, summary, question)?;
    let within = [
        chance_within_runs(&pilot.before)?,
        chance_within_runs(&pilot.after)?,
    ];
    let [before, after] = &summary.sides;
    let line = |line: &Line| {
        let share = line.metric.share();
        let of = |side: &Side| -> Option<Vec<f64>> {
            side.runs
                .iter()
                .map(|run| run.quantiles.at(share))
                .collect()
        };
        let runs = before.runs.iter().chain(&after.runs);
        let found = runs.map(|run| run.quantiles.samples).min().unwrap_or(0);
        let needed = match line.metric {
            Metric::Value => 1,
            Metric::Quantile(share) => samples_per_run(share),
        };
        let forecast = match (of(before), of(after)) {
            (Some(before), Some(after)) if found >= needed => Forecast::of(&before, &after),
            _ => Err(Incomparable::TooShort { found, needed }),
        };
        let not_planned = forecast.err().map(|reason| reason.to_string());
        let place = QUANTILES.iter().position(|known| *known == share);
        let sampling = place.and_then(|place| Some(within[0][place]? + within[1][place]?));
        PlanLine::of(line, forecast.ok(), sampling, question, not_planned)
    };
    Ok(Plan {
        name: judged.name.clone(),
        unit: judged.unit,
        pilot: judged.runs_before,
        lines: judged.lines.iter().map(line).collect(),
    })
}

impl PlanLine {
    fn of(
        line: &Line,
        forecast: Option<Forecast>,
        sampling: Option<f64>,
        question: Question,
        not_planned: Option<String>,
    ) -> PlanLine {
        let on_scale = |forecast: Forecast| match forecast.scale {
            Scale::Ratio => question.margin.ln_1p(),
            Scale::Difference => question.margin * line.before.unwrap_or_default().abs(),
        };
        let needed = forecast.and_then(|it| it.pairs(on_scale(it), POWER));
        let is_possible = |pairs: &u64| *pairs <= MOST as u64;
        let pairs = needed.filter(is_possible);
        let not_planned = not_planned.or_else(|| {
            let too_many = needed.filter(|pairs| !is_possible(pairs))?;
            Some(format!(
                "the pairs scatter too much: about {} would be needed; find out why runs differ, or accept a greater \
                 margin",
                wording::counted(too_many, "pair", "pairs")
            ))
        });
        let as_change = |forecast: Forecast, size: f64| match forecast.scale {
            Scale::Ratio => size.exp_m1(),
            Scale::Difference => size,
        };
        let half_width = forecast
            .zip(pairs)
            .map(|(it, pairs)| it.half_width(pairs).map(|size| as_change(it, size)));
        let detectable = forecast.into_iter().flat_map(|it| {
            PAIRS.into_iter().filter_map(move |pairs| {
                Some(Detectable {
                    pairs,
                    change: as_change(it, it.detectable(pairs, POWER)?),
                })
            })
        });
        PlanLine {
            metric: line.metric,
            before: line.before,
            forecast,
            pairs,
            half_width,
            detectable: detectable.collect(),
            within_runs: forecast.zip(sampling).and_then(|(it, sampling)| {
                let is_ratio = it.scale == Scale::Ratio && it.scatter > 0.0;
                is_ratio.then(|| (sampling / it.scatter.powi(2)).min(1.0))
            }),
            not_planned,
        }
    }
}

/// Quantiles of metrics.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Returns one value for each quantile: the variance of the quantile's logarithm that chance within the runs
/// causes, as the mean over all runs. The variance of a run is computed from the confidence bounds of the
/// quantile. If samples depend on each other, they count as fewer samples. Returns `None` for a quantile if a
/// run is too short for such bounds, or if a value is not positive.
fn chance_within_runs(group: &Group) -> Result<[Option<f64>; 4], Error> {
    /// Width of a 95 % interval of a normal distribution, in standard deviations.
    const WIDTH: f64 = 2.0 * 1.959_963_984_540_054;

    let mut sums = [Some(0.0); 4];
    in_waves(
        &group.runs,
        |run| {
            let mut values = run.values()?.known.into_owned();
            let dependence = crate::summary::dependence(&values);
            values.sort_unstable_by(f64::total_cmp);
            Ok(QUANTILES.map(|share| {
                let count = (values.len() as f64 / dependence) as u64;
                let bounds = quantile::bounds(count, share, statistics::CONFIDENCE);
                let at = |rank: u64| quantile::of_sorted(&values, rank as f64 / count as f64);
                let (low, high) = (at(bounds.low?)?, at(bounds.high?)?);
                (low > 0.0).then(|| ((high / low).ln() / WIDTH).powi(2))
            }))
        },
        |variances| {
            for (sum, variance) in sums.iter_mut().zip(variances?) {
                *sum = sum.zip(variance).map(|(sum, more)| sum + more);
            }
            Ok(())
        },
    )?;
    let count = group.runs.len().max(1) as f64;
    Ok(sums.map(|sum| sum.map(|sum| sum / count)))
}
