//! Reading of recordings of Linux: speed on one thread, and memory of two sizes.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flight::{Order, Recorder};
use record::Investigation;
use tables::{EventKindsView, Options, Recording, Table};

use crate::views::on_cpu;
use crate::{Outcome, flight_recorder, medians_by, process, reports, unit};

/// Numbers of round trips in the load of the small and the large recording. A round trip has about four events.
const TRIPS: [u32; 2] = [1_000_000, 4_000_000];

/// Memory for the events of a recording in bytes. An event has about 120 bytes.
const MEMORY_BYTES: usize = 3 << 30;

/// Query that needs the tables of scheduling, but reads few of their rows.
const QUERY: &str = "SELECT count(*) FROM cpu_runs";

/// Records two loads and reads them.
pub(crate) fn read(report: &mut String, laglab: &Path, scratch: &Path) -> Outcome<()> {
    *report += "\n## Recordings of Linux\n\n";
    std::fs::create_dir_all(scratch)?;
    let mut files = Vec::new();
    for trips in TRIPS {
        let file = scratch.join(format!("trips-{trips}.data"));
        // A separate process records, because the peak memory of a child process includes the memory that this process
        // had when it started the child.
        let trips = trips.to_string();
        let args = [
            OsStr::new("linux-record"),
            file.as_os_str(),
            OsStr::new(&trips),
        ];
        if !process::once(&std::env::current_exe()?, &args)?.is_success {
            *report += "Not measured: this machine cannot be recorded; run as root.\n";
            return Ok(());
        }
        files.push(file);
    }
    memory(report, laglab, &files)?;
    speed(report, &files[0])?;
    for file in &files {
        std::fs::remove_file(file)?;
    }
    Ok(())
}

/// Records this machine while a byte goes to and fro between two threads, and writes the recording.
pub(crate) fn record(file: &Path, trips: &Path) -> Outcome<()> {
    let mut order = Order::new(record::linux::events(Investigation::LongWait));
    order.last = Duration::from_secs(3600);
    order.memory_bytes = MEMORY_BYTES;
    let recorder = Recorder::start(&order)?;
    flight_recorder::loaded(&[], trips.to_string_lossy().parse()?, 0)?;
    let mut out = BufWriter::new(File::create(file)?);
    recorder.stop().write(&mut out)?;
    out.flush()?;
    Ok(())
}

/// Measures the time from a file to the tables of scheduling on one thread.
fn speed(report: &mut String, file: &Path) -> Outcome<()> {
    let paths = [file.to_owned()];
    let recording = imports::open(&paths)?;
    let events = events(&*recording)?;
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let [sum, open, tables] = one.install(|| {
        let sum = &mut || {
            black_box(unit::map_and_sum(file).unwrap_or(0));
        };
        let open = &mut || {
            black_box(imports::open(&paths).is_ok());
        };
        medians_by(
            on_cpu,
            [sum, open, &mut || reports::scheduling(&*recording)],
        )
    });
    let megabytes = std::fs::metadata(file)?.len() as f64 / 1e6;
    let total = open + tables;
    writeln!(
        report,
        "\n{events} events, {megabytes:.0} MB, one thread, CPU seconds, medians. Limit: 3 M events a second from the file to all tables \
         of scheduling. One unit is mapping the file and summing its bytes.\n\n\
         | task | seconds | units | M events a second |\n|---|---|---|---|"
    )?;
    let mut row = |task: &str, seconds: f64| {
        let (units, speed) = (seconds / sum, events as f64 / seconds / 1e6);
        writeln!(
            report,
            "| {task} | {seconds:.2} | {units:.1} | {speed:.2} |"
        )
    };
    row("opening", open)?;
    row("tables", tables)?;
    row("both", total)?;
    // The peers need many seconds, so they run once.
    for command in [
        &["script", "--fields", "tid,cpu,time"][..],
        &["sched", "timehist"],
    ] {
        let mut args: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
        args.extend([OsStr::new("-i"), file.as_os_str()]);
        match process::once("perf".as_ref(), &args) {
            Ok(run) if run.is_success => {
                row(&format!("`perf {}`", command.join(" ")), run.cpu_seconds)?
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the number of events of a recording.
fn events(recording: &dyn Recording) -> Outcome<u64> {
    let mut events = 0;
    let wanted = [Table::EventKinds];
    recording.rows(&wanted, Options::default(), &mut |_, batch| {
        let view = EventKindsView::new(&batch)?;
        events += view.count.iter().sum::<u64>();
        Ok(())
    })?;
    Ok(events)
}

/// Measures the peak memory of a query. The memory must not grow with the recording.
fn memory(report: &mut String, laglab: &Path, files: &[PathBuf]) -> Outcome<()> {
    *report += "| file | `laglab sql` without cached tables | peak memory |\n|---|---|---|\n";
    for file in files {
        let query = ["--no-cache", QUERY].map(OsStr::new);
        let args = [&[OsStr::new("sql"), file.as_os_str()], &query[..]].concat();
        let run = process::median(laglab, &args, 3)?;
        let megabytes = std::fs::metadata(file)?.len() as f64 / 1e6;
        writeln!(
            report,
            "| {megabytes:.0} MB | {:.2} s | {:.0} MB |",
            run.seconds,
            run.peak_bytes as f64 / 1e6
        )?;
    }
    Ok(())
}
