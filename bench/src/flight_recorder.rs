//! Costs of the flight recorder: time of an event, and CPU time at a usual rate.

use std::fmt::Write as _;
use std::io::{Read, Write, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use flight::{Cost, Order, Recorder};
use record::Investigation;
use wait4::Wait4;

use crate::Outcome;

/// Number of measurements of each kind. The kinds alternate.
const ROUNDS: usize = 7;

/// Number of round trips between two threads in the load without pauses. A round trip has two switches and two wakes.
const TRIPS: u32 = 100_000;

/// Number of events of a round trip: two wakes and two switches.
const EVENTS: f64 = 4.0;

/// Number of round trips in the load with pauses. A pause of 1 ms follows every five round trips.
const PACED_TRIPS: u32 = 15_000;

/// Sends a byte to and fro between two threads. Pauses for 1 ms after every five round trips if `pause` is not 0.
pub(crate) fn load(trips: &Path, pause: &Path) -> Outcome<()> {
    let number = |path: &Path| -> Outcome<u32> { Ok(path.to_string_lossy().parse()?) };
    let (trips, is_paced) = (number(trips)?, number(pause)? != 0);
    let ((mut hears, mut asks), (mut answered, mut answers)) = (pipe()?, pipe()?);
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while hears.read_exact(&mut byte).is_ok() && answers.write_all(&byte).is_ok() {}
    });
    for trip in 0..trips {
        if is_paced && trip % 5 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        asks.write_all(&[1])?;
        answered.read_exact(&mut [0])?;
    }
    drop(asks);
    echo.join().map_err(|_| "the echo failed")?;
    Ok(())
}

/// Runs the load on CPU 0 in a new process. `before` is the start of the command, for example perf with its options.
/// Returns the CPU time of the whole command in seconds, including the program in `before`. CPU time hardly depends on
/// other programs of the machine.
pub(crate) fn loaded(before: &[&str], trips: u32, pause: u32) -> Outcome<f64> {
    let own = std::env::current_exe()?;
    let (trips, pause) = (trips.to_string(), pause.to_string());
    let line = [before, &["taskset", "-c", "0"]].concat();
    let mut child = Command::new(line[0])
        .args(&line[1..])
        .arg(own)
        .args(["recorder-load", &trips, &pause])
        .stderr(Stdio::null())
        .spawn()?;
    let used = child.wait4()?;
    if used.status.success() {
        Ok((used.rusage.utime + used.rusage.stime).as_secs_f64())
    } else {
        Err(format!("{line:?} failed").into())
    }
}

/// Runs the load while the recorder runs. Returns the sum of the CPU times of the load and the recorder in seconds, and
/// the cost of the recording.
fn recorded(trips: u32, pause: u32) -> Outcome<(f64, Cost)> {
    let mut order = Order::new(record::linux::events(Investigation::LongWait));
    order.last = Duration::from_secs(2);
    let recorder = Recorder::start(&order)?;
    let used = loaded(&[], trips, pause)?;
    let cost = recorder.stop().cost();
    Ok((used + cost.cpu_ns as f64 / 1e9, cost))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Writes the costs of the recorder and of perf.
pub(crate) fn costs(report: &mut String, scratch: &Path) -> Outcome<()> {
    std::fs::create_dir_all(scratch)?;
    let file = scratch.join("recorder.data").display().to_string();
    let mut events = record::linux::events(Investigation::LongWait);
    // The recorder filters the events of timers in the kernel. perf would record all of them, so perf runs without
    // these events.
    events.retain(|event| *event != record::linux::Event::LimitTimers);
    let names: Vec<String> = events.into_iter().map(|event| event.name()).collect();
    let names = names.join(",");
    let with_perf = [
        "perf",
        "record",
        "-q",
        "-a",
        "-k",
        "CLOCK_MONOTONIC_RAW",
        "-m",
        "4M",
        "-e",
        &names,
        "-o",
        &file,
        "--",
    ];
    let has_perf = Command::new("perf").arg("--version").output().is_ok();
    if let Err(error) = Recorder::start(&Order::new(record::linux::events(Investigation::Dpc))) {
        writeln!(report, "\n## Flight recorder\n\nNot measured: {error}.")?;
        return Ok(());
    }
    let (mut plain, mut own, mut perf, mut per_event) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let without = loaded(&[], TRIPS, 0)?;
        let (with, _) = recorded(TRIPS, 0)?;
        if has_perf {
            perf.push(loaded(&with_perf, TRIPS, 0)?);
        }
        per_event.push((with - without) * 1e9 / (EVENTS * f64::from(TRIPS)));
        plain.push(without);
        own.push(with);
    }
    let (mut shares, mut rates, mut lost) = (vec![], vec![], 0);
    for _ in 0..3 {
        let (_, cost) = recorded(PACED_TRIPS, 1)?;
        shares.push(cost.cpu_share() * 100.0);
        rates.push(cost.per_second());
        lost += cost.lost;
    }
    let plain = median(plain);
    writeln!(
        report,
        "\n## Flight recorder\n\nA byte goes to and fro between two threads on one CPU {TRIPS} times; medians of \
         {ROUNDS} alternating runs.\n\n| load | CPU time | ratio |\n|---|---|---|\n| without a recorder | {plain:.3} s | 1 |\n\
         | `laglab record now` | {:.3} s | {:.2} |",
        median(own.clone()),
        median(own) / plain
    )?;
    if has_perf {
        let perf = median(perf);
        writeln!(
            report,
            "| `perf record` to a file | {perf:.3} s | {:.2} |",
            perf / plain
        )?;
    }
    writeln!(
        report,
        "\nAn event costs {:.0} ns (limit 1,000). At {:.0} records per second, the recorder's thread uses {:.2} % of a \
         CPU (limit 3); {lost} events were lost.",
        median(per_event),
        median(rates),
        median(shares)
    )?;
    Ok(())
}
