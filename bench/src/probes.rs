//! The probes of `laglab measure`, and reliable multicast, beside the programs that others measure with.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Outcome, process};

const RATES: [&str; 4] = ["10000/s", "20000/s", "30000/s", "40000/s"];

/// All of them. What is not installed, and what takes rights that are missing, is said.
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
        return Err(format!("`laglab {command}` gave nothing; run it to see why").into());
    }
    Ok(serde_json::from_slice(&run.output)?)
}

/// How late absolute sleeps end, beside cyclictest's median of the same cycle; three times in turn.
fn sleeps(report: &mut String, laglab: &Path) -> Outcome<()> {
    *report += "\n## Sleeps\n\n`clock_nanosleep` every 1 ms, 3,000 times, in turn; medians (the same \
        within 10 % is asked for), CPUs as idle as they will be.\n\n| run | laglab, µs | cyclictest, µs |\n|---|---|---|\n";
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
        let theirs = cyclictest().unwrap_or_else(|| "not installed, or not allowed".to_owned());
        writeln!(report, "| {run} | {ours} | {theirs} |")?;
    }
    Ok(())
}

/// Its median, in microseconds, of a histogram whose lines are a latency and a count.
fn cyclictest() -> Option<String> {
    // By itself it has the kernel keep CPUs from sleeping (/dev/cpu_dma_latency), which laglab does not: on
    // an idle machine that takes half of the latency away.
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

/// Round trips by UDP and PGM, by OpenPGM and ZeroMQ where they are installed, through the same group
/// between two namespaces, and sockperf's.
fn round_trips(report: &mut String, laglab: &Path) -> Outcome<()> {
    *report += "\n## Round trips\n\nUDP, PGM, OpenPGM, ZeroMQ's epgm and sockperf through one group between \
        two namespaces, 100 bytes, runs of 1 s in turn; p50, p99 in µs. PGM's median at most 1.1 times UDP's, its \
        p99 no higher than OpenPGM's (nothing is lost here, so that its longer waits for repairs do not show), and our medians within 5 % of sockperf's, are asked for; a ratio with its \
        bounds of 95 % confidence.\n\n";
    by_rate(report, laglab, "--peers")?;
    *report += "\nThe same with our threads under SCHED_FIFO, where that is allowed.\n\n";
    by_rate(report, laglab, "--realtime=fifo:50")
}

/// Round trips at each rate, with one more option.
fn by_rate(report: &mut String, laglab: &Path, option: &str) -> Outcome<()> {
    *report += "| rate | UDP | PGM | OpenPGM | epgm | p50 PGM / UDP | p99 PGM / OpenPGM | sockperf p50 |\n\
        |---|---|---|---|---|---|---|---|\n";
    let asked = [
        "net",
        "--self-test",
        "--transport",
        "udp,pgm,openpgm,epgm",
        "--runs",
        "7",
        option,
    ];
    let measured = match measure(laglab, &asked) {
        Ok(measured) => measured,
        Err(error) => {
            writeln!(report, "\nNot measured: {error}.")?;
            return Ok(());
        }
    };
    let results = measured["results"].as_array().cloned().unwrap_or_default();
    for rate in RATES {
        let of = |transport: &str| {
            let name = format!("{transport} {rate}");
            let found = results
                .iter()
                .find(|result| result["method"] == name.as_str());
            found.cloned().unwrap_or_default()
        };
        let [udp, pgm, openpgm, epgm] = ["udp", "pgm", "openpgm", "epgm"].map(of);
        let latency = |of: &Value| {
            let of = &of["latency"];
            format!(
                "{}, {}",
                microseconds(&of["p50_ns"]),
                microseconds(&of["p99_ns"])
            )
        };
        let tail = |of: &Value| of["latency"]["p99_ns"].as_f64();
        let tails = tail(&pgm)
            .zip(tail(&openpgm))
            .map(|(ours, theirs)| ours / theirs);
        let mut peers: Vec<i64> = (measured["peer"].as_array().into_iter().flatten())
            .filter(|run| run["beside"] == format!("udp {rate}").as_str())
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

/// Packets a second by each way of sending.
fn throughput(report: &mut String, laglab: &Path) -> Outcome<()> {
    *report += "\n## Throughput\n\nPackets a second from one namespace to another, runs of 1 s in turn, the \
        threads under SCHED_FIFO where that is allowed; how many times as many as something else brings, with \
        bounds of 95 % confidence, or as the median of run beside run.\n\nUDP, compared to `sendto` of a socket \
        that is not connected and to blocking calls of one that is. Of GSO with GRO 20 times are asked for, of \
        io_uring 1.1.\n\n";
    let udp = "sendto,blocking,poll,mmsg,io_uring,gso,gso_gro";
    ways(report, laglab, "udp", udp, "blocking")?;
    *report += "\nPGM, compared to `sendto` and `recvmsg` in the same group and to OpenPGM. A call a message 1 time \
        the former and 1.5 times OpenPGM is asked for, with GSO to a receiver that gets them one by one 4 times, \
        with GRO 20 times. ZeroMQ puts many small messages into one packet.\n\n";
    let pgm = "group,pgm,pgm_gso,pgm_many,openpgm,epgm";
    ways(report, laglab, "pgm", pgm, "openpgm")
}

/// Packets a second by some ways of sending, beside the first of them and beside another.
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
        let asked = [
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
        match measure(laglab, &asked) {
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
            let beside = factor(beside(column, method, other));
            write!(report, " {bounds} | {beside} |")?;
        }
        *report += "\n";
    }
    Ok(())
}

/// How many times as many packets a second a method brings as another: the median of run beside run.
fn beside(measured: &Value, method: &str, other: &str) -> Option<f64> {
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
            let (_, other) = others.iter().find(|(beside, _)| beside == run)?;
            Some(rate / other).filter(|ratio| ratio.is_finite())
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

/// A duration in nanoseconds as microseconds; unknown is a dash.
fn microseconds(ns: &Value) -> String {
    let ns = ns.as_f64();
    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns / 1e3))
}

/// Unknown is a dash.
fn factor(factor: Option<f64>) -> String {
    factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"))
}

/// A ratio with its bounds.
pub(crate) fn ratio(ratio: &Value) -> String {
    let bound = |name: &str| ratio[name].as_f64();
    match (bound("centre"), bound("low"), bound("high")) {
        (Some(centre), Some(low), Some(high)) => format!("{centre:.2} ({low:.2} to {high:.2})"),
        _ => "-".to_owned(),
    }
}
