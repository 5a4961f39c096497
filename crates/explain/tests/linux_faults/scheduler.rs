//! Explanations of faults that the tests cause on this machine while perf records it. The truth is measured by the
//! delayed program itself, by the shell that causes the fault, or by counters of the kernel.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::recorded::{
    BUSY, delayed, explained, is_about_linux, names, note_cost, recorded, with_all_events,
};
use explain::{Judgement, Scope, Subject};
use testdata::perf;

/// Pins the calling thread to a CPU, and wakes it every 10 ms until `is_over` is true. Returns the id of the thread and
/// the longest time by which it woke late.
fn late_thread(cpu: u16, is_over: &AtomicBool) -> (u32, Duration) {
    let link = fs::read_link("/proc/thread-self").unwrap();
    let id = link.file_name().unwrap().to_str().unwrap().to_owned();
    let pinned = Command::new("taskset")
        .args(["-pc", &cpu.to_string(), &id])
        .output();
    assert!(pinned.unwrap().status.success());
    let (mut due, mut worst) = (Instant::now(), Duration::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        due += Duration::from_millis(10);
        let now = Instant::now();
        if due > now {
            thread::sleep(due - now)
        } else {
            due = now
        }
        worst = worst.max(Instant::now().saturating_duration_since(due));
    }
    (id.parse().unwrap(), worst)
}

/// Returns the longest wait of a ready thread for a CPU, computed from the output of `perf script`. The wait is the
/// longest time between two consecutive events that name the thread. Returns `None` if the first event does not ready
/// the thread, or if the second event is not its run.
fn wait_by_perf(folder: &Path, id: u32) -> Option<Duration> {
    let events = ["script", "-i", "perf.data", "-F", "time,event,trace"];
    let events = perf::run(&events, folder);
    let of_thread = events
        .lines()
        .filter(|line| line.contains(&format!("pid={id} ")));
    let of_thread: Vec<(f64, &str)> = of_thread
        .filter_map(|line| {
            let (time, event) = line.split_once(':')?;
            Some((time.trim().parse().ok()?, event))
        })
        .collect();
    let pairs = of_thread.windows(2);
    let longest = pairs.max_by(|a, b| (a[1].0 - a[0].0).total_cmp(&(b[1].0 - b[0].0)))?;
    let [(from, first), (to, last)] = longest else {
        return None;
    };
    let becomes_ready = first.contains("sched_waking")
        || first.contains(&format!("prev_pid={id} ")) && first.contains("prev_state=R");
    let runs = last.contains(&format!("next_pid={id} "));
    (becomes_ready && runs).then(|| Duration::from_secs_f64(to - from))
}

#[test]
pub(super) fn a_thread_behind_a_real_time_thread_waits_for_higher_priority() {
    with_all_events(|folder| {
        // The probe and the hog are pinned to CPU 0. Spinners with idle priority use the other CPUs, so that the
        // probe's affinity is not the cause of its wait. `timeout` runs on the last CPU, because it must not wait
        // behind the hog.
        let script = "last=$(($(nproc) - 1)); for cpu in $(seq 1 $last); do timeout 2 chrt -i 0 taskset -c $cpu ./spin & \
        done; sleep 0.5; taskset -c $last timeout 0.8 taskset -c 0 chrt -f 50 ./hog; sleep 0.2";
        let is_over = AtomicBool::new(false);
        let attempt = || {
            is_over.store(false, Ordering::Relaxed);
            thread::scope(|scope| {
                let probe = scope.spawn(|| late_thread(0, &is_over));
                let recording = recorded(folder.path(), script);
                is_over.store(true, Ordering::Relaxed);
                let (id, late) = probe.join().unwrap();
                recording.map(|it| (id, late, it))
            })
        };
        // Some kernels record no event in the context of some threads, for example of an idle thread. The start of the
        // wait may then be missing.
        let mut attempts = (0..5).map(|_| attempt());
        let Some(found) = attempts.find(|it| {
            let Some((id, late, _)) = it else { return true };
            wait_by_perf(folder.path(), *id).is_some_and(|wait| wait > *late / 2)
        }) else {
            panic!("five recordings lack the wait");
        };
        let Some((id, late, recording)) = found else {
            return;
        };
        // Other threads, for example threads of the kernel, may also wait for the hog. So the scope is limited to the
        // pinned thread.
        let scope = Scope {
            threads: vec![id],
            ..Scope::default()
        };
        let explanation = explained(&recording, scope);
        assert!(
            late > Duration::from_millis(600),
            "{late:?}: the hog did not run"
        );
        let is_probe = |subject: &Subject| matches!(subject, Subject::Thread { id: thread, .. } if *thread == id);
        let mut findings = explanation.findings.iter();
        let first = findings.find(|finding| finding.subjects.iter().any(is_probe));
        let first = first
            .unwrap_or_else(|| panic!("no finding about thread {id}: {:#?}", explanation.findings));
        assert_eq!(first.theory, "long-waits", "{}", first.sentence);
        assert!(
            first.sentence.contains("threads of higher priority used"),
            "{}",
            first.sentence
        );
        assert!(names(first, "hog"), "{}", first.sentence);
        let verdict = first
            .weighed
            .iter()
            .find(|it| it.theory == "higher-priority")
            .unwrap();
        assert_eq!(verdict.judgement, Judgement::For);
        // The thread measures its lateness. Most of it is the wait for the CPU, which the recording shows.
        let during = first.during.clone().unwrap();
        let (waited, late) = (during.end - during.start, late.as_nanos() as i64);
        note_cost(waited, late);
        assert!(
            (waited - late).abs() < late / 50,
            "{waited} ns, but {late} ns by its own clock"
        );
        assert!(
            verdict.explains_ns.unwrap() > waited / 100 * 90,
            "{verdict:?}"
        );
        is_about_linux(&explanation);
    });
}

#[test]
pub(super) fn a_thread_that_may_use_other_cpus_waits_in_the_queue_of_one() {
    with_all_events(|folder| {
        // The facts are written after the process has ended, so the recording does not show that the process was
        // pinned. It looks as if the scheduler had left the process in the queue of this CPU.
        let script = "last=$(($(nproc) - 1)); for cpu in $(seq 1 $last); do timeout 2 chrt -i 0 taskset -c $cpu ./hog & \
        done; taskset -c 0 ./spin & echo $! > id; sleep 0.4; \
        taskset -c $last timeout 0.6 taskset -c 0 chrt -f 50 ./hog; sleep 0.2; kill $(cat id); wait $(cat id)";
        let Some(recording) = recorded(folder.path(), script) else {
            return;
        };
        let id = fs::read_to_string(folder.path().join("id")).unwrap();
        let id: u32 = id.trim().parse().unwrap();
        let scope = Scope {
            threads: vec![id],
            ..Scope::default()
        };
        let explanation = explained(&recording, scope);
        // On a busy machine, other programs of the same priority may delay the process for longer in total. Then the
        // finding about the hog is not the first one.
        let first = explanation.findings.iter().find(|it| names(it, "hog"));
        let first =
            first.unwrap_or_else(|| panic!("no finding about hog: {:#?}", explanation.findings));
        assert_eq!(first.theory, "long-waits", "{}", first.sentence);
        let words = "of the time of CPU 0, in whose queue it waited";
        assert!(first.sentence.contains(words), "{}", first.sentence);
        let verdict = |theory: &str| first.weighed.iter().find(|it| it.theory == theory).unwrap();
        assert_eq!(verdict("higher-priority").judgement, Judgement::For);
        assert_eq!(verdict("cpu-queue").judgement, Judgement::Against);
        assert_eq!(verdict("affinity").judgement, Judgement::NotRecorded);
        let during = first.during.clone().unwrap();
        let by_perf = wait_by_perf(folder.path(), id).expect("the wait");
        note_cost(during.end - during.start, by_perf.as_nanos() as i64);
        let differs_ns = during.end - during.start - by_perf.as_nanos() as i64;
        assert!(differs_ns.abs() < 10_000, "{during:?}, but {by_perf:?}");
        is_about_linux(&explanation);
    });
}

#[test]
pub(super) fn a_stopped_process_was_stopped_by_a_signal() {
    with_all_events(|folder| {
        let script = "nice -n -20 ./spin & sleep 0.4; date +%s%N > times; kill -STOP $!; date +%s%N >> times; sleep 0.4; \
        date +%s%N >> times; kill -CONT $!; date +%s%N >> times; sleep 0.3; kill $!";
        let Some(recording) = recorded(folder.path(), script) else {
            return;
        };
        let explanation = explained(&recording, Scope::default());
        let times = fs::read_to_string(folder.path().join("times")).unwrap();
        let times: Vec<i64> = times.lines().map(|line| line.parse().unwrap()).collect();
        let mut findings = explanation.findings.iter();
        let first = findings
            .find(|finding| delayed(finding) == Some("spin"))
            .unwrap_or_else(|| panic!("no finding about spin: {:#?}", explanation.findings));
        assert_eq!(first.theory, "stopped", "{}", first.sentence);
        assert!(first.sentence.contains("by a signal"), "{}", first.sentence);
        // The stop began while the shell sent the first signal, and ended while it sent the second signal. The times
        // before and after each signal give the shortest and the longest possible stop.
        let stopped = first.delay_ns();
        let (least, most) = (times[2] - times[1], times[3] - times[0]);
        note_cost(stopped, (least + most) / 2);
        // The process can stop only after it gets a CPU, and other processes of the machine may use this CPU first.
        let slack = 30_000_000;
        assert!(
            (least - slack..most + slack).contains(&stopped),
            "{least} to {most}: {stopped}"
        );
        is_about_linux(&explanation);
    });
}

#[test]
pub(super) fn a_quota_stops_a_process_for_the_time_that_the_kernel_counts() {
    with_all_events(|folder| {
        // The script uses cgroups of version 1 if they exist, and otherwise cgroups of version 2.
        let cgroup = "if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then G=/sys/fs/cgroup/cpu/laglab-$$; mkdir $G; \
        echo 100000 > $G/cpu.cfs_period_us; echo 20000 > $G/cpu.cfs_quota_us; echo 262144 > $G/cpu.shares; P=$G/tasks; \
        elif grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control; then G=/sys/fs/cgroup/laglab-$$; mkdir $G; \
        echo '20000 100000' > $G/cpu.max; echo 10000 > $G/cpu.weight; P=$G/cgroup.procs; else exit 0; fi; \
        sh -c \"echo \\$\\$ > $P; exec timeout 1.5 ./hog\"; cp $G/cpu.stat .; rmdir $G";
        let script = format!("{BUSY}; ({cgroup}); kill $B");
        let Some(recording) = recorded(folder.path(), &script) else {
            return;
        };
        let explanation = explained(&recording, Scope::default());
        let Ok(stat) = fs::read_to_string(folder.path().join("cpu.stat")) else {
            testdata::skip("this machine has no cgroup with a quota");
            return;
        };
        let counter = |names: [(&str, i64); 2]| {
            let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
            let found = lines.find_map(|(key, value)| {
                let (_, unit) = names.iter().find(|(name, _)| *name == key)?;
                Some(value.parse::<i64>().unwrap() * unit)
            });
            found.unwrap_or_else(|| panic!("{stat}"))
        };
        let throttled_ns = counter([("throttled_time", 1), ("throttled_usec", 1000)]);
        assert!(throttled_ns > 300_000_000, "{stat}");
        let mut findings = explanation.findings.iter();
        let first = findings
            .find(|finding| delayed(finding) == Some("hog"))
            .unwrap_or_else(|| panic!("no finding about hog: {:#?}", explanation.findings));
        assert_eq!(first.theory, "cpu-limit", "{}", first.sentence);
        assert!(first.sentence.contains("cpu.max"), "{}", first.sentence);
        let delay_ns = first.delay_ns();
        note_cost(delay_ns, throttled_ns);
        assert!(
            (delay_ns - throttled_ns).abs() < throttled_ns / 100,
            "{delay_ns}, but the kernel counts {throttled_ns}"
        );
        is_about_linux(&explanation);
    });
}
