//! `laglab measure files`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use measure::{
    CacheState, Clock, ClockSource, Comparison, FileSet, FileSizes, FilesError, FilesMeasured,
    FilesMethod, FilesProbe, Goal, Plan, Unavailable,
};

use super::delivery::{Delivery, Show};
use super::scheduling::SchedulingOptions;
use super::until_sure::UntilSure;
use super::why::{Why, WhyOptions};
use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::cli::percent::parse_percent;
use crate::cli::time_with_unit::time_with_unit;
use crate::measured::{Causes, Report};
use crate::output::say;
use crate::watch;

/// Measures the time to read many files. It runs the read methods of the system in turn, several times.
/// All methods must find the same bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab measure files --make set                     creates 4,000 files of 4 KiB first\n  \
    laglab measure files --make=mixed set --cache dropped,direct\n  \
    laglab measure files C:\\Windows\\System32 --method ReadFile,ioring\n  \
    laglab measure files set --rounds 30 -o files.parquet\n\n\
    Opening, setting up, reading and summing are timed separately. Ratios compare runs with the first \
    method, with 95 % confidence.")]
pub(super) struct Args {
    /// Read the files in this folder and its subfolders
    folder: PathBuf,
    /// Create files first, in a new or empty folder: small (4 KiB each) or mixed (1 KiB to 1 MiB)
    #[arg(
        long,
        value_name = "SIZES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "small",
        value_parser = str::parse::<FileSizes>
    )]
    make: Option<FileSizes>,
    /// Random seed for the created files: equal seeds give equal files
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "make")]
    seed: u64,
    /// Remove the created files afterwards
    #[arg(long, requires = "make")]
    remove: bool,
    /// Maximum number of files to read, or number to create
    #[arg(long, value_name = "COUNT", default_value = "4000", value_parser = integer::<u32>(1, 1_000_000))]
    count: u32,
    /// Use only these read methods (comma-separated), compared with the first [default: all on this
    /// system]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = str::parse::<FilesMethod>)]
    method: Vec<FilesMethod>,
    /// State of the system's file cache before each run (comma-separated): warm, dropped (Linux, root),
    /// evicted (Linux), direct (bypass the cache) [default: warm,evicted; not on Linux: warm,direct]
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = str::parse::<CacheState>)]
    cache: Vec<CacheState>,
    /// Number of runs of each method, after a warm-up run that does not count
    #[arg(
        long,
        value_name = "COUNT",
        default_value = "10",
        conflicts_with = "until_sure",
        value_parser = integer::<u32>(1, Comparison::MAX_PAIRS as i64)
    )]
    rounds: u32,
    /// For each state of the cache, start no new round after this time, but make at least six rounds
    #[arg(long = "for", value_name = "TIME", value_parser = time_with_unit)]
    time: Option<Duration>,
    /// End as soon as every median is known to within this percentage
    #[arg(long, value_name = "PERCENT", conflicts_with = "until_sure", value_parser = parse_percent)]
    precision: Option<f64>,
    #[command(flatten)]
    sure: UntilSure,
    #[command(flatten)]
    scheduling: SchedulingOptions,
    #[command(flatten)]
    why: WhyOptions,
    #[command(flatten)]
    delivery: Delivery,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let destination = args.delivery.prepare()?;
    // Only the time-stamp counter counts CPU ticks. The usual clock is used if this counter is unreliable.
    let clock = Clock::open(ClockSource::Tsc).unwrap_or_else(|_| Clock::best());
    let stop = || watch::check().is_err();
    let until_sure = args.sure.goal(methods(args).len())?;
    let goal = args.precision.map(Goal::Precision).or(until_sure);
    let set = set(args, &stop)?;
    if io::stderr().is_terminal() {
        say("measuring; press Ctrl-C to end and keep the results so far");
    }
    let mut probe = probe(args, set, goal);
    let measured = measure(&mut probe, args, &clock, &stop);
    if args.remove {
        probe.set.remove();
    }
    let (mut measured, causes) = measured?;
    if let Some(left_out) = left_out(args) {
        measured.measurement.unavailable.push(left_out);
    }
    let show = if json { Show::Json } else { Show::Text };
    let report = Report::of(&measured.measurement).with_causes(causes.as_ref());
    let delivered = destination.deliver(&report, show);
    match measured.failure {
        // The results that were measured before the failure are already printed.
        Some(failure) => Err(failure.into()),
        None => delivered,
    }
}

/// Measures, and finds the causes of slow reads if the options ask for them.
fn measure(
    probe: &mut FilesProbe,
    args: &Args,
    clock: &Clock,
    stop: measure::Stop<'_>,
) -> Result<(FilesMeasured, Option<Causes>), Failure> {
    let why = args.why.begin(|| {
        let mut pilot = probe.clone();
        pilot.plan = Plan::ONE_ROUND;
        Ok(pilot.measure(clock, stop)?.measurement)
    })?;
    probe.late = why.as_ref().map(Why::late);
    let measured = probe.measure(clock, stop)?;
    let causes = why
        .map(|why| why.finish(&measured.measurement))
        .transpose()?;
    Ok((measured, causes))
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

/// Returns true if a method is used by default. Other programs may change files that --make did not create. A method
/// that does not tolerate changes could then crash this program, so this method is not used for these files.
fn is_default(args: &Args, method: FilesMethod) -> bool {
    args.make.is_some() || method.tolerates_changes()
}

/// Returns the method that is left out by default, and the reason.
fn left_out(args: &Args) -> Option<Unavailable> {
    let mut all = FilesMethod::all().filter(|_| args.method.is_empty());
    let method = all.find(|method| !is_default(args, *method))?;
    Some(Unavailable {
        method: method.to_string(),
        why: format!(
            "not measured for files that --make did not create: if another program truncates such \
             a file during a read, the system ends laglab; to measure this method anyway, give \
             --method {method}"
        ),
    })
}

fn methods(args: &Args) -> Vec<FilesMethod> {
    if args.method.is_empty() {
        FilesMethod::all()
            .filter(|method| is_default(args, *method))
            .collect()
    } else {
        args.method.clone()
    }
}

fn probe(args: &Args, set: FileSet, goal: Option<Goal>) -> FilesProbe {
    let caches = match args.cache.is_empty() {
        true if cfg!(target_os = "linux") => vec![CacheState::Warm, CacheState::Evicted],
        true => vec![CacheState::Warm, CacheState::Direct],
        false => args.cache.clone(),
    };
    let is_open_ended = args.time.is_some() || goal.is_some();
    let least = Comparison::MIN_PAIRS as u32;
    FilesProbe {
        set,
        methods: methods(args),
        caches,
        plan: Plan {
            warm_up: 1,
            at_least: if is_open_ended { least } else { args.rounds },
            at_most: match goal {
                Some(Goal::Sure(_)) => Goal::MAX_ROUNDS,
                _ if is_open_ended => Comparison::MAX_PAIRS as u32,
                _ => args.rounds,
            },
            time: args.time.unwrap_or(Duration::MAX),
            goal,
        },
        scheduling: args.scheduling.scheduling(),
        rings: None,
        late: None,
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Failure {
        Failure::Input(error.to_string())
    }
}
