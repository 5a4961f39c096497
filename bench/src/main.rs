//! `cargo xtask bench`: compares laglab with other tools and with physical limits.
//!
//! Results are ratios of medians. The compared runs alternate, because absolute times vary on shared
//! machines.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod against;
mod assistants;
mod comparison;
mod error_rates;
mod file_reads;
#[cfg(target_os = "linux")]
mod flight_recorder;
mod hives;
#[cfg(target_os = "linux")]
mod linux_recordings;
mod load;
mod page;
mod probes;
mod process;
mod reports;
mod unit;
mod views;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use etl::compress::decompress;
use etl::{BufferReader, Trace};

/// Number of measurements of each task. Measurements of compared tasks alternate, and the medians of the
/// measurements are compared.
const ROUNDS: usize = 7;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut report = String::new();
    let arguments: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    match arguments.as_slice() {
        [what, laglab, earlier, scratch] if what == Path::new("against") => {
            against::builds(&mut report, laglab, earlier, scratch)?;
        }
        [what] if what == Path::new("error-rates") => error_rates::all(&mut report)?,
        [what, scratch] if what == Path::new("comparison") => {
            comparison::all(&mut report, scratch)?;
        }
        [what, file] if what == Path::new("comparison-make") => comparison::make(file)?,
        [what, file] if what == Path::new("comparison-judge") => comparison::compare(file)?,
        [what, file] if what == Path::new("comparison-read") => comparison::read(file, false)?,
        [what, file] if what == Path::new("comparison-sort") => comparison::read(file, true)?,
        #[cfg(target_os = "linux")]
        [what, scratch] if what == Path::new("recorder") => {
            flight_recorder::costs(&mut report, scratch)?;
        }
        #[cfg(target_os = "linux")]
        [what, laglab, scratch] if what == Path::new("linux") => {
            linux_recordings::read(&mut report, laglab, scratch)?;
        }
        #[cfg(target_os = "linux")]
        [what, file, trips] if what == Path::new("linux-record") => {
            linux_recordings::record(file, trips)?;
        }
        #[cfg(target_os = "linux")]
        [what, trips, pause] if what == Path::new("recorder-load") => {
            flight_recorder::load(trips, pause)?;
        }
        [what] if what == Path::new("views") => views::kernels(&mut report)?,
        [what, laglab, trace] if what == Path::new("page") => {
            page::requests(&mut report, laglab, trace)?;
        }
        [what, folder] if what == Path::new("make-hives") => hives::make(folder)?,
        [what, laglab, scratch] if what == Path::new("hives") => {
            hives::audit(&mut report, laglab, scratch)?;
        }
        [what, laglab, scratch] if what == Path::new("files") => {
            file_reads::ways(&mut report, laglab, scratch)?;
        }
        [what, laglab, scratch] if what == Path::new("assistants") => {
            assistants::calls(&mut report, laglab, scratch)?;
        }
        [what, laglab] if what == Path::new("probes") => probes::all(&mut report, laglab)?,
        [laglab, scratch, data, python @ ..] => {
            everything(&mut report, laglab, scratch, data, python.first())?;
        }
        _ => {
            let usage = "usage: bench LAGLAB SCRATCH_FOLDER DATA_FOLDER [PEERS_PYTHON], \
                         bench page LAGLAB TRACE, bench hives LAGLAB SCRATCH_FOLDER, \
                         bench files LAGLAB SCRATCH_FOLDER, bench probes LAGLAB, bench comparison \
                         SCRATCH_FOLDER, bench assistants LAGLAB SCRATCH_FOLDER, bench recorder SCRATCH_FOLDER, bench linux \
                         LAGLAB SCRATCH_FOLDER, bench \
                         against LAGLAB EARLIER_LAGLAB SCRATCH_FOLDER, bench error-rates, or bench views";
            return Err(usage.into());
        }
    }
    print(&report);
    Ok(())
}

/// Runs all benchmarks. Leaves out comparisons with public readers if no Python with these readers is
/// installed.
fn everything(
    report: &mut String,
    laglab: &Path,
    scratch: &Path,
    data: &Path,
    python: Option<&PathBuf>,
) -> Outcome<()> {
    fs::create_dir_all(scratch)?;
    // Benchmarks that start other programs come first: the peak memory of a child process includes the memory
    // that this process had when it started the child.
    let files = load::files(report, laglab, scratch)?;
    memory(report, laglab, &files)?;
    comparison::all(report, scratch)?;
    hives::audit(report, laglab, scratch)?;
    let large = reports::large(scratch, laglab)?;
    reports::commands(report, laglab, &large)?;
    page::requests(report, laglab, &large[0])?;
    assistants::calls(report, laglab, scratch)?;
    for file in &large[1..] {
        fs::remove_file(file)?;
    }
    match python {
        Some(python) => peers(report, laglab, python, data)?,
        None => *report += "\n## Peers\n\nNot measured: no Python with the peers was given.\n",
    }
    reading(report, laglab, scratch, data)?;
    decompression(report, data)?;
    error_rates::all(report)?;
    views::kernels(report)?;
    file_reads::ways(report, laglab, scratch)?;
    #[cfg(target_os = "linux")]
    flight_recorder::costs(report, scratch)?;
    #[cfg(target_os = "linux")]
    linux_recordings::read(report, laglab, scratch)?;
    probes::all(report, laglab)
}

#[allow(clippy::print_stdout)]
fn print(report: &str) {
    print!("{report}");
}

/// Returns the median time of each task in seconds. Runs of the tasks alternate.
fn medians<const N: usize>(tasks: [&mut dyn FnMut(); N]) -> [f64; N] {
    let start = Instant::now();
    medians_by(|| start.elapsed().as_secs_f64(), tasks)
}

/// Returns the median time of each task like [`medians`]. `clock` returns the current time in seconds.
fn medians_by<const N: usize>(
    clock: impl Fn() -> f64,
    mut tasks: [&mut dyn FnMut(); N],
) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let start = clock();
            task();
            times.push(clock() - start);
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

/// Measures the time of reading all events, and the time of building columns. The unit of both is the time of
/// mapping the file and summing its bytes.
fn reading(report: &mut String, laglab: &Path, scratch: &Path, data: &Path) -> Outcome<()> {
    *report += "\n## Reading\n\nOne unit is mapping the file and summing its bytes on one thread. \
        Medians; limits are in brackets. For compressed files (load-compressed, net.4.5.2.x64, \
        filtrace), times include decompression.\n\n\
        | file | MB | M events | unit GB/s | open | walk per CPU (3) | time order (10) | \
        scheduling tables, all threads (20) |\n|---|---|---|---|---|---|---|---|\n";
    let load_file = load::path(scratch, 1);
    let packed = scratch.join("load-compressed.etl");
    load::simulate(laglab, &packed, load::EVENTS_PER_GIB, &["--compress"])?;
    let real = [
        "gpuvis__wintracecmd.etl",
        "etwanalyzer__TraceLoggingTester.etl",
        "perfview__net.4.5.x86-win7.etl",
        "perfview__net.4.5.2.x64.etl",
        "filtrace__etw.etl",
    ];
    for path in [load_file, packed]
        .into_iter()
        .chain(real.map(|name| data.join("etl").join(name)))
    {
        let trace = etl::open(std::slice::from_ref(&path))?;
        let recording = imports::open(std::slice::from_ref(&path))?;
        let mut events = 0;
        let [unit, open, walk, order, tables] = medians([
            &mut || {
                black_box(unit::map_and_sum(&path).unwrap_or(0));
            },
            &mut || {
                black_box(etl::open(std::slice::from_ref(&path)).is_ok());
            },
            &mut || events = walk_per_cpu(&trace),
            &mut || walk_in_time_order(&trace),
            &mut || reports::scheduling(&*recording),
        ]);
        let size = trace.size_bytes() as f64;
        writeln!(
            report,
            "| {} | {:.1} | {:.2} | {:.1} | {:.2} | {:.2} ({:.1} GB/s, {:.0} M/s) | {:.2} \
             ({:.1} GB/s, {:.0} M/s) | {:.2} ({:.1} GB/s) |",
            path.file_name().unwrap_or_default().to_string_lossy(),
            size / 1e6,
            events as f64 / 1e6,
            size / unit / 1e9,
            open / unit,
            walk / unit,
            size / walk / 1e9,
            events as f64 / walk / 1e6,
            order / unit,
            size / order / 1e9,
            events as f64 / order / 1e6,
            tables / unit,
            size / tables / 1e9,
        )?;
    }
    Ok(())
}

fn walk_per_cpu(trace: &Trace) -> u64 {
    let mut reader = BufferReader::new(trace);
    let (mut events, mut sum) = (0, 0i64);
    for stream in trace.streams() {
        for buffer in stream.buffers() {
            for event in reader.read(buffer) {
                events += 1;
                sum = sum.wrapping_add(event.raw_time());
            }
        }
    }
    black_box(sum);
    events
}

fn walk_in_time_order(trace: &Trace) {
    let mut events = trace.events();
    let mut sum = 0i64;
    while let Some(event) = events.next() {
        sum = sum.wrapping_add(event.raw_time());
    }
    black_box(sum);
}

/// Measures the decompression of the XPRESS buffers of real traces, in bytes of output per second.
fn decompression(report: &mut String, data: &Path) -> Outcome<()> {
    *report += "\n## XPRESS decompression\n\nOne thread, output bytes. Limit: at least \
        800 MB/s.\n\n| file | MB out | MB/s | compared with copying the output |\n|---|---|---|---|\n";
    for name in ["perfview__net.4.5.2.x64.etl", "filtrace__etw.etl"] {
        let path = data.join("etl").join(name);
        let bytes = fs::read(&path)?;
        let trace = etl::open(&[path])?;
        let blocks: Vec<_> = trace
            .buffers()
            .iter()
            .filter(|b| b.is_compressed())
            .map(|b| {
                let at = b.offset as usize;
                let format = trace.segments()[usize::from(b.segment)].compression;
                let block = &bytes[at + etl::BUFFER_HEADER_SIZE..at + b.stored_size as usize];
                (
                    format,
                    block,
                    b.valid_size as usize - etl::BUFFER_HEADER_SIZE,
                )
            })
            .collect();
        let total: usize = blocks.iter().map(|b| b.2).sum();
        let mut output = vec![0; 16 << 20];
        let source = vec![1; 16 << 20];
        let mut copy = vec![0; 16 << 20];
        let [time, copied] = medians([
            &mut || {
                for (format, block, size) in &blocks {
                    black_box(decompress(*format, block, &mut output[..*size]).is_ok());
                }
            },
            &mut || {
                for (_, _, size) in &blocks {
                    copy[..*size].copy_from_slice(black_box(&source[..*size]));
                    black_box(&mut copy);
                }
            },
        ]);
        let total = total as f64 / 1e6;
        writeln!(
            report,
            "| {name} | {total:.1} | {:.0} | {:.1} x its time |",
            total / time,
            time / copied
        )?;
    }
    Ok(())
}

/// Runs the program on files of three sizes. Its time may increase with the size of the file, but its memory
/// must not.
fn memory(report: &mut String, laglab: &Path, files: &[PathBuf]) -> Outcome<()> {
    *report += "\n## Whole commands on large files\n\nMedian of 3 runs; peak resident memory \
        (limit: 150 MB).\n\n| command | 1 GiB | 2 GiB | 4 GiB |\n|---|---|---|---|\n";
    let commands: [&[&str]; 3] = [
        &["info"],
        &["stats", "--json"],
        // No event passes this filter. Every event is read in time order, and no event is printed.
        &["events", "--event", "no such event"],
    ];
    for command in commands {
        write!(report, "| `laglab {}` |", command.join(" "))?;
        for file in files {
            let mut args: Vec<&std::ffi::OsStr> = command.iter().map(|a| a.as_ref()).collect();
            args.insert(1, file.as_os_str());
            let run = process::median(laglab, &args, 3)?;
            write!(
                report,
                " {:.2} s, {:.0} MB |",
                run.seconds,
                run.peak_bytes as f64 / 1e6
            )?;
        }
        *report += "\n";
    }
    Ok(())
}

/// Compares laglab with public readers. Each reader runs as its own process on the same file.
fn peers(report: &mut String, laglab: &Path, python: &Path, data: &Path) -> Outcome<()> {
    *report += "\n## Peers\n\nWhole processes that count a trace's events. `laglab stats` also \
        groups them by class, version and provider.\n\n\
        | file | laglab stats | peer | events equal | peer / laglab |\n|---|---|---|---|---|\n";
    let scripts = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/peers"));
    let files = [
        "gpuvis__wintracecmd.etl",
        "perfview__net.4.5.2.x64.etl",
        "perfview__net.4.5.x86-win7.etl",
        "perfview__diaghub__diaghub.kernel.1.etl",
    ];
    for name in files {
        let path = data.join("etl").join(name);
        let ours = process::median(
            laglab,
            &["stats".as_ref(), path.as_os_str(), "--json".as_ref()],
            5,
        )?;
        let stats: serde_json::Value = serde_json::from_slice(&ours.output)?;
        let events = stats["total_events"].as_u64().unwrap_or(0);
        for (peer, script) in [
            ("dissect.etl", "dissect_etl.py"),
            ("etl-parser", "etl_parser.py"),
        ] {
            let args = [
                scripts.join(script).into_os_string(),
                path.clone().into_os_string(),
            ];
            let args: Vec<&std::ffi::OsStr> = args.iter().map(|a| a.as_os_str()).collect();
            let run = process::median(python, &args, if peer == "dissect.etl" { 3 } else { 1 })?;
            // The output has one line for each kind of event. The line ends with the number of events.
            let counts = String::from_utf8_lossy(&run.output);
            let counts = counts.lines().map(|line| {
                let (_, count) = line.split_once(' ')?;
                count.parse::<u64>().ok()
            });
            let equal = match counts.sum::<Option<u64>>() {
                Some(n) if n == events => format!("yes, {n}"),
                Some(n) if n > 0 => format!("no: {n}, we {events}"),
                _ => "it fails".to_owned(),
            };
            writeln!(
                report,
                "| {name} | {:.3} s | {peer} {:.2} s | {equal} | {:.0} |",
                ours.seconds,
                run.seconds,
                run.seconds / ours.seconds
            )?;
        }
    }
    Ok(())
}
