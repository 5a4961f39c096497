//! Compares the probes of `laglab measure`, and our reliable multicast, with other programs.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Outcome, process};

const RATES: [&str; 4] = ["10000/s", "20000/s", "30000/s", "40000/s"];

/// Runs all comparisons. The report names programs that are not installed, and rights that are missing.
pub(crate) fn all(report: &mut String, laglab: &Path) -> Outcome<()> {
    sleeps(report, laglab)?;
    round_trips(report, laglab)?;
    throughput(report, laglab)
}

pub(crate) fn measure(laglab: &Path, args: &[&str]) -> Outcome<Value> {
    let args: Vec<&OsStr> = ["measure"]
        .iter()
        .chain(args)
        .chain(&["--json"])
        .map(OsStr::new)
        .collect();
    let run = process::median(laglab, &args, 1)?;
    if run.output.is_empty() {
        let command = args.iter().map(|arg| arg.to_string_lossy());
        let command = command.collect::<Vec<_>>().join(" ");
        return Err(
            format!("`laglab {command}` returned no results; run it to see the reason").into(),
        );
    }
    Ok(serde_json::from_slice(&run.output)?)
}

/// Compares the lateness of absolute sleeps with the median that cyclictest measures with the same cycle.
/// Repeats the comparison three times.
fn sleeps(report: &mut String, laglab: &Path) -> Outcome<()> {
    *report += "\n## Sleeps\n\n`clock_nanosleep` every 1 ms, 3,000 times, in turn; medians. Limit: a \
        difference of 10 %. CPUs may enter idle states.\n\n| run | laglab, µs | cyclictest, µs |\n|---|---|---|\n";
    for run in 1..=3 {
        let sleeps = [
            "sleep",
            "--method",
            "clock_nanosleep",
            "--interval",
            "1ms",
            "--for",
            "3s",
        ];
        let ours = measure(laglab, &sleeps)?;
        let ours = microseconds(&ours["results"][0]["latency"]["p50_ns"]);
        let theirs = cyclictest().unwrap_or_else(|| "not installed or not permitted".to_owned());
        writeln!(report, "| {run} | {ours} | {theirs} |")?;
    }
    Ok(())
}

/// Returns the median latency that cyclictest measures, in microseconds. The histogram of cyclictest has
/// lines with a latency and a count.
fn cyclictest() -> Option<String> {
    // By default, cyclictest keeps CPUs from entering idle states (/dev/cpu_dma_latency), which halves the
    // latency on an idle machine. laglab does not do this, so this option switches it off.
    let asleep = "--latency=2000000000";
    let args = ["-q", asleep, "-i", "1000", "-l", "3000", "-h", "2000"];
    let output = Command::new("cyclictest").args(args).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let buckets: Vec<(u64, u64)> = (text.lines())
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(str::parse::<u64>);
            Some((words.next()?.ok()?, words.next()?.ok()?))
        })
        .collect();
    let half = buckets
        .iter()
        .map(|(_, count)| count)
        .sum::<u64>()
        .div_ceil(2);
    let mut seen = 0;
    let median = buckets.iter().find(|(_, count)| {
        seen += count;
        half > 0 && seen >= half
    });
    median.map(|(latency, _)| latency.to_string())
}

/// Measures round trips between two network namespaces: UDP, PGM and, if installed, OpenPGM, ZeroMQ and
/// sockperf. All use the same multicast group.
fn round_trips(report: &mut String, laglab: &Path) -> Outcome<()> {
    *report += "\n## Round trips\n\nUDP, PGM, OpenPGM, ZeroMQ's epgm and sockperf through one group between \
        two namespaces, 100 bytes, runs of 1 s in turn; p50, p99 in µs. Limits: PGM's median at most 1.1 times \
        UDP's, its p99 at most OpenPGM's (no packets are lost here, so OpenPGM's longer waits for repairs do not \
        show), our medians within 5 % of sockperf's. Ratios have bounds of 95 % confidence.\n\n";
    by_rate(report, laglab, "--peers")?;
    *report += "\nWith our threads under SCHED_FIFO, if permitted:\n\n";
    by_rate(report, laglab, "--realtime=fifo:50")
}

/// Measures round trips at each rate. `option` is an additional option of laglab.
fn by_rate(report: &mut String, laglab: &Path, option: &str) -> Outcome<()> {
    *report += "| rate | UDP | PGM | OpenPGM | epgm | p50 PGM / UDP | p99 PGM / OpenPGM | sockperf p50 |\n\
        |---|---|---|---|---|---|---|---|\n";
    let arguments = [
        "net",
        "--self-test",
        "--transport",
        "udp,pgm,openpgm,epgm",
        "--runs",
        "7",
        option,
    ];
    let measured = match measure(laglab, &arguments) {
        Ok(measured) => measured,
        Err(error) => {
            writeln!(report, "\nNot measured: {error}.")?;
            return Ok(());
        }
    };
    let results = measured["results"].as_array().cloned().unwrap_or_default();
    for rate in RATES {
        let result_of = |transport: &str| {
            let name = format!("{transport} {rate}");
            let result = results
                .iter()
                .find(|result| result["method"] == name.as_str());
            result.cloned().unwrap_or_default()
        };
        let [udp, pgm, openpgm, epgm] = ["udp", "pgm", "openpgm", "epgm"].map(result_of);
        let latency = |result: &Value| {
            let result = &result["latency"];
            format!(
                "{}, {}",
                microseconds(&result["p50_ns"]),
                microseconds(&result["p99_ns"])
            )
        };
        let tail = |result: &Value| result["latency"]["p99_ns"].as_f64();
        let tails = tail(&pgm)
            .zip(tail(&openpgm))
            .map(|(ours, theirs)| ours / theirs);
        let mut peers: Vec<i64> = (measured["peer"].as_array().into_iter().flatten())
            .filter(|run| run["method"] == format!("udp {rate}").as_str())
            .filter_map(|run| run["trips"]["p50_ns"].as_i64())
            .collect();
        peers.sort_unstable();
        let peer = peers.get(peers.len() / 2).map(|ns| Value::from(*ns));
        writeln!(
            report,
            "| {rate} | {} | {} | {} | {} | {} | {} | {} |",
            latency(&udp),
            latency(&pgm),
            latency(&openpgm),
            latency(&epgm),
            ratio(&pgm["compared"]["ratio"]),
            factor(tails),
            microseconds(&peer.unwrap_or_default()),
        )?;
    }
    Ok(())
}

/// Measures the packets per second of each method of sending and receiving.
fn throughput(report: &mut String, laglab: &Path) -> Outcome<()> {
    *report += "\n## Throughput\n\nPackets per second from one namespace to another, runs of 1 s in turn, with \
        threads under SCHED_FIFO if permitted. Ratios have bounds of 95 % confidence, or are the median over \
        pairs of runs.\n\nUDP, compared with `sendto` on an unconnected socket and with blocking calls on a \
        connected one. Limits: GSO with GRO at least 20 times, io_uring at least 1.1 times.\n\n";
    let udp = "sendto,blocking,poll,mmsg,io_uring,gso,gso_gro";
    ways(report, laglab, "udp", udp, "blocking")?;
    *report += "\nPGM, compared with `sendto` and `recvmsg` in the same group and with OpenPGM. Limits: with one \
        call per message, at least as many packets as `sendto` and 1.5 times as many as OpenPGM; with GSO to a \
        receiver without GRO, 4 times; with GRO, 20 times. ZeroMQ packs many small messages into one packet.\n\n";
    let pgm = "group,pgm,pgm_gso,pgm_many,openpgm,epgm";
    ways(report, laglab, "pgm", pgm, "openpgm")
}

/// Reports the packets per second of some methods, compared with the first method and with the method
/// `other`.
fn ways(
    report: &mut String,
    laglab: &Path,
    transport: &str,
    methods: &str,
    other: &str,
) -> Outcome<()> {
    const SIZES: [&str; 2] = ["100", "1000"];
    let first = methods.split(',').next().unwrap_or_default();
    let mut columns = Vec::new();
    for size in SIZES {
        let arguments = [
            "net",
            "--self-test",
            "--throughput",
            "--transport",
            transport,
            "--method",
            methods,
            "--size",
            size,
            "--runs",
            "7",
            "--realtime=fifo:50",
            "--peers",
        ];
        match measure(laglab, &arguments) {
            Ok(measured) => columns.push(measured),
            Err(error) => {
                writeln!(report, "\nNot measured: {error}.")?;
                return Ok(());
            }
        }
    }
    *report += "| method |";
    for size in SIZES {
        write!(report, " {size} bytes: / `{first}` | / `{other}` |")?;
    }
    *report += "\n|---|---|---|---|---|\n";
    for method in methods.split(',').filter(|method| *method != first) {
        write!(report, "| {method} |")?;
        for column in &columns {
            let compared = column["compared_to_the_first"].as_array();
            let same = (compared.into_iter().flatten()).find(|one| one["method"] == method);
            let bounds = ratio(&same.unwrap_or(&Value::Null)["ratio"]);
            let ratio = factor(paired_ratio(column, method, other));
            write!(report, " {bounds} | {ratio} |")?;
        }
        *report += "\n";
    }
    Ok(())
}

/// Returns the ratio of the packets per second of two methods. The ratio is the median over pairs of runs.
fn paired_ratio(measured: &Value, method: &str, other: &str) -> Option<f64> {
    let rates = |name: &str| -> Vec<(i64, f64)> {
        (measured["runs"].as_array().into_iter().flatten())
            .filter(|run| run["method"] == name)
            .filter_map(|run| {
                let rate = run["received"].as_f64()? / run["took_ns"].as_f64()?;
                Some((run["run"].as_i64()?, rate))
            })
            .collect()
    };
    let others = rates(other);
    let mut ratios: Vec<f64> = (rates(method).iter())
        .filter_map(|(run, rate)| {
            let (_, other) = others.iter().find(|(number, _)| number == run)?;
            Some(rate / other).filter(|ratio| ratio.is_finite())
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

/// Formats nanoseconds as microseconds. An unknown value is a dash.
fn microseconds(ns: &Value) -> String {
    let ns = ns.as_f64();
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns / 1e3))
}

/// Formats a ratio. An unknown ratio is a dash.
fn factor(factor: Option<f64>) -> String {
    factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"))
}

/// Formats a ratio with its lower and upper bound.
pub(crate) fn ratio(ratio: &Value) -> String {
    let bound = |name: &str| ratio[name].as_f64();
    match (bound("centre"), bound("low"), bound("high")) {
        (Some(centre), Some(low), Some(high)) => format!("{centre:.2} ({low:.2} to {high:.2})"),
        _ => "-".to_owned(),
    }
}
