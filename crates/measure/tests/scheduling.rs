//! Checks that granted requests are in effect: Linux reports the properties of the threads.
#![cfg(target_os = "linux")]

use std::time::Duration;

use measure::{Policy, Scheduling};

/// Reads the properties of the thread from /proc.
#[test]
fn grants_hold_in_their_thread_only() {
    let request = Scheduling {
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
    let (found, grants) = request
        .run(|_| {
            let slack = std::fs::read_to_string("/proc/thread-self/timerslack_ns");
            let policy = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            (allowed(&status()), slack.ok(), policy)
        })
        .unwrap();
    let (cpus, slack, stat) = found;
    let granted = |request: &str| grants.iter().any(|g| g.asked == request && g.is_granted());
    if granted("CPU 0") {
        assert_eq!(cpus, "0");
    } else {
        testdata::skip("CPU 0 is not available to this process");
    }
    if granted("SCHED_RR 3") {
        // Fields 40 and 41 are the real-time priority and the policy (2 means SCHED_RR).
        let after_name = stat.rsplit_once(')').unwrap().1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        assert_eq!((fields[37], fields[38]), ("3", "2"));
    } else {
        testdata::skip("no right to real-time scheduling");
        // Real-time threads report no slack, so only other threads are checked.
        assert_eq!(slack.as_deref().map(str::trim), Some("4321"));
    }
    assert_eq!(allowed(&status()), before);
}
