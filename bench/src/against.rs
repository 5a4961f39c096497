//! Comparison with an earlier build of laglab: time, peak memory and bytes read. Runs of the two builds alternate.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::{Outcome, comparison, load, page, process};

/// Number of runs of each build.
const PAIRS: usize = 5;

/// Ratio that needs a reason.
const LIMIT: f64 = 1.1;

/// Whole commands. `TRACE` and `RUNS` stand for the files.
const COMMANDS: [&[&str]; 5] = [
    &["explain", "TRACE", "--no-cache"],
    &["cswitch", "TRACE", "--no-cache"],
    &["stats", "TRACE", "--json"],
    &["info", "TRACE"],
    &["prove", "compare", "RUNS"],
];

/// Cost of one run. Unknown values are NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Peak resident memory.
    pub(crate) peak_megabytes: f64,
    /// Bytes that were read from files with system calls.
    pub(crate) read_megabytes: f64,
}

/// Compares two builds on a trace of 1 GiB and on a measurement of 128 runs.
pub(crate) fn builds(
    report: &mut String,
    laglab: &Path,
    earlier: &Path,
    scratch: &Path,
) -> Outcome<()> {
    std::fs::create_dir_all(scratch)?;
    let trace = load::path(scratch, 1);
    load::simulate(laglab, &trace, load::EVENTS_PER_GIB, &[])?;
    let runs = scratch.join("comparison.parquet");
    comparison::make(&runs)?;
    writeln!(
        report,
        "\n## This build and the earlier one\n\nA trace of 1 GiB without cached tables, and a measurement of 128 runs \
         with 1 M samples each. {PAIRS} runs of each build in alternation; medians. Ratios above {LIMIT} need a \
         reason. A dash is an unknown number: the earlier build may lack the command.\n\n\
         | what | s, earlier | s, now | ratio | peak MB, earlier | now | ratio | MB read, earlier | now | ratio |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    )?;
    for command in COMMANDS {
        let arguments: Vec<&OsStr> = (command.iter())
            .map(|argument| match *argument {
                "TRACE" => trace.as_os_str(),
                "RUNS" => runs.as_os_str(),
                argument => argument.as_ref(),
            })
            .collect();
        let costs = pairs([earlier, laglab], |program| {
            let run = process::once(program, &arguments)?;
            if run.is_success {
                Ok([Cost {
                    seconds: run.seconds,
                    peak_megabytes: run.peak_bytes as f64 / 1e6,
                    read_megabytes: run.read_bytes.map_or(f64::NAN, |it| it as f64 / 1e6),
                }])
            } else {
                Err(format!("{} {command:?} failed", program.display()).into())
            }
        })?;
        row(report, &format!("`laglab {}`", command.join(" ")), costs[0])?;
    }
    let costs = pairs([earlier, laglab], |program| page::costs(program, &trace))?;
    row(report, "`laglab open`: both first graphs", costs[0])?;
    row(report, "and all requests of a session", costs[1])?;
    std::fs::remove_file(runs)?;
    Ok(())
}

/// Cost of what a build cannot do.
const UNKNOWN: Cost = Cost {
    seconds: f64::NAN,
    peak_megabytes: f64::NAN,
    read_megabytes: f64::NAN,
};

/// Measures both builds in alternation. Returns the medians of each part for each build. The costs of the earlier build are
/// unknown if it fails: it may lack the command.
fn pairs<const N: usize>(
    builds: [&Path; 2],
    measure: impl Fn(&Path) -> Outcome<[Cost; N]>,
) -> Outcome<[[Cost; 2]; N]> {
    let mut all: [[Vec<Cost>; 2]; N] = std::array::from_fn(|_| [Vec::new(), Vec::new()]);
    for _ in 0..PAIRS {
        for (build, program) in builds.iter().enumerate() {
            let costs = match measure(program) {
                Err(_) if build == 0 => [UNKNOWN; N],
                costs => costs?,
            };
            for (part, cost) in costs.into_iter().enumerate() {
                all[part][build].push(cost);
            }
        }
    }
    Ok(all.map(|part| part.map(|costs| median(&costs))))
}

/// Returns the median of each quantity.
fn median(costs: &[Cost]) -> Cost {
    let middle = |quantity: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(quantity).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Cost {
        seconds: middle(|cost| cost.seconds),
        peak_megabytes: middle(|cost| cost.peak_megabytes),
        read_megabytes: middle(|cost| cost.read_megabytes),
    }
}

/// Writes one row. Ratios above the limit are bold.
fn row(report: &mut String, name: &str, [earlier, now]: [Cost; 2]) -> Outcome<()> {
    write!(report, "| {name} |")?;
    let quantities: [(f64, f64, usize); 3] = [
        (earlier.seconds, now.seconds, 3),
        (earlier.peak_megabytes, now.peak_megabytes, 0),
        (earlier.read_megabytes, now.read_megabytes, 0),
    ];
    for (earlier, now, places) in quantities {
        let ratio = now / earlier;
        let bold = if ratio > LIMIT { "**" } else { "" };
        write!(
            report,
            " {} | {} | {bold}{}{bold} |",
            cell(earlier, places),
            cell(now, places),
            cell(ratio, 2)
        )?;
    }
    *report += "\n";
    Ok(())
}

/// Formats a number with decimal places. An unknown number is a dash.
fn cell(number: f64, places: usize) -> String {
    if number.is_nan() {
        "-".to_owned()
    } else {
        format!("{number:.places$}")
    }
}
