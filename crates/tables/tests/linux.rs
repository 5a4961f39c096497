//! Tests of tables of Linux recordings. Each test makes a recording with perf. The tables are compared with
//! the programs that ran during the recording.
#![cfg(target_os = "linux")]

use std::path::Path;

use tables::{Cache, Options, Store, StoredTable, Table};
use testdata::perf;

pub(crate) const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,sched:sched_migrate_task,\
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
pub(crate) fn origin(file: &Path) -> i64 {
    let source = std::fs::read(file).unwrap();
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
