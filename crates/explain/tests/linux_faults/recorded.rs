//! Recordings of faults that tests cause on this machine, and their explanations.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use explain::{Explanation, Finding, Scope, Subject};
use tables::{Cache, Options, Store};
use testdata::perf;

pub(crate) use crate::texts::{is_about_linux, text};

/// Events that most questions need.
pub(crate) const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_process_exec,\
    sched:sched_process_exit,task:task_newtask,task:task_rename,irq:irq_handler_entry,irq:irq_handler_exit,\
    irq:softirq_entry,irq:softirq_exit,irq_vectors:local_timer_entry,irq_vectors:local_timer_exit,\
    timer:hrtimer_expire_entry";

/// Commands from laglab's manual. They write facts about threads, cgroups and kernel symbols to a file next to the
/// recording.
pub(crate) const FACTS: &str = "grep -sH Cpus_allowed_list: /proc/[0-9]*/task/[0-9]*/status >> perf.data.proc; \
    grep -sH . /proc/[0-9]*/task/[0-9]*/stat /proc/[0-9]*/cgroup >> perf.data.proc; \
    grep -E ' (sched_cfs_period_timer|sched_rt_period_timer|dl_task_timer)$' /proc/kallsyms >> perf.data.proc";

/// Commands that keep all CPUs busy with the least urgent threads, and list their ids in `$B`. Some kernels record no
/// event in the context of an idle thread, so no CPU may be idle.
pub(crate) const BUSY: &str = "for cpu in $(seq 0 $(($(nproc) - 1))); do chrt -i 0 taskset -c $cpu ./spin & B=\"$B $!\"; done";

/// Returns a guard for the machine: faults of one test must not delay the programs of another.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Message of a test whose recording lacks events.
pub(crate) const LACKS_EVENTS: &str = "the recording lacks events of the fault";

/// Runs a test in a new folder while no other test runs. Some kernels record no event in the context of some threads.
/// So a failed test runs again if its recording lacks events: if the recording is not [`whole`], or if perf's own
/// reader shows that switches are missing in `perf.data`. The test runs at most five times.
pub(crate) fn with_all_events(test: impl Fn(&tempfile::TempDir)) {
    let _machine = alone();
    for _ in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let run = catch_unwind(AssertUnwindSafe(|| test(&folder)));
        let Err(failure) = run else { return };
        let lacks_events = failure.downcast_ref::<&str>() == Some(&LACKS_EVENTS);
        if !lacks_events && has_all_switches(folder.path()) {
            resume_unwind(failure);
        }
        COSTS.lock().unwrap().clear();
    }
    test(&tempfile::tempdir().unwrap());
}

/// Returns true if each switch of a CPU in `perf.data` starts with the thread that the switch before it started.
fn has_all_switches(folder: &Path) -> bool {
    if !folder.join("perf.data").exists() {
        return true;
    }
    let line = ["script", "-i", "perf.data", "-F", "cpu,event,trace"];
    let text = perf::run(&line, folder);
    let mut running: BTreeMap<&str, &str> = BTreeMap::new();
    text.lines().all(|line| {
        let id = |name: &str| line.split_once(name)?.1.split(' ').next();
        let Some((before, after)) = id(" prev_pid=").zip(id(" next_pid=")) else {
            return true;
        };
        let cpu = line.split(']').next().unwrap_or_default();
        let last = running.insert(cpu, after);
        last.is_none_or(|last| last == before)
    })
}

/// Records a script that causes a fault. The folder of the script contains the programs `hog` and `spin`, which use a
/// CPU until they are ended. Returns `None` if this machine cannot record.
pub(crate) fn recorded(folder: &Path, script: &str) -> Option<Store> {
    recorded_with(folder, EVENTS, &[], script)
}

/// Records a script in the way of [`recorded`], with other events and options of perf.
pub(crate) fn recorded_with(
    folder: &Path,
    events: &str,
    options: &[&str],
    script: &str,
) -> Option<Store> {
    for name in ["hog", "spin"] {
        program(folder, name, "#!/bin/sh\nwhile :; do :; done\n");
    }
    let file = perf::record(folder, events, options, &format!("{script}; {FACTS}"))?;
    Some(imports::open_store(&[file], Cache::Off).unwrap())
}

/// Writes a program into the folder of a script.
pub(crate) fn program(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Compiles a C program into the folder of a script.
pub(crate) fn compiled(folder: &Path, name: &str, text: &str) {
    let source = folder.join(format!("{name}.c"));
    fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-pthread", "-o"])
        .arg(folder.join(name))
        .arg(&source);
    assert!(cc.status().unwrap().success(), "cc");
}

/// Returns the most important finding about a process.
///
/// # Panics
/// Panics if there is none.
pub(crate) fn first_about<'e>(explanation: &'e Explanation, process: &str) -> &'e Finding {
    let mut findings = explanation.findings.iter();
    let first = findings.find(|finding| delayed(finding) == Some(process));
    first.unwrap_or_else(|| {
        let all: Vec<String> = explanation.findings.iter().map(text).collect();
        panic!("no finding about {process}: {all:#?}")
    })
}

pub(crate) fn explained(recording: &Store, scope: Scope) -> Explanation {
    explain::explain(recording, scope, None, Options::default()).unwrap()
}

/// Returns the most important finding about a thread.
///
/// # Panics
/// Panics if there is none.
pub(crate) fn first_about_thread(explanation: &Explanation, thread_id: i64) -> &Finding {
    let is_it = |subject: &Subject| matches!(subject, Subject::Thread { id, .. } if i64::from(*id) == thread_id);
    let mut findings = explanation.findings.iter();
    let first = findings.find(|finding| finding.subjects.iter().any(is_it));
    first.unwrap_or_else(|| {
        let all: Vec<String> = explanation.findings.iter().map(text).collect();
        panic!("no finding about thread {thread_id}: {all:#?}")
    })
}

/// Returns the name of the process whose delay the finding is about.
pub(crate) fn delayed(finding: &Finding) -> Option<&str> {
    finding.subjects.iter().find_map(|subject| match subject {
        Subject::Process { name, .. } => name.as_deref(),
        _ => None,
    })
}

/// Returns true if the finding names a process.
pub(crate) fn names(finding: &Finding, name: &str) -> bool {
    finding.subjects.iter().any(|subject| {
        matches!(subject, Subject::Process { name: Some(process), .. } if process == name)
    })
}

/// Program that uses a CPU for some seconds and prints each time in which it did not run for 2 ms or longer: the start
/// and the length, in nanoseconds.
pub(crate) const GAPS: &str = "#!/usr/bin/python3
import sys, time
last = time.monotonic_ns()
end = last + int(float(sys.argv[1]) * 1e9)
while last < end:
    now = time.monotonic_ns()
    if now - last > 2_000_000: print(last, now - last, flush=True)
    last = now
";

/// Returns the numbers in a file that a script wrote, one list for each line.
pub(crate) fn numbers(folder: &Path, file: &str) -> Vec<Vec<i64>> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let numbers = |line: &str| line.split(' ').map(|it| it.parse().unwrap()).collect();
    text.lines().map(numbers).collect()
}

/// Delays by faults, in nanoseconds. Each entry has the reported delay and the true delay.
pub(crate) static COSTS: Mutex<Vec<(i64, i64)>> = Mutex::new(Vec::new());

/// Keeps the cost of a fault for the benchmark.
pub(crate) fn note_cost(found_ns: i64, truth_ns: i64) {
    COSTS.lock().unwrap().push((found_ns, truth_ns));
}

/// Checks that two times differ by at most 1 %, or by at most 0.1 ms for each of `times` events. The larger tolerance
/// counts.
pub(crate) fn is_near(found_ns: i64, truth_ns: i64, times: usize) {
    note_cost(found_ns, truth_ns);
    let allowed_ns = (truth_ns / 100).max(100_000 * times as i64);
    assert!(
        (found_ns - truth_ns).abs() <= allowed_ns,
        "{found_ns} ns, but {truth_ns} ns are true"
    );
}

/// Returns a recording that has all events of the fault. Returns `None` if this machine cannot record.
///
/// # Panics
/// Panics with [`LACKS_EVENTS`] if `is_whole` returns false: events are missing, or other threads of a busy machine
/// delayed the program. [`with_all_events`] then records again.
pub(crate) fn whole(
    recording: Option<tables::Store>,
    is_whole: impl Fn() -> bool,
) -> Option<tables::Store> {
    if recording.is_some() && !is_whole() {
        panic_any(LACKS_EVENTS);
    }
    recording
}

pub(crate) fn explain_all(recording: &tables::Store) -> Explanation {
    let explanation = explained(recording, Scope::default());
    is_about_linux(&explanation);
    explanation
}

/// Checks that a finding has a theory and some words.
pub(crate) fn says(finding: &Finding, theory: &str, words: &str) {
    assert_eq!(finding.theory, theory, "{}", finding.sentence);
    assert!(finding.sentence.contains(words), "{}", finding.sentence);
}
