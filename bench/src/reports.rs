//! Tables, the reports that people script, and queries, on large files: whole commands, without a
//! cache and from it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Run};
use crate::{Outcome, load};

/// Where laglab keeps tables.
pub(crate) const CACHE: &str = "LAGLAB_CACHE";

const REPORTS: [&[&str]; 5] = [
    &["dpcisr"],
    &["cswitch", "--by", "process"],
    &["explain"],
    &["report", "-o", "-"],
    &["cswitch"],
];

/// Grouping and joining of all runs: 5 M rows per GiB.
const QUERIES: [&str; 4] = [
    "SELECT process_id, count(*), sum(cpu_ns), max(ready_ns) FROM cpu_runs GROUP BY process_id",
    "SELECT thread_id, cpu, sum(cpu_ns) FROM cpu_runs GROUP BY thread_id, cpu",
    "SELECT date_bin(100000000, end_ns) AS slot, max(ready_ns) FROM cpu_runs GROUP BY slot",
    "SELECT process(process_row), approx_percentile_cont(ready_ns, 0.99) FROM cpu_runs \
     WHERE priority < 8 GROUP BY process_row",
];

/// Size and start of the program, then reports and queries on these files.
pub(crate) fn commands(report: &mut String, laglab: &Path, files: &[PathBuf]) -> Outcome<()> {
    if std::env::var_os(CACHE).is_none() {
        return Err(format!("set {CACHE} to a folder for the benchmark's tables").into());
    }
    program(report, laglab)?;
    let run = |path: &Path, args: &[&str], more: &[&str]| -> Outcome<Run> {
        let (command, options) = args.split_first().ok_or("no command")?;
        let mut all: Vec<&OsStr> = vec![command.as_ref(), path.as_os_str()];
        all.extend(options.iter().chain(more).map(OsStr::new));
        // The larger files show that time grows with the size, which one run does.
        let times = if path == files[0] { 3 } else { 1 };
        Ok(process::median(laglab, &all, times)?)
    };
    let cell = |run: &Run| {
        let megabytes = run.peak_bytes as f64 / 1e6;
        format!("{:.2} s, {megabytes:.0} MB", run.seconds)
    };
    *report += "\n## Reports on large files\n\nMedian of 3 runs, of one on the larger files; peak \
        resident memory. Without the cache (3 s and 2 GB are asked for on 1 GiB, 4 GB on the \
        larger ones; of `explain` 10 s), then from it (1 s; `explain` 2 s, `report` 3 s more). A \
        public server built on TraceEvent takes 8 to 15 s for a pass over 8.6 M events, and more \
        than 120 s to diagnose waits. `cswitch` alone prints a line of some 400 characters for \
        each of 5 M switches per GiB.\n\n\
        | command | file | without cache | from cache | GB printed |\n|---|---|---|---|---|\n";
    for args in REPORTS {
        let prints_little = args.len() > 1 || args[0] != "cswitch";
        for path in &files[..if prints_little { files.len() } else { 1 }] {
            let cold = run(path, args, &["--no-cache"])?;
            // Makes the tables.
            run(path, args, &[])?;
            let cached = run(path, args, &[])?;
            writeln!(
                report,
                "| `laglab {}` | {} | {} | {} | {:.2} |",
                args.join(" "),
                name(path),
                cell(&cold),
                cell(&cached),
                cached.printed_bytes as f64 / 1e9,
            )?;
        }
    }
    *report += "\n## Queries\n\nWhole commands from the cache; 1 s is asked for over \
        20 M rows, which the 4 GiB file has.\n\n| query | file | time, memory |\n|---|---|---|\n";
    for query in QUERIES {
        for path in files {
            let run = run(path, &["sql", query], &[])?;
            writeln!(report, "| `{query}` | {} | {} |", name(path), cell(&run))?;
        }
    }
    Ok(())
}

/// The executable and its start.
fn program(report: &mut String, laglab: &Path) -> Outcome<()> {
    let stripped = laglab.with_extension("stripped");
    let done = Command::new("strip")
        .arg("-o")
        .args([&stripped, laglab])
        .status()?;
    if !done.success() {
        return Err("strip failed".into());
    }
    let bytes = std::fs::metadata(&stripped)?.len();
    let help = process::median(&stripped, &["--help".as_ref()], 9)?;
    std::fs::remove_file(&stripped)?;
    writeln!(
        report,
        "\n## The program\n\nStripped executable: {:.1} MB (60 are asked for). `laglab --help`: \
         {:.1} ms (50).",
        bytes as f64 / 1e6,
        help.seconds * 1e3
    )?;
    Ok(())
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads all scheduling tables with the stacks, and gives their batches away.
pub(crate) fn scheduling(trace: &etl::Trace) {
    use tables::Table;
    const WANTED: [Table; 9] = [
        Table::CpuRuns,
        Table::ContextSwitches,
        Table::ReadyThreads,
        Table::Samples,
        Table::Interrupts,
        Table::Stacks,
        Table::Processes,
        Table::Threads,
        Table::Images,
    ];
    let mut rows = 0;
    let done = tables::stream(trace, &WANTED, Default::default(), &mut |_, batch| {
        rows += batch.num_rows();
        Ok::<(), ()>(())
    });
    std::hint::black_box((rows, done.is_ok()));
}

/// A file that queries over 20 M rows are asked of, and a larger one.
pub(crate) fn large(scratch: &Path, laglab: &Path) -> Outcome<Vec<PathBuf>> {
    let eight = load::path(scratch, 8);
    load::simulate(laglab, &eight, 8 * load::EVENTS_PER_GIB, &[])?;
    Ok(vec![load::path(scratch, 1), load::path(scratch, 4), eight])
}
