//! `laglab prove diff`.

use std::io::{self, Write};
use std::path::PathBuf;

use diff::{Besides, Change, Conclusion, Diff, Interval, Kind, Recording, Sum, Unit, diff};
use facts::Moment;

use crate::cli::Failure;
use crate::cli::open::TabledTrace;
use crate::cli::scope::time_range;
use crate::output::{self, Columns, Side, counted, duration, grouped, size};

/// Compares traces: which programs, drivers and disks took more or less time, and what differs besides.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab prove diff [OPTIONS] BEFORE… -- AFTER…",
    after_help = "Examples:\n  \
    laglab prove diff before.etl -- after.etl\n  \
    laglab prove diff --all before.etl -- after.etl\n  \
    laglab prove diff --before-between 0 10 --after-between 10 20 trace.etl -- trace.etl\n  \
    laglab prove diff old1.etl old2.etl old3.etl -- new1.etl new2.etl new3.etl\n  \
    laglab prove diff --json before.etl -- after.etl | jq '.per_second[0]'"
)]
pub(super) struct Args {
    /// Traces before the change: one, or at least three to tell whether the change is the reason
    #[arg(value_name = "BEFORE", required = true)]
    before: Vec<PathBuf>,
    /// Traces after the change: one, or at least three
    #[arg(value_name = "AFTER", last = true, required = true)]
    after: Vec<PathBuf>,
    /// Compare only this time of the traces before the change: since the trace's start (1.5, 20ms) or UTC
    #[arg(long, num_args = 2, value_names = ["T1", "T2"])]
    before_between: Vec<Moment>,
    /// Compare only this time of the traces after the change
    #[arg(long, num_args = 2, value_names = ["T1", "T2"])]
    after_between: Vec<Moment>,
    /// Show all rows, including those that did not change
    #[arg(long)]
    all: bool,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let before = read(args, &args.before, "--before-between", &args.before_between)?;
    let after = read(args, &args.after, "--after-between", &args.after_between)?;
    let differences = diff(&before, &after);
    if json {
        return Ok(output::json(&differences)?);
    }
    let mut out = output::for_people();
    write(&mut out, &differences, args.all)?;
    Ok(out.flush()?)
}

/// Sums the traces of one side, within the times of `option`, if there are any.
fn read(
    args: &Args,
    files: &[PathBuf],
    option: &str,
    between: &[Moment],
) -> Result<Vec<Recording>, Failure> {
    let mut misplaced = files.iter();
    if let Some(misplaced) = misplaced.find(|file| file.to_string_lossy().starts_with("--")) {
        return Err(Failure::Input(format!(
            "cannot open a trace named {}: give options before the traces",
            misplaced.display()
        )));
    }
    let each = files.iter().map(|file| {
        let tables = TabledTrace::new(std::slice::from_ref(file), args.no_cache).open()?;
        let during = match between {
            [from, to] => Some(time_range(option, [*from, *to], &tables)?),
            _ => None,
        };
        Ok(tables.watched(|options| Recording::read(tables.store(), during.as_ref(), options))?)
    });
    each.collect()
}

fn write(out: &mut dyn Write, diff: &Diff, all: bool) -> io::Result<()> {
    let per_second = answer(&diff.per_second, "per second");
    output::first_heading(out, &headline(diff))?;
    for doubt in doubts(diff) {
        output::paragraph(out, &format!("Doubt: {doubt}"))?;
    }
    besides(out, &diff.besides)?;
    tables(out, &diff.per_second, "per second", all)?;
    if let (Some(before), Some(after)) = (diff.before.network_kib, diff.after.network_kib)
        && let Some(changes) = &diff.per_network_kib
        && (all || is_other_work(diff))
    {
        output::heading(out, "Per KiB of network traffic")?;
        let rate = |kib: f64| format!("{}/s", size((kib * 1024.0).round() as u64));
        let traffic = format!("{} before, {} after the change.", rate(before), rate(after));
        output::paragraph(out, &format!("Network traffic: {traffic}"))?;
        if let (Some(_), Some(answer)) = (per_second, answer(changes, "per KiB")) {
            output::paragraph(out, &answer)?;
        }
        tables(out, changes, "per KiB", all)?;
    }
    Ok(())
}

/// Returns true if the network traffic differs by more than 5 %.
fn is_other_work(diff: &Diff) -> bool {
    let ratio = diff.before.network_kib.zip(diff.after.network_kib);
    ratio.is_some_and(|(before, after)| !(0.95..=1.05).contains(&(after / before)))
}

/// Writes a table for each kind of row. Rows that did not change are left out, unless all are requested.
fn tables(out: &mut dyn Write, changes: &[Change], unit: &str, all: bool) -> io::Result<()> {
    for kind in Kind::ALL {
        let rows = changes.iter().filter(|change| change.kind == kind);
        let rows: Vec<&Change> = rows
            .filter(|change| all || change.conclusion == Conclusion::Differs)
            .collect();
        if rows.is_empty() {
            continue;
        }
        output::heading(out, title(kind))?;
        let right = [Side::Right; 6];
        let mut table = Columns::new(&[&[Side::Left], &right[..], &[Side::Left]].concat());
        table.row([
            unit,
            "before",
            "after",
            "change",
            "95 % interval",
            "by count",
            "by mean",
            "conclusion",
        ]);
        for change in rows {
            table.row(row(change));
        }
        table.write(out)?;
    }
    Ok(())
}

/// Returns the answer: the greatest change per second or, if there is none and the work differs, per unit of
/// work.
fn headline(diff: &Diff) -> String {
    let changes = &diff.per_second;
    let per_kib = || {
        let changes = diff.per_network_kib.as_ref()?;
        answer(changes, "per KiB").filter(|_| is_other_work(diff))
    };
    if let Some(answer) = answer(changes, "per second").or_else(per_kib) {
        return answer;
    }
    if changes.is_empty() {
        return "Nothing to compare: the recordings have no kind of event in common.".to_owned();
    }
    let (units, least) = (diff.before.units.min(diff.after.units), diff.unit.least());
    if units < least {
        let (one, several) = match diff.unit {
            Unit::Block => ("block of at least 0.5 s", "blocks of at least 0.5 s"),
            Unit::Recording => ("trace", "traces"),
        };
        let found = counted(units as u64, one, several);
        return format!(
            "Unknown: {found} cannot tell a change from chance; {least} on each side can."
        );
    }
    let is_chance = |it: &&Change| it.conclusion == Conclusion::Chance;
    format!(
        "No difference that matters per second: {} compared, {} perhaps by chance.",
        counted(changes.len() as u64, "row", "rows"),
        counted(
            changes.iter().filter(is_chance).count() as u64,
            "change",
            "changes"
        )
    )
}

/// Describes the greatest change and, if it is of DPCs, the code that explains most of it. Returns `None` if no
/// row differs.
fn answer(changes: &[Change], unit: &str) -> Option<String> {
    let first = changes
        .first()
        .filter(|it| it.conclusion == Conclusion::Differs)?;
    let mut text = sentence(first, unit);
    let explains = |code: &&Change| {
        code.kind == Kind::InterruptCode
            && code.conclusion == Conclusion::Differs
            && (code.ns() > 0.0) == (first.ns() > 0.0)
    };
    if first.kind == Kind::Dpc
        && let Some(code) = changes.iter().find(explains)
    {
        let share = (code.ns() / first.ns()).min(1.0);
        text.push_str(&format!(
            " {:.0} % of it is code of {}{}.",
            share * 100.0,
            code.name,
            ends(code)
        ));
    }
    Some(text)
}

/// Describes a change in one sentence.
fn sentence(change: &Change, unit: &str) -> String {
    let ns = change.ns();
    let more = if ns > 0.0 { "more" } else { "less" };
    let time = match change.kind {
        Kind::Ready => "time that it was ready without a CPU",
        Kind::Disk => "time to serve requests",
        _ => "CPU time",
    };
    let place = match change.kind {
        Kind::Program | Kind::Ready | Kind::Disk => "",
        Kind::Dpc => " in DPCs",
        Kind::Isr => " in ISRs",
        Kind::InterruptCode => " within DPCs and ISRs",
        Kind::ThreadCode => " within threads",
    };
    format!(
        "{}{place}: {} {more} {time} {unit}, {} before and {} after{}.",
        change.name,
        time_text(ns.abs()),
        time_text(change.before.ns),
        time_text(change.after.ns),
        ends(change)
    )
}

/// Returns a remark about a row that only one side has.
fn ends(change: &Change) -> &'static str {
    match (change.before.count > 0.0, change.after.count > 0.0) {
        (false, _) => " (it is new)",
        (_, false) => " (it is gone)",
        _ => "",
    }
}

fn doubts(diff: &Diff) -> Vec<String> {
    let mut doubts = Vec::new();
    if diff.unit == Unit::Block {
        doubts.push(
            "One trace on each side shows that the traces differ. Whether the change is the reason, only more \
             traces tell"
                .to_owned(),
        );
    } else if diff.besides != Besides::default() {
        doubts.push("Something else differs, too, and may be the reason".to_owned());
    }
    if diff.before.lost_events + diff.after.lost_events > 0 {
        doubts.push(format!(
            "Events were lost ({} before, {} after the change): sums may be too small",
            grouped(diff.before.lost_events),
            grouped(diff.after.lost_events)
        ));
    }
    if is_other_work(diff) {
        doubts.push(
            "The network traffic differs by more than 5 %: compare the times per KiB, too"
                .to_owned(),
        );
    }
    doubts
}

fn besides(out: &mut dyn Write, besides: &Besides) -> io::Result<()> {
    if *besides == Besides::default() {
        return Ok(());
    }
    output::heading(out, "What differs besides")?;
    let mut table = Columns::new(&[Side::Left; 3]);
    table.row(["", "before", "after"]);
    let text =
        |value: &Option<String>, absent: &str| value.clone().unwrap_or_else(|| absent.to_owned());
    for fact in &besides.facts {
        table.row([
            fact.fact.to_owned(),
            text(&fact.before, "-"),
            text(&fact.after, "-"),
        ]);
    }
    for driver in &besides.drivers {
        table.row([
            driver.name.clone(),
            text(&driver.before, "not loaded"),
            text(&driver.after, "not loaded"),
        ]);
    }
    if !(besides.facts.is_empty() && besides.drivers.is_empty()) {
        table.write(out)?;
    }
    for (kinds, side) in [
        (&besides.recorded_before_only, "before"),
        (&besides.recorded_after_only, "after"),
    ] {
        if !kinds.is_empty() {
            let kinds: Vec<&str> = kinds.iter().map(|kind| title(*kind)).collect();
            let text = format!(
                "Recorded only {side} the change, so not compared: {}.",
                wording::listed(&kinds)
            );
            output::warning(out, &text)?;
        }
    }
    Ok(())
}

fn row(change: &Change) -> [String; 8] {
    let is_sampled = change.kind.is_sampled();
    let times = |sum: Sum| match sum.mean_ns() {
        Some(_) if is_sampled => time_text(sum.ns),
        Some(mean) => format!(
            "{} ({} × {})",
            time_text(sum.ns),
            count_text(sum.count),
            time_text(mean)
        ),
        None => "-".to_owned(),
    };
    let part = |ns: f64| match is_sampled {
        true => "-".to_owned(),
        false => signed(ns),
    };
    let interval = |change: &Change| {
        let Interval { low, high, .. } = change.change?;
        Some(format!("{} to {}", signed(low), signed(high)))
    };
    [
        change.name.clone(),
        times(change.before),
        times(change.after),
        signed(change.ns()),
        interval(change).unwrap_or_else(|| "-".to_owned()),
        part(change.parts.count_ns),
        part(change.parts.mean_ns),
        match change.conclusion {
            Conclusion::Differs => "differs",
            Conclusion::TooSmall => "too small to matter",
            Conclusion::Chance => "perhaps chance",
            Conclusion::TooFew => "unknown",
        }
        .to_owned(),
    ]
}

/// Returns the title of the table of a kind.
fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Program => "CPU time of programs, without DPCs and ISRs",
        Kind::Dpc => "DPCs by module",
        Kind::Isr => "ISRs by module",
        Kind::InterruptCode => "Code within DPCs and ISRs, by module (samples)",
        Kind::ThreadCode => "Code within threads, by module (samples)",
        Kind::Ready => "Waits of ready threads for a CPU, by program",
        Kind::Disk => "Disk requests",
    }
}

fn time_text(ns: f64) -> String {
    duration(ns.round() as i64)
}

fn signed(ns: f64) -> String {
    match ns {
        -0.5.. => format!("+{}", time_text(ns)),
        _ => format!("-{}", time_text(-ns)),
    }
}

/// Formats a count: without decimals from ten on, else with two.
fn count_text(count: f64) -> String {
    match count {
        10.0.. => grouped(count.round() as u64),
        _ => format!("{count:.2}"),
    }
}
