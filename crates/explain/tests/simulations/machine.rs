//! Tests of the facts about the machine: which CPUs it has, what they did, and what is unknown.

use simulated::{Simulated, column, sum};

use super::explained::Explained;

/// Six threads that compute all the time and may use four of sixteen CPUs.
const PARKED: &str = r#"
title = "All work is limited to four of sixteen CPUs"
duration = "4s"
[machine]
processors = 16
[[process]]
name = "work.exe"
[[process.thread]]
name = "worker"
count = 6
affinity = [0, 1, 2, 3]
program = [ { forever = [ { run = "5ms", in = ["work.exe!Work"] } ] } ]
"#;

/// DPCs of half a millisecond, a thousand per second, on a CPU that is otherwise idle.
const DPCS: &str = r#"
title = "DPCs interrupt the idle thread"
duration = "4s"
[machine]
processors = 4
[[process]]
name = "app.exe"
[[process.thread]]
name = "timer"
affinity = [0]
program = [ { forever = [ { run = "100us", in = ["app.exe!Tick"] }, { sleep = "50ms" } ] } ]
[[device]]
name = "gpu"
every = "1ms"
cpus = [2]
isr = { in = ["gpu.sys!Isr"], cost = "4us" }
dpc = { in = ["gpu.sys!Dpc"], cost = "500us" }
"#;

/// Returns the sentence of a finding that starts with these words.
fn sentence<'e>(explained: &'e Explained, start: &str) -> &'e str {
    let mut all = explained.findings().iter();
    let mut sentences = all.find_map(|finding| {
        let sentence = finding["sentence"].as_str().unwrap();
        sentence.starts_with(start).then_some(sentence)
    });
    sentences
        .take()
        .unwrap_or_else(|| panic!("no {start}: {:#?}", explained.findings()))
}

#[test]
fn cpus_that_never_switch_are_idle() {
    let simulated = Simulated::of_text("parked", PARKED, &[]);
    let explained = Explained::with_symbols(&simulated, explain::Scope::default());
    // Four of sixteen CPUs are busy all the time.
    let used = sentence(&explained, "The CPUs were busy for ");
    assert!(used.contains("(25.0 % of their time)"), "{used}");
    assert_eq!(explained.judgement("saturation"), "against");
    assert_eq!(explained.complaints(), [""; 0]);
}

#[test]
fn without_samples_a_cpu_that_logs_nothing_is_unknown() {
    let setting = r#"record.kernel=["PROC_THREAD","LOADER","CSWITCH","DISPATCHER"]"#;
    let simulated = Simulated::of_text("parked", PARKED, &[setting]);
    let explained = Explained::with_symbols(&simulated, explain::Scope::default());
    assert_eq!(explained.judgement("saturation"), "not_recorded");
    let capture = sentence(&explained, "The capture is incomplete");
    assert!(capture.contains("no record of CPUs 4 to 15"), "{capture}");
}

#[test]
fn a_cpu_whose_events_are_lost_leaves_no_certain_wait() {
    let lost = r#"trouble.lose=[{ from = "0s", to = "1h", cpus = [3, 5] }]"#;
    let simulated = Simulated::new("rank-stall", &["seed=7", lost]);
    let explained = Explained::with_symbols(&simulated, explain::Scope::default());
    assert_eq!(explained.judgement("long-waits"), "not_recorded");
    assert_eq!(explained.judgement("saturation"), "not_recorded");
    // Drivers that wait in a loop on the other CPUs are still found.
    assert!(!explained.by_theory("busy-waiting").is_empty());
    let capture = sentence(&explained, "The capture is incomplete");
    assert!(capture.contains("no record of CPUs 3 and 5"), "{capture}");
}

#[test]
fn dpcs_that_interrupt_the_idle_thread_are_busy_time() {
    let simulated = Simulated::of_text("dpcs", DPCS, &[]);
    let explained = Explained::with_symbols(&simulated, explain::Scope::default());
    let findings = explained.by_theory("cpu-use");
    let busy_ns = sum(&column(&findings, "busy_ns"));
    // In 4 s, there are 4,000 interrupts of 504 us and 80 turns of 100 us. Clock interrupts and
    // switches add little time.
    assert!(
        (2_016_000_000..2_080_000_000).contains(&busy_ns),
        "{busy_ns}"
    );
    let used = sentence(&explained, "The CPUs were busy for 2.0");
    assert!(used.contains(" of that with DPCs and ISRs. "), "{used}");
}
