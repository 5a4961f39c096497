//! Tests of tables of recordings of Linux that were made by hand, each for one question. The texts next to the files are
//! perf's own decoding of them.

use std::path::Path;

use tables::{
    Cache, ContextSwitchesView, CpuRunsView, DamagesView, EventKindsView, HardFaultsView, Options,
    ProcessesView, ReadyThreadsView, SamplesView, SessionsView, Store, StoredTable, Table,
    ThreadsView,
};

use crate::forged::{self, Parts, attribute, record};

/// Reads a table of a recording in `../shared/data/linux`, or in another folder if the path is absolute.
fn table(file: &str, table: Table) -> (Store, StoredTable) {
    let path = testdata::path("linux").join(file);
    let store = imports::open_store(&[path], Cache::Off).unwrap();
    let read = store.table(table, Options::default()).unwrap();
    (store, read)
}

/// Changes a recording in `../shared/data/linux`, and writes it to a folder. Returns the path of the new file.
fn changed(folder: &Path, file: &str, change: impl FnOnce(&mut Parts)) -> String {
    let mut parts = Parts::parse(&testdata::bytes(&format!("linux/{file}")));
    change(&mut parts);
    write(folder, &parts.joined())
}

fn write(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("changed.data");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Row of `damage`: start, end, CPU, kind, count and offset.
type Damage = (i64, Option<i64>, Option<u16>, String, u64, Option<u64>);

fn damage(file: &str) -> Vec<Damage> {
    let (_store, damage) = table(file, Table::Damages);
    let mut rows = Vec::new();
    for chunk in 0..damage.chunks().len() {
        let batch = damage.read_all(chunk).unwrap();
        let view = DamagesView::new(&batch).unwrap();
        rows.extend((0..batch.num_rows()).map(|row| {
            (
                view.start_ns[row],
                view.end_ns.get(row),
                view.cpu.get(row),
                view.kind.get(row).unwrap().to_owned(),
                view.count.get(row).unwrap(),
                view.buffer_offset_bytes.get(row),
            )
        }));
    }
    rows
}

/// Row of `threads`: thread, process, name, first sign, start and end.
type Thread = (
    u32,
    Option<u32>,
    Option<String>,
    i64,
    Option<i64>,
    Option<i64>,
);

fn threads(file: &str) -> Vec<Thread> {
    let (_store, threads) = table(file, Table::Threads);
    let batch = threads.read_all(0).unwrap();
    let view = ThreadsView::new(&batch).unwrap();
    let rows = (0..batch.num_rows()).map(|row| {
        (
            view.thread_id[row],
            view.process_id.get(row),
            view.name.get(row).map(str::to_owned),
            view.first_seen_ns[row],
            view.start_ns.get(row),
            view.end_ns.get(row),
        )
    });
    rows.collect()
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

/// Returns descriptions of the event `sched_waking`, as records (PERF_RECORD_HEADER_TRACING_DATA, 66, with the data after
/// it, and PERF_RECORD_HEADER_ATTR, 64). The fields are those of `sched_wakeup` in `s13_wakeup_instead_of_waking.data`.
fn description_of_waking() -> Vec<u8> {
    let fields = [
        "unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
        "unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;",
        "unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;",
        "int common_pid;\toffset:4;\tsize:4;\tsigned:1;",
        "char comm[16];\toffset:8;\tsize:16;\tsigned:1;",
        "pid_t pid;\toffset:24;\tsize:4;\tsigned:1;",
        "int prio;\toffset:28;\tsize:4;\tsigned:1;",
        "int target_cpu;\toffset:36;\tsize:4;\tsigned:1;",
    ];
    let fields = fields.map(|field| format!("\tfield:{field}\n"));
    let format = format!("name: sched_waking\nID: 318\nformat:\n{}", fields.concat());
    let data = [
        // The byte order, the size of `long` and the size of a page follow the version.
        &b"\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0"[..],
        b"header_page\0",
        &[0; 8],
        b"header_event\0",
        &[0; 8],
        // There is no event of ftrace itself, and one subsystem with one event.
        &0_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        b"sched\0",
        &1_u32.to_le_bytes(),
        &(format.len() as u64).to_le_bytes(),
        format.as_bytes(),
    ]
    .concat();
    let size = u32::try_from(data.len()).unwrap();
    let padding = vec![0; data.len().next_multiple_of(8) - data.len()];
    // The samples have the number 1200.
    let event = [
        attribute((2, 318), 0x10587),
        1200_u64.to_le_bytes().to_vec(),
    ]
    .concat();
    [
        record(66, &size.to_le_bytes()),
        data,
        padding,
        record(64, &event),
    ]
    .concat()
}

/// Returns the index of the only `sched_wakeup` of `s13_wakeup_instead_of_waking.data`: thread 201 on CPU 1 wakes thread
/// 101 at 10 ms.
fn wakeup(parts: &Parts) -> usize {
    let mut records = parts.records.iter();
    let index = records.position(|it| forged::time(it) == 10_000_000);
    index.unwrap()
}

/// Changes the time of a `sched_wakeup`, and the thread that becomes ready.
fn moved(wakeup: &[u8], time_ns: u64, thread_id: u32) -> Vec<u8> {
    let mut wakeup = wakeup.to_vec();
    let (time, pid) = (8 + 24, 60 + 24);
    wakeup[time..time + 8].copy_from_slice(&(forged::ORIGIN_NS + time_ns).to_le_bytes());
    wakeup[pid..pid + 4].copy_from_slice(&thread_id.to_le_bytes());
    wakeup
}

/// Returns a `sched_waking` with the fields of a `sched_wakeup`.
fn waking(wakeup: &[u8]) -> Vec<u8> {
    let mut waking = wakeup.to_vec();
    let (number, kind) = (8, 60);
    waking[number..number + 8].copy_from_slice(&1200_u64.to_le_bytes());
    waking[kind..kind + 2].copy_from_slice(&318_u16.to_le_bytes());
    waking
}

/// Writes a recording that also describes `sched_waking`. `wakes` makes the records that replace its first wake.
fn with_wakes(folder: &Path, wakes: impl FnOnce(&[u8]) -> Vec<Vec<u8>>) -> String {
    changed(folder, "s13_wakeup_instead_of_waking.data", |parts| {
        let at = wakeup(parts);
        let replaced = wakes(&parts.records[at]);
        parts.records.splice(at..=at, replaced);
        parts.records.insert(0, description_of_waking());
    })
}

/// Returns the wakes of a recording: their times and the threads that become ready.
fn wakes(file: &str) -> Vec<(i64, u32)> {
    let (_store, ready) = table(file, Table::ReadyThreads);
    let batch = ready.read_all(0).unwrap();
    let view = ReadyThreadsView::new(&batch).unwrap();
    let rows = 0..batch.num_rows();
    rows.map(|row| (view.time_ns[row], view.thread_id[row]))
        .collect()
}

#[test]
fn few_wakings_do_not_replace_the_wakeups() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_wakes(folder.path(), |first| {
        // The first of three wakes has both events.
        vec![
            waking(&moved(first, 9_000_000, 101)),
            first.to_vec(),
            moved(first, 11_000_000, 102),
            moved(first, 12_000_000, 103),
        ]
    });
    assert_eq!(damage(&file), []);
    let expected = [(10_000_000, 101), (11_000_000, 102), (12_000_000, 103)];
    assert_eq!(wakes(&file), expected);
}

#[test]
fn a_waking_counts_and_its_wakeup_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_wakes(folder.path(), |first| {
        vec![waking(&moved(first, 9_000_000, 101)), first.to_vec()]
    });
    assert_eq!(damage(&file), []);
    assert_eq!(wakes(&file), [(9_000_000, 101)]);
    // The thread waits from 1 ms to 9 ms, and is then ready to 14 ms.
    let expected = (Some(5_000_000), Some(8_000_000), Some(1_000_000));
    assert_eq!(run(&file, 101, 14_000_000), expected);
}

#[test]
fn a_thread_with_the_id_of_an_ended_one_has_no_earlier_run() {
    let file = "s07_thread_id_used_again.data";
    assert_eq!(run(file, 500, 52_000_000), (Some(1_000_000), None, None));
}

#[test]
fn an_ended_thread_has_no_later_run_even_if_its_last_switch_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    // The last recorded switch of the first thread is a wait (bit 1 of `prev_state`).
    let file = changed(folder.path(), "s07_thread_id_used_again.data", |parts| {
        let switch = parts
            .records
            .iter_mut()
            .rfind(|it| forged::time(it) == 1_000_999);
        let state = 60 + 32;
        switch.unwrap()[state..state + 8].copy_from_slice(&1_u64.to_le_bytes());
    });
    assert_eq!(run(&file, 500, 52_000_000), (Some(1_000_000), None, None));
}

#[test]
fn a_run_begins_not_before_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    // Neither the wake at 51 ms nor the switch to the second thread 500 at 52 ms is recorded. It started at 50 ms.
    let file = changed(folder.path(), "s07_thread_id_used_again.data", |parts| {
        parts
            .records
            .retain(|it| ![51_000_000, 52_000_000].contains(&forged::time(it)));
    });
    assert_eq!(run(&file, 500, 50_000_000), (None, None, None));
}

#[test]
fn a_run_begins_not_before_the_wake_of_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    // Thread 101 waits from 1 ms. Thread 201 runs on CPU 1 from 0.1 ms and wakes it at 11 ms. The switch from thread 201
    // to thread 101 at 13 ms is not recorded.
    let file = changed(folder.path(), "s01_wait_spans_cpus.data", |parts| {
        parts.records.retain(|it| forged::time(it) != 13_000_000);
    });
    let waited = (None, Some(10_000_000), Some(1_000_000));
    assert_eq!(run(&file, 101, 11_000_000), waited);
    assert_eq!(run(&file, 201, 100_000), (None, None, None));
}

#[test]
fn losses_are_between_two_records_of_their_cpu() {
    // `perf sched timehist` prints "lost 57 events on cpu 0" at 2 ms. The record before is a switch at 1 ms.
    let lost = |start, end| {
        let kind = "events_lost".to_owned();
        (start, Some(end), Some(0), kind, 57, None)
    };
    let file = "s08_57_records_lost.data";
    assert_eq!(damage(file), [lost(1_000_000, 2_000_000)]);
}

#[test]
fn a_time_with_throttled_samples_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = changed(folder.path(), "s08_57_records_lost.data", |parts| {
        // PERF_RECORD_LOST (2) becomes PERF_RECORD_THROTTLE (5) and PERF_RECORD_UNTHROTTLE (6). Their fields are the
        // time, the id of the event, and its number.
        let at = parts.records.iter().position(|it| it[0] == 2).unwrap();
        let lost = parts.records.remove(at);
        for (kind, time_ns) in [(6, 3_000_000), (5, 2_000_000)] {
            let mut trailer = lost[lost.len() - 32..].to_vec();
            let time_ns: u64 = forged::ORIGIN_NS + time_ns;
            trailer[8..16].copy_from_slice(&time_ns.to_le_bytes());
            let numbers = [time_ns, 1000, 1000].map(u64::to_le_bytes).concat();
            parts
                .records
                .insert(at, record(kind, &[numbers, trailer].concat()));
        }
    });
    let kind = "throttled".to_owned();
    let expected = (2_000_000, Some(3_000_000), Some(0), kind, 1, None);
    assert_eq!(damage(&file), [expected]);
}

#[test]
fn compressed_records_of_a_wrong_size_are_damage() {
    for file in [
        "mut__compressed2_data_size_too_large.data",
        "mut__compressed2_data_size_zero.data",
    ] {
        let rows = damage(file);
        let [(.., kind, 1, Some(1056))] = &rows[..] else {
            panic!("{file}: {rows:?}");
        };
        assert_eq!(kind, "decompress");
    }
}

#[test]
fn a_recording_of_a_killed_perf_says_so_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = testdata::bytes("linux/s02_open_at_the_ends.data");
    let end = forged::number(&bytes, 40) + forged::number(&bytes, 48);
    bytes.truncate(end as usize);
    bytes[48..56].fill(0);
    let file = write(folder.path(), &bytes);
    let rows = damage(&file);
    // All six tracepoints have no description.
    let kinds: Vec<_> = rows.iter().map(|row| (&*row.3, row.4)).collect();
    assert_eq!(kinds, [("killed", 1), ("unknown_record", 6)]);
    let (_store, sessions) = table(&file, Table::Sessions);
    let batch = sessions.read_all(0).unwrap();
    let view = SessionsView::new(&batch).unwrap();
    assert_eq!(
        (view.system.get(0), view.os_version.get(0)),
        (Some("Linux"), None)
    );
}

#[test]
fn empty_feature_sections_are_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = changed(folder.path(), "s02_open_at_the_ends.data", |parts| {
        assert!(parts.features.len() > 3);
        for place in &mut parts.features[1..] {
            *place = (u64::MAX, 0);
        }
    });
    assert_eq!(damage(&file), []);
}

#[test]
fn a_thread_that_only_a_switch_names_has_this_name() {
    let found = threads("s02_open_at_the_ends.data");
    let delta = found.iter().find(|thread| thread.0 == 401).unwrap();
    // The switch to the thread is the last event, 17 ms after the first one.
    let expected = (401, None, Some("delta".to_owned()), 17_000_000, None, None);
    assert_eq!(*delta, expected);
}

#[test]
fn a_thread_that_only_ends_is_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let file = changed(folder.path(), "s07_thread_id_used_again.data", |parts| {
        // PERF_RECORD_EXIT (4) has the ids of the process, its parent, the thread and the thread's parent.
        let at = parts.records.iter().position(|it| it[0] == 4).unwrap();
        let mut exit = parts.records[at].clone();
        for (field, id) in [900_u32, 1, 901, 1].into_iter().enumerate() {
            exit[8 + 4 * field..12 + 4 * field].copy_from_slice(&id.to_le_bytes());
        }
        // A second record of its end does not make a second thread.
        parts.records.splice(at..at, [exit.clone(), exit]);
    });
    let found: Vec<Thread> = threads(&file);
    let found: Vec<&Thread> = found.iter().filter(|thread| thread.0 == 901).collect();
    let end_ns = 1_000_000;
    assert_eq!(found, [&(901, Some(900), None, end_ns, None, Some(end_ns))]);
}

#[test]
fn events_without_names_have_those_of_their_type_and_number() {
    let folder = tempfile::tempdir().unwrap();
    // The layout of samples is instruction, thread, time, CPU.
    let body = [1_u64, 7 << 32 | 7, 1000, 0].map(u64::to_le_bytes).concat();
    for (kind, number, name) in [(0, 1, "instructions"), (1, 0, "cpu-clock"), (9, 5, "9:5")] {
        let bytes = forged::file(&[attribute((kind, number), 0x87)], &record(9, &body));
        let (_store, kinds) = table(&write(folder.path(), &bytes), Table::EventKinds);
        let batch = kinds.read_all(0).unwrap();
        let view = EventKindsView::new(&batch).unwrap();
        assert_eq!(view.event.get(0), Some(name));
    }
}

/// Returns a sample without a CPU: its instruction, thread, time and further numbers.
fn sample(thread_id: u64, time_ns: u64, rest: &[u64]) -> Vec<u8> {
    let body = [&[0x1000, thread_id << 32 | 7, time_ns], rest].concat();
    let body: Vec<u8> = body.into_iter().flat_map(u64::to_le_bytes).collect();
    record(9, &body)
}

#[test]
fn samples_without_cpus_have_their_threads_and_stacks() {
    // `perf record COMMAND` records no CPU. The last fields are the number of callers and their addresses. The records are
    // those of two ring buffers, which follow each other without an order in time.
    let records = [
        sample(7, 1000, &[2, 0x1000, 0x2000]),
        sample(7, 9000, &[1, 0x1000]),
        sample(8, 5000, &[2, 0x1000, 0x3000]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let bytes = forged::file(&[attribute((1, 0), 0x27)], &records.concat());
    let (_store, samples) = table(&write(folder.path(), &bytes), Table::Samples);
    let batch = samples.read_all(0).unwrap();
    let view = SamplesView::new(&batch).unwrap();
    let row = |row: usize| {
        let has_stack = view.stack_id.get(row).is_some();
        let place = (view.time_ns[row], view.cpu.get(row));
        (place, view.thread_id[row], view.address[row], has_stack)
    };
    let rows: Vec<_> = (0..view.len()).map(row).collect();
    let expected = [(0, 7), (4000, 8), (8000, 7)];
    let expected = expected.map(|(time_ns, thread)| ((time_ns, None), thread, 0x1000, true));
    assert_eq!(rows, expected);
}

#[test]
fn hard_faults_without_cpus_have_their_threads_and_addresses() {
    let records = [sample(7, 1000, &[0x4000]), sample(8, 6000, &[0x5000])];
    let folder = tempfile::tempdir().unwrap();
    let bytes = forged::file(&[attribute((1, 6), 0x0f)], &records.concat());
    let (_store, faults) = table(&write(folder.path(), &bytes), Table::HardFaults);
    let batch = faults.read_all(0).unwrap();
    let view = HardFaultsView::new(&batch).unwrap();
    let row = |row: usize| {
        let place = (view.time_ns[row], view.cpu.get(row));
        (place, view.thread_id[row], view.address[row])
    };
    let rows: Vec<_> = (0..view.len()).map(row).collect();
    assert_eq!(rows, [((0, None), 7, 0x4000), ((5000, None), 8, 0x5000)]);
}

/// Fields at the end of the records that [`comm`] and [`fork`] make: thread (2), time (4), CPU (128).
const FIELDS: u64 = 0x86;

/// Returns a time of the recording's clock.
fn at_ms(ms: u64) -> u64 {
    forged::ORIGIN_NS + ms * 1_000_000
}

/// Returns the fields at the end of a record.
fn last_fields(thread_id: u32, time_ns: u64) -> Vec<u8> {
    let thread = u64::from(thread_id);
    let fields = [thread << 32 | thread, time_ns, 0];
    fields.map(u64::to_le_bytes).concat()
}

/// Returns the record of the name of a thread (PERF_RECORD_COMM). `ids` are those of its process and of itself.
fn comm(ids: [u32; 2], time_ns: u64, name: &[u8; 8]) -> Vec<u8> {
    let start = ids.map(u32::to_le_bytes).concat();
    let end = last_fields(ids[1], time_ns);
    record(3, &[&start[..], name, &end].concat())
}

/// Returns the record of the start of a process (PERF_RECORD_FORK). A process that ran before has the time 0.
fn fork(process_id: u32, parent_id: u32, time_ns: u64) -> Vec<u8> {
    let ids = [process_id, parent_id, process_id, parent_id];
    let start = ids.map(u32::to_le_bytes).concat();
    let end = last_fields(process_id, time_ns);
    record(7, &[&start[..], &time_ns.to_le_bytes(), &end].concat())
}

/// Returns the description of an event of a kernel that marks the names of new programs (bit 24 of the flags,
/// `comm_exec`).
fn marks_exec() -> Vec<u8> {
    let mut attribute = attribute((1, 0), FIELDS);
    let flags = 40;
    attribute[flags + 3] |= 1;
    attribute
}

/// Returns the name of a process.
fn image_name(file: &str, process_id: u32) -> Option<String> {
    let (_store, processes) = table(file, Table::Processes);
    let batch = processes.read_all(0).unwrap();
    let view = ProcessesView::new(&batch).unwrap();
    let mut rows = 0..batch.num_rows();
    let row = rows.find(|row| view.process_id[*row] == process_id);
    view.image_name.get(row.unwrap()).map(str::to_owned)
}

#[test]
fn a_process_has_its_last_name_if_the_kernel_does_not_mark_new_programs() {
    let folder = tempfile::tempdir().unwrap();
    let records = [
        comm([100, 100], 0, b"perf\0\0\0\0"),
        fork(200, 100, at_ms(0)),
        comm([200, 200], at_ms(1), b"perf\0\0\0\0"),
        comm([200, 200], at_ms(2), b"true\0\0\0\0"),
        // The name of another thread is no name of the process.
        comm([200, 201], at_ms(3), b"worker\0\0"),
    ]
    .concat();
    let old = forged::file(&[attribute((1, 0), FIELDS)], &records);
    let file = write(folder.path(), &old);
    assert_eq!(image_name(&file, 200).as_deref(), Some("true"));
    // A newer kernel would have marked a new program. So here, the thread only has a new name.
    let new = forged::file(&[marks_exec()], &records);
    let file = write(folder.path(), &new);
    assert_eq!(image_name(&file, 200).as_deref(), Some("perf"));
}

#[test]
fn a_process_that_ran_before_has_its_own_name_and_not_that_of_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let records = [
        comm([100, 100], 0, b"bash\0\0\0\0"),
        fork(200, 100, 0),
        comm([200, 200], 0, b"chrome\0\0"),
        fork(300, 100, at_ms(0)),
    ]
    .concat();
    let file = write(folder.path(), &forged::file(&[marks_exec()], &records));
    assert_eq!(image_name(&file, 200).as_deref(), Some("chrome"));
    // This process started while perf recorded. It still runs the program of its parent.
    assert_eq!(image_name(&file, 300).as_deref(), Some("bash"));
}
