//! Tests with waits that are only partly recorded: they began before the recording, or they last until its
//! end. The expected lengths follow from the truth files and from the times at which the trace is cut.

use std::fs::File;
use std::path::PathBuf;

use etl::write::Writer;
use explain::Scope;
use raw_events::{Filter, Processes, Sieve};
use serde_json::Value;
use simulated::{Simulated, list, number, text};
use tables::Options;
use tempfile::TempDir;

use super::explained::Explained;
use super::hangs::{assert_has, call, simulated, told};

/// Part of a trace, as `laglab trim` writes it.
struct Part {
    _folder: TempDir,
    trace: String,
}

impl Part {
    /// Cuts a trace. The times are milliseconds since its start.
    fn new(simulated: &Simulated, from: Option<i64>, to: Option<i64>) -> Part {
        Part::filtered(simulated, from, to, Filter::default())
    }

    /// Cuts a trace like [`Part::new`], and keeps only the events that the filter selects.
    fn filtered(simulated: &Simulated, from: Option<i64>, to: Option<i64>, filter: Filter) -> Part {
        let filter = Filter {
            from_ns: from.map(|ms| ms * 1_000_000),
            to_ns: to.map(|ms| ms * 1_000_000),
            ..filter
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.etl");
        let trace = etl::open(&[PathBuf::from(&simulated.trace)]).unwrap();
        let mut decoder = events::Decoder::new();
        let processes = Processes::learn(&mut decoder, &trace, Options::default()).unwrap();
        let session = trim::session(&trace, &filter).unwrap();
        let mut writer = Writer::new(File::create(&path).unwrap(), session).unwrap();
        let sieve = Sieve::new(&filter, &decoder, &processes);
        let selection = trim::Selection::new(&filter, sieve);
        trim::copy(&trace, selection, None, &mut writer, Options::default()).unwrap();
        writer.finish().unwrap();
        Part {
            _folder: folder,
            trace: path.to_str().unwrap().to_owned(),
        }
    }
}

fn of_process(name: &str) -> Scope {
    Scope {
        processes: vec![name.to_owned()],
        ..Scope::default()
    }
}

fn delay_ms(finding: &Value) -> i64 {
    number(&finding["delay"], "ns") / 1_000_000
}

/// Returns the time when the longest wait of LockApp.exe ended, in nanoseconds, from the truth file.
fn ran_ns(stall: &Simulated) -> i64 {
    let watched = list(&stall.truth, "watched_threads").iter();
    let of_it = watched.filter(|thread| thread["process"]["name"] == "LockApp.exe");
    let waits = of_it.flat_map(|thread| list(thread, "longest_ready_waits"));
    let longest = waits.max_by_key(|wait| number(wait, "ready_ns")).unwrap();
    number(longest, "ran_ns")
}

#[test]
fn a_wait_for_a_cpu_that_began_before_the_recording_is_reported() {
    for seed in ["seed=1", "seed=7"] {
        let stall = Simulated::new("rank-stall", &[seed]);
        let part = Part::new(&stall, Some(45_000), None);
        let expected_ms = ran_ns(&stall) / 1_000_000 - 45_000;
        for scope in [Scope::default(), of_process("LockApp.exe")] {
            let explained = Explained::scoped(&part.trace, scope);
            let first = &explained.findings()[0];
            let sentence = text(&first["sentence"]);
            assert_eq!(first["theory"], "long-waits", "{sentence}");
            assert_eq!(first["severity"], "problem", "{sentence}");
            assert_has(
                &sentence,
                &[
                    "LockApp.exe",
                    "at least",
                    "from before the recording began",
                    "its rank was 2",
                ],
            );
            assert!((delay_ms(first) - expected_ms).abs() <= 20, "{sentence}");
            // The kernel counted the clock ticks since the thread last ran: 38.2 s. The article on which the
            // scenario is based has the same value.
            let doubts = first["doubts"].to_string();
            assert!(
                doubts.contains("(about 38.1") || doubts.contains("(about 38.2"),
                "{doubts}"
            );
        }
    }
}

#[test]
fn a_part_of_a_healthy_desktop_has_no_wait_from_before() {
    for seed in 1..4 {
        let healthy = Simulated::new("healthy", &[&format!("seed={seed}")]);
        let part = Part::new(&healthy, Some(3_000), Some(9_000));
        let explained = Explained::new(&part.trace);
        assert_eq!(explained.complaints(), [""; 0], "seed {seed}");
    }
}

/// Tests a thread of a window that waits for an answer. The wait begins at 1 s, and the answer comes 4 s
/// later. The trace is cut 2 s after the start of the wait. The wait must be reported as a hang of at least 2
/// s.
#[test]
fn a_hang_at_the_end_of_the_trace_is_reported() {
    let simulated = simulated("open", &call("4s"));
    let whole = Explained::new(&simulated.trace);
    let hang = whole.by_theory("hangs")[0];
    let from_ms = number(&hang["during"], "start") / 1_000_000;
    let part = Part::new(&simulated, None, Some(from_ms + 2_000));
    for scope in [Scope::default(), of_process("viewer.exe")] {
        let explained = Explained::scoped(&part.trace, scope);
        let first = explained.by_theory("hangs")[0];
        let told = told(first);
        assert_has(
            &told,
            &[
                "viewer.exe",
                "at least",
                "still at the trace's end",
                "WrLpcReply",
            ],
        );
        assert!((delay_ms(first) - 2_000).abs() <= 20, "{told}");
    }
}

#[test]
fn a_hang_from_before_the_recording_answers_a_question() {
    let simulated = simulated("begun", &call("4s"));
    let whole = Explained::new(&simulated.trace);
    let hang = whole.by_theory("hangs")[0];
    let until_ms = number(&hang["during"], "end") / 1_000_000;
    let part = Part::new(&simulated, Some(until_ms - 2_000), None);
    let explained = Explained::scoped(&part.trace, of_process("viewer.exe"));
    let first = explained.by_theory("hangs")[0];
    let told = told(first);
    assert_eq!(first["severity"], "information", "{told}");
    assert_has(
        &told,
        &[
            "viewer.exe",
            "at least",
            "from before the recording began",
            "printer.exe",
        ],
    );
    assert!((delay_ms(first) - 2_000).abs() <= 20, "{told}");
}

/// Checks that a part of a trace with the events of one program gives no waits of other programs. The part
/// lacks most switches of the other programs.
#[test]
fn a_part_of_one_program_makes_no_waits_of_others() {
    let stall = Simulated::new("rank-stall", &["seed=7"]);
    for program in ["chrome.exe", "explorer.exe", "LockApp.exe", "csrss.exe"] {
        let filter = Filter {
            process_names: vec![program.to_owned()],
            ..Filter::default()
        };
        let part = Part::filtered(&stall, Some(35_000), Some(40_000), filter);
        let explained = Explained::new(&part.trace);
        for theory in [
            "long-waits",
            "hangs",
            "short-waits",
            "lock-convoy",
            "saturation",
        ] {
            let found = explained.by_theory(theory);
            let grave = found
                .iter()
                .filter(|finding| finding["severity"] != "information");
            let told: Vec<String> = grave.map(|finding| told(finding)).collect();
            assert_eq!(told, [""; 0], "{program}");
        }
    }
}
