//! Compares the tables of texts with those of the recordings from which perf made them. `../shared/data/linux` has both.

use std::path::Path;

use arrow_array::RecordBatch;

use tables::{Cache, ContextSwitchesView, Options, ReadyThreadsView, Store, Table, ThreadsView};

/// Row of a table: its time, and the other columns as text.
type Row = (i64, String);

fn rows<R>(file: &Path, table: Table, row: impl Fn(&RecordBatch, usize) -> R) -> Vec<R> {
    let store: Store = imports::open_store(&[file.to_owned()], Cache::Off).unwrap();
    let table = store.table(table, Options::default()).unwrap();
    let mut rows = Vec::new();
    for chunk in 0..table.chunks().len() {
        let batch = table.read_all(chunk).unwrap();
        rows.extend((0..batch.num_rows()).map(|index| row(&batch, index)));
    }
    rows
}

fn switches(file: &Path) -> Vec<Row> {
    rows(file, Table::ContextSwitches, |batch, row| {
        let view = ContextSwitchesView::new(batch).unwrap();
        let threads = (view.old_thread_id[row], view.new_thread_id[row]);
        let priorities = (view.old_priority.get(row), view.new_priority.get(row));
        let state = view.old_state.get(row);
        (
            view.time_ns[row],
            format!("{} {threads:?} {priorities:?} {state:?}", view.cpu[row]),
        )
    })
}

fn wakes(file: &Path) -> Vec<Row> {
    rows(file, Table::ReadyThreads, |batch, row| {
        let view = ReadyThreadsView::new(batch).unwrap();
        let waker = view.readying_thread_id.get(row);
        let by_dpc = view.by_dpc.get(row);
        let thread = view.thread_id[row];
        (view.time_ns[row], format!("{thread} {waker:?} {by_dpc:?}"))
    })
}

/// Returns the ids of threads and their processes.
fn threads(file: &Path) -> Vec<(u32, Option<u32>)> {
    rows(file, Table::Threads, |batch, row| {
        let view = ThreadsView::new(batch).unwrap();
        (view.thread_id[row], view.process_id.get(row))
    })
}

#[test]
fn texts_of_perf_fill_the_tables_like_the_recordings() {
    let folder = testdata::path("linux");
    let mut compared = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let text = entry.unwrap().path();
        let name = text.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = name.strip_suffix(".script.txt") else {
            continue;
        };
        let recording = folder.join(format!("{name}.data"));
        // The recording can begin earlier, with a record that the text does not contain.
        let earlier = switches(&recording)[0].0 - switches(&text)[0].0;
        for table in [switches, wakes] {
            let (found, expected) = (table(&text), table(&recording));
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                let apart = (found.0 + earlier).abs_diff(expected.0);
                assert!(apart < 1000, "{name}: {found:?} {expected:?}");
                assert_eq!(found.1, expected.1, "{name}");
                compared += 1;
            }
        }
        // A thread that logged no event counts as the only thread of a process.
        let (found, expected) = (threads(&text), threads(&recording));
        let is_known =
            |row: &&(u32, Option<u32>)| expected.contains(row) || expected.contains(&(row.0, None));
        let missing: Vec<_> = found.iter().filter(|row| !is_known(row)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
    // Each of the ten recordings has at least four switches.
    assert!(compared >= 40, "{compared}");
}
