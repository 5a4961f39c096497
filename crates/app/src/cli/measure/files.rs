//! `laglab measure files`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use measure::{
    CacheState, Clock, ClockSource, Comparison, FileSet, FileSizes, FilesError, FilesMethod,
    FilesProbe, Plan, Unavailable,
};

use super::delivery::{Delivery, Show};
use super::percent;
use super::scheduling::{SchedulingOptions, time};
use crate::cli::{Failure, say};
use crate::measured::Report;
use crate::watch;

/// Measures how long it takes to read many files: each way that the system has, in turn, again and
/// again. All of them must find the same bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab measure files --make set                     4,000 files of 4 KiB, made first\n  \
    laglab measure files --make=mixed set --cache dropped,direct\n  \
    laglab measure files C:\\Windows\\System32 --method ReadFile,ioring\n  \
    laglab measure files set --rounds 30 -o files.parquet\n\n\
    Opening, setting up, reading and summing are timed apart. Ratios are to the first method, run by \
    run, with 95 % confidence.")]
pub(super) struct Args {
    /// Read the files of this folder, and of those in it
    folder: PathBuf,
    /// Make files there first, in a new or empty folder: small (4 KiB each) or mixed (1 KiB to 1 MiB)
    #[arg(
        long,
        value_name = "SIZES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "small",
        value_parser = str::parse::<FileSizes>
    )]
    make: Option<FileSizes>,
    /// What the content of files that are made is drawn from: the same number, the same files
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "make")]
    seed: u64,
    /// Remove the files that were made when all is measured
    #[arg(long, requires = "make")]
    remove: bool,
    /// Read so many files at most, or make so many
    #[arg(long, value_name = "COUNT", default_value = "4000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Only these ways to read (comma-separated), compared to the first [default: all that are here]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = str::parse::<FilesMethod>)]
    method: Vec<FilesMethod>,
    /// What the system's file cache holds before each run (comma-separated): warm, dropped (Linux,
    /// root), evicted (Linux), direct (read past it) [default: warm,evicted; not on Linux: warm,direct]
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = str::parse::<CacheState>)]
    cache: Vec<CacheState>,
    /// How many runs of each, after one that does not count
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=Comparison::MOST_PAIRS as i64)
    )]
    rounds: u32,
    /// Begin no round after this time, for each state of the cache; six rounds are made first
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// End as soon as every median is known to within so many percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    precision: Option<f64>,
    #[command(flatten)]
    scheduling: SchedulingOptions,
    #[command(flatten)]
    delivery: Delivery,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let destination = args.delivery.prepare()?;
    // Ticks are wanted, and that is what has them; where it is not to be trusted, the usual clock.
    let clock = Clock::open(ClockSource::Tsc).unwrap_or_else(|_| Clock::best());
    let stop = || watch::check().is_err();
    let set = set(args, &stop)?;
    if io::stderr().is_terminal() {
        say("measuring; Ctrl-C ends it and keeps what was measured");
    }
    let probe = probe(args, set);
    let measured = probe.measure(&clock, &stop);
    if args.remove {
        probe.set.remove();
    }
    let mut measured = measured?;
    if let Some(left_out) = left_out(args) {
        measured.measurement.unavailable.push(left_out);
    }
    let show = if json { Show::Json } else { Show::Text };
    let delivered = destination.deliver(&Report::of(&measured.measurement), show);
    match measured.failure {
        // What was measured until then has been shown.
        Some(failure) => Err(failure.into()),
        None => delivered,
    }
}

fn set(args: &Args, stop: measure::Stop<'_>) -> Result<FileSet, Failure> {
    let count = args.count as usize;
    let Some(sizes) = args.make else {
        return Ok(FileSet::of_folder(&args.folder, count)?);
    };
    match FileSet::make(&args.folder, count, sizes, args.seed, stop) {
        Err(_) if stop() => Err(Failure::Interrupted),
        made => Ok(made?),
    }
}

/// Whether a method is used unless others are asked for: of files that were not made here, only what
/// their changes cannot end the program by.
fn is_usual(args: &Args, method: FilesMethod) -> bool {
    args.make.is_some() || method.bears_changes()
}

/// What is not measured unless it is asked for.
fn left_out(args: &Args) -> Option<Unavailable> {
    let mut all = FilesMethod::all().filter(|_| args.method.is_empty());
    let method = all.find(|method| !is_usual(args, *method))?;
    Some(Unavailable {
        method: method.to_string(),
        why: format!(
            "left out for files that --make did not make: if one is cut short while it is read so, the \
             system ends the program; --method {method} measures it nevertheless"
        ),
    })
}

fn probe(args: &Args, set: FileSet) -> FilesProbe {
    let methods = match args.method.is_empty() {
        true => FilesMethod::all()
            .filter(|method| is_usual(args, *method))
            .collect(),
        false => args.method.clone(),
    };
    let caches = match args.cache.is_empty() {
        true if cfg!(target_os = "linux") => vec![CacheState::Warm, CacheState::Evicted],
        true => vec![CacheState::Warm, CacheState::Direct],
        false => args.cache.clone(),
    };
    let is_open_ended = args.time.is_some() || args.precision.is_some();
    let least = Comparison::LEAST_PAIRS as u32;
    FilesProbe {
        set,
        methods,
        caches,
        plan: Plan {
            warm_up: 1,
            at_least: if is_open_ended { least } else { args.rounds },
            at_most: if is_open_ended {
                Comparison::MOST_PAIRS as u32
            } else {
                args.rounds
            },
            time: args.time.unwrap_or(Duration::MAX),
            precision: args.precision,
        },
        scheduling: args.scheduling.scheduling(),
        rings: None,
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Failure {
        Failure::Input(error.to_string())
    }
}
