//! Explanations of further faults that the tests cause on this machine while perf records it: debuggers, limits of
//! real-time threads, freezers, slow disks and cold pages. The truth is measured by the delayed program or by perf.

use std::path::Path;

use super::recorded::{
    BUSY, EVENTS, FACTS, GAPS, explain_all, first_about, is_near, names, note_cost, numbers,
    program, recorded, recorded_with, says, whole, with_all_events,
};
use testdata::perf;

/// Program that stops another one as a debugger does, and prints the shortest and the longest time for which it may
/// have been stopped.
const TRACER: &str = "#!/usr/bin/python3
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = int(sys.argv[1])
def ptrace(request):
    if libc.ptrace(request, pid, None, None): raise OSError(ctypes.get_errno())
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
ptrace(SEIZE)
a = time.monotonic_ns(); ptrace(INTERRUPT); os.waitpid(pid, WALL); b = time.monotonic_ns()
time.sleep(0.4)
c = time.monotonic_ns(); ptrace(DETACH); d = time.monotonic_ns()
print(c - b, d - a)
";

/// Program that locks its own pages in memory, enters a cgroup, and reads pages of a file that is not in memory. It
/// prints the number of accesses that took 20 µs or longer, and their total time.
const PAGES: &str = "#!/usr/bin/python3
import ctypes, mmap, os, random, sys, time
MCL_CURRENT = 1
if ctypes.CDLL(None).mlockall(MCL_CURRENT): raise OSError('mlockall')
open(sys.argv[3], 'w').write(str(os.getpid()))
file = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(file).st_size
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
memory = mmap.mmap(file, size, prot=mmap.PROT_READ)
memory.madvise(mmap.MADV_RANDOM)
count = total = 0
for page in random.sample(range(size // 4096), int(sys.argv[2])):
    start = time.monotonic_ns(); memory[page * 4096]; took = time.monotonic_ns() - start
    if took >= 20_000: count += 1; total += took
print(count, total)
";

/// Program that reads a disk without the page cache, and prints the time of each read.
const READS: &str = "#!/usr/bin/python3
import mmap, os, sys, time
disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
memory = mmap.mmap(-1, 4096)
for block in range(int(sys.argv[2])):
    os.lseek(disk, block * 4096, os.SEEK_SET)
    start = time.monotonic_ns(); os.readv(disk, [memory]); print(time.monotonic_ns() - start)
";

/// Returns the tracepoints that perf prints. Each entry has the time in seconds, and a text with the name and the
/// fields.
pub(super) fn printed(folder: &Path) -> Vec<(f64, String)> {
    printed_with(folder, &[])
}

/// Returns the tracepoints of the threads with a name, in the form that [`printed`] returns.
fn printed_of(folder: &Path, name: &str) -> Vec<(f64, String)> {
    printed_with(folder, &["--comms", name])
}

fn printed_with(folder: &Path, options: &[&str]) -> Vec<(f64, String)> {
    let line = [
        "script",
        "-i",
        "perf.data",
        "--ns",
        "-F",
        "time,event,trace",
    ];
    let text = perf::run(&[&line, options].concat(), folder);
    let event = |line: &str| {
        let (time, event) = line.split_once(':')?;
        Some((time.trim().parse().ok()?, event.to_owned()))
    };
    text.lines().filter_map(event).collect()
}

#[test]
pub(super) fn a_traced_process_was_stopped_by_a_debugger() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        program(folder.path(), "tracer", TRACER);
        let script =
            "nice -n -20 ./gaps 1.2 > gaps.txt & sleep 0.4; ./tracer $! > stopped.txt; wait";
        let Some(recording) = recorded(folder.path(), script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "gaps");
        says(first, "stopped", "by a debugger (ptrace)");
        let stopped = &numbers(folder.path(), "stopped.txt")[0];
        let delay_ns = first.delay_ns();
        note_cost(delay_ns, (stopped[0] + stopped[1]) / 2);
        // The tracer waits until the process has stopped, but it does not wait until the process runs on. So the
        // measured times have a tolerance of 0.1 ms.
        assert!(
            (stopped[0] - 100_000..stopped[1] + 100_000).contains(&delay_ns),
            "{delay_ns} ns, but {stopped:?}"
        );
    });
}

#[test]
pub(super) fn the_limit_of_real_time_threads_stops_a_hog() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        let script = "taskset -c 0 chrt -f 50 ./gaps 3.5 > gaps.txt";
        let own = || -> i64 {
            numbers(folder.path(), "gaps.txt")
                .iter()
                .map(|gap| gap[1])
                .sum()
        };
        let is_whole = || {
            let (expected_ns, times) = stopped_by_limit(folder.path());
            times >= 2 && expected_ns * 3 > own() * 2
        };
        let Some(recording) = whole(recorded(folder.path(), script), is_whole) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "gaps");
        says(first, "cpu-limit", "by the limit of real-time threads");
        let (delay_ns, (expected_ns, times)) = (first.delay_ns(), stopped_by_limit(folder.path()));
        is_near(delay_ns, expected_ns, times);
        // The program did not run for at least the reported delay. After the limit's period, other programs may use the
        // CPU first, so the program's own value is larger.
        assert!(
            delay_ns <= own(),
            "{delay_ns} ns, but {} ns by its own clock",
            own()
        );
    });
}

/// Returns the time for which the limit of real-time threads stopped `gaps`, and the number of stops. Both are from the
/// events that perf prints. A stop begins when the thread loses its CPU although it is ready, and ends with the timer
/// of the limit.
fn stopped_by_limit(folder: &Path) -> (i64, usize) {
    let (mut since, mut expected, mut times) = (None, 0.0, 0);
    for (time, event) in printed(folder) {
        if event.contains("prev_comm=gaps") && event.contains("prev_state=R") {
            since = Some((time, None));
        } else if event.contains("function=sched_rt_period_timer") {
            since = since.map(|(since, _)| (since, Some(time)));
        } else if event.contains("next_comm=gaps")
            && let Some((since, Some(period))) = since.take()
            && time - period < 0.010
            && time - since > 0.001
        {
            expected += period - since;
            times += 1;
        }
    }
    ((expected * 1e9) as i64, times)
}

/// Returns the CPU time of all threads called `gaps` in nanoseconds, computed from the events that perf prints.
fn used_by_gaps_ns(folder: &Path) -> i64 {
    let (mut since, mut used) = (None, 0.0);
    for (time, event) in printed(folder) {
        if event.contains("prev_comm=gaps") {
            used += since.take().map_or(0.0, |since| time - since);
        }
        if event.contains("next_comm=gaps") {
            since = Some(time);
        }
    }
    (used * 1e9) as i64
}

#[test]
pub(super) fn round_robin_threads_take_turns() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        program(folder.path(), "facts", &format!("#!/bin/sh\n{FACTS}\n"));
        // Both programs get the policy before one of them runs. The facts are written while the programs live. The
        // shell that writes them has real-time priority on another CPU, so that it delays no program and no program
        // delays it. Threads of the same priority keep the other CPUs busy: on an idle CPU, the programs could run if
        // they were not pinned.
        let script = "for cpu in $(seq 1 $(($(nproc) - 1))); do \
        taskset -c $cpu chrt -f 60 timeout 0.9 chrt -f 50 ./spin & done; \
        chrt -f 70 taskset -c 1 sh -c 'sleep 0.3; ./facts' & \
        chrt -f 60 sh -c 'for i in 1 2; do taskset -c 0 chrt -r 50 ./gaps 0.8 > gaps$i.txt & done; wait'; wait";
        // Both programs together use one CPU for 0.8 s. If the events show much less, some are missing.
        let is_whole = || used_by_gaps_ns(folder.path()) > 680_000_000;
        let Some(recording) = whole(recorded(folder.path(), script), is_whole) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "gaps");
        says(first, "long-waits", "real-time priority 50");
        assert!(
            first
                .sentence
                .contains("threads of the same real-time priority used"),
            "{}",
            first.sentence
        );
        let during = first.during.clone().unwrap();
        let gaps = [
            numbers(folder.path(), "gaps1.txt"),
            numbers(folder.path(), "gaps2.txt"),
        ]
        .concat();
        let nearest = gaps
            .iter()
            .map(|gap| gap[1])
            .min_by_key(|gap| (gap - (during.end - during.start)).abs());
        is_near(during.end - during.start, nearest.unwrap(), 1);
    });
}

#[test]
pub(super) fn a_thread_pinned_to_a_busy_cpu_may_not_use_the_idle_ones() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        // The facts are written while the pinned programs live.
        let script = "for i in 1 2 3; do taskset -c 0 nice -n -15 timeout 3 ./spin & done; \
        taskset -c 0 ./gaps 2 > gaps.txt & sleep 1.5";
        let Some(recording) = recorded(folder.path(), script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "gaps");
        assert_eq!(first.theory, "long-waits", "{}", first.sentence);
        assert!(names(first, "spin"), "{}", first.sentence);
        // Both causes are true. Other programs on this CPU decide which cause explains more of the wait.
        let causes = [
            "fair threads used",
            "it may run only on CPU 0, which other threads used, mostly spin",
        ];
        assert!(
            causes.iter().any(|cause| first.sentence.contains(cause)),
            "{}",
            first.sentence
        );
        // The kernel's table `sched_prio_to_weight` has the weights 29154 for -15 and 1024 for 0.
        let nice = "The waiting thread has the nice value 0. Most of the others' time went to threads with the nice value \
            -15: within a cgroup, each of them gets 28.4 times its share.";
        let has_nice = first.why.iter().any(|why| *why == nice);
        assert_eq!(
            has_nice,
            first.sentence.contains(causes[0]),
            "{:?}",
            first.why
        );
        let affinity = first
            .weighed
            .iter()
            .find(|it| it.theory == "affinity")
            .unwrap();
        assert!(
            affinity.because.to_string().contains("It may run on 1 of"),
            "{}",
            affinity.because
        );
    });
}

#[test]
pub(super) fn a_frozen_process_was_frozen_by_its_cgroup() {
    with_all_events(|folder| {
        program(folder.path(), "gaps", GAPS);
        let events = format!("{EVENTS},cgroup:cgroup_notify_frozen,cgroup:cgroup_attach_task");
        let script = "if [ -e /sys/fs/cgroup/unified/cgroup.procs ]; then R=/sys/fs/cgroup/unified; \
        elif [ -e /sys/fs/cgroup/cgroup.procs ]; then R=/sys/fs/cgroup; else exit 1; fi; \
        G=$R/laglab-$$; mkdir $G || exit 1; nice -n -20 ./gaps 1.5 > gaps.txt & echo $! > $G/cgroup.procs; sleep 0.4; \
        echo 1 > $G/cgroup.freeze; sleep 0.4; echo 0 > $G/cgroup.freeze; wait; rmdir $G";
        let Some(recording) = recorded_with(folder.path(), &events, &[], script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "gaps");
        says(first, "frozen", "A cgroup's freezer froze gaps");
        let gaps = numbers(folder.path(), "gaps.txt");
        let longest = gaps.iter().map(|gap| gap[1]).max().unwrap();
        // The longest gap of the program is the freeze, and then a short wait for a CPU. If it is shorter than 350 ms,
        // the process was not frozen.
        assert!(longest > 350_000_000, "{longest} ns: not frozen");
        is_near(first.delay_ns(), longest, 1);
    });
}

#[test]
pub(super) fn cold_pages_make_a_program_wait_for_the_disk() {
    with_all_events(|folder| {
        program(folder.path(), "pages", PAGES);
        // A limit of a cgroup makes the disk slow, so that the waits are noticeable. Python itself starts earlier, so
        // that its pages are in memory.
        let script = format!(
            "python3 -c 'import ctypes, mmap, os, random, sys, time'; {SLOW_DISK}; dd if=/dev/urandom of=file bs=1M count=8 conv=fsync 2> /dev/null; \
         nice -n -20 ./pages file 30 $P > pages.txt; rmdir $G"
        );
        let events = format!(
            "{EVENTS},major-faults,exceptions:page_fault_user,exceptions:page_fault_kernel"
        );
        let Some(recording) = recorded_with(folder.path(), &events, &["-c", "1", "-d"], &script)
        else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "pages");
        says(first, "hard-faults", "Threads waited for pages from disk");
        let pages = &numbers(folder.path(), "pages.txt")[0];
        assert!(pages[0] >= 25, "{pages:?}");
        is_near(first.delay_ns(), pages[1], pages[0] as usize);
    });
}

/// Program that maps a file larger than the memory of its cgroup, and reads the file twice. It prints the time that the
/// reads took.
const MAPS: &str = "#!/usr/bin/python3
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(file).st_size
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
start = time.monotonic_ns()
for round in range(2):
    memory = mmap.mmap(file, size, prot=mmap.PROT_READ)
    for page in range(0, size, 4096): memory[page]
print(time.monotonic_ns() - start)
";

#[test]
pub(super) fn a_full_cgroup_makes_its_threads_free_memory() {
    with_all_events(|folder| {
        program(folder.path(), "maps", MAPS);
        let script = "if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then G=/sys/fs/cgroup/memory/laglab-$$; \
        mkdir $G || exit 1; echo 16M > $G/memory.limit_in_bytes || exit 1; P=$G/tasks; \
        else G=/sys/fs/cgroup/laglab-$$; mkdir $G || exit 1; echo 16M > $G/memory.max || exit 1; P=$G/cgroup.procs; fi; \
        dd if=/dev/zero of=file bs=1M count=128 conv=fsync 2> /dev/null; \
        sh -c \"echo \\$\\$ > $P; exec nice -n -20 ./maps file > maps.txt\"; rmdir $G";
        let events = format!(
            "{EVENTS},vmscan:mm_vmscan_direct_reclaim_begin,vmscan:mm_vmscan_direct_reclaim_end,\
         vmscan:mm_vmscan_memcg_reclaim_begin,vmscan:mm_vmscan_memcg_reclaim_end"
        );
        let Some(recording) = recorded_with(folder.path(), &events, &[], script) else {
            return;
        };
        let explanation = explain_all(&recording);
        let first = first_about(&explanation, "maps");
        says(
            first,
            "memory-reclaim",
            "because its cgroup had used up its memory",
        );
        // Computes the expected time from the events that perf prints: the time between the begin and the end of each
        // reclaim of the program.
        let (mut since, mut expected, mut times) = (None, 0.0, 0);
        for (time, event) in printed_of(folder.path(), "maps") {
            if event.contains("memcg_reclaim_begin") {
                since = Some(time);
            } else if event.contains("memcg_reclaim_end")
                && let Some(since) = since.take()
            {
                expected += time - since;
                times += 1;
            }
        }
        assert!(times > 10, "{times} reclaims");
        is_near(first.delay_ns(), (expected * 1e9) as i64, 1);
        let took = numbers(folder.path(), "maps.txt")[0][0];
        assert!(first.delay_ns() < took, "{took} ns by its own clock");
    });
}

/// Commands that make a cgroup `$G`. Processes in its file `$P` may read the disk of this folder only 20 times a
/// second.
const SLOW_DISK: &str = "D=$(stat -c '%Hd:%Ld' .); D=$(cat /sys/dev/block/$D/../dev 2> /dev/null || echo $D); \
    if [ -e /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ]; then G=/sys/fs/cgroup/blkio/laglab-$$; \
    mkdir $G || exit 1; echo \"$D 20\" > $G/blkio.throttle.read_iops_device || exit 1; P=$G/tasks; \
    else G=/sys/fs/cgroup/laglab-$$; mkdir $G || exit 1; echo \"$D riops=20\" > $G/io.max || exit 1; P=$G/cgroup.procs; fi";

#[test]
pub(super) fn a_slow_disk_is_named_with_the_program_that_waits() {
    with_all_events(|folder| {
        program(folder.path(), "reads", READS);
        // A loop device reads its file on behalf of the program, so the limit makes the device slow.
        let script = format!(
            "{BUSY}; {SLOW_DISK}; dd if=/dev/urandom of=file bs=1M count=1 conv=fsync 2> /dev/null; \
         L=$(losetup -f --show --direct-io=on file) || exit 1; \
         sh -c \"echo \\$\\$ > $P; exec chrt -f 10 ./reads $L 60 > reads.txt\"; losetup -d $L; rmdir $G; kill $B"
        );
        let events =
            format!("{EVENTS},block:block_bio_queue,block:block_rq_issue,block:block_rq_complete");
        let recording = recorded_with(folder.path(), &events, &[], &script);
        let is_whole = || {
            let events = printed(folder.path());
            let of_loop = |name: &str| {
                let name = format!("{name}: 7,");
                events
                    .iter()
                    .filter(|(_, event)| event.contains(&name))
                    .count()
            };
            of_loop("block_bio_queue") >= 60 && of_loop("block_rq_complete") >= 60
        };
        let Some(recording) = whole(recording, is_whole) else {
            return;
        };
        let explanation = explain_all(&recording);
        let mut disks = explanation
            .findings
            .iter()
            .filter(|it| it.theory == "disks");
        let finding = disks
            .next()
            .unwrap_or_else(|| panic!("{:#?}", explanation.theories));
        says(finding, "disks", "disk 7:");
        assert!(names(finding, "reads"), "{:?}", finding.subjects);
        // Other programs of this machine may use other disks. So only the row of the loop device is checked.
        let mut rows = finding.evidence[0].rows.iter();
        let is_loop = |row: &&Vec<Option<explain::Value>>| matches!(row[0], Some(explain::Value::Integer(disk)) if disk >> 20 == 7);
        let requests = rows.find(is_loop).expect("the loop device");
        let Some(explain::Value::Integer(total_ns)) = requests[3] else {
            panic!("{requests:?}");
        };
        let reads: Vec<i64> = numbers(folder.path(), "reads.txt").concat();
        assert_eq!(reads.len(), 60);
        is_near(total_ns, reads.iter().sum(), 60);
    });
}

#[test]
pub(super) fn a_limit_of_a_cgroup_that_holds_back_reads_is_named() {
    with_all_events(|folder| {
        program(folder.path(), "reads", READS);
        let script = format!(
            "{BUSY}; {SLOW_DISK}; dd if=/dev/urandom of=file bs=1M count=1 conv=fsync 2> /dev/null; \
         sh -c \"echo \\$\\$ > $P; exec chrt -f 10 ./reads file 40 > reads.txt\"; rmdir $G; kill $B"
        );
        let events =
            format!("{EVENTS},block:block_bio_queue,block:block_rq_issue,block:block_rq_complete");
        let recording = recorded_with(folder.path(), &events, &[], &script);
        let is_whole = || {
            let events = printed(folder.path());
            let completed = events
                .iter()
                .filter(|(_, event)| event.contains("block_rq_complete"));
            completed.count() >= 40
        };
        let Some(recording) = whole(recording, is_whole) else {
            return;
        };
        let explanation = explain_all(&recording);
        let finding = first_about(&explanation, "reads");
        let reads: Vec<i64> = numbers(folder.path(), "reads.txt").concat();
        assert_eq!(reads.len(), 40);
        // A disk needs far less than 5 ms for a read of one page. The limit makes some of the reads wait.
        let late = reads.iter().copied().filter(|ns| *ns >= 5_000_000);
        let (count, truth_ns) = late.fold((0, 0), |(count, sum), ns| (count + 1, sum + ns));
        says(
            finding,
            "io-limit",
            "a limit on the I/O of its cgroup probably held them back",
        );
        // The program's own times include the read itself.
        is_near(finding.delay_ns(), truth_ns, 4 * count);
    });
}
