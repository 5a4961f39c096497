//! The ways of reading of `laglab measure files`, in each state of the system's file cache.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::Outcome;
use crate::probes::{measure, ratio};

/// Two sets of 4,000 files, and the states of the cache in which each is read. The mixed ones have half a
/// gigabyte, which takes its time.
const SETS: [(&str, &str, &str); 2] = [
    ("small", "warm,dropped", "10"),
    ("mixed", "warm,dropped,direct", "6"),
];

/// Each way's time beside that of `pread`, run by run in turn.
pub(crate) fn ways(report: &mut String, laglab: &Path, scratch: &Path) -> Outcome<()> {
    *report += "\n## Reading files\n\n`laglab measure files`: 4,000 files of 4 KiB (small), or of 1 KiB to \
        1 MiB (mixed), warm, from the device after the system forgot them (dropped), or past its cache \
        (direct). Ratios to `pread` of the time to read, set-up apart, with bounds of 95 % confidence. Of a \
        ring with small files from the device 0.2 and less is asked for; warm, no gain that is clear.\n";
    for (sizes, states, rounds) in SETS {
        let folder = scratch.join(format!("files-{sizes}"));
        let folder = folder.to_str().ok_or("the scratch folder is no UTF-8")?;
        let make = format!("--make={sizes}");
        let asked = [
            "files", &make, "--cache", states, "--rounds", rounds, "--remove", folder,
        ];
        let measured = match measure(laglab, &asked) {
            Ok(measured) => measured,
            Err(error) => {
                writeln!(report, "\nNot measured: {error}.")?;
                continue;
            }
        };
        table(report, sizes, states, &measured)?;
    }
    Ok(())
}

fn table(report: &mut String, sizes: &str, states: &str, measured: &Value) -> Outcome<()> {
    let states: Vec<&str> = states.split(',').collect();
    writeln!(report, "\n| {sizes} | {} |", states.join(" | "))?;
    writeln!(report, "|---|{}", "---|".repeat(states.len()))?;
    let results = measured["results"].as_array().cloned().unwrap_or_default();
    let reads: Vec<&Value> = (results.iter())
        .filter(|result| result["phase"] == "read")
        .collect();
    let mut methods: Vec<&str> = (reads.iter())
        .filter_map(|result| result["method"].as_str())
        .collect();
    let mut seen = std::collections::HashSet::new();
    methods.retain(|method| seen.insert(*method));
    for method in methods {
        write!(report, "| {method} |")?;
        for state in &states {
            let of = |result: &&&Value| result["method"] == method && result["setting"] == *state;
            let result = reads.iter().find(of);
            let told = match result.map(|result| &result["compared"]["ratio"]) {
                Some(Value::Null) => {
                    let ns = result.and_then(|result| result["latency"]["p50_ns"].as_f64());
                    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1} ms", ns / 1e6))
                }
                Some(compared) => ratio(compared),
                None => "-".to_owned(),
            };
            write!(report, " {told} |")?;
        }
        *report += "\n";
    }
    Ok(())
}
