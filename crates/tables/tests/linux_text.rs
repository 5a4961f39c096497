//! Compares the tables of texts with those of the recordings from which perf made them. `../shared/data/linux` has both.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use tables::{
    Cache, ContextSwitchesView, CpuRunsView, Options, ProcessesView, ReadyThreadsView, Store,
    Table, ThreadsView,
};

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

/// Writes a text with these lines, as the kernel prints it. Returns its path.
fn written(folder: &Path, lines: &[String]) -> PathBuf {
    let file = folder.join("trace.txt");
    let header = "# tracer: nop\n#\n";
    std::fs::write(&file, [header, &lines.concat()].concat()).unwrap();
    file
}

/// Returns the text of a switch as the kernel prints it. Each thread has the name `t`.
fn switch(cpu: u32, ms: u32, old: u32, new: u32) -> String {
    format!(
        "t-{old} [00{cpu}] d..2. 5.{ms:03}000: sched_switch: prev_comm=t prev_pid={old} prev_prio=120 prev_state=S ==> \
         next_comm=t next_pid={new} next_prio=120\n"
    )
}

#[test]
fn a_missing_switch_is_a_skipped_one_unless_events_of_its_cpu_are_lost() {
    // On CPU 1, thread 31 runs although the switch before started thread 30. On CPU 0, thread 50 waits at the same time.
    let lines = [
        switch(0, 1, 10, 50),
        switch(0, 2, 50, 10),
        switch(1, 3, 20, 30),
        switch(1, 4, 31, 20),
        switch(0, 5, 10, 50),
        switch(0, 6, 50, 10),
        switch(1, 7, 20, 30),
    ];
    let ran_unseen = |lost: Option<(u32, usize)>| {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = lines.to_vec();
        if let Some((cpu, at)) = lost {
            lines.insert(at, format!("CPU:{cpu} [LOST 9 EVENTS]\n"));
        }
        let file = written(folder.path(), &lines);
        let runs = rows(&file, Table::CpuRuns, |batch, row| {
            let view = CpuRunsView::new(batch).unwrap();
            let is_it = view.previous_out_ns.get(row).is_some();
            (view.thread_id[row], is_it, view.ran_unseen.get(row))
        });
        let run = |thread_id, is_again| {
            let mut runs = runs.iter();
            let run = runs.find(|run| (run.0, run.1) == (thread_id, is_again));
            run.unwrap_or_else(|| panic!("{thread_id} {runs:?}")).2
        };
        [run(31, false), run(50, true)]
    };
    // The kernel skipped the switch from 30 to 31. Thread 50 did not run then.
    assert_eq!(ran_unseen(None), [Some(true), Some(false)]);
    assert_eq!(ran_unseen(Some((0, 2))), [Some(true), Some(false)]);
    assert_eq!(ran_unseen(Some((1, 6))), [Some(true), Some(false)]);
    // Several switches can be lost, and thread 50 can have run between them.
    assert_eq!(ran_unseen(Some((1, 3))), [Some(false), Some(true)]);
}

#[test]
fn a_wake_after_a_skipped_switch_is_by_the_thread_of_its_event() {
    // The switch from the idle thread to thread 31 is missing.
    let lines = [
        switch(1, 3, 20, 0),
        "t-31 [001] d..3. 5.004000: sched_waking: comm=t pid=40 prio=120 target_cpu=001\n"
            .to_owned(),
        switch(1, 5, 31, 40),
    ];
    let folder = tempfile::tempdir().unwrap();
    let wakes = wakes(&written(folder.path(), &lines));
    assert_eq!(wakes.len(), 1);
    assert_eq!(wakes[0].1, "40 Some(31) Some(false)");
}

#[test]
fn a_thread_that_no_tick_shows_ran_only_briefly_after_the_idle_thread() {
    // The switch from the idle thread to thread 31 and the wake of thread 31 are missing.
    let mut lines = vec![
        switch(0, 1, 10, 11),
        switch(1, 3, 20, 0),
        switch(1, 50, 31, 0),
        switch(0, 51, 11, 10),
    ];
    let folder = tempfile::tempdir().unwrap();
    let run = |lines: &[String]| {
        let runs = rows(
            &written(folder.path(), lines),
            Table::CpuRuns,
            |batch, row| {
                let view = CpuRunsView::new(batch).unwrap();
                let is_contradicted = view.planned_thread_id.get(row).is_some();
                (view.thread_id[row], view.cpu_ns[row], is_contradicted)
            },
        );
        runs.into_iter().find(|run| run.0 == 31).unwrap()
    };
    // Without ticks, the thread may have run for the whole time.
    assert_eq!(run(&lines), (31, 47_000_000, true));
    // The timer shows threads that run for long.
    let tick = "t-11 [000] d.h1. 5.030000: local_timer_entry: vector=236\n";
    lines.insert(2, tick.to_owned());
    assert_eq!(run(&lines), (31, 1, false));
}

#[test]
fn fair_threads_have_nice_values_and_idle_cpus_a_state() {
    let with_priority = |line: String, old: &str, new: &str| {
        let line = line.replace("prev_prio=120", &format!("prev_prio={old}"));
        line.replace("next_prio=120", &format!("next_prio={new}"))
    };
    let idle = |ms: u32, state: u32| {
        format!("<idle>-0 [000] d..1. 5.{ms:03}000: cpu_idle: state={state} cpu_id=0\n")
    };
    let lines = [
        with_priority(switch(0, 1, 10, 11), "100", "139"),
        with_priority(switch(0, 2, 11, 12), "139", "49"),
        with_priority(switch(0, 3, 12, 0), "-1", "120"),
        idle(4, 1),
        idle(5, u32::MAX),
        idle(6, 2),
        idle(7, u32::MAX),
        switch(0, 8, 0, 10),
        switch(0, 9, 10, 0),
        // The CPU left the idle thread before it entered an idle state.
        switch(0, 10, 0, 10),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), &lines);
    let switches = rows(&file, Table::ContextSwitches, |batch, row| {
        let view = ContextSwitchesView::new(batch).unwrap();
        let nice = (view.old_nice.get(row), view.new_nice.get(row));
        (nice, view.previous_c_state.get(row))
    });
    let expected = [
        ((Some(-20), Some(19)), None),
        ((Some(19), None), None),
        ((None, None), None),
        ((None, Some(0)), Some(2)),
        ((Some(0), None), None),
        ((None, Some(0)), None),
    ];
    assert_eq!(switches, expected);
    let runs = rows(&file, Table::CpuRuns, |batch, row| {
        let view = CpuRunsView::new(batch).unwrap();
        let state = view.previous_c_state.get(row);
        (view.thread_id[row], view.nice.get(row), state)
    });
    let run = |thread, nice, state| (thread, nice, state);
    for expected in [
        run(11, Some(19), None),
        run(12, None, None),
        run(10, Some(0), Some(2)),
    ] {
        assert!(runs.contains(&expected), "{expected:?} {runs:?}");
    }
}

#[test]
fn policies_and_cgroups_are_those_of_the_facts_next_to_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [switch(0, 1, 10, 11), switch(0, 2, 11, 10)];
    let file = written(folder.path(), &lines);
    // The fields of `stat` are those of a real file; the name has a space and a parenthesis.
    let rest = "1 10 10 0 -1 4194560 52 0 0 0 0 0 0 0 39 19 1 0 17 3633152 512 18446744073709551615 1 1 0 0 0 0 0 0 0 1 0 0 \
        17 0 0 5 0 0 0 0 0 0 0 0 0 0 0";
    let facts = format!(
        "/proc/10/task/10/stat:10 (a b) c) S {rest}\n/proc/10/cgroup:7:cpu,cpuacct:/jobs\n/proc/10/cgroup:0::/\n\
         /proc/11/cgroup:0::/user.slice\n"
    );
    std::fs::write(folder.path().join("trace.txt.proc"), facts).unwrap();
    let mut threads = rows(&file, Table::Threads, |batch, row| {
        let view = ThreadsView::new(batch).unwrap();
        let policy = view.policy.get(row).map(str::to_owned);
        (view.thread_id[row], policy, view.nice.get(row))
    });
    threads.retain(|row| [10, 11].contains(&row.0));
    threads.sort_unstable();
    let expected = [(10, Some("idle".to_owned()), Some(19)), (11, None, None)];
    assert_eq!(threads, expected);
    let mut processes = rows(&file, Table::Processes, |batch, row| {
        let view = ProcessesView::new(batch).unwrap();
        (
            view.process_id[row],
            view.cgroup.get(row).map(str::to_owned),
        )
    });
    processes.retain(|row| [10, 11].contains(&row.0));
    processes.sort_unstable();
    let path = |path: &str| Some(path.to_owned());
    assert_eq!(processes, [(10, path("/jobs")), (11, path("/user.slice"))]);
}

#[test]
fn printed_functions_show_what_a_thread_waited_for() {
    let kind = |functions: &[&str]| {
        let stack = functions.iter().map(|name| format!(" => {name}\n"));
        let stack = format!(
            "t-50 [000] d..2. 5.002000: <stack trace>\n{}",
            stack.collect::<String>()
        );
        let lines = [
            switch(0, 1, 10, 50),
            switch(0, 2, 50, 10),
            stack,
            switch(0, 3, 10, 50),
            switch(0, 4, 50, 10),
        ];
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), &lines);
        let kinds = rows(&file, Table::CpuRuns, |batch, row| {
            let view = CpuRunsView::new(batch).unwrap();
            let kind = view.wait_kind.get(row).map(str::to_owned);
            (view.thread_id[row], kind)
        });
        let kinds = kinds.into_iter().filter(|(thread, _)| *thread == 50);
        kinds.map(|(_, kind)| kind).collect::<Vec<_>>()
    };
    let recorder = "trace_event_raw_event_sched_switch";
    let read = [
        recorder,
        "__schedule",
        "schedule",
        "anon_pipe_read",
        "vfs_read",
    ];
    // The first run began before the recording, so its wait is unknown.
    assert_eq!(kind(&read), [None, Some("message".to_owned())]);
    // A function of a program has the name of a function of the kernel.
    assert_eq!(kind(&["do_wait", "main"]), [None, None]);
}
