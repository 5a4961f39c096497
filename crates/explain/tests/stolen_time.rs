//! Tests of the finding about time that the host of a virtual machine took. The recording and the times of its CPUs are
//! made up; times have the form of proc_stat(5).

use explain::{Explanation, Finding, Judgement, Scope, Severity};
use tables::{Cache, Options};

use crate::texts::{is_about_linux, text};

/// Text of a recording of 10 s: a thread runs on each of two CPUs.
fn recording() -> String {
    let mut lines = "# tracer: nop\n#\n".to_owned();
    for second in 0..10 {
        for cpu in 0..2 {
            let thread = 100 + cpu;
            for (us, from, to, state) in [(1, 0, thread, "R"), (900_000, thread, 0, "S")] {
                lines += &format!(
                    "t{from}-{from} [00{cpu}] d..2. {second}.{us:06}: sched_switch: prev_comm=t{from} prev_pid={from} \
                     prev_prio=120 prev_state={state} ==> next_comm=t{to} next_pid={to} next_prio=120\n"
                );
            }
        }
    }
    lines
}

/// Explains the recording. `stolen` has the time that the host took from each CPU in `seconds` seconds, in units of 10 ms.
fn explained(stolen: [u64; 2], seconds: u64) -> Explanation {
    let mut facts = String::new();
    for is_last in [false, true] {
        for (cpu, stolen) in stolen.into_iter().enumerate() {
            let (ticks, stolen) = if is_last {
                (100 * seconds - stolen, stolen)
            } else {
                (0, 0)
            };
            let (idle, steal) = (5_000 + ticks, 70 + stolen);
            facts += &format!("/proc/stat:cpu{cpu} 9000 10 800 {idle} 30 40 50 {steal} 60 0\n");
        }
    }
    explained_with(&facts)
}

fn explained_with(facts: &str) -> Explanation {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.txt");
    std::fs::write(&file, recording()).unwrap();
    std::fs::write(folder.path().join("trace.txt.proc"), facts).unwrap();
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    explain::explain(&store, Scope::default(), None, Options::default()).unwrap()
}

fn stolen(explanation: &Explanation) -> Vec<&Finding> {
    let findings = explanation.findings.iter();
    findings.filter(|it| it.theory == "stolen-time").collect()
}

fn judgement(explanation: &Explanation) -> Judgement {
    let mut theories = explanation.theories.iter();
    theories
        .find(|it| it.theory == "stolen-time")
        .unwrap()
        .judgement
}

#[test]
fn a_host_that_takes_much_time_of_one_cpu_is_a_problem() {
    // 4 s of 10 s of CPU 1, and 0.1 s of CPU 0.
    let explanation = explained([10, 400], 10);
    let findings = stolen(&explanation);
    let [finding] = &findings[..] else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.severity, Severity::Problem);
    assert_eq!(finding.delay_ns(), 4_000_000_000);
    let text = text(finding);
    assert!(
        text.contains("took 4.000 s from CPU 1, 40.0 % of its time, although it had work"),
        "{text}"
    );
    assert!(!text.contains("longer than the recording"), "{text}");
    is_about_linux(&explanation);
}

#[test]
fn a_host_that_takes_some_time_of_all_cpus_is_a_warning() {
    // 2 s and 3 s of 40 s, which is longer than the recording.
    let explanation = explained([200, 300], 40);
    let findings = stolen(&explanation);
    let [finding] = &findings[..] else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.severity, Severity::Warning);
    let text = text(finding);
    assert!(
        text.contains("took 5.000 s from CPUs 0 and 1, 6.2 % of their time"),
        "{text}"
    );
    assert!(
        text.contains("counted over 40.000 s, which is much longer than the recording"),
        "{text}"
    );
}

#[test]
fn little_stolen_time_is_no_finding() {
    for stolen_ticks in [[0, 0], [0, 49]] {
        let explanation = explained(stolen_ticks, 10);
        assert_eq!(stolen(&explanation).len(), 0, "{stolen_ticks:?}");
        assert_eq!(judgement(&explanation), Judgement::Against);
    }
}

#[test]
fn times_that_were_read_once_or_never_do_not_tell_stolen_time() {
    for facts in ["", "/proc/stat:cpu0 1 2 3 4 5 6 7 8 9 0\n"] {
        let explanation = explained_with(facts);
        assert_eq!(judgement(&explanation), Judgement::NotRecorded);
        is_about_linux(&explanation);
    }
}
