//! Comparison of the runs of threads with the counters that the kernel keeps of each thread (`schedstat`, proc(5)).
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tables::{Cache, CpuRunsView, Options, Store, Table};
use testdata::perf;

use crate::linux::EVENTS;

/// Script that lasts until the test has written a file.
const UNTIL_DONE: &str = "touch began; until [ -e done ]; do sleep 0.02; done";

/// Counters of a thread: the time on CPUs in nanoseconds, and the number of turns on a CPU.
type Counters = (i64, usize);

/// Thread of this process that does its work once, when the test asks for it.
struct Worker {
    thread_id: u32,
    start: Sender<()>,
    end: Receiver<()>,
}

impl Worker {
    fn new(work: impl FnOnce() + Send + 'static) -> Worker {
        let (start, begin) = channel();
        let (ended, end) = channel();
        thread::spawn(move || {
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            let thread_id: u32 = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
            ended.send(thread_id).unwrap();
            let _ = begin.recv();
            work();
            ended.send(thread_id).unwrap();
            let _ = begin.recv();
        });
        let thread_id = end.recv().unwrap();
        let (done, end_of_work) = channel();
        thread::spawn(move || end.recv().map(|_| done.send(())));
        Worker {
            thread_id,
            start,
            end: end_of_work,
        }
    }

    /// Reads the counters after the thread has fallen asleep. The kernel brings the counters up to date then.
    fn counters(&self) -> Counters {
        let task = Path::new("/proc/self/task").join(self.thread_id.to_string());
        let read = |file: &str| std::fs::read_to_string(task.join(file)).unwrap();
        let is_asleep = || read("stat").rsplit_once(") ").unwrap().1.starts_with('S');
        while !is_asleep() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        let text = read("schedstat");
        let mut numbers = text.split_whitespace();
        let ran_ns = numbers.next().unwrap().parse().unwrap();
        (ran_ns, numbers.nth(1).unwrap().parse().unwrap())
    }
}

fn compute(duration: Duration) {
    let start = Instant::now();
    while start.elapsed() < duration {}
}

/// Runs of a thread.
#[derive(Debug, Default)]
struct Runs {
    ran_ns: i64,
    turns: usize,
    /// Number of times that the thread followed an idle thread or an idle thread followed it.
    beside_idle: i64,
    /// Time of the runs whose start is missing. The kernel skipped the switch to the thread, and no event shows
    /// when the thread began to run.
    without_start_ns: i64,
}

fn runs(store: &Store, thread_id: u32) -> Runs {
    let table = store.table(Table::CpuRuns, Options::default()).unwrap();
    let mut runs = Runs::default();
    for group in 0..table.chunks().len() {
        let batch = table.read_all(group).unwrap();
        let view = CpuRunsView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            let both = (view.thread_id[row], view.previous_thread_id.get(row));
            runs.beside_idle +=
                i64::from([(thread_id, Some(0)), (0, Some(thread_id))].contains(&both));
            if both.0 == thread_id {
                runs.ran_ns += view.cpu_ns[row];
                runs.turns += 1;
                if view.planned_thread_id.get(row).is_some() {
                    runs.without_start_ns += view.cpu_ns[row];
                }
            }
        }
    }
    runs
}

/// Time in nanoseconds that the host of a virtual machine took from its CPUs. Source: field `steal` of `/proc/stat`
/// (proc(5)), in units of 10 ms.
fn stolen_ns() -> i64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = text.split_whitespace().nth(8).unwrap();
    ticks.parse::<i64>().unwrap() * 10_000_000
}

/// Returns threads that compute and sleep, that only compute, and that wait for each other.
fn workers() -> [Worker; 4] {
    let (ping, from_ping) = channel();
    let (pong, from_pong) = channel();
    [
        Worker::new(|| {
            for _ in 0..1500 {
                compute(Duration::from_micros(200));
                thread::sleep(Duration::from_micros(200));
            }
        }),
        Worker::new(|| compute(Duration::from_millis(1200))),
        Worker::new(move || {
            for turn in 0..5000 {
                ping.send(turn).unwrap();
                let _ = from_pong.recv();
            }
        }),
        Worker::new(move || {
            from_ping
                .iter()
                .for_each(|turn| pong.send(turn).unwrap_or_default())
        }),
    ]
}

#[test]
fn turns_and_times_of_threads_are_those_that_the_kernel_counts() {
    let folder = tempfile::tempdir().unwrap();
    let workers = workers();
    let path = folder.path().to_owned();
    let recorder = thread::spawn(move || perf::record(&path, EVENTS, &[], UNTIL_DONE));
    while !folder.path().join("began").exists() && !recorder.is_finished() {
        thread::sleep(Duration::from_millis(1));
    }
    let stolen = stolen_ns();
    let before = workers.each_ref().map(Worker::counters);
    for worker in &workers {
        worker.start.send(()).unwrap();
    }
    for worker in &workers {
        worker.end.recv().unwrap();
    }
    let after = workers.each_ref().map(Worker::counters);
    let stolen = stolen_ns() - stolen;
    std::fs::write(folder.path().join("done"), "").unwrap();
    let Some(file) = recorder.join().unwrap() else {
        return;
    };
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    let damages = store.table(Table::Damages, Options::default()).unwrap();
    assert_eq!(damages.rows(), 0, "events were lost");
    for ((worker, before), after) in workers.iter().zip(before).zip(after) {
        let (expected_ns, expected_turns) = (after.0 - before.0, after.1 - before.1);
        let runs = runs(&store, worker.thread_id);
        assert_eq!(runs.turns, expected_turns, "thread {}", worker.thread_id);
        // The kernel reads its clock when it begins to choose the next thread, and logs the switch when it has chosen.
        // The choice takes some microseconds, and longer before a CPU becomes idle, because the kernel then looks for
        // threads that wait for other CPUs. The kernel does not count the time that the host took.
        let of_choices = 10_000 * runs.turns as i64 + 100_000 * runs.beside_idle;
        let accepted = of_choices + runs.without_start_ns + stolen + 10_000_000;
        assert!(
            (runs.ran_ns - expected_ns).abs() <= accepted,
            "{runs:?}, expected {expected_ns} ns, {stolen} ns stolen"
        );
    }
}
