//! `laglab prove compare`.

#[cfg(feature = "measure")]
mod heat;
mod inputs;
mod page;
#[cfg(feature = "sql")]
mod sql_metric;

pub(super) use inputs::groups;

use std::io::{self, Write};
use std::path::PathBuf;

use prove::{
    Comparison, Design, Error, Interval, Judgement, Line, MOST_NEEDED, Metric, Move, NoRates,
    Order, Question, RateRatio, Scale, Stalls, Summary, Unit, Verdict, judge, needed_text, picture,
};
use serde::Serialize;

use crate::cli::Failure;
use crate::cli::percent::parse_percent;
use crate::cli::prove::{both_sides, new_page};
use crate::output::{
    self, Columns as Aligned, Printable, Side, counted, duration, grouped, percent,
};

/// Compares measurements before and after a change: the change of each quantile, its bounds, and a verdict.
/// Each run counts once, however many samples it has.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab prove compare [OPTIONS] BEFORE… [[--] AFTER…]",
    after_help = "Examples:\n  \
    laglab measure sleep --method clock_nanosleep --vs slack:1ns --for 60s -o m.parquet && laglab prove compare m.parquet\n  \
    laglab prove compare before.parquet after.parquet\n  \
    laglab prove compare m.parquet --before nanosleep --after timerfd\n  \
    laglab prove compare m.parquet -o pictures.html\n  \
    laglab prove compare runs.csv --value frame_ms --run run --by driver --before old --after new\n  \
    laglab prove compare --metric dpc:ndis.sys old1.etl old2.etl old3.etl old4.etl old5.etl -- new*.etl\n  \
    laglab prove compare --metric \"sql:SELECT avg(ready_ns) AS ready_ns FROM cpu_runs\" old*.etl -- new*.etl\n\n\
    Four quantiles need 5 traces on each side, and the single number of a query needs 4.\n\n\
    Metrics of traces: ready[:PROGRAM[/THREAD]] (waits for a CPU), sleep[:PROGRAM[/THREAD]], \
    dpc[:MODULE[+0xOFFSET]], isr[:MODULE[+0xOFFSET]], disk[:read|write|flush][:NUMBER], \
    input-to-focus[:PROGRAM], sql:QUERY with one number as its result."
)]
pub(super) struct Args {
    /// Files before the change and, after --, files after it: from `laglab measure … -o FILE.parquet`, other
    /// Parquet or CSV files, or traces. Two files need no --. Or one file that contains both sides
    #[arg(value_name = "BEFORE", required = true)]
    files: Vec<PathBuf>,
    /// Name of the side before the change, if one file contains both sides: for example nanosleep; a part of the
    /// name is enough
    #[arg(long, value_name = "NAME", requires = "after")]
    before: Option<String>,
    /// Name of the side after the change, if one file contains both sides: for example nanosleep; a part of the
    /// name is enough
    #[arg(long, value_name = "NAME", requires = "before")]
    after: Option<String>,
    /// Compare pairs of runs, because the runs alternated: in their order, or by their names if one file contains both
    /// sides
    #[arg(long, conflicts_with = "unpaired")]
    paired: bool,
    /// Compare runs without pairs, even if runs of both sides have the same names
    #[arg(long)]
    unpaired: bool,
    /// Smallest change that matters, in percent of the value before
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent, allow_hyphen_values = true)]
    margin: f64,
    /// Compare traces by this metric (see below); each trace is a run. If several metrics are given, each is
    /// compared separately
    #[arg(
        long,
        value_name = "METRIC",
        value_parser = inputs::Metric::parse,
        conflicts_with_all = ["value", "before"]
    )]
    metric: Vec<inputs::Metric>,
    /// With --metric: rebuild the tables of traces, and do not cache them
    #[arg(long, requires = "metric")]
    no_cache: bool,
    /// For files not written by laglab: column with the values; a name that ends with _ns, _us, _ms or _s
    /// means a time
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// For files not written by laglab: column with the names of the runs [default: each row is a run]
    #[arg(long, value_name = "COLUMN", requires = "value")]
    run: Option<String>,
    /// For files not written by laglab: column with the name of the measured thing
    #[arg(long, value_name = "COLUMN", requires = "value")]
    by: Option<String>,
    /// Also write a page with pictures: shift function, runs, distributions and, for `laglab
    /// measure`, latency over time (.html)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// JSON output of `laglab prove compare`. Programs rely on its fields.
#[derive(Serialize)]
struct Answer {
    question: Question,
    compared: Vec<Judgement>,
    /// Doubts about the input, and therefore about all comparisons.
    doubts: Vec<String>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let question = Question {
        margin: args.margin,
    };
    let output = args.output.as_deref();
    let (files_before, files_after) = both_sides(&args.files)?;
    let files = [files_before, files_after].concat();
    let page = output.map(|path| Ok::<_, Failure>((path, new_page(path, &files)?)));
    let page = page.transpose()?;
    let mut doubts = Vec::new();
    let pairs = inputs::read(args, [files_before, files_after], &mut doubts)?;
    let mut compared = Vec::new();
    let (mut pictures, mut heat) = (Vec::new(), Vec::new());
    let mut without_values = Vec::new();
    for both in &pairs {
        let summary = Summary::read(both)?;
        match judge(both, &summary, question) {
            Ok(judgement) => compared.push(judgement),
            Err(error @ Error::NoValues { .. }) => {
                without_values.push(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if page.is_some() {
            #[cfg(feature = "measure")]
            heat.push(heat::maps(both)?);
            #[cfg(not(feature = "measure"))]
            heat.push(None);
            pictures.push(picture(both, &summary)?);
        }
    }
    // A side without values does not hide the results of other comparisons.
    if compared.is_empty() && !without_values.is_empty() {
        return Err(without_values.swap_remove(0).into());
    }
    let texts = without_values.iter().map(ToString::to_string);
    doubts.extend(texts.map(|text| format!("{}.", wording::capitalized(&text))));
    let answer = Answer {
        question,
        compared,
        doubts,
    };
    if let Some((path, new)) = page {
        let page = page::page(&answer, &pictures, &heat)?;
        let written = new.file().write_all(page.as_bytes());
        written.map_err(|error| Failure::writing(path, &error))?;
        new.finish()?;
    }
    if json {
        return Ok(output::json(&answer)?);
    }
    let mut out = output::for_people();
    for (number, judgement) in answer.compared.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write(&mut out, judgement, question)?;
    }
    write_doubts(&mut out, &answer.doubts)?;
    Ok(out.flush()?)
}

fn write(out: &mut dyn Write, judgement: &Judgement, question: Question) -> io::Result<()> {
    output::first_heading(out, &judgement.name)?;
    output::paragraph(out, &headline(judgement, question))?;
    writeln!(out)?;
    let sides = [
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Left,
    ];
    let mut table = Aligned::new(&sides);
    table.row(headings(judgement));
    for line in &judgement.lines {
        table.row(cells(line, judgement, question));
    }
    table.write(out)?;
    for remark in remarks(judgement) {
        output::paragraph(out, &remark)?;
    }
    write_doubts(out, &judgement.doubts)
}

fn write_doubts(out: &mut dyn Write, doubts: &[String]) -> io::Result<()> {
    let mut doubts = doubts.iter();
    doubts.try_for_each(|doubt| output::warning(out, &format!("Doubt: {doubt}")))
}

/// Returns the headings of the columns of [`cells`].
fn headings(judgement: &Judgement) -> [String; 6] {
    let change = format!(
        "{} of {}",
        change_name(judgement),
        compared_things(judgement)
    );
    ["", "before", "after", &change, "95 % interval", "verdict"].map(str::to_owned)
}

/// Returns the word for the change of a metric: `difference` or `ratio`. Returns `change` if the metrics have different
/// scales.
fn change_name(judgement: &Judgement) -> &'static str {
    match scale(judgement) {
        Some(Scale::Difference) => "difference",
        Some(Scale::Ratio) => "ratio",
        None => "change",
    }
}

/// Returns the word for the units of the comparison: pairs, runs or sessions. Each unit counts as one value.
fn compared_things(judgement: &Judgement) -> &'static str {
    match (judgement.design, judgement.sessions) {
        (Design::Paired, _) => "pairs",
        (Design::Unpaired, None) => "runs",
        (Design::Unpaired, Some(_)) => "sessions",
    }
}

/// Explains why the change may differ from the change of the printed medians. Returns `None` if nothing was compared.
fn change_text(judgement: &Judgement) -> Option<String> {
    judgement.lines.iter().find_map(Line::scale)?;
    let mut compared = judgement.lines.iter().filter_map(|line| line.comparison);
    let name = change_name(judgement);
    let things = compared_things(judgement);
    let medians = match things {
        "sessions" => things,
        _ => "runs",
    };
    let formula = match scale(judgement) {
        Some(Scale::Ratio) => " (after / before)",
        Some(Scale::Difference) => " (after - before)",
        None => "",
    };
    let looks = match compared.next().filter(|_| judgement.has_looks) {
        Some(first) => format!(
            " The measurement could end as soon as its result was sure (--until-sure). So the intervals are wider than \
             those of other measurements, as in `laglab measure`, and the changes are those of the first {}.",
            counted(first.runs as u64, "pair", "pairs")
        ),
        None => String::new(),
    };
    Some(format!(
        "Before and after are medians of the {medians}. The {name}{formula} is that of typical {things}, which may differ \
         from the {name} of the medians.{looks}"
    ))
}

/// Returns the scale of all comparisons. Returns `None` if they have different scales.
fn scale(judgement: &Judgement) -> Option<Scale> {
    let lines = judgement.lines.iter();
    let mut scales = lines.filter_map(Line::scale);
    let first = scales.next().unwrap_or(Scale::Ratio);
    scales.all(|other| other == first).then_some(first)
}

/// Returns the answer in one sentence: for each verdict, the metrics that have this verdict.
fn headline(judgement: &Judgement, question: Question) -> String {
    let mut verdicts: Vec<(String, Vec<String>)> = Vec::new();
    for line in &judgement.lines {
        let verdict = match line.verdict {
            None => "not compared".to_owned(),
            Some(verdict) => in_words(verdict, question),
        };
        let name = metric_name(line.metric, judgement.column.as_deref());
        match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, names)) => names.push(name),
            None => verdicts.push((verdict, vec![name])),
        }
    }
    let parts = verdicts
        .iter()
        .map(|(verdict, names)| format!("{} {verdict}", names.join(", ")));
    let parts: Vec<String> = parts.collect();
    format!("After the change: {}.", parts.join("; "))
}

/// Returns the cells of a metric's row.
fn cells(line: &Line, judgement: &Judgement, question: Question) -> [String; 6] {
    let unit = judgement.unit;
    let is_mixed = scale(judgement).is_none();
    let value = |known: Option<f64>| known.map_or("-".to_owned(), |known| value_text(known, unit));
    let number = |value: f64, scale: Scale| match scale {
        Scale::Ratio if is_mixed => format!("× {}", ratio_text(value)),
        Scale::Ratio => ratio_text(value),
        Scale::Difference if is_mixed && value > 0.0 => {
            format!("+ {}", value_text(value, unit))
        }
        Scale::Difference => value_text(value, unit),
    };
    let (change, interval) = match (line.comparison, line.estimate) {
        (Some(Comparison { change, scale, .. }), _) => (
            number(change.centre, scale),
            format!(
                "{} to {}",
                number(change.low, scale),
                number(change.high, scale)
            ),
        ),
        (None, Some(estimate)) => (number(estimate.change, estimate.scale), "-".to_owned()),
        (None, None) => ("-".to_owned(), "-".to_owned()),
    };
    let verdict = match (line.verdict, &line.not_compared) {
        (Some(Verdict::Unknown), _) => {
            let more = line.more.map(|count| {
                let (one, many) = match judgement.design {
                    Design::Paired => ("more pair", "more pairs"),
                    _ if judgement.sessions.is_some() => {
                        ("more session of each side", "more sessions of each side")
                    }
                    _ => ("more run of each side", "more runs of each side"),
                };
                match line.is_too_many {
                    true => {
                        let lines = judgement.lines.iter();
                        let compared = lines.filter(|line| line.verdict.is_some()).count();
                        let each = counted(count, one, many);
                        format!(": comparing {compared} quantiles at once needs {each}")
                    }
                    false if line.comparison.is_none() => {
                        format!(": a verdict needs {}", counted(count, one, many))
                    }
                    false => format!(
                        ": {} would detect a change of {}{}",
                        needed_text(count, one, many),
                        percent(question.margin),
                        if count > MOST_NEEDED {
                            "; measure longer runs, or find out why runs differ"
                        } else {
                            ""
                        }
                    ),
                }
            });
            format!("unknown{}", more.unwrap_or_default())
        }
        (Some(verdict), _) => in_words(verdict, question),
        (None, reason) => format!("not compared: {}", reason.as_deref().unwrap_or("no values")),
    };
    [
        metric_name(line.metric, judgement.column.as_deref()),
        value(line.before),
        value(line.after),
        change,
        interval,
        verdict,
    ]
}

/// Returns sentences about the data behind a comparison.
fn remarks(judgement: &Judgement) -> Vec<String> {
    let mut remarks = vec![match judgement.design {
        Design::Paired => format!(
            "{}{}, with {} samples before and {} after the change.",
            counted(
                judgement.runs_before as u64,
                "pair of runs",
                "pairs of runs"
            ),
            match judgement.alternated {
                Some(true) => " that were measured next to each other",
                _ => "",
            },
            grouped(judgement.samples_before),
            grouped(judgement.samples_after)
        ),
        Design::Unpaired => format!(
            "{} before and {} after the change, with {} and {} samples.",
            counted(judgement.runs_before as u64, "run", "runs"),
            grouped(judgement.runs_after as u64),
            grouped(judgement.samples_before),
            grouped(judgement.samples_after)
        ),
    }];
    remarks.extend(change_text(judgement));
    if let Some(each) = judgement
        .samples_per_independent
        .filter(|each| *each >= 1.5)
    {
        let each = match each {
            100.0.. => grouped(each.round() as u64),
            _ => format!("{each:.1}"),
        };
        remarks.push(format!(
            "Neighbouring samples depend on each other: up to {each} of them count as one independent sample."
        ));
    }
    remarks.extend(
        judgement
            .stalls
            .map(|stalls| stall_text(&stalls, judgement.unit)),
    );
    remarks.extend(order_text(judgement));
    if let Some(moved) = &judgement.moved {
        remarks.push(format!(
            "{:.1} % of the samples moved from the mode at {} to the mode at {}.",
            moved.share * 100.0,
            value_text(moved.from, judgement.unit),
            value_text(moved.to, judgement.unit)
        ));
    }
    for mode in &judgement.modes {
        let part = |share: f64| format!("{:.1} %", share * 100.0);
        remarks.push(format!(
            "Mode at {}: {} of the samples before, {} after the change.",
            value_text(mode.mode.peak, judgement.unit),
            part(mode.before),
            part(mode.after)
        ));
    }
    let rest = |of: fn(&Move) -> f64| 1.0 - judgement.modes.iter().map(of).sum::<f64>();
    let (before, after) = (rest(|mode| mode.before), rest(|mode| mode.after));
    if !judgement.modes.is_empty() && before.max(after) >= 0.001 {
        remarks.push(format!(
            "The other samples ({:.1} % before, {:.1} % after the change) are 0 or negative, and belong to no mode.",
            before * 100.0,
            after * 100.0
        ));
    }
    remarks
}

/// Describes the effects of the order of the two runs in a pair. Only effects that matter are described.
fn order_text(judgement: &Judgement) -> Option<String> {
    let effects = judgement.lines.iter().filter_map(|line| {
        let effect = line.order.filter(|effect| effect.matters)?;
        let Interval { centre, low, high } = effect.order.second;
        let text = |value: f64| match effect.order.scale {
            Scale::Ratio => ratio_text(value),
            Scale::Difference => value_text(value, judgement.unit),
        };
        let change = format!("{} ({} to {})", text(centre), text(low), text(high));
        let name = metric_name(line.metric, judgement.column.as_deref());
        let change = match effect.order.scale {
            Scale::Ratio => format!("{name} by a factor of {change}"),
            Scale::Difference => format!("{name} by {change}"),
        };
        Some((change, effect.order))
    });
    let effects: Vec<(String, Order)> = effects.collect();
    let (_, order) = effects.first()?;
    let changes = wording::listed(effects.iter().map(|(change, _)| change));
    let meaning = match order.before_began.abs_diff(order.after_began) {
        0 | 1 => {
            "Both sides began equally often, so this effect widens the intervals of the change, but does not shift them"
        }
        _ => "The sides began unequally often, so a part of the change may be this effect",
    };
    Some(format!(
        "The order within pairs matters: the run that begins second changes {changes}. {meaning} (the run before the \
         change was first in {} of {} pairs).",
        order.before_began,
        order.before_began + order.after_began
    ))
}

fn stall_text(stalls: &Stalls, unit: Unit) -> String {
    let rate = match stalls.rates {
        None => match stalls.no_rates {
            Some(NoRates::RunsDiffer) => {
                "unknown, because the runs or files of a side differ by more than chance"
            }
            _ => "unknown, because a side has fewer than 4 runs",
        }
        .to_owned(),
        Some(RateRatio {
            ratio: Some(ratio),
            low,
            high: Some(high),
            ..
        }) => format!(
            "×{} (95 % interval {} to {})",
            ratio_text(ratio),
            ratio_text(low),
            ratio_text(high)
        ),
        Some(rates) => format!("at least ×{}", ratio_text(rates.low)),
    };
    format!(
        "Stalls above {} (the p{} before the change): {} before ({}), {} after ({}). Rate per sample: {rate}.",
        value_text(stalls.above, unit),
        (stalls.share * 1_000.0).round() / 10.0,
        grouped(stalls.before),
        counted(stalls.late_before, "late sample", "late samples"),
        grouped(stalls.after),
        counted(stalls.late_after, "late sample", "late samples"),
    )
}

/// Returns the short name of a metric. The only value of a run has the name of its column, if it is known.
pub(super) fn metric_name(metric: Metric, column: Option<&str>) -> String {
    let name = match metric {
        Metric::Value => {
            return column.map_or_else(|| "value".to_owned(), |it| Printable(it).to_string());
        }
        Metric::Quantile(share) if share > 0.99 => "p99.9",
        Metric::Quantile(share) if share > 0.9 => "p99",
        Metric::Quantile(share) if share > 0.5 => "p90",
        Metric::Quantile(_) => "p50",
    };
    name.to_owned()
}

fn in_words(verdict: Verdict, question: Question) -> String {
    let margin = percent(question.margin);
    match verdict {
        Verdict::Higher => "higher".to_owned(),
        Verdict::Lower => "lower".to_owned(),
        Verdict::SlightlyHigher => format!("higher, perhaps by less than {margin}"),
        Verdict::SlightlyLower => format!("lower, perhaps by less than {margin}"),
        Verdict::Same => format!("the same within {margin}"),
        Verdict::Unknown => "unknown".to_owned(),
    }
}

/// Formats a ratio with at least three significant digits. Ratios from 0.1 to 10 have three decimals, because small
/// changes matter there.
pub(super) fn ratio_text(ratio: f64) -> String {
    match ratio.abs() {
        0.0 => "0".to_owned(),
        size @ 1e-9..1e9 => match size.log10().floor() as i64 {
            0 => format!("{ratio:.3}"),
            exponent => format!("{ratio:.*}", (2 - exponent).clamp(0, 12) as usize),
        },
        _ => format!("{ratio:.2e}"),
    }
}

/// Formats a time in nanoseconds, with a unit that fits.
fn time_text(ns: f64) -> String {
    /// Nanoseconds of a year.
    const YEAR: f64 = 365.25 * 86_400e9;

    let sign = if ns < 0.0 { "-" } else { "" };
    match ns.abs() {
        size if size < 0.5 && size > 0.0 => format!("{sign}{} ns", ratio_text(size)),
        size if size < 3.0 * YEAR => duration(ns.round() as i64),
        size if size < 1e15 * YEAR => {
            format!("{sign}{} years", grouped((size / YEAR).round() as u64))
        }
        size => format!("{sign}{:.2e} years", size / YEAR),
    }
}

/// Formats a value with its unit. Values of an unknown unit have four significant digits.
pub(super) fn value_text(value: f64, unit: Unit) -> String {
    /// Range of the absolute values that are printed without an exponent.
    const DIGITS: std::ops::Range<f64> = 1e-9..1e15;
    let size = value.abs();
    match unit {
        Unit::Nanoseconds => time_text(value),
        Unit::Other if value == 0.0 => "0".to_owned(),
        Unit::Other if !DIGITS.contains(&size) => format!("{value:.3e}"),
        Unit::Other => {
            let digits = 3 - value.abs().log10().floor() as i64;
            format!("{value:.*}", digits.clamp(0, 12) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_significant_digits_and_units_that_fit() {
        for (ratio, expected) in [
            (0.0, "0"),
            (0.000_992_4, "0.000992"),
            (0.006_987, "0.00699"),
            (0.032_41, "0.0324"),
            (0.324_4, "0.324"),
            (1.0, "1.000"),
            (1.027_4, "1.027"),
            (23.456, "23.5"),
            (4_567.8, "4568"),
            (1e-12, "1.00e-12"),
        ] {
            assert_eq!(ratio_text(ratio), expected);
        }
        // A year has 31,557,600 seconds: 1.3e21 ns are 41,194.5 years.
        for (ns, expected) in [
            (0.0, "0 ns"),
            (0.012, "0.0120 ns"),
            (-0.25, "-0.250 ns"),
            (1_500_000.0, "1.5 ms"),
            (1.3e21, "41,195 years"),
            (-1.3e21, "-41,195 years"),
        ] {
            assert_eq!(value_text(ns, Unit::Nanoseconds), expected);
        }
    }
}
