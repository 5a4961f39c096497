//! Public programs that read traces. They run as separate processes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::command::{self, program, root, target};
use crate::steps::left_out;
use crate::{built, python};

/// Python packages of the readers.
const VERSIONS: [&str; 2] = ["etl-parser==1.0.1", "dissect.etl==3.14"];

/// Scenario of the trace that is simulated for the readers.
const SCENARIO: &str = "rank-stall";

/// Installs the readers in a virtual environment. Returns the path of its Python.
///
/// # Errors
///
/// Returns an error if there is no Python or the package index cannot be reached.
pub(crate) fn install() -> Result<PathBuf, String> {
    python::with("peers", &VERSIONS)
}

/// Compares the numbers of events of each kind that the public readers and our reader find. The logs are
/// written by `etl` and `sim`.
///
/// # Errors
///
/// Returns an error if the logs cannot be written, a reader fails, or a count differs. In CI, also
/// if the readers cannot be installed.
pub(crate) fn agree() -> Result<(), String> {
    let python = match install() {
        Ok(python) => python,
        Err(error) => return left_out("independent readers of traces", &error),
    };
    let folder = target().join("peers-read");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let simulated = ["simulated.etl", "simulated-compressed.etl"];
    for (log, more) in simulated.iter().zip([&[][..], &["--compress"]]) {
        let simulate = ["simulate", SCENARIO, "--events", "20000", "--output"];
        let mut laglab = built::run_laglab(&simulate);
        command::read(laglab.arg(folder.join(log)).args(more))?;
    }
    let mut every_kind = built::run_example("every_kind");
    command::run(every_kind.arg(&folder).args(simulated))?;
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
        // etl-parser cannot decompress logs.
        if !log.ends_with("compressed.etl") {
            let mut expected = expected;
            // etl-parser skips the events of the header buffer: the header of the log and, if it exists, the
            // partition event.
            let has_partition = !simulated.contains(log);
            *expected.entry("SYSTEM").or_default() -= 1 + u64::from(has_partition);
            let read = read("etl_parser.py", etl_parser_kind)?;
            compare("etl-parser", log, &read, &expected)?;
        }
    }
    println!("dissect.etl and etl-parser find the same events as our reader");
    Ok(())
}

type Counts = BTreeMap<&'static str, u64>;

/// Parses lines with a name and a count. Sums the counts of names with the same kind of event.
fn counts_of(text: &str, kind: fn(&str) -> Option<&'static str>) -> Result<Counts, String> {
    let count = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((kind(name)?, count.parse::<u64>().ok()?))
    };
    let lines = text.lines();
    lines
        .map(|line| {
            count(line).ok_or_else(|| format!("expected a kind and a count, found `{line}`"))
        })
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
