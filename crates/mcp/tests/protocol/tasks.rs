//! One task for each scenario: a question, the calls that answer it, and words that the answer must have. The words
//! come from the descriptions of the scenarios. In `dpc-flood-no-ids` and `dpc-flood-scaled-out`, no DPCs lock CPUs,
//! but long waits remain: from 26 s to 28.5 s, 22 data movers and 4 sessions of `dsmserv.exe` need more than the 24
//! CPUs.

use std::path::Path;

use crate::client::{BYTES_PER_TOKEN, Client};
use serde_json::json;
use simulated::Simulated;

struct Task {
    scenario: &'static str,
    /// Theory of the first finding; `None` if nothing is wrong.
    cause: Option<&'static str>,
    /// Words in the first finding.
    words: &'static [&'static str],
}

const fn task(scenario: &'static str, cause: &'static str, words: &'static [&'static str]) -> Task {
    Task {
        scenario,
        cause: Some(cause),
        words,
    }
}

const fn calm(scenario: &'static str) -> Task {
    Task {
        scenario,
        cause: None,
        words: &[],
    }
}

const TASKS: &[Task] = &[
    task("affinity-pinned", "long-waits", &["only"]),
    task("busy-wait-resume", "busy-waiting", &["wait loop"]),
    task("clock-trouble", "clocks", &["clock"]),
    task("dpc-flood-no-ids", "long-waits", &["dsmserv.exe"]),
    task("dpc-flood-no-teaming", "locked-cpus", &["DPC"]),
    task("dpc-flood-scaled-out", "long-waits", &["dsmserv.exe"]),
    task(
        "dpc-flood-teaming",
        "locked-cpus",
        &["DPC", "0, 2, 4 and 6"],
    ),
    calm("dscp-bleached"),
    calm("dscp-marked"),
    calm("foreground-boost"),
    calm("foreground-boost-0x14"),
    calm("foreground-boost-0x28"),
    task("frozen", "frozen", &["froz"]),
    calm("healthy"),
    calm("load"),
    task("lock-convoy", "lock-convoy", &["lock"]),
    task("lost-events", "capture", &["lost"]),
    task("priority-starved", "long-waits", &["priority"]),
    task(
        "rank-stall",
        "long-waits",
        &["“LockApp.exe”", "rank", "19.49"],
    ),
    calm("rank-walk"),
    calm("rss-1gbps"),
    calm("rss-300kbps"),
    calm("smb-signing-off"),
    task("smb-signing-on", "smb-security", &["sign"]),
    task("stack-paged-out", "long-waits", &["disk"]),
    calm("timer-foreign"),
    calm("timer-global"),
    task("timer-occluded", "timers", &["MeasureSleep.exe"]),
    calm("timer-own"),
    calm("usb-amdxhc31"),
    calm("usb-wdf01000"),
];

/// Checks that the first answer names the right cause after one call, and that each task takes at most 6,000 tokens.
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_is_explained_in_two_calls() {
    let scenarios: Vec<&str> = TASKS.iter().map(|task| task.scenario).collect();
    assert_eq!(scenarios, sim::shipped::names().collect::<Vec<_>>());
    let mut sizes = Vec::new();
    for Task {
        scenario,
        cause,
        words,
    } in testdata::cases(TASKS)
    {
        // The scenario `load` simulates 4 million events, so the test limits its duration.
        let settings: &[&str] = match *scenario {
            "load" => &["seed=7", "duration=1s"],
            _ => &["seed=7"],
        };
        let simulated = Simulated::new(scenario, settings);
        let folder = Path::new(&simulated.trace).parent().unwrap();
        let client = Client::new(folder, Some(Path::new(&simulated.symbols))).await;
        let explained = client.ask("explain", json!({})).await;
        let mut bytes = explained.to_string().len();
        assert!(bytes <= 2_000 * BYTES_PER_TOKEN, "{scenario}: {bytes}");
        let first = &explained["findings"][0];
        match cause {
            Some(cause) => {
                assert_eq!(first["theory"], *cause, "{scenario}: {first:#}");
                assert_ne!(first["severity"], "information", "{scenario}");
                let finding = client.ask("finding", json!({"id": first["id"]})).await;
                bytes += finding.to_string().len();
                sizes.push(finding.to_string().len());
                let told = format!("{first} {finding}");
                for word in *words {
                    assert!(told.contains(word), "{scenario}: {word}: {told}");
                }
            }
            None => {
                let mut findings = explained["findings"].as_array().unwrap().iter();
                assert!(
                    findings.all(|finding| finding["severity"] == "information"),
                    "{scenario}"
                );
            }
        }
        assert!(bytes <= 6_000 * BYTES_PER_TOKEN, "{scenario}: {bytes}");
        sizes.push(explained.to_string().len());
    }
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!(
        median <= 2_000 * BYTES_PER_TOKEN,
        "the median answer has {median} bytes"
    );
}
