//! Tests of tables of Linux recordings. Each test makes a recording with perf. The tables are compared with the output
//! of `perf sched timehist` and with the programs that ran during the recording.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;

use tables::{Cache, Options, Store, StoredTable, Table};
use testdata::perf;

const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_migrate_task,\
    sched:sched_process_exec,sched:sched_process_exit,task:task_newtask,task:task_rename";

/// Shell command that starts many short processes. Its threads switch often during the recording.
const WORK: &str = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (sleep 0.02; seq 20000 > /dev/null) & seq 200 | tail -n 1 > /dev/null; sleep 0.03; done; wait";

fn record(folder: &Path) -> Option<Store> {
    let file = perf::record(folder, EVENTS, &[], WORK)?;
    Some(imports::open_store(&[file], Cache::Off).unwrap())
}

fn table(store: &Store, table: Table) -> StoredTable {
    store.table(table, Options::default()).unwrap()
}

/// Runs that `perf sched timehist` prints. The key has the CPU, the end of the run in microseconds, and the thread id.
/// The value has three durations in nanoseconds: the wait, the time ready, and the run.
type Runs = BTreeMap<(u16, i64, u32), [i64; 3]>;

/// Returns the runs that perf finds. perf prints times with a resolution of 1 µs.
fn timehist(folder: &Path) -> Runs {
    let text = perf::run(&["sched", "timehist", "-i", "perf.data"], folder);
    let mut runs = Runs::new();
    for line in text.lines() {
        let Some((time, rest)) = line.trim().split_once(" [") else {
            continue;
        };
        let Some((seconds, fraction)) = time.trim().split_once('.') else {
            continue;
        };
        let Ok(end) = format!("{seconds}{fraction}").parse::<i64>() else {
            continue;
        };
        let (cpu, rest) = rest.split_once(']').unwrap();
        let mut words: Vec<&str> = rest.split_whitespace().collect();
        let mut milliseconds =
            || (words.pop().unwrap().parse::<f64>().unwrap() * 1e6).round() as i64;
        let (ran, delay, waited) = (milliseconds(), milliseconds(), milliseconds());
        let name = words.join(" ");
        // The text is `name[thread/process]`, `name[thread]` or `<idle>`.
        let thread = name
            .rsplit_once('[')
            .map_or("0", |(_, ids)| ids.split(['/', ']']).next().unwrap());
        // perf prints no valid id for a thread that ended. The id in the key is then `u32::MAX`.
        let thread = thread.parse().unwrap_or(u32::MAX);
        runs.insert((cpu.parse().unwrap(), end, thread), [waited, delay, ran]);
    }
    runs
}

#[test]
fn runs_are_those_of_perf() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = record(folder.path()) else {
        return;
    };
    let expected = timehist(folder.path());
    assert!(expected.len() > 300, "{} runs", expected.len());
    let origin = origin(folder.path());
    let runs = table(&store, Table::CpuRuns);
    let mut compared = 0;
    let mut different = Vec::new();
    for group in 0..runs.chunks().len() {
        let batch = runs.read_all(group).unwrap();
        let view = tables::CpuRunsView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            let is_whole = view.starts_at_switch.get(row) == Some(true)
                && view.ends_at_switch.get(row) == Some(true);
            let key = (
                view.cpu[row],
                (view.end_ns[row] + origin) / 1000,
                view.thread_id[row],
            );
            if !is_whole || key.2 == 0 || expected.contains_key(&(key.0, key.1, u32::MAX)) {
                continue;
            }
            let Some([waited, delay, ran]) = expected.get(&key) else {
                different.push(format!("perf has no run {key:?}"));
                continue;
            };
            compared += 1;
            let near = |ours: i64, theirs: i64| (ours - theirs).abs() <= 1500;
            // perf does not count the ready time of a preempted thread. So the ready time is compared only if the
            // thread waited before the run.
            let out = view.previous_out_ns.get(row);
            let ready = view
                .ready_ns
                .get(row)
                .filter(|_| view.readied_ns.get(row) >= out && out.is_some());
            let waits = view
                .since_last_ns
                .get(row)
                .map(|since| since - ready.unwrap_or(0));
            let is_equal = near(view.cpu_ns[row], *ran)
                && ready.is_none_or(|ready| near(ready, *delay))
                && waits.is_none_or(|waits| {
                    near(waits, *waited) || near(waits + ready.unwrap_or(0), *waited)
                });
            if !is_equal {
                different.push(format!(
                    "{key:?}: {:?} {ready:?} {waits:?}; perf {:?}",
                    view.cpu_ns[row], expected[&key]
                ));
            }
        }
    }
    assert!(compared > 100, "{compared}");
    assert!(
        different.len() * 1000 <= compared * 5,
        "{} of {compared}: {:#?}",
        different.len(),
        &different[..different.len().min(20)]
    );
}

#[test]
fn each_wake_is_one_row_if_wakings_and_wakeups_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let events = format!("{EVENTS},sched:sched_wakeup");
    let Some(file) = perf::record(folder.path(), &events, &[], WORK) else {
        return;
    };
    let printed = perf::run(&["script", "-F", "event", "-i", "perf.data"], folder.path());
    let count = |name: &str| {
        let is_it = |line: &&str| line.trim().trim_end_matches(':') == name;
        printed.lines().filter(is_it).count()
    };
    assert!(count("sched:sched_wakeup") > 100);
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    let expected = count("sched:sched_waking") + count("sched:sched_wakeup_new");
    assert_eq!(table(&store, Table::ReadyThreads).rows(), expected);
}

/// Returns the time of the first event on the recording's clock, in nanoseconds.
fn origin(folder: &Path) -> i64 {
    let source = std::fs::read(folder.join("perf.data")).unwrap();
    let recording = linux::Recording::open(Box::new(source)).unwrap();
    recording
        .chunks()
        .iter()
        .filter_map(|chunk| chunk.first_ns)
        .min()
        .unwrap() as i64
}

#[test]
fn processes_and_threads_have_their_lives_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = record(folder.path()) else {
        return;
    };
    let processes = table(&store, Table::Processes);
    let mut lives = Vec::new();
    for group in 0..processes.chunks().len() {
        let batch = processes.read_all(group).unwrap();
        let view = tables::ProcessesView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            let name = view.image_name.get(row).unwrap_or_default().to_owned();
            lives.push((
                name,
                view.start_ns.get(row),
                view.end_ns.get(row),
                view.process_id[row],
            ));
        }
    }
    // The shell starts `seq` 24 times, `sleep` 24 times and `tail` 12 times. All these processes end.
    for (name, count) in [("seq", 24), ("sleep", 24), ("tail", 12)] {
        let of_name = lives.iter().filter(|life| life.0 == name);
        let whole = of_name.filter(|(_, start, end, _)| start.is_some() && end > start);
        assert!(whole.count() >= count, "{name}: {lives:?}");
    }
    let own = std::process::id();
    let me = lives
        .iter()
        .find(|life| life.3 == own)
        .expect("this process");
    assert_eq!((me.1, me.2), (None, None));
    // The process of this test existed before the recording. So it has its own name, not the name of its parent.
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(me.0, name.trim_end());
}
