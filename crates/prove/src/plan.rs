//! Plans of comparisons, computed from a pilot. A plan states the number of pairs of runs that can show a
//! change.

use serde::Serialize;
use statistics::levels::{self, Level};
use statistics::paired::MOST;
use statistics::planning::{self, Forecast, samples_per_run};
use statistics::{Design, Incomparable, Interval, Scale, quantile};

use crate::summary::{Side, in_waves};
use crate::{Error, Group, Line, Metric, Question, Sides, Summary, Unit, judge, needed_text};

/// Plan of a comparison of one measured thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the measured thing.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Name of the column of the values, if a user named it.
    pub column: Option<String>,
    /// Number of pairs in the pilot.
    pub pilot: usize,
    /// Plan of each metric.
    pub lines: Vec<PlanLine>,
    /// Reasons to doubt the pilot, one sentence each.
    pub doubts: Vec<String>,
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
    /// Cheapest length of a run. `None` if there is no forecast, if the length is unknown, or if the length has no
    /// limit.
    pub cheapest: Option<Cheapest>,
    /// End of the sentence "The cheapest length is …". It says if and why the length is unknown or has no limit. `None`
    /// if there is a cheapest length or no forecast.
    pub no_cheapest: Option<&'static str>,
    /// Reason why there is no plan. `None` if there is a plan.
    pub not_planned: Option<String>,
}

/// Number of samples of a run for which a comparison takes the least time (Kalibera and Jones).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cheapest {
    /// Number of samples of each run.
    pub samples: u64,
    /// Number of pairs of runs of this length. They find a change as large as the margin with a probability of 90 %.
    pub pairs: u64,
    /// Time of these pairs, in nanoseconds. The runs of other methods are not included.
    pub time_ns: f64,
}

/// Costs of the runs of a pilot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Costs {
    /// Time of a sample, in nanoseconds.
    sample_ns: f64,
    /// Time from the end of the last sample of a run to the start of the first sample of the next run, in nanoseconds.
    run_ns: f64,
    /// Number of samples of a run.
    samples: f64,
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
             together, for example with `laglab measure … --vs`, or pair runs of the same name with --paired"
                .to_owned(),
        ));
    }
    if let Some(kept) = summary.without_empty(pilot)? {
        let mut plan = plan(&kept.sides, &kept.summary, question)?;
        plan.doubts.push(kept.doubt);
        return Ok(plan);
    }
    let judged = judge(pilot, summary, question)?;
    let within = [
        chance_within_runs(&pilot.before)?,
        chance_within_runs(&pilot.after)?,
    ];
    let costs = costs(pilot)?;
    let [before, after] = &summary.sides;
    let line = |line: &Line| {
        let share = line.metric.share();
        let values_of = |side: &Side| -> Option<Vec<f64>> {
            side.runs
                .iter()
                .map(|run| run.quantiles.at(share))
                .collect()
        };
        let runs = before.runs.iter().chain(&after.runs);
        let samples = runs.map(|run| run.quantiles.samples).min().unwrap_or(0);
        let needed = match line.metric {
            Metric::Value => 1,
            Metric::Quantile(share) => samples_per_run(share),
        };
        let forecast = match (values_of(before), values_of(after)) {
            (Some(before), Some(after)) if samples >= needed => {
                Forecast::from_pilot(&before, &after)
            }
            _ => Err(Incomparable::TooShort {
                found: samples,
                needed,
            }),
        };
        let not_planned = forecast.err().map(|reason| reason.to_string());
        let place = QUANTILES.iter().position(|known| *known == share);
        let sampling = place.and_then(|place| Some(within[0][place]? + within[1][place]?));
        let mut plan = PlanLine::new(line, forecast.ok(), sampling, question, not_planned);
        let scattered = plan.forecast.filter(|forecast| forecast.scatter > 0.0);
        let cheapest_plan = scattered.map(|forecast| {
            let sampling = sampling
                .ok_or("unknown, because a run has too few independent samples, or values of 0")?;
            let costs =
                costs.ok_or("unknown, because the file does not have the start of each sample")?;
            cheapest(forecast, sampling, costs, needed, question)
        });
        match cheapest_plan {
            Some(Ok(cheapest)) => plan.cheapest = Some(cheapest),
            Some(Err(reason)) => plan.no_cheapest = Some(reason),
            None => {}
        }
        plan
    };
    Ok(Plan {
        name: judged.name.clone(),
        unit: judged.unit,
        column: judged.column.clone(),
        pilot: judged.runs_before,
        lines: judged.lines.iter().map(line).collect(),
        doubts: judged.doubts.clone(),
    })
}

impl PlanLine {
    fn new(
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
        // If most pairs have the same change, nothing is known about their scatter.
        let scattered = forecast.filter(|it| it.scatter > 0.0);
        let needed = scattered.and_then(|it| it.pairs(on_scale(it), POWER));
        let is_possible = |pairs: &u64| *pairs <= MOST as u64;
        let pairs = needed.filter(is_possible);
        let not_planned = not_planned.or_else(|| {
            if forecast.is_some() && scattered.is_none() {
                return Some(
                    "most pairs have the same change, so their scatter is unknown; measure finer values"
                        .to_owned(),
                );
            }
            let too_many = needed.filter(|pairs| !is_possible(pairs))?;
            Some(format!(
                "{} would be needed, because the pairs scatter too much; measure longer runs, find out why runs \
                 differ, or \
                 accept a greater margin",
                needed_text(too_many, "pair", "pairs")
            ))
        });
        let as_change = |forecast: Forecast, size: f64| match forecast.scale {
            Scale::Ratio => size.exp_m1(),
            Scale::Difference => size,
        };
        let half_width = scattered
            .zip(pairs)
            .map(|(it, pairs)| it.half_width(pairs).map(|size| as_change(it, size)));
        let detectable = scattered.into_iter().flat_map(|it| {
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
            cheapest: None,
            no_cheapest: None,
            not_planned,
        }
    }
}

/// Returns the cheapest length of a run. `sampling` is the part of the variance of a pair that chance within the runs
/// of the pilot causes. `needed` is the minimum number of samples of a run.
///
/// # Errors
/// Returns the text for `no_cheapest` if there is no such length.
fn cheapest(
    forecast: Forecast,
    sampling: f64,
    costs: Costs,
    needed: usize,
    question: Question,
) -> Result<Cheapest, &'static str> {
    let whole = forecast.scatter.powi(2);
    let levels = [
        Level {
            seen: sampling * costs.samples,
            own: sampling * costs.samples,
        },
        Level {
            seen: whole,
            own: whole - sampling,
        },
    ];
    if forecast.scale != Scale::Ratio {
        return Err("unknown, because values are 0 or negative, so there are no ratios");
    }
    if levels[1].own <= 0.0 {
        return Err(
            "longer than in the pilot: runs differ only by chance within them, so few long runs take less time than \
             many short ones",
        );
    }
    let best = levels::repetitions(&levels, &[costs.sample_ns, costs.run_ns]);
    let samples = best
        .first()
        .map_or(0.0, |best| best.max(needed as f64).round());
    let scatter = (levels[1].own + levels[0].own / samples).sqrt();
    let pairs = planning::pairs(question.margin.ln_1p() / scatter, POWER);
    let pairs = pairs.filter(|pairs| samples > 0.0 && *pairs <= MOST as u64);
    let pairs = pairs.ok_or("unknown, because too many pairs would be needed")?;
    let pair_ns = 2.0 * (costs.run_ns + samples * costs.sample_ns);
    Ok(Cheapest {
        samples: samples as u64,
        pairs,
        time_ns: pairs as f64 * pair_ns,
    })
}

/// Returns the costs of the runs of a pilot, as medians. Returns `None` if the starts of samples are unknown, if a run
/// has fewer than two samples, or if the median time of a sample is 0.
fn costs(pilot: &Sides) -> Result<Option<Costs>, Error> {
    let (mut sample_ns, mut run_ns, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    for (before, after) in pilot.before.runs.iter().zip(&pilot.after.runs) {
        let (Some(mut first), Some(mut second)) = (before.span()?, after.span()?) else {
            return Ok(None);
        };
        if second.first_ns < first.first_ns {
            std::mem::swap(&mut first, &mut second);
        }
        for run in [&first, &second] {
            if run.samples < 2 {
                return Ok(None);
            }
            let whole = (run.last_ns - run.first_ns) as f64;
            sample_ns.push(whole / (run.samples - 1) as f64);
            samples.push(run.samples as f64);
        }
        // This time includes the last sample of the first run. The time of a sample is subtracted below.
        run_ns.push((second.first_ns - first.last_ns) as f64);
    }
    for values in [&mut sample_ns, &mut run_ns, &mut samples] {
        values.sort_unstable_by(f64::total_cmp);
    }
    let middle = |values: &[f64]| quantile::of_sorted(values, 0.5);
    let costs = middle(&sample_ns)
        .zip(middle(&run_ns))
        .zip(middle(&samples));
    let costs = costs.map(|((sample_ns, run_ns), samples)| Costs {
        sample_ns,
        run_ns: (run_ns - sample_ns).max(0.0),
        samples,
    });
    Ok(costs.filter(|costs| costs.sample_ns > 0.0))
}

/// Quantiles for which a run's chance is computed, in the order of the results.
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
