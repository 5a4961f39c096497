//! The public readers of traces that other people wrote: programs of their own, never linked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::command::{self, cargo, program, root, target};
use crate::python;

const VERSIONS: [&str; 2] = ["etl-parser==1.0.1", "dissect.etl==3.14"];

/// A scenario whose trace the peers read.
const SCENARIO: &str = "rank-stall";

/// A Python with the peers installed, in a virtual environment of its own.
///
/// # Errors
///
/// When there is no Python, or the package registry cannot be reached.
pub(crate) fn install() -> Result<PathBuf, String> {
    python::with("peers", &VERSIONS)
}

/// Has the peers read what the writer wrote, alone and for a scenario, and compares how many events of each kind they find
/// with what our reader finds. Where the peers cannot be installed, it says so and is content.
///
/// # Errors
///
/// When the logs cannot be written, a peer fails, or a count differs.
pub(crate) fn agree() -> Result<(), String> {
    let python = match install() {
        Ok(python) => python,
        Err(error) => {
            println!("left out: the peers cannot be installed: {error}");
            return Ok(());
        }
    };
    let folder = target().join("peers-read");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let simulated = ["simulated.etl", "simulated-compressed.etl"];
    for (log, more) in simulated.iter().zip([&[][..], &["--compress"]]) {
        let simulate = ["simulate", SCENARIO, "--events", "20000", "--output"];
        let laglab = [
            "run",
            "--quiet",
            "--no-default-features",
            "--bin",
            "laglab",
            "--",
        ];
        let mut laglab = cargo(&[&laglab[..], &simulate].concat());
        command::read(laglab.arg(folder.join(log)).args(more))?;
    }
    let write = [
        "run",
        "--quiet",
        "--package",
        "etl",
        "--example",
        "every_kind",
        "--",
    ];
    command::run(cargo(&write).arg(&folder).args(simulated))?;
    let counts = folder.join("counts.txt");
    let ours = std::fs::read_to_string(&counts)
        .map_err(|error| format!("{}: {error}", counts.display()))?;
    let logs = ours.lines().fold(BTreeMap::new(), |mut logs, line| {
        if let Some((log, count)) = line.split_once(' ') {
            *logs.entry(log).or_insert_with(String::new) += &format!("{count}\n");
        }
        logs
    });
    for (log, counts) in &logs {
        let expected = counts_of(counts, our_kind)?;
        let read = |script: &str, kind: fn(&str) -> Option<&'static str>| {
            let script = root().join("bench/peers").join(script);
            let mut peer = program(&python);
            counts_of(
                &command::read(peer.arg(script).arg(folder.join(log)))?,
                kind,
            )
        };
        compare(
            "dissect.etl",
            log,
            &read("dissect_etl.py", dissect_kind)?,
            &expected,
        )?;
        // etl-parser does not decompress.
        if !log.ends_with("compressed.etl") {
            let mut expected = expected;
            // It gives out no event of the header buffer: the header's own and, where there is
            // one, the partition's.
            let has_partition = !simulated.contains(log);
            *expected.entry("SYSTEM").or_default() -= 1 + u64::from(has_partition);
            let read = read("etl_parser.py", etl_parser_kind)?;
            compare("etl-parser", log, &read, &expected)?;
        }
    }
    println!("dissect.etl and etl-parser find what our reader finds");
    Ok(())
}

type Counts = BTreeMap<&'static str, u64>;

/// Reads lines of a kind and a count.
fn counts_of(text: &str, kind: fn(&str) -> Option<&'static str>) -> Result<Counts, String> {
    let count = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((kind(name)?, count.parse::<u64>().ok()?))
    };
    let lines = text.lines();
    lines
        .map(|line| count(line).ok_or_else(|| format!("`{line}` is no kind and count")))
        .collect()
}

fn compare(peer: &str, log: &str, theirs: &Counts, ours: &Counts) -> Result<(), String> {
    if theirs == ours {
        return Ok(());
    }
    Err(format!(
        "{log}: {peer} finds {theirs:?}, our reader {ours:?}"
    ))
}

fn our_kind(name: &str) -> Option<&'static str> {
    Some(match name {
        "SYSTEM64" => "SYSTEM",
        "PERFINFO64" => "PERFINFO",
        "FULL_HEADER64" => "FULL",
        "EVENT_HEADER64" => "EVENT",
        _ => return None,
    })
}

fn dissect_kind(name: &str) -> Option<&'static str> {
    Some(match name {
        "SystemHeader" => "SYSTEM",
        "PerfinfoTraceHeader" => "PERFINFO",
        "EventTraceHeader" => "FULL",
        "EventHeader" => "EVENT",
        _ => return None,
    })
}

fn etl_parser_kind(name: &str) -> Option<&'static str> {
    Some(match name {
        "System" => "SYSTEM",
        "PerfInfo" => "PERFINFO",
        "Trace" => "FULL",
        "Event" => "EVENT",
        _ => return None,
    })
}
