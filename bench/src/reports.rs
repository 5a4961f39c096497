//! Benchmarks of tables, reports and queries on large files. Whole commands are measured, without and with
//! cached tables.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tables::{Options, Recording, Table};

use crate::process::{self, Run};
use crate::{Outcome, load};

/// Environment variable with the folder for cached tables.
pub(crate) const CACHE: &str = "LAGLAB_CACHE";

const REPORTS: [&[&str]; 5] = [
    &["dpcisr"],
    &["cswitch", "--by", "process"],
    &["explain"],
    &["report", "-o", "-"],
    &["cswitch"],
];

/// Queries that group and join all runs of threads. There are 5 M runs per GiB.
const QUERIES: [&str; 4] = [
    "SELECT process_id, count(*), sum(cpu_ns), max(ready_ns) FROM cpu_runs GROUP BY process_id",
    "SELECT thread_id, cpu, sum(cpu_ns) FROM cpu_runs GROUP BY thread_id, cpu",
    "SELECT date_bin(100000000, end_ns) AS slot, max(ready_ns) FROM cpu_runs GROUP BY slot",
    "SELECT process(process_row), approx_percentile_cont(ready_ns, 0.99) FROM cpu_runs \
     WHERE priority < 8 GROUP BY process_row",
];

/// Measures the size of the program and the time of its start. Then measures reports and queries on these
/// files.
pub(crate) fn commands(report: &mut String, laglab: &Path, files: &[PathBuf]) -> Outcome<()> {
    if std::env::var_os(CACHE).is_none() {
        return Err(format!("set {CACHE} to a folder for the benchmark's tables").into());
    }
    program(report, laglab)?;
    let run = |path: &Path, args: &[&str], more: &[&str]| -> Outcome<Run> {
        let (command, options) = args.split_first().ok_or("no command")?;
        let mut all: Vec<&OsStr> = vec![command.as_ref(), path.as_os_str()];
        all.extend(options.iter().chain(more).map(OsStr::new));
        // For the larger files, one run is enough. They only show that the time increases with the size.
        let times = if path == files[0] { 3 } else { 1 };
        Ok(process::median(laglab, &all, times)?)
    };
    let cell = |run: &Run| {
        let megabytes = run.peak_bytes as f64 / 1e6;
        format!("{:.2} s, {megabytes:.0} MB", run.seconds)
    };
    *report += "\n## Reports on large files\n\nMedian of 3 runs, one run for larger files; peak resident \
        memory. Limits without the cache: 3 s and 2 GB for 1 GiB, 4 GB for larger files, 10 s for `explain`. \
        Limits with the cache: 1 s, `explain` 2 s, `report` 3 s more. For comparison: a public server built \
        on TraceEvent takes 8 to 15 s for a pass over 8.6 M events, and more than 120 s to diagnose waits. \
        Only `cswitch` prints much: about 400 characters for each of 5 M switches per GiB.\n\n\
        | command | file | without cache | from cache | GB printed |\n|---|---|---|---|---|\n";
    for args in REPORTS {
        let prints_little = args.len() > 1 || args[0] != "cswitch";
        for path in &files[..if prints_little { files.len() } else { 1 }] {
            let cold = run(path, args, &["--no-cache"])?;
            // This run writes the cached tables, so its time does not count.
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
    *report += "\n## Queries\n\nWhole commands with the cache. Limit: 1 s for the 20 M rows of the 4 GiB \
        file.\n\n| query | file | time, memory |\n|---|---|---|\n";
    for query in QUERIES {
        for path in files {
            let run = run(path, &["sql", query], &[])?;
            writeln!(report, "| `{query}` | {} | {} |", name(path), cell(&run))?;
        }
    }
    Ok(())
}

/// Measures the size of the executable file, and the time of its start.
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
        "\n## The program\n\nStripped executable: {:.1} MB (limit: 60). `laglab --help`: {:.1} ms (limit: \
         50).",
        bytes as f64 / 1e6,
        help.seconds * 1e3
    )?;
    Ok(())
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Makes all tables about scheduling, including the stacks, and drops their rows.
pub(crate) fn scheduling(recording: &dyn Recording) {
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
    let done = recording.rows(&WANTED, Options::default(), &mut |_, batch| {
        rows += batch.num_rows();
        Ok(())
    });
    std::hint::black_box((rows, done.is_ok()));
}

/// Makes a file of 8 GiB. Returns the paths of the files of 1, 4 and 8 GiB. The file of 4 GiB has 20 M runs
/// of threads for queries.
pub(crate) fn large(scratch: &Path, laglab: &Path) -> Outcome<Vec<PathBuf>> {
    let eight = load::path(scratch, 8);
    load::simulate(laglab, &eight, 8 * load::EVENTS_PER_GIB, &[])?;
    Ok(vec![load::path(scratch, 1), load::path(scratch, 4), eight])
}
