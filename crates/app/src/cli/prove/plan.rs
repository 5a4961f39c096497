//! `laglab prove plan`.

use std::io::{self, Write};
use std::path::PathBuf;

use prove::columns::Columns;
use prove::{Pairing, Plan, PlanLine, Question, Scale, Summary, measured, plan, sides};
use serde::Serialize;

use super::compare::{groups, metric_name, value_text};
use crate::cli::Failure;
use crate::cli::percent::parse_percent;
use crate::output::{self, Columns as Aligned, Side, counted, duration, percent};

/// Plans a comparison from a pilot: the number of pairs of runs that are needed to detect a change, the width
/// of the interval, and the duration.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab prove plan [OPTIONS] PILOT",
    after_help = "Examples:\n  \
    laglab measure sleep --method clock_nanosleep --vs slack:1ns --for 20s -o pilot.parquet && laglab prove plan pilot.parquet --margin 2%\n  \
    laglab prove plan pilot.parquet --before nanosleep --after timerfd\n  \
    laglab prove plan pilot.csv --value frame_ms --run run --by driver\n\n\
    From few pairs, the forecast is a wide range. From 32 pairs on, the half width is within 30 % of the forecast \
    in 90 % of cases."
)]
pub(super) struct Args {
    /// Pilot: a measurement with at least 6 pairs of runs of both variants
    #[arg(value_name = "PILOT")]
    pilot: PathBuf,
    /// Part of the name of the measured thing before the change
    #[arg(long, value_name = "NAME", requires = "after")]
    before: Option<String>,
    /// Part of the name of the measured thing after the change
    #[arg(long, value_name = "NAME", requires = "before")]
    after: Option<String>,
    /// Pair runs with the same name, even if they were not measured next to each other
    #[arg(long)]
    paired: bool,
    /// Smallest change that matters, in percent of the value before
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent, allow_hyphen_values = true)]
    margin: f64,
    /// For files not written by laglab: column with the values
    #[arg(long, value_name = "COLUMN", requires = "run")]
    value: Option<String>,
    /// For files not written by laglab: column with the names of the runs
    #[arg(long, value_name = "COLUMN", requires = "value")]
    run: Option<String>,
    /// For files not written by laglab: column with the name of the measured thing
    #[arg(long, value_name = "COLUMN", requires = "value")]
    by: Option<String>,
}

/// JSON output of `laglab prove plan`. Programs rely on its fields.
#[derive(Serialize)]
struct Answer {
    question: Question,
    /// Time in nanoseconds that a pair of runs took in the pilot. It includes the runs of all other methods
    /// in the file.
    pair_ns: Option<f64>,
    plan: Plan,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let question = Question {
        margin: args.margin,
    };
    let columns = args.value.as_ref().map(|value| Columns {
        value: value.clone(),
        run: args.run.clone(),
        by: args.by.clone(),
    });
    let pilot = groups(&args.pilot, columns.as_ref(), "")?;
    let rounds = pilot.iter().map(|group| group.runs.len()).max();
    let span_ns = match columns {
        None => measured::span_ns(&args.pilot)?,
        Some(_) => None,
    };
    let pair_ns = span_ns
        .zip(rounds)
        .map(|(ns, rounds)| ns as f64 / rounds.max(1) as f64);
    let pairing = if args.paired {
        Pairing::ByName
    } else {
        Pairing::Found
    };
    let both = sides::within(
        pilot,
        args.before.as_deref(),
        args.after.as_deref(),
        pairing,
    )?;
    let answer = Answer {
        question,
        pair_ns,
        plan: plan(&both, &Summary::read(&both)?, question)?,
    };
    if json {
        return Ok(output::json(&answer)?);
    }
    let mut out = output::for_people();
    write(&mut out, &answer)?;
    Ok(out.flush()?)
}

fn write(out: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    let (plan, margin) = (&answer.plan, percent(answer.question.margin));
    output::first_heading(out, &plan.name)?;
    output::paragraph(out, &headline(answer))?;
    writeln!(out)?;
    let right = [Side::Right; 5];
    let mut table = Aligned::new(&[&[Side::Left], &right[..], &[Side::Left]].concat());
    table.row([
        String::new(),
        "before".to_owned(),
        "scatter of pairs".to_owned(),
        format!("pairs for {margin}"),
        "time".to_owned(),
        "half width".to_owned(),
        "90 % range".to_owned(),
    ]);
    for line in &plan.lines {
        table.row(cells(line, answer));
    }
    table.write(out)?;
    let planned = || plan.lines.iter().filter(|line| !line.detectable.is_empty());
    if planned().next().is_some() {
        output::heading(out, "Change that is found in 90 % of cases")?;
        let sides: Vec<Side> = std::iter::once(Side::Right)
            .chain(planned().map(|_| Side::Right))
            .collect();
        let mut table = Aligned::new(&sides);
        let names = planned().map(|line| name(line, plan));
        table.row(std::iter::once("pairs".to_owned()).chain(names));
        let counts = planned().map(|line| line.detectable.iter().map(|it| it.pairs));
        let mut counts: Vec<u64> = counts.flatten().collect();
        counts.sort_unstable();
        counts.dedup();
        for count in counts {
            let change = |line: &PlanLine| {
                let entry = line.detectable.iter().find(|it| it.pairs == count);
                entry.map_or("-".to_owned(), |it| change_text(line, it.change, plan))
            };
            table.row(std::iter::once(count.to_string()).chain(planned().map(change)));
        }
        table.write(out)?;
    }
    for remark in remarks(plan) {
        output::paragraph(out, &remark)?;
    }
    for doubt in &plan.doubts {
        output::warning(out, &format!("Doubt: {doubt}"))?;
    }
    Ok(())
}

/// Returns the answer in one sentence: the number of pairs for each metric for which this number is known.
fn headline(answer: &Answer) -> String {
    let planned = answer.plan.lines.iter();
    let planned = planned.filter_map(|line| Some((name(line, &answer.plan), line.pairs?)));
    let margin = percent(answer.question.margin);
    let parts = planned.map(|(name, pairs)| {
        let time = time(answer, pairs).map(|time| format!(" ({time})"));
        format!(
            "{} for {name}{}",
            counted(pairs, "pair", "pairs"),
            time.unwrap_or_default()
        )
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        format!("The pilot does not show how many pairs are needed to detect a change of {margin}.")
    } else {
        format!(
            "To detect a change of {margin} in 90 % of cases, measure {}.",
            wording::listed(parts)
        )
    }
}

fn name(line: &PlanLine, plan: &Plan) -> String {
    metric_name(line.metric, plan.column.as_deref())
}

fn time(answer: &Answer, pairs: u64) -> Option<String> {
    Some(duration((answer.pair_ns? * pairs as f64).round() as i64))
}

fn change_text(line: &PlanLine, change: f64, plan: &Plan) -> String {
    match line.forecast.map(|it| it.scale) {
        Some(Scale::Difference) => value_text(change, plan.unit),
        _ if change > 100.0 => "more than 10,000 %".to_owned(),
        _ => format!("{:.1} %", change * 100.0),
    }
}

fn cells(line: &PlanLine, answer: &Answer) -> [String; 7] {
    let unknown = || "-".to_owned();
    let change = |size: f64| change_text(line, size, &answer.plan);
    let scatter = line.forecast.map(|it| match it.scale {
        Scale::Ratio => change(it.scatter.exp_m1()),
        Scale::Difference => change(it.scatter),
    });
    let half = line.half_width;
    [
        name(line, &answer.plan),
        line.before
            .map_or_else(unknown, |value| value_text(value, answer.plan.unit)),
        scatter.unwrap_or_else(unknown),
        line.pairs.map_or_else(unknown, output::grouped),
        (line.pairs.and_then(|pairs| time(answer, pairs))).unwrap_or_else(unknown),
        half.map_or_else(unknown, |half| format!("± {}", change(half.centre))),
        match (&line.not_planned, half) {
            (Some(reason), _) => format!("not planned: {reason}"),
            (None, Some(half)) => format!("{} to {}", change(half.low), change(half.high)),
            (None, None) => unknown(),
        },
    ]
}

fn remarks(plan: &Plan) -> Vec<String> {
    let mut remarks = vec![format!(
        "From {}. The 90 % range contains the half width in 90 % of cases; a larger pilot narrows this range.",
        counted(plan.pilot as u64, "pair of runs", "pairs of runs")
    )];
    let short = plan.lines.iter().filter_map(|line| {
        let share = line.within_runs.filter(|share| *share >= 0.5)?;
        Some(format!("{} ({:.0} %)", name(line, plan), share * 100.0))
    });
    let short: Vec<String> = short.collect();
    if !short.is_empty() {
        remarks.push(format!(
            "Chance within the runs is the larger part of the scatter of {}. More samples in each run reduce it, and \
             more pairs too.",
            wording::listed(short)
        ));
    }
    let cheapest = plan.lines.iter().filter_map(|line| {
        let best = line.cheapest?;
        Some(format!(
            "{} for {} ({} in {})",
            counted(best.samples, "sample", "samples"),
            name(line, plan),
            counted(best.pairs, "pair", "pairs"),
            duration(best.time_ns.round() as i64)
        ))
    });
    let cheapest: Vec<String> = cheapest.collect();
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for line in &plan.lines {
        let Some(reason) = line.no_cheapest else {
            continue;
        };
        let name = name(line, plan);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    remarks.extend(reasons.iter().map(|(reason, names)| {
        let names = wording::listed(names);
        format!("The run length that needs the least total time for {names} is {reason}.")
    }));
    if !cheapest.is_empty() {
        remarks.push(format!(
            "Run lengths that need the least total time, estimated from the pilot: {}.",
            wording::listed(cheapest)
        ));
    }
    remarks
}
