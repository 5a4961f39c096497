//! Explanations of delays by timers, softirqs, freezers and real-time threads. The delayed program measures the truth.

use std::collections::BTreeMap;
use std::path::Path;

use explain::Scope;

use super::kernel::printed;
use super::recorded::{
    BUSY, EVENTS, FACTS, GAPS, explain_all, explained, first_about, is_about_linux, is_near, names,
    numbers, program, recorded, recorded_with, says, with_all_events,
};

/// Program whose timers may be 5 ms late. It sleeps 60 times for 10 ms, and prints the total lateness of its wakes, in
/// nanoseconds.
const SLACK: &str = "#!/usr/bin/python3
import ctypes, time
PR_SET_TIMERSLACK = 29
if ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 5_000_000): raise OSError('prctl')
late = 0
for i in range(60):
    start = time.monotonic_ns(); time.sleep(0.01); late += time.monotonic_ns() - start - 10_000_000
print(late)
";

/// Program that sends packets to an address for a time in seconds, as fast as it can.
const FLOOD: &str = "#!/usr/bin/python3
import ctypes, socket, sys, time
class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [('name', ctypes.c_void_p), ('name_length', ctypes.c_uint), ('vectors', ctypes.POINTER(Vector)),
        ('count', ctypes.c_size_t), ('control', ctypes.c_void_p), ('control_length', ctypes.c_size_t),
        ('flags', ctypes.c_int), ('sent', ctypes.c_uint)]
send = ctypes.CDLL(None).sendmmsg
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sender.connect((sys.argv[1], 9))
packet = ctypes.create_string_buffer(64)
vector = Vector(ctypes.addressof(packet), 64)
messages = (Message * 64)()
for message in messages: message.vectors = ctypes.pointer(vector); message.count = 1
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end: send(sender.fileno(), messages, 64, 0)
";

/// Program that wants to run every 10 ms, 200 times. Prints the lateness of each wake, in nanoseconds. It skips periods
/// that are over, because it would not wait for their start, and the trace would have no wake.
const PERIODS: &str = "#!/usr/bin/python3
import os, time
os.sched_setaffinity(0, {0}); os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20)); time.sleep(0.01)
due = time.monotonic_ns()
for i in range(200):
    due += 10_000_000
    time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
    late = time.monotonic_ns() - due
    print(late, flush=True)
    due += max(0, late) // 10_000_000 * 10_000_000
";

/// Program that keeps its CPU for 8 ms, eleven times per second.
const GLITCHES: &str = "#!/usr/bin/python3
import time
while True:
    time.sleep(0.083)
    end = time.monotonic() + 0.008
    while time.monotonic() < end: pass
";

#[test]
pub(super) fn timers_with_slack_expire_late() {
    with_all_events(|folder| {
        program(folder.path(), "slack", SLACK);
        let events = format!("{EVENTS},timer:hrtimer_start");
        let script = format!("{BUSY}; nice -n -20 ./slack > slack.txt; kill $B");
        let Some(recording) = recorded_with(folder.path(), &events, &[], &script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "slack");
        says(
            first,
            "timer-slack",
            "delay them by up to 5.0 ms (timer slack)",
        );
        let late_ns = numbers(folder.path(), "slack.txt")[0][0];
        assert!(late_ns > 100_000_000, "{late_ns} ns: no slack");
        is_near(first.delay_ns(), late_ns, 60);
    });
}

#[test]
pub(super) fn packets_of_another_cpu_delay_a_thread() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        program(folder.path(), "flood", FLOOD);
        program(folder.path(), "facts", &format!("#!/bin/sh\n{FACTS}\n"));
        // Packets that arrive through a pair of devices are handled by CPU 0 (rps_cpus), on which the program runs.
        let script = "A=laglab-a$$; B=laglab-b$$; ip netns add $A && ip netns add $B || exit 1; \
        ip link add v0 netns $A type veth peer name v1 netns $B || exit 1; \
        ip -n $A addr add 10.9.0.1/24 dev v0; ip -n $B addr add 10.9.0.2/24 dev v1; \
        ip -n $A link set v0 up; ip -n $B link set v1 up; \
        ip netns exec $B sh -c 'echo 1 > /sys/class/net/v1/queues/rx-0/rps_cpus' || exit 1; \
        taskset -c 0 ./gaps 1.5 > gaps.txt & sleep 0.2; \
        ip netns exec $A chrt -f 10 taskset -c $(($(nproc) - 1)) ./flood 10.9.0.2 0.9; \
        dd if=/dev/zero of=disk bs=4k count=4 oflag=direct 2> /dev/null; ./facts; wait; \
        ip netns del $A; ip netns del $B";
        let Some(recording) = recorded(folder.path(), script) else {
            return;
        };
        let scope = Scope {
            processes: vec!["gaps".to_owned()],
            ..Scope::default()
        };
        let explanation = explained(&recording, scope);
        is_about_linux(&explanation);
        let first = first_about(&explanation, "gaps");
        says(first, "long-waits", "");
        let text = super::recorded::text(first);
        assert!(text.contains("softirq NET_RX"), "{text}");
        assert!(text.contains("rps_cpus"), "{text}");
        // The packets come from a program. Only a recording with interrupts of devices shows that none raised the softirqs.
        let mut events = printed(folder.path()).into_iter();
        if events.any(|(_, event)| event.contains("irq_handler_entry")) {
            assert!(
                text.contains("programs of this machine probably sent"),
                "{text}"
            );
        }
        assert!(!text.contains("they serve its device"), "{text}");
        let during = first.during.clone().unwrap();
        is_near(
            during.end - during.start,
            longest_wait_of_gaps(folder.path()),
            1,
        );
        // A gap of the program can also contain softirqs that interrupt it. So it can be longer than the wait.
        let gaps = numbers(folder.path(), "gaps.txt");
        assert!(gaps.iter().any(|gap| gap[1] >= during.end - during.start));
    });
}

/// Returns the program that delayed `periods` most, by the events that perf prints. This is the program that ran until a
/// late period began. Usually it is `glitches`. On a busy machine, the kernel also reserves CPU time for ordinary threads
/// (the fair server), and then real-time threads wait for them.
fn delayed_periods_most(folder: &Path) -> String {
    let (mut woken, mut delays) = (None, BTreeMap::<String, f64>::new());
    for (time, event) in printed(folder) {
        if event.contains("sched_waking: comm=periods ") {
            woken = Some(time);
        } else if event.contains("next_comm=periods ") {
            let late = woken.take().map_or(0.0, |woken| time - woken);
            let before = event.split_once("prev_comm=").unwrap().1;
            let program = before.split_once(" prev_pid=").unwrap().0;
            if late > 0.0048 {
                *delays.entry(program.to_owned()).or_default() += late;
            }
        }
    }
    let most = delays.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.expect("a late period").0
}

/// Returns the longest time in nanoseconds for which `gaps` was ready without a CPU, by the events that perf prints.
fn longest_wait_of_gaps(folder: &Path) -> i64 {
    let (mut since, mut longest) = (None, 0.0_f64);
    for (time, event) in printed(folder) {
        if event.contains("prev_comm=gaps") {
            since = event.contains("prev_state=R").then_some(time);
        } else if event.contains("next_comm=gaps") {
            longest = longest.max(since.take().map_or(0.0, |since| time - since));
        }
    }
    (longest * 1e9) as i64
}

#[test]
pub(super) fn a_real_time_thread_misses_its_periods() {
    with_all_events(|folder| {
        program(folder.path(), "periods", PERIODS);
        program(folder.path(), "glitches", GLITCHES);
        let script = format!(
            "{BUSY}; chrt -f 50 taskset -c 0 timeout 3 ./glitches & ./periods > periods.txt; kill $! $B; wait"
        );
        let Some(recording) = recorded(folder.path(), &script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "periods");
        says(
            first,
            "short-waits",
            "a real-time thread (priority 20) that runs every 10.0 ms",
        );
        let delaying = delayed_periods_most(folder.path());
        assert!(names(first, &delaying), "{delaying}: {:?}", first.subjects);
        // A wait counts if it lasts for half a period (5 ms) or longer. The program measures a wait a little
        // differently than the trace, so waits of about 5 ms may or may not count.
        let late = numbers(folder.path(), "periods.txt").concat();
        let of = |range: std::ops::Range<i64>| late.iter().filter(move |ns| range.contains(ns));
        let sure: i64 = of(5_200_000..i64::MAX).sum();
        let perhaps: i64 = of(4_800_000..5_200_000).sum();
        assert!(of(5_200_000..i64::MAX).count() >= 3, "{late:?}");
        let delay_ns = first.delay_ns();
        is_near(delay_ns, delay_ns.clamp(sure, sure + perhaps), 10);
    });
}

#[test]
pub(super) fn a_process_was_frozen_by_a_freezer_of_version_1() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        // Kernels without cgroups of version 1 have no such freezer.
        if !std::fs::read_to_string("/proc/cgroups").is_ok_and(|text| text.contains("freezer")) {
            return testdata::skip("this kernel has no freezer of version 1");
        }
        let script = "R=/sys/fs/cgroup/freezer; if [ ! -e $R/cgroup.procs ]; then R=$(mktemp -d); M=$R; \
        mount -t cgroup -o freezer none $R || exit 1; fi; \
        G=$R/laglab-$$; mkdir $G || exit 1; nice -n -20 ./gaps 1.5 > gaps.txt & N=$!; echo $N > $G/cgroup.procs; sleep 0.4; \
        echo FROZEN > $G/freezer.state; sleep 0.4; echo THAWED > $G/freezer.state; wait $N; kill $B; rmdir $G; \
        [ -z \"$M\" ] || umount $M";
        let Some(recording) = recorded(folder.path(), &format!("{BUSY}; {script}")) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "gaps");
        says(
            first,
            "stopped",
            "a freezer of cgroups of version 1, or a lock of the kernel",
        );
        let gaps = numbers(folder.path(), "gaps.txt");
        let longest = gaps.iter().map(|gap| gap[1]).max().unwrap();
        assert!(longest > 350_000_000, "{longest} ns: not frozen");
        is_near(first.delay_ns(), longest, 1);
    });
}
