//! Tests of the tables of a recording of trace-cmd. The expected values are from the output of `trace-cmd report`
//! (`crates/linux/tests/trace_dat/version6.txt`).

use std::path::{Path, PathBuf};

use tables::{Cache, Options, Store, StoredTable, Table};

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/tests/trace_dat/version6.dat")
}

fn table(store: &Store, table: Table) -> StoredTable {
    store.table(table, Options::default()).unwrap()
}

/// Process of a recording: its id and the id of its parent, its name, and its start and end.
type Process = (u32, u32, String, Option<i64>, Option<i64>);

fn processes(store: &Store) -> Vec<Process> {
    let mut found = Vec::new();
    let processes = table(store, Table::Processes);
    for group in 0..processes.chunks().len() {
        let batch = processes.read_all(group).unwrap();
        let view = tables::ProcessesView::new(&batch).unwrap();
        for row in 0..batch.num_rows() {
            found.push((
                view.process_id[row],
                view.parent_id[row],
                view.image_name.get(row).unwrap_or_default().to_owned(),
                view.start_ns.get(row),
                view.end_ns.get(row),
            ));
        }
    }
    found.sort();
    found
}

/// Returns the ids of threads and their processes.
fn threads(store: &Store) -> Vec<(u32, Option<u32>)> {
    let mut found = Vec::new();
    let threads = table(store, Table::Threads);
    for group in 0..threads.chunks().len() {
        let batch = threads.read_all(group).unwrap();
        let view = tables::ThreadsView::new(&batch).unwrap();
        found.extend(
            (0..batch.num_rows()).map(|row| (view.thread_id[row], view.process_id.get(row))),
        );
    }
    found.sort_unstable();
    found
}

#[test]
fn processes_come_from_their_tracepoints() {
    let store = imports::open_store(&[recording()], Cache::Off).unwrap();
    // The times are differences to the first event, at 1795711260.620861200.
    let name = str::to_owned;
    let expected = [
        (15, 0, name("rcu_preempt"), None, None),
        (28302, 0, name("node"), None, None),
        (28404, 0, name("trace-cmd"), None, None),
        (28411, 0, name("sh"), None, Some(142_040_146)),
        (
            28412,
            28411,
            name("sleep"),
            Some(724_833),
            Some(141_776_254),
        ),
    ];
    assert_eq!(processes(&store), expected);
    // A thread whose process is unknown counts as a process.
    let expected = [15, 28302, 28404, 28411, 28412].map(|id| (id, Some(id)));
    assert_eq!(threads(&store), expected);
}

#[test]
fn the_file_next_to_the_recording_has_the_processes_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("x.dat");
    std::fs::copy(recording(), &copy).unwrap();
    let facts = "/proc/28300/task/28302/status:Cpus_allowed_list:\t0-1\n";
    std::fs::write(folder.path().join("x.dat.proc"), facts).unwrap();
    let store = imports::open_store(&[copy], Cache::Off).unwrap();
    assert!(threads(&store).contains(&(28302, Some(28300))));
}

#[test]
fn runs_and_headers_are_those_of_the_recording() {
    let store = imports::open_store(&[recording()], Cache::Off).unwrap();
    let runs = table(&store, Table::CpuRuns);
    let batch = runs.read_all(0).unwrap();
    let view = tables::CpuRunsView::new(&batch).unwrap();
    // The thread runs from the switch to `sleep` at …762591288 until the switch at …762831736.
    let rows = 0..batch.num_rows();
    let last = rows
        .filter(|row| view.thread_id[*row] == 28412)
        .max_by_key(|row| view.end_ns[*row]);
    assert_eq!(view.cpu_ns[last.unwrap()], 762_831_736 - 762_591_288);

    let sessions = table(&store, Table::Sessions);
    let batch = sessions.read_all(0).unwrap();
    let view = tables::SessionsView::new(&batch).unwrap();
    let texts = [&view.session, &view.system, &view.os_version, &view.clock];
    let texts = texts.map(|text| text.get(0).unwrap_or_default());
    assert_eq!(
        texts,
        ["trace-cmd", "Linux", "6.18.44-fc-v595", "CLOCK_MONOTONIC"]
    );
    // `date -u -d @1795711260` prints 16:41:00.
    let start = view.start_utc.get(0).unwrap();
    assert!(start.starts_with("2026-11-26T16:41:00.6208612"), "{start}");
}
