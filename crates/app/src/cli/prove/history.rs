//! `laglab prove history`.

use std::io::{self, Write};
use std::path::PathBuf;

use prove::columns::Columns;
use prove::{History, HistoryLine, histories};
use serde::Serialize;

use super::compare::{groups, metric_name, ratio_text, value_text};
use crate::cli::Failure;
use crate::output::{self, Columns as Aligned, Printable, Side, counted};

/// Searches a history of measurements for changes: when did p50 grow, and was it repaired? It finds a change only if at
/// least 5 points precede it and at least 5 follow, up to the next change.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab prove history [OPTIONS] FILE…",
    after_help = "Examples:\n  \
    laglab prove history nightly-*.parquet\n  \
    laglab prove history builds.csv --value frame_ms --run build\n\n\
    Each file is a point, in the given order. With one file, each run is a point, in the order of the file."
)]
pub(super) struct Args {
    /// Files of `laglab measure … -o FILE.parquet`, other Parquet files or CSV files, the oldest first
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
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
}

/// JSON output of `laglab prove history`. Programs rely on its fields.
#[derive(Serialize)]
struct Answer {
    histories: Vec<History>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let columns = args.value.as_ref().map(|value| Columns {
        value: value.clone(),
        run: args.run.clone(),
        by: args.by.clone(),
    });
    let read = |file: &PathBuf| {
        let groups = groups(file, columns.as_ref(), "")?;
        Ok((file.display().to_string(), groups))
    };
    let files = args.files.iter().map(read);
    let answer = Answer {
        histories: histories(files.collect::<Result<_, Failure>>()?)?,
    };
    if json {
        return Ok(output::json(&answer)?);
    }
    let mut out = output::for_people();
    for (number, history) in answer.histories.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        write(&mut out, history)?;
    }
    Ok(out.flush()?)
}

fn write(out: &mut dyn Write, history: &History) -> io::Result<()> {
    output::first_heading(out, &history.name)?;
    output::paragraph(out, &headline(history))?;
    if !history.left_out.is_empty() {
        /// Maximum number of points without a value whose names are written.
        const MOST: usize = 5;

        let names = history.left_out.iter().take(MOST);
        let mut names: Vec<String> = names.map(|name| Printable(name).to_string()).collect();
        let more = history.left_out.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let left_out = format!(
            "Doubt: {} without a value, left out: {}.",
            counted(history.left_out.len() as u64, "point", "points"),
            wording::listed(names)
        );
        output::warning(out, &left_out)?;
    }
    if history.lines.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let sides = [
        Side::Left,
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
    ];
    let mut table = Aligned::new(&sides);
    table.row(["", "from", "to", "points", "median", "change"]);
    for line in &history.lines {
        rows(line, history, &mut table);
    }
    table.write(out)?;
    for line in &history.lines {
        if let Some(reason) = &line.not_searched {
            let name = name(line, history);
            output::paragraph(
                out,
                &format!("{name}: changes were not searched: {reason}."),
            )?;
        }
        if let Some(correlation) = line.correlation
            && line.segments.len() > 1
        {
            let name = name(line, history);
            let text = format!(
                "{name}: neighbouring points resemble each other (correlation {correlation:.1}), so the changes may be \
                 slow drift."
            );
            output::paragraph(out, &text)?;
        }
    }
    Ok(())
}

/// Returns the answer in one sentence: the changes of each metric.
fn headline(history: &History) -> String {
    let points = counted(history.points.len() as u64, "point", "points");
    let searched = || {
        let lines = history.lines.iter();
        lines.filter(|line| line.not_searched.is_none())
    };
    let names = |lines: &mut dyn Iterator<Item = &HistoryLine>| {
        wording::listed(lines.map(|line| name(line, history)))
    };
    let changed = searched().filter(|line| line.segments.len() > 1);
    let changed = changed.map(|line| {
        let often = match line.segments.len() {
            2 => "once".to_owned(),
            segments => counted(segments as u64 - 1, "time", "times"),
        };
        format!("{} changed {often}", name(line, history))
    });
    let changed: Vec<String> = changed.collect();
    match (changed.is_empty(), searched().next()) {
        (false, _) => format!("In {points}, {}.", wording::listed(changed)),
        (true, Some(_)) => {
            format!(
                "In {points}, no change of {} was found.",
                names(&mut searched())
            )
        }
        (true, None) if history.lines.is_empty() => {
            "The runs are too short for any quantile.".to_owned()
        }
        (true, None) => format!("{points}: changes were not searched."),
    }
}

fn name(line: &HistoryLine, history: &History) -> String {
    metric_name(line.metric, history.column.as_deref())
}

/// Adds a row for each part of a metric's history. A part ends where the metric changed.
fn rows(line: &HistoryLine, history: &History, table: &mut Aligned) {
    let mut before: Option<f64> = None;
    for (number, segment) in line.segments.iter().enumerate() {
        let point = |at: usize| {
            let name = history.points.get(at).map_or("", String::as_str);
            Printable(name).to_string()
        };
        let change = before.map(|before| {
            if before > 0.0 && segment.median > 0.0 {
                format!("× {}", ratio_text(segment.median / before))
            } else {
                format!("+ {}", value_text(segment.median - before, history.unit))
            }
        });
        before = Some(segment.median);
        table.row([
            match number {
                0 => name(line, history),
                _ => String::new(),
            },
            point(segment.first),
            point(segment.last),
            (segment.last + 1 - segment.first).to_string(),
            value_text(segment.median, history.unit),
            change.unwrap_or_default(),
        ]);
    }
}
