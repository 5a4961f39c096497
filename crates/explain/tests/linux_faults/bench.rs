//! Benchmark of the faults: how often is the first finding right, and how far is its delay from the truth?
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::panic::catch_unwind;

use explain::{Scope, Severity};

use super::recorded::{COSTS, LACKS_EVENTS, alone, explained, recorded, text};
use super::{answers, interference, kernel, locks, scheduler};

/// Faults, each with its test.
const FAULTS: [(&str, fn()); 22] = [
    (
        "SCHED_FIFO hog",
        scheduler::a_thread_behind_a_real_time_thread_waits_for_higher_priority,
    ),
    (
        "queue of one CPU",
        scheduler::a_thread_that_may_use_other_cpus_waits_in_the_queue_of_one,
    ),
    (
        "SIGSTOP",
        scheduler::a_stopped_process_was_stopped_by_a_signal,
    ),
    (
        "cpu.max",
        scheduler::a_quota_stops_a_process_for_the_time_that_the_kernel_counts,
    ),
    ("ptrace", kernel::a_traced_process_was_stopped_by_a_debugger),
    (
        "real-time throttling",
        kernel::the_limit_of_real_time_threads_stops_a_hog,
    ),
    ("round robin", kernel::round_robin_threads_take_turns),
    (
        "affinity",
        kernel::a_thread_pinned_to_a_busy_cpu_may_not_use_the_idle_ones,
    ),
    (
        "freezer version 2",
        kernel::a_frozen_process_was_frozen_by_its_cgroup,
    ),
    (
        "cold pages",
        kernel::cold_pages_make_a_program_wait_for_the_disk,
    ),
    (
        "memory of a cgroup",
        kernel::a_full_cgroup_makes_its_threads_free_memory,
    ),
    (
        "slow disk",
        kernel::a_slow_disk_is_named_with_the_program_that_waits,
    ),
    (
        "I/O limit",
        kernel::a_limit_of_a_cgroup_that_holds_back_reads_is_named,
    ),
    ("lock convoy", locks::threads_of_a_convoy_hand_a_lock_over),
    (
        "priority inversion",
        locks::a_lock_without_inheritance_inverts_priorities,
    ),
    (
        "lock with inheritance",
        locks::a_lock_with_inheritance_is_held_for_long,
    ),
    ("timer slack", interference::timers_with_slack_expire_late),
    (
        "softirq flood",
        interference::packets_of_another_cpu_delay_a_thread,
    ),
    (
        "freezer version 1",
        interference::a_process_was_frozen_by_a_freezer_of_version_1,
    ),
    (
        "chain over three processes",
        answers::a_program_that_computes_answers_late_over_two_others,
    ),
    (
        "chain over sockets of the network",
        answers::packets_to_this_machine_are_followed_to_the_program_that_computes,
    ),
    (
        "loop that computes",
        answers::a_program_computes_instead_of_answering,
    ),
];

/// Number of repetitions.
const TIMES: usize = 10;
/// Number of recordings without a fault.
const HEALTHY: usize = 30;

/// Prints a row of a table for each fault whose name contains the variable `LAGLAB_FAULT`.
#[test]
#[ignore = "takes half an hour; prints a table for bench/runs"]
fn faults_are_found_again() {
    let wanted = std::env::var("LAGLAB_FAULT").unwrap_or_default();
    for (name, fault) in FAULTS.iter().filter(|(name, _)| name.contains(&wanted)) {
        let (mut right, mut near, mut unrecorded) = (0, 0, 0);
        let mut errors: Vec<(f64, i64)> = Vec::new();
        for _ in 0..TIMES {
            COSTS.lock().unwrap().clear();
            let outcome = catch_unwind(fault);
            let costs = std::mem::take(&mut *COSTS.lock().unwrap());
            let message = outcome
                .as_ref()
                .err()
                .and_then(|it| it.downcast_ref::<String>());
            let is_lost = outcome
                .as_ref()
                .err()
                .is_some_and(|it| it.downcast_ref::<&str>() == Some(&LACKS_EVENTS));
            unrecorded += usize::from(is_lost);
            // A test notes the costs only after it has checked the finding. So if there are costs, the finding is
            // right.
            right += usize::from(outcome.is_ok() || !costs.is_empty());
            near += usize::from(outcome.is_ok());
            errors.extend(costs.iter().map(|(found, truth)| {
                let error_ns = (found - truth).abs();
                (error_ns as f64 * 100.0 / (*truth).max(1) as f64, error_ns)
            }));
            if let Some(message) = message {
                println!("{name}: {}", message.chars().take(600).collect::<String>());
            }
        }
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |share: f64| {
            errors
                .get((errors.len() as f64 * share) as usize)
                .or(errors.last())
        };
        let shown = |of: Option<&(f64, i64)>| {
            of.map_or("-".to_owned(), |(percent, ns)| {
                format!("{percent:.2} % ({:.2} ms)", *ns as f64 / 1e6)
            })
        };
        println!(
            "| {name} | {right} of {TIMES} | {near} | {unrecorded} | {} | {} |",
            shown(at(0.5)),
            shown(errors.last())
        );
    }
}

/// Prints the false alarms of recordings without a fault, and returns the number of recordings with one. The script does
/// ordinary work on an otherwise idle machine.
fn alarms(script: &str) -> usize {
    let _machine = alone();
    let mut alarms = 0;
    for number in 1..=HEALTHY {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), script).expect("perf must record");
        let explanation = explained(&recording, Scope::default());
        // On some machines, the kernel loses events. So a finding about an incomplete capture is no false alarm.
        let is_alarm = |finding: &&explain::Finding| {
            finding.severity > Severity::Information && finding.theory != "capture"
        };
        let found: Vec<_> = explanation.findings.iter().filter(is_alarm).collect();
        alarms += usize::from(!found.is_empty());
        for finding in found {
            let text: String = text(finding).chars().take(600).collect();
            println!("{number}: {text}");
        }
    }
    println!("{alarms} of {HEALTHY} recordings have a finding");
    alarms
}

#[test]
#[ignore = "takes minutes, and needs an idle machine"]
fn an_idle_machine_gives_no_alarm() {
    assert_eq!(alarms("sleep 3"), 0);
}

/// Compiles a file of C in a loop for each CPU.
const COMPILES: &str = "for i in $(seq 600); do \
        echo \"int f$i(int *a, int n) { int s = $i; for (int i = 0; i < n; i++) s += a[i] * (s ^ $i) / (i + 1); return s; }\"; \
    done > big.c; \
    for job in $(seq $(nproc)); do while [ ! -e done ]; do cc -O2 -c big.c -o $job.o; done & done; \
    sleep 3; touch done; wait";

#[test]
#[ignore = "takes minutes, and needs an idle machine"]
fn a_machine_that_compiles_gives_no_alarm() {
    assert_eq!(alarms(COMPILES), 0);
}
