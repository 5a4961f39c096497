//! `laglab prove compare`.

#[cfg(feature = "measure")]
mod heat;
mod inputs;
mod page;
#[cfg(feature = "sql")]
mod sql_metric;

pub(super) use inputs::groups;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use prove::{
    Comparison, Design, Interval, Judgement, Line, Metric, Order, Question, Scale, Stalls, Summary,
    Unit, Verdict, judge, picture,
};
use serde::Serialize;
use session::NewFile;

use crate::cli::Failure;
use crate::cli::percent::parse_percent;
use crate::output::{self, Columns as Aligned, Side, counted, duration, grouped, percent};

/// Compares measurements before and after a change: the change of each quantile, its bounds, and a verdict.
/// Each run counts once, however many samples it has.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab prove compare [OPTIONS] BEFORE… [-- AFTER…]",
    after_help = "Examples:\n  \
    laglab measure sleep --vs slack:1ns --for 60s -o m.parquet && laglab prove compare m.parquet\n  \
    laglab prove compare before.parquet -- after.parquet\n  \
    laglab prove compare m.parquet --before nanosleep --after timerfd\n  \
    laglab prove compare m.parquet -o pictures.html\n  \
    laglab prove compare runs.csv --value frame_ms --run run --by driver --before old --after new\n  \
    laglab prove compare --metric dpc:ndis.sys old1.etl old2.etl old3.etl old4.etl -- new*.etl\n  \
    laglab prove compare --metric \"sql:SELECT avg(ready_ns) AS ready_ns FROM cpu_runs\" old*.etl -- new*.etl\n\n\
    Metrics of traces: ready[:PROGRAM[/THREAD]] (waits for a CPU), sleep[:PROGRAM[/THREAD]], \
    dpc[:MODULE[+0xOFFSET]], isr[:MODULE[+0xOFFSET]], disk[:read|write|flush][:NUMBER], \
    input-to-focus[:PROGRAM], sql:QUERY with one number as its result."
)]
pub(super) struct Args {
    /// Files before the change: from `laglab measure … -o FILE.parquet`, other Parquet or CSV files, or
    /// traces. If no files follow after --, one file that contains both sides
    #[arg(value_name = "BEFORE", required = true)]
    files: Vec<PathBuf>,
    /// Files after the change
    #[arg(value_name = "AFTER", last = true)]
    files_after: Vec<PathBuf>,
    /// Name of the side before the change, if one file contains both sides: for example nanosleep; a part of the
    /// name is enough
    #[arg(
        long,
        value_name = "NAME",
        requires = "after",
        conflicts_with = "files_after"
    )]
    before: Option<String>,
    /// Name of the side after the change, if one file contains both sides: for example nanosleep; a part of the
    /// name is enough
    #[arg(long, value_name = "NAME", requires = "before")]
    after: Option<String>,
    /// Pair the runs of both sides in their order; use it if the runs alternated
    #[arg(long, requires = "files_after")]
    paired: bool,
    /// Smallest change that matters, in percent of the value before
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    margin: f64,
    /// Compare traces by this metric (see below); each trace is a run. If several metrics are given, each is
    /// compared separately
    #[arg(
        long,
        value_name = "METRIC",
        value_parser = inputs::Metric::parse,
        conflicts_with_all = ["value", "before"],
        requires = "files_after"
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
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let question = Question {
        margin: args.margin,
    };
    let output = args.output.as_deref();
    let page = output.map(|path| Ok::<_, Failure>((path, new_page(path)?)));
    let page = page.transpose()?;
    let pairs = inputs::read(args)?;
    let (mut compared, mut pictures) = (Vec::new(), Vec::new());
    for both in &pairs {
        let summary = Summary::read(both)?;
        compared.push(judge(both, &summary, question)?);
        if page.is_some() {
            #[cfg(feature = "measure")]
            let heat = heat::maps(both)?;
            #[cfg(not(feature = "measure"))]
            let heat = None;
            pictures.push((picture(both, &summary)?, heat));
        }
    }
    let answer = Answer { question, compared };
    if let Some((path, new)) = page {
        let page = page::page(&answer.compared, &pictures, question);
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
    Ok(out.flush()?)
}

/// Creates the file of the page before the comparison. If the file cannot be written, no time is lost.
fn new_page(path: &Path) -> Result<NewFile, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("html" | "htm") => Ok(NewFile::create(path)?),
        _ => Err(Failure::input(path, "unknown format; use .html")),
    }
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
        table.row(cells(line, judgement.unit, question));
    }
    table.write(out)?;
    for remark in remarks(judgement) {
        output::paragraph(out, &remark)?;
    }
    for doubt in &judgement.doubts {
        output::warning(out, &format!("Doubt: {doubt}"))?;
    }
    Ok(())
}

/// Returns the headings of the columns of [`cells`].
fn headings(judgement: &Judgement) -> [&'static str; 6] {
    let change = match judgement.lines.iter().find_map(|line| line.comparison) {
        Some(Comparison {
            scale: Scale::Difference,
            ..
        }) => "after - before",
        _ => "after / before",
    };
    ["", "before", "after", change, "95 % interval", "verdict"]
}

/// Returns the answer in one sentence: for each verdict, the metrics that have this verdict.
fn headline(judgement: &Judgement, question: Question) -> String {
    let mut verdicts: Vec<(String, Vec<&'static str>)> = Vec::new();
    for line in &judgement.lines {
        let verdict = match line.verdict {
            None => "not compared".to_owned(),
            Some(verdict) => in_words(verdict, question),
        };
        let name = metric_name(line.metric);
        match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, names)) => names.push(name),
            None => verdicts.push((verdict, vec![name])),
        }
    }
    if verdicts.is_empty() {
        return "Nothing to compare: the runs of a side have no values.".to_owned();
    }
    let parts = verdicts.iter().map(|(verdict, names)| {
        let verb = if names.len() == 1 { "is" } else { "are" };
        format!("{} {verb} {verdict}", names.join(", "))
    });
    let parts: Vec<String> = parts.collect();
    format!("After the change, {}.", parts.join("; "))
}

/// Returns the cells of a metric's row.
fn cells(line: &Line, unit: Unit, question: Question) -> [String; 6] {
    let value = |known: Option<f64>| known.map_or("-".to_owned(), |known| value_text(known, unit));
    let (change, interval) = match line.comparison {
        None => ("-".to_owned(), "-".to_owned()),
        Some(Comparison { change, scale, .. }) => {
            let number = |value: f64| match scale {
                Scale::Ratio => format!("{value:.3}"),
                Scale::Difference => value_text(value, unit),
            };
            (
                number(change.centre),
                format!("{} to {}", number(change.low), number(change.high)),
            )
        }
    };
    let verdict = match (line.verdict, &line.not_compared) {
        (Some(Verdict::Unknown), _) => {
            let more = line.more.map(|count| {
                let each = match line.comparison.map(|comparison| comparison.design) {
                    Some(Design::Paired) => counted(count, "more pair", "more pairs"),
                    _ => format!("{} of each side", counted(count, "more run", "more runs")),
                };
                format!(
                    ": about {each} would detect a change of {}",
                    percent(question.margin)
                )
            });
            format!("unknown{}", more.unwrap_or_default())
        }
        (Some(verdict), _) => in_words(verdict, question),
        (None, reason) => format!("not compared: {}", reason.as_deref().unwrap_or("no values")),
    };
    [
        metric_name(line.metric).to_owned(),
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
            "{} that were measured next to each other, with {} samples before and {} after the change.",
            counted(
                judgement.runs_before as u64,
                "pair of runs",
                "pairs of runs"
            ),
            grouped(judgement.samples_before),
            grouped(judgement.samples_after)
        ),
        Design::Unpaired => format!(
            "{} before and {} after the change, with {} and {} samples.",
            counted(judgement.runs_before as u64, "run", "runs"),
            judgement.runs_after,
            grouped(judgement.samples_before),
            grouped(judgement.samples_after)
        ),
    }];
    if let Some(each) = judgement
        .samples_per_independent
        .filter(|each| *each >= 1.5)
    {
        remarks.push(format!(
            "Neighbouring samples depend on each other: up to {each:.1} count as one."
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
    remarks
}

/// Describes the effects of the order of the two runs in a pair. Only effects that matter are described.
fn order_text(judgement: &Judgement) -> Option<String> {
    let effects = judgement.lines.iter().filter_map(|line| {
        let effect = line.order.filter(|effect| effect.matters)?;
        let Interval { centre, low, high } = effect.order.second;
        let text = |value: f64| match effect.order.scale {
            Scale::Ratio => format!("{value:.3}"),
            Scale::Difference => value_text(value, judgement.unit),
        };
        let change = format!("{} ({} to {})", text(centre), text(low), text(high));
        let change = match effect.order.scale {
            Scale::Ratio => format!("{} {change} times", metric_name(line.metric)),
            Scale::Difference => format!("{} by {change}", metric_name(line.metric)),
        };
        Some((change, effect.order))
    });
    let effects: Vec<(String, Order)> = effects.collect();
    let (_, order) = effects.first()?;
    let changes = wording::listed(effects.iter().map(|(change, _)| change));
    let meaning = match order.before_began.abs_diff(order.after_began) {
        0 | 1 => {
            "Both sides began equally often, so this widens the intervals of the change and does not shift them"
        }
        _ => "The sides began unequally often, so a part of the change may be this effect",
    };
    Some(format!(
        "The order within pairs matters: the run that begins second changes {changes}. {meaning} (the run before the \
         change began in {} of {} pairs).",
        order.before_began,
        order.before_began + order.after_began
    ))
}

fn stall_text(stalls: &Stalls, unit: Unit) -> String {
    let rate = match (stalls.rates.ratio, stalls.rates.high) {
        (Some(ratio), Some(high)) => format!(
            "×{ratio:.2} (95 % interval {:.2} to {high:.2})",
            stalls.rates.low
        ),
        _ => format!("at least ×{:.2}", stalls.rates.low),
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

/// Returns the short name of a metric.
pub(super) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Value => "value",
        Metric::Quantile(share) if share > 0.99 => "p99.9",
        Metric::Quantile(share) if share > 0.9 => "p99",
        Metric::Quantile(share) if share > 0.5 => "p90",
        Metric::Quantile(_) => "p50",
    }
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

/// Formats a value with its unit. Values of an unknown unit have four significant digits.
pub(super) fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => duration(value.round() as i64),
        Unit::Other if value == 0.0 => "0".to_owned(),
        Unit::Other => {
            let digits = 3 - value.abs().log10().floor() as i64;
            format!("{value:.*}", digits.clamp(0, 12) as usize)
        }
    }
}
