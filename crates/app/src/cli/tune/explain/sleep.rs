//! Computation of the duration of sleeps.

use std::io::Write;

use facts::windows_release;
use serde::Serialize;
use tune::decode::sleep::{COARSEST, Request, Timers, sleep_takes};

use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::output::{self, Columns, Side};

/// Computes the duration of a sleep from timer requests and the build of Windows. Without a build it compares
/// versions of Windows.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune explain sleep\n  \
    laglab tune explain sleep --own 0.5 --hidden --build 22631\n  \
    laglab tune explain sleep --other 0.5 --global --build 20348\n\n\
    This is a model: a sleep ends with the first clock interrupt after its time. \
    `laglab measure sleep` measures it.")]
pub(super) struct Args {
    /// Resolution that the sleeping program requested, in milliseconds
    #[arg(long, value_name = "MS", value_parser = period)]
    own: Option<u32>,
    /// Finest resolution that another program requested, in milliseconds
    #[arg(long, value_name = "MS", value_parser = period)]
    other: Option<u32>,
    /// All windows of the requesting program are hidden, and it plays no sound
    #[arg(long)]
    hidden: bool,
    /// The requesting program opted out of the rule for hidden programs
    /// (PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION)
    #[arg(long)]
    opted_out: bool,
    /// The registry value GlobalTimerResolutionRequests is 1
    #[arg(long)]
    global: bool,
    /// Duration of the sleep, in whole milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1, value_parser = integer::<u32>(0, 100_000))]
    sleep: u32,
    /// Build of Windows, such as 22631
    #[arg(long, value_name = "BUILD")]
    build: Option<u32>,
}

/// Builds that are compared. Each build has different rules or is common.
const BUILDS: [u32; 5] = [18_363, 19_045, 20_348, 22_631, 26_100];

/// JSON output: sleep on one build of Windows. Times are milliseconds. Programs rely on its fields.
#[derive(Serialize)]
struct Answer {
    build: u32,
    windows: Option<&'static str>,
    period_ms: f64,
    sleep_ms: f64,
    because: Vec<&'static str>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let request = |period: u32| Request {
        period,
        hidden: args.hidden,
        opted_out: args.opted_out,
    };
    let timers = Timers {
        own: args.own.map(request),
        other: args.other.map(request),
        global: args.global,
    };
    let units = args.sleep.saturating_mul(10_000);
    let builds = args.build.map_or(BUILDS.to_vec(), |build| vec![build]);
    let answers = builds.iter().map(|&build| {
        let resolution = timers.resolution(build);
        Answer {
            build,
            windows: windows_release(build),
            period_ms: ms(resolution.period.into()),
            sleep_ms: ms(sleep_takes(units, resolution.period)),
            because: resolution.because,
        }
    });
    let answers: Vec<Answer> = answers.collect();
    if json {
        output::json(&answers)?;
        return Ok(());
    }
    let mut out = output::for_people();
    output::first_heading(&mut out, &format!("Sleep({})", args.sleep))?;
    let mut columns = Columns::new(&[Side::Left, Side::Left, Side::Right, Side::Right]);
    columns.row(["build", "Windows", "effective interrupts", "duration"]);
    for answer in &answers {
        columns.row([
            answer.build.to_string(),
            answer.windows.unwrap_or("?").to_owned(),
            format!("every {} ms", answer.period_ms),
            format!("{:.2} ms", answer.sleep_ms),
        ]);
    }
    columns.write(&mut out)?;
    writeln!(out)?;
    for answer in &answers {
        for because in &answer.because {
            output::paragraph(&mut out, &format!("{}: {because}.", answer.build))?;
        }
    }
    output::quiet(
        &mut out,
        "Rule: a sleep ends at the first clock interrupt after its requested time. The table is \
         for a thread that only sleeps, so each sleep begins shortly after an interrupt. A sleep \
         that begins later is shorter, by at most the time between two interrupts. Hardware rounds \
         resolutions.",
    )?;
    out.flush()?;
    Ok(())
}

fn ms(units: u64) -> f64 {
    units as f64 / 10_000.0
}

/// Parses a resolution in milliseconds. Returns it in units of 100 ns.
fn period(text: &str) -> Result<u32, String> {
    let number: Option<f64> = text.trim_end_matches("ms").trim().parse().ok();
    number
        .map(|number| number * 10_000.0)
        .filter(|units| (1.0..=f64::from(COARSEST)).contains(units))
        .map(|units| units.round() as u32)
        .ok_or_else(|| {
            format!(
                "expected milliseconds up to {}, such as 0.5",
                ms(COARSEST.into())
            )
        })
}
