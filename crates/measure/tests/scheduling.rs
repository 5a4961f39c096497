//! What Linux itself says of threads that asked for something.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "what is left out is said")]

use std::time::Duration;

use measure::{Policy, Scheduling};

/// The system itself is asked what it did.
#[test]
fn what_is_granted_holds_in_that_thread_only() {
    let asked = Scheduling {
        policy: Policy::RoundRobin(3),
        cpu: Some(0),
        timer_slack: Some(Duration::from_nanos(4_321)),
        ..Scheduling::default()
    };
    let status = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let allowed = |status: &str| {
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
        line.unwrap().split_whitespace().last().unwrap().to_owned()
    };
    let before = allowed(&status());
    let (found, grants) = asked
        .run(|_| {
            let slack = std::fs::read_to_string("/proc/thread-self/timerslack_ns");
            let policy = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            (allowed(&status()), slack.ok(), policy)
        })
        .unwrap();
    let (cpus, slack, stat) = found;
    let granted = |asked: &str| grants.iter().any(|g| g.asked == asked && g.is_granted());
    if granted("CPU 0") {
        assert_eq!(cpus, "0");
    } else {
        eprintln!("left out: CPU 0 is not this process's to use");
    }
    if granted("SCHED_RR 3") {
        // The fields 40 and 41: real-time priority and policy (2: SCHED_RR).
        let after_name = stat.rsplit_once(')').unwrap().1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        assert_eq!((fields[37], fields[38]), ("3", "2"));
    } else {
        eprintln!("left out: no right to real-time scheduling here");
        // Real-time threads are shown without slack.
        assert_eq!(slack.as_deref().map(str::trim), Some("4321"));
    }
    assert_eq!(allowed(&status()), before);
}
