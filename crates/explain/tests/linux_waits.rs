//! Tests of the severity of waits. The recordings are texts, as the kernel prints them, of made-up machines.

use explain::{Finding, Scope, Severity};
use tables::{Cache, Options};

use crate::texts::text;

/// Returns a line about a switch of a CPU between two threads. Threads have names such as `t7`.
fn switch(time: &str, cpu: u32, from: u32, to: u32, state: &str) -> String {
    format!(
        "t{from}-{from} [00{cpu}] d..2. {time}: sched_switch: prev_comm=t{from} prev_pid={from} prev_prio=120 \
         prev_state={state} ==> next_comm=t{to} next_pid={to} next_prio=120\n"
    )
}

/// Returns a line about an interrupt on CPU 0 that wakes a thread. `running` is the interrupted thread.
fn waking(time: &str, running: u32, thread: u32) -> String {
    format!(
        "t{running}-{running} [000] d.h3. {time}: sched_waking: comm=t{thread} pid={thread} prio=120 target_cpu=000\n"
    )
}

/// Returns lines about interrupts of the timer from second 1 to second 4, while thread 200 runs on a CPU.
fn ticks(cpu: u32) -> String {
    let ticks = (11..40).flat_map(|tenth| {
        [(0, "entry"), (5, "exit")].map(|(us, end)| {
            let (second, tenth) = (tenth / 10, tenth % 10);
            format!(
                "t200-200 [00{cpu}] d.h1. {second}.{tenth}9000{us}: local_timer_{end}: vector=236\n"
            )
        })
    });
    ticks.collect()
}

/// Returns the finding about the waits of thread 100.
fn finding(lines: &[String], facts: &str) -> Finding {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.txt");
    std::fs::write(&file, format!("# tracer: nop\n#\n{}", lines.concat())).unwrap();
    std::fs::write(folder.path().join("trace.txt.proc"), facts).unwrap();
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    let explained = explain::explain(&store, Scope::default(), None, Options::default()).unwrap();
    let findings = explained.findings.into_iter();
    let mut found = findings.filter(|it| it.theory == "long-waits" && text(it).contains("t100"));
    let finding = found.next().unwrap();
    assert!(found.next().is_none());
    finding
}

#[test]
fn a_long_wait_of_a_thread_that_gives_way_to_all_others_is_information() {
    let recording = [
        switch("1.000000", 0, 0, 200, "R"),
        waking("2.000000", 200, 100),
        ticks(0),
        switch("5.000000", 0, 200, 100, "S"),
        switch("6.000000", 0, 100, 0, "S"),
    ];
    // The policy is a number of `sched.h`, in the form of proc_pid_stat(5).
    for (policy, severity) in [(0, Severity::Problem), (5, Severity::Information)] {
        let facts = format!(
            "/proc/100/task/100/stat:S 1 7 7 0 -1 64 1 2 3 4 5 6 7 8 20 0 1 0 99 100 9 1 1 1 0 0 0 0 0 0 0 0 0 0 17 1 \
             0 {policy} 0 0 0\n"
        );
        let finding = finding(&recording, &facts);
        assert_eq!(finding.delay_ns(), 3_000_000_000);
        assert_eq!(finding.severity, severity, "{}", text(&finding));
        let is_named = text(&finding).contains("has the policy SCHED_IDLE");
        assert_eq!(is_named, policy == 5, "{}", text(&finding));
    }
}

#[test]
fn an_unexplained_wait_without_an_end_is_information_if_switches_are_missing() {
    // Thread 100 is woken while a CPU is idle. No switch shows that it runs.
    let mut recording = vec![
        switch("1.000000", 1, 0, 200, "R"),
        switch("1.000100", 0, 0, 300, "R"),
        switch("1.100000", 0, 300, 0, "S"),
        waking("2.000000", 0, 100),
        ticks(1),
        switch("4.000100", 0, 0, 300, "R"),
        switch("4.900000", 1, 200, 0, "S"),
        switch("5.000000", 0, 300, 0, "S"),
    ];
    let whole = finding(&recording, "");
    assert_eq!(whole.delay_ns(), 3_000_000_000, "{}", text(&whole));
    assert_eq!(whole.severity, Severity::Problem, "{}", text(&whole));
    assert!(!text(&whole).contains("ran unseen"), "{}", text(&whole));
    // CPU 1 stops another thread than the one that it started: the switch between them is missing.
    let lacking = [
        switch("4.910000", 1, 0, 400, "R"),
        switch("4.920000", 1, 500, 0, "S"),
    ];
    recording.splice(7..7, lacking);
    let lacking = finding(&recording, "");
    assert_eq!(
        lacking.severity,
        Severity::Information,
        "{}",
        text(&lacking)
    );
    assert!(
        text(&lacking).contains("the thread probably ran unseen"),
        "{}",
        text(&lacking)
    );
}
