//! Tests of tables of recordings of Linux that were made by hand, each for one question. The texts next to the files are
//! perf's own decoding of them.

use tables::{
    Cache, ContextSwitchesView, CpuRunsView, Options, ReadyThreadsView, Store, StoredTable, Table,
};

/// Reads a table of a recording in `../shared/data/linux`.
fn table(file: &str, table: Table) -> (Store, StoredTable) {
    let path = testdata::path(&format!("linux/{file}"));
    let store = Store::open(&[path], Cache::Off).unwrap();
    let read = store.table(table, Options::default()).unwrap();
    (store, read)
}

/// Run of a thread: `ready_ns`, `waits_ns` and `previous_out_ns`.
type Run = (Option<i64>, Option<i64>, Option<i64>);

/// Returns the run of a thread that starts at this time.
fn run(file: &str, thread_id: u32, start_ns: i64) -> Run {
    let (_store, runs) = table(file, Table::CpuRuns);
    for chunk in 0..runs.chunks().len() {
        let batch = runs.read_all(chunk).unwrap();
        let view = CpuRunsView::new(&batch).unwrap();
        let mut rows = 0..batch.num_rows();
        let is_it =
            |row: &usize| (view.thread_id[*row], view.start_ns[*row]) == (thread_id, start_ns);
        if let Some(row) = rows.find(is_it) {
            let (ready, waits) = (view.ready_ns.get(row), view.waits_ns.get(row));
            return (ready, waits, view.previous_out_ns.get(row));
        }
    }
    panic!("{file} has no run of thread {thread_id} from {start_ns} ns");
}

#[test]
fn the_bits_of_states_are_those_of_the_recorded_kernel() {
    for file in ["s10_states_3.10", "s11_states_4.4", "s12_states_6.1"] {
        let file = format!("{file}.data");
        let (_store, switches) = table(&file, Table::ContextSwitches);
        let batch = switches.read_all(0).unwrap();
        let view = ContextSwitchesView::new(&batch).unwrap();
        let of_threads = (0..batch.num_rows()).filter(|row| view.old_thread_id[*row] != 0);
        let states: Vec<u8> = of_threads.map(|row| view.old_state[row]).collect();
        // Preempted, so ready; waits; ended.
        assert_eq!(states, [1, 5, 4], "{file}");
        let expected = (Some(4_000_000), Some(0), Some(1_000_000));
        assert_eq!(run(&file, 101, 5_000_000), expected, "{file}");
    }
}

#[test]
fn wakeups_are_wakes_if_the_kernel_has_no_wakings() {
    let file = "s13_wakeup_instead_of_waking.data";
    let (_store, ready) = table(file, Table::ReadyThreads);
    let batch = ready.read_all(0).unwrap();
    assert_eq!(batch.num_rows(), 1);
    let view = ReadyThreadsView::new(&batch).unwrap();
    assert_eq!((view.time_ns[0], view.thread_id[0]), (10_000_000, 101));
    // No switch of this CPU came before, so the event itself names the waker.
    assert_eq!(view.readying_thread_id.get(0), Some(201));
    assert_eq!(view.cpu[0], 1);
    let expected = (Some(4_000_000), Some(9_000_000), Some(1_000_000));
    assert_eq!(run(file, 101, 14_000_000), expected);
}

#[test]
fn a_thread_with_the_id_of_an_ended_one_has_no_earlier_run() {
    let file = "s07_thread_id_used_again.data";
    assert_eq!(run(file, 500, 52_000_000), (Some(1_000_000), None, None));
}
