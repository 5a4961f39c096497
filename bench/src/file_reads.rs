//! Benchmarks of `laglab measure files`: every read method, in several states of the system's file cache.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::Outcome;
use crate::probes::{measure, ratio};

/// Sets of files, the states of the cache in which each set is read, and the number of rounds. Each set has
/// 4,000 files. The mixed files have half a gigabyte in total.
const SETS: [(&str, &str, &str); 2] = [
    ("small", "warm,dropped", "10"),
    ("mixed", "warm,dropped,direct", "6"),
];

/// Compares the time of each read method with the time of `pread`, in alternating runs.
pub(crate) fn ways(report: &mut String, laglab: &Path, scratch: &Path) -> Outcome<()> {
    *report += "\n## Reading files\n\n`laglab measure files`: 4,000 files of 4 KiB (small), or of 1 KiB to \
        1 MiB (mixed); cached (warm), from the device after dropping the cache (dropped), or bypassing the \
        cache (direct). Ratios compare the time to read, without set-up, with `pread`, at 95 % confidence. \
        Limit for a ring with small files from the device: 0.2. With warm files, no clear gain is expected.\n";
    for (sizes, states, rounds) in SETS {
        let folder = scratch.join(format!("files-{sizes}"));
        let folder = folder
            .to_str()
            .ok_or("the path of the scratch folder is not UTF-8")?;
        let make = format!("--make={sizes}");
        let arguments = [
            "files", &make, "--cache", states, "--rounds", rounds, "--remove", folder,
        ];
        let measured = match measure(laglab, &arguments) {
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
            let is_it =
                |result: &&&Value| result["method"] == method && result["setting"] == *state;
            let result = reads.iter().find(is_it);
            let ratio = match result.map(|result| &result["compared"]["ratio"]) {
                Some(Value::Null) => {
                    let ns = result.and_then(|result| result["latency"]["p50_ns"].as_f64());
                    ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1} ms", ns / 1e6))
                }
                Some(compared) => ratio(compared),
                None => "-".to_owned(),
            };
            write!(report, " {ratio} |")?;
        }
        *report += "\n";
    }
    Ok(())
}
