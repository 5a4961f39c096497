//! `laglab measure sleep`.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use measure::{
    Clock, ClockError, ClockSource, Comparison, Goal, Grant, Plan, Resolution, Scheduling,
    SleepError, SleepMethod, SleepPlan, SleepSetting, hold_resolution,
};
use serde::Serialize;
use wording::{DefaultUnit, parse_duration};

use super::delivery::{Delivery, Show};
use super::differ;
use super::scheduling::{SCHEDULING_WORDS, SchedulingOptions, take_word, time};
use super::until_sure::UntilSure;
use super::why::{Why, WhyOptions};
use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::cli::percent::parse_percent;
use crate::cli::time_with_unit::time_with_unit;
use crate::measured::Report;
use crate::output::say;
use crate::{output, watch};

/// Measures how late sleeps end. It runs the sleep methods of the system in turn, several times.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab measure sleep\n  \
    laglab measure sleep --method clock_nanosleep --interval 1ms --realtime fifo:80\n  \
    laglab measure sleep --vs slack:1ns -o slack.html\n  \
    laglab measure sleep --vs slack:1ns --until-sure=5\n  \
    laglab measure sleep --realtime --vs usual --for 60s -o samples.parquet\n  \
    laglab measure sleep --method clock_nanosleep --why                  (Linux)\n  \
    laglab measure sleep --method Sleep --resolution 0.5,0.507,0.6,1     (Windows)\n  \
    laglab measure sleep --resolution 0.507 --hold                       (Windows)\n\n\
    The output names the machine, the clock and its cost, and the granted settings. Percentiles are of \
    the lateness of sleeps.")]
pub(super) struct Args {
    /// Use only these sleep methods (comma-separated) [default: all on this system]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = str::parse::<SleepMethod>)]
    method: Vec<SleepMethod>,
    /// Duration of a sleep; a number without a unit is milliseconds
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms")]
    request: Duration,
    /// Time from the start of a sleep to the start of the next one [default: twice the duration of a sleep,
    /// but at least 200us, or 20ms on Windows]
    #[arg(long, value_name = "TIME", value_parser = time)]
    interval: Option<Duration>,
    /// Total duration; at least one run of each method and setting is made [default: 10s, or 60s with
    /// --until-sure]
    #[arg(long = "for", value_name = "TIME", value_parser = time_with_unit)]
    time: Option<Duration>,
    /// Number of sleeps for each method and setting, however long they take
    #[arg(long, value_name = "COUNT", conflicts_with = "until_sure", value_parser = integer::<u32>(1, u32::MAX.into()))]
    count: Option<u32>,
    /// Number of runs of each method and setting [default: 10]
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["precision", "until_sure"], value_parser = integer::<u32>(1, Comparison::MAX_PAIRS as i64))]
    runs: Option<u32>,
    /// End as soon as every median is known to within this percentage
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["count", "until_sure"], value_parser = parse_percent)]
    precision: Option<f64>,
    #[command(flatten)]
    sure: UntilSure,
    /// Compare with a second setting; runs of both settings alternate. The setting is a comma-separated list
    /// of these words: usual (default scheduling), fifo:80, rr:10, cpu:1, nice:-5, slack:1ns, locked,
    /// resolution:0.5, no-throttling
    #[arg(long, value_name = "WORDS", value_parser = setting)]
    vs: Option<SleepSetting>,
    #[command(flatten)]
    scheduling: SchedulingOptions,
    /// Windows: request this timer resolution, in milliseconds; several (comma-separated) are compared.
    /// begin:1 uses timeBeginPeriod instead of NtSetTimerResolution
    #[arg(
        long,
        value_name = "MS",
        value_delimiter = ',',
        value_parser = resolution,
        help_heading = "Windows"
    )]
    resolution: Vec<Resolution>,
    /// Windows 11: keep the timer resolution while the program has no visible window
    #[arg(long, help_heading = "Windows")]
    no_throttling: bool,
    /// Windows: only hold the resolution until Ctrl-C, or for the time of --for, and measure nothing
    #[arg(
        long,
        requires = "resolution",
        conflicts_with_all = ["method", "vs", "output", "format"],
        help_heading = "Windows"
    )]
    hold: bool,
    /// Clock for the measurement [default: CLOCK_MONOTONIC_RAW, on Windows QueryPerformanceCounter]
    #[arg(long, value_name = "NAME", value_enum)]
    clock: Option<NamedClock>,
    #[command(flatten)]
    why: WhyOptions,
    #[command(flatten)]
    delivery: Delivery,
    /// Print one line per sleep instead of a summary
    #[arg(long, value_enum, conflicts_with = "json", help_heading = "Output")]
    format: Option<Format>,
}

/// Clock for the measurement.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum NamedClock {
    /// CLOCK_MONOTONIC_RAW (Linux)
    Raw,
    /// CLOCK_MONOTONIC
    Monotonic,
    /// QueryPerformanceCounter (Windows)
    Qpc,
    /// The CPU's time-stamp counter
    Tsc,
}

/// Format of the line that is printed for each sleep.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Resolution: 0.500000ms, Sleep(1) slept 1.496800ms (delta: 0.496800)
    Seed,
}

/// Default total duration of the measurement.
const TIME: Duration = Duration::from_secs(10);

/// Default maximum duration of a measurement with `--until-sure`.
const TIME_UNTIL_SURE: Duration = Duration::from_secs(60);

/// Number of runs of each method and setting. If there are fewer sleeps, there are as many runs as sleeps.
const RUNS: u32 = 10;

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    if args.hold {
        return hold(args, json);
    }
    let clock = match args.clock {
        None => Clock::best(),
        Some(clock) => Clock::open(clock.source())?,
    };
    let mut plan = plan(args)?;
    let least = plan.minimum_time();
    if args.count.is_none() && least > plan.plan.time {
        let time =
            |time: Duration| output::duration(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        say(&format!(
            "one run of every method takes at least {}, longer than --for ({}); give shorter \
             sleeps with --request, or fewer methods with --method",
            time(least),
            time(plan.plan.time),
        ));
    }
    let destination = args.delivery.prepare()?;
    if io::stderr().is_terminal() {
        say("measuring; press Ctrl-C to end and keep the results so far");
    }
    let stop = || watch::check().is_err();
    let why = args.why.begin(|| {
        let mut pilot = plan.clone();
        pilot.plan = Plan::ONE_ROUND;
        Ok(pilot.measure(&clock, &stop)?)
    })?;
    plan.late = why.as_ref().map(Why::late);
    let measurement = plan.measure(&clock, &stop)?;
    let causes = why.map(|why| why.finish(&measurement)).transpose()?;
    let show = match (json, args.format) {
        (true, _) => Show::Json,
        (false, Some(Format::Seed)) => Show::Lines,
        (false, None) => Show::Text,
    };
    let report = Report::new(&measurement).with_causes(causes.as_ref());
    destination.deliver(&report, show)
}

fn plan(args: &Args) -> Result<SleepPlan, Failure> {
    let methods = if args.method.is_empty() {
        SleepMethod::HERE.to_vec()
    } else {
        args.method.clone()
    };
    let settings = settings(args)?;
    // Minimum time from the start of a sleep to the start of the next one. On Linux, a sleep of 0 takes about
    // 60 µs with the default timer slack. On Windows, the next clock interrupt is up to 15.6 ms away.
    let least = Duration::from_micros(if cfg!(windows) { 20_000 } else { 200 });
    let usual = args.request.saturating_mul(2).max(least);
    let interval = args.interval.unwrap_or(usual);
    let until_sure = args.sure.goal(methods.len() * settings.len())?;
    let goal = args.precision.map(Goal::Precision).or(until_sure);
    let time = args.time.unwrap_or(match goal {
        Some(Goal::Sure(_)) => TIME_UNTIL_SURE,
        _ => TIME,
    });
    let round = interval.saturating_mul((methods.len() * settings.len()) as u32);
    // Number of sleeps of each method and setting that fit into the total time.
    let sleeps = time.as_nanos() / round.as_nanos().max(1);
    let sleeps = u32::try_from(sleeps).unwrap_or(u32::MAX).max(1);
    let (samples, plan) = match (args.count, goal) {
        (Some(count), _) => {
            let runs = count.min(args.runs.unwrap_or(RUNS));
            let plan = Plan {
                warm_up: 1,
                at_least: 1,
                at_most: runs,
                time: args.time.unwrap_or(Duration::MAX),
                goal: None,
            };
            (count.div_ceil(runs), plan)
        }
        (None, Some(_)) => {
            let (at_most, runs) = match goal {
                Some(Goal::Sure(_)) => (Goal::MAX_ROUNDS, Goal::MAX_ROUNDS),
                _ => (Comparison::MAX_PAIRS as u32, 4 * RUNS),
            };
            let plan = Plan {
                warm_up: 1,
                at_least: Comparison::MIN_PAIRS as u32,
                at_most,
                time,
                goal,
            };
            (sleeps.div_ceil(runs), plan)
        }
        (None, None) => {
            let runs = sleeps.min(args.runs.unwrap_or(RUNS));
            let plan = Plan {
                warm_up: 1,
                at_least: 1,
                at_most: runs,
                time,
                goal: None,
            };
            (sleeps.div_ceil(runs), plan)
        }
    };
    let mut plan = SleepPlan {
        methods,
        settings,
        requested: args.request,
        interval,
        samples,
        plan,
        late: None,
    };
    // If the total time is too short for all runs, the warm-up is skipped.
    if plan.minimum_time() > plan.plan.time {
        plan.plan.warm_up = 0;
    }
    Ok(plan)
}

/// Returns the settings to compare: one setting for each resolution of `--resolution`, all with the values of the
/// other options, and then the setting of `--vs`. Without `--resolution`, the other options give one setting.
///
/// # Errors
/// Returns [`Failure::Input`] if two settings are equal.
fn settings(args: &Args) -> Result<Vec<SleepSetting>, Failure> {
    let with = |resolution| SleepSetting {
        scheduling: args.scheduling.scheduling(),
        resolution,
        without_throttling: args.no_throttling,
    };
    let mut settings: Vec<SleepSetting> = if args.resolution.is_empty() {
        vec![with(None)]
    } else {
        args.resolution.iter().map(|r| with(Some(*r))).collect()
    };
    settings.extend(args.vs);
    differ(&settings, "--vs (or --resolution)")?;
    Ok(settings)
}

/// Parses the comma-separated words of `--vs`.
fn setting(text: &str) -> Result<SleepSetting, String> {
    let mut setting = SleepSetting::default();
    let mut scheduling = Scheduling::default();
    for word in text.split(',').map(str::trim) {
        match word.strip_prefix("resolution:") {
            Some(_) if setting.resolution.is_some() => {
                return Err("a setting can have only one resolution".to_owned());
            }
            Some(ms) => setting.resolution = Some(resolution(ms)?),
            None if word == "no-throttling" => setting.without_throttling = true,
            None if take_word(word, &mut scheduling)? => {}
            None => {
                return Err(format!(
                    "unknown word `{word}`; use resolution:MS, no-throttling, {SCHEDULING_WORDS}"
                ));
            }
        }
    }
    setting.scheduling = scheduling;
    Ok(setting)
}

/// Parses a timer resolution: milliseconds, or `begin:` followed by whole milliseconds.
fn resolution(text: &str) -> Result<Resolution, String> {
    let expected = "expected milliseconds such as 0.5 or 0.507, or begin:1, up to 1000";
    let resolution = match text.strip_prefix("begin:") {
        Some(ms) => ms.parse().ok().map(Resolution::Multimedia),
        None => parse_duration(text, DefaultUnit::Milliseconds)
            .and_then(|ns| u32::try_from(ns / 100).ok())
            .map(Resolution::Native),
    };
    resolution
        .filter(|resolution| (1..=1_000_000_000).contains(&resolution.ns()))
        .ok_or_else(|| expected.to_owned())
}

/// JSON output of --hold. Programs rely on its fields.
#[derive(Serialize)]
struct HoldReport<'h> {
    grants: &'h [Grant],
    /// Current timer resolution of the system in nanoseconds.
    resolution_ns: Option<i64>,
}

/// Holds a timer resolution until the user presses Ctrl-C or the time of --for is over.
fn hold(args: &Args, json: bool) -> Result<(), Failure> {
    let [resolution] = args.resolution[..] else {
        let message = "--hold accepts one resolution at a time; give one";
        return Err(Failure::Input(message.to_owned()));
    };
    let hold = hold_resolution(Some(resolution), args.no_throttling);
    let resolution_ns = hold.current_ns();
    // Grants are the system's answers to requested settings. The last grant is about the timer resolution.
    let is_held = hold.grants.last().is_some_and(Grant::is_granted);
    if json {
        output::json(&HoldReport {
            grants: &hold.grants,
            resolution_ns,
        })?;
    } else {
        let mut out = output::for_people();
        for grant in &hold.grants {
            output::paragraph(&mut out, &grant.to_string())?;
        }
        if let Some(ns) = resolution_ns.filter(|_| is_held) {
            let ms = ns as f64 / 1e6;
            let now = format!("resolution now: {ms} ms; press Ctrl-C to release it");
            output::paragraph(&mut out, &now)?;
        }
        out.flush()?;
    }
    if !is_held {
        return Err(Failure::Input("cannot hold the resolution".to_owned()));
    }
    let start = Instant::now();
    let is_over = || args.time.is_some_and(|time| start.elapsed() >= time);
    while watch::check().is_ok() && !is_over() {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

impl NamedClock {
    fn source(self) -> ClockSource {
        match self {
            NamedClock::Raw => ClockSource::MonotonicRaw,
            NamedClock::Monotonic => ClockSource::Monotonic,
            NamedClock::Qpc => ClockSource::Qpc,
            NamedClock::Tsc => ClockSource::Tsc,
        }
    }
}

impl From<ClockError> for Failure {
    fn from(error: ClockError) -> Failure {
        Failure::Input(error.to_string())
    }
}

impl From<SleepError> for Failure {
    fn from(error: SleepError) -> Failure {
        Failure::Input(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use measure::Policy;

    #[derive(Parser)]
    struct Line {
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        args: Args,
    }

    fn plan_of(line: &str) -> SleepPlan {
        let words = std::iter::once("laglab").chain(line.split_whitespace());
        let line = Line::parse_from(words);
        assert!(!line.json);
        plan(&line.args).expect("a plan")
    }

    #[test]
    fn time_is_shared_by_methods_and_settings() {
        let one = SleepMethod::HERE[0].name();
        let plan = plan_of(&format!(
            "--method {one} --interval 20ms --for 4s --vs fifo:5"
        ));
        // In 4 s with a sleep every 20 ms, two settings have 100 sleeps each: 10 runs of 10 sleeps.
        assert_eq!((plan.samples, plan.plan.at_most), (10, 10));
        assert_eq!(plan.settings[1].scheduling.policy, Policy::Fifo(5));
        // One sleep per second for 3 s, as in the program SleepBenchmark: 3 runs of 1 sleep.
        let plan = plan_of(&format!("--method {one} --interval 1s --for 3s"));
        assert_eq!((plan.samples, plan.plan.at_most), (1, 3));
        let plan = plan_of("--count 7");
        assert_eq!((plan.samples, plan.plan.at_most), (1, 7));
        assert_eq!(plan.plan.time, Duration::MAX);
        let plan = plan_of("--precision 1%");
        assert_eq!(plan.plan.goal, Some(Goal::Precision(0.01)));
        let plan = plan_of("--until-sure --vs fifo:5");
        assert_eq!(plan.plan.goal, Some(Goal::Sure(0.02)));
        assert_eq!((plan.plan.at_most, plan.plan.time), (64, TIME_UNTIL_SURE));
        let plan = plan_of("--until-sure=5 --vs fifo:5");
        assert_eq!(plan.plan.goal, Some(Goal::Sure(0.05)));
    }

    #[test]
    fn for_ends_it_after_one_run_of_each() {
        let one = SleepMethod::HERE[0].name();
        let plan = plan_of(&format!("--method {one} --request 100ns --for 2s"));
        assert_eq!((plan.plan.at_least, plan.plan.warm_up), (1, 1));
        assert!(plan.minimum_time() < Duration::from_secs(1));
        // No system can sleep every 200 ns, so the interval has a minimum.
        assert!(plan.interval >= Duration::from_micros(200));
        let plan = plan_of(&format!("--method {one} --request 10s --for 1s"));
        assert_eq!(
            (plan.samples, plan.plan.at_most, plan.plan.warm_up),
            (1, 1, 0)
        );
        assert_eq!(plan.minimum_time(), Duration::from_secs(10));
    }

    #[test]
    fn equal_settings_are_refused() {
        for same in [
            "--vs usual",
            "--resolution 0.5,0.5",
            "--realtime fifo:80 --vs fifo:80",
        ] {
            let words = ["laglab"].into_iter().chain(same.split_whitespace());
            let refused = plan(&Line::parse_from(words).args);
            assert!(matches!(refused, Err(Failure::Input(_))), "{same}");
        }
    }

    #[test]
    fn resolutions_and_words_are_read() {
        let plan = plan_of("--resolution 0.5,0.507,begin:1 --no-throttling");
        let texts: Vec<String> = plan.settings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "resolution 0.5 ms, no throttling",
                "resolution 0.507 ms, no throttling",
                "timeBeginPeriod 1 ms, no throttling",
            ]
        );
        let words = setting("rr:9, resolution:0.6,cpu:0").unwrap();
        assert_eq!(words.resolution, Some(Resolution::Native(6_000)));
        assert_eq!(words.scheduling.cpu, Some(0));
        for odd in [
            "",
            "fast",
            "resolution:0",
            "resolution:2000",
            "fifo:",
            "begin:1",
        ] {
            assert!(setting(odd).is_err(), "{odd}");
        }
    }
}
