//! Checks that actions of scenarios (keys, focus, freezes, timer requests, marks) appear in the
//! tables that are made from events of manifest providers.

use crate::read_back::{Run, run, run_text};
use serde_json::Value;
use tables::{InputKind, TimerRequestKind};

/// Returns the time in nanoseconds, the process and the value of each moment of one kind in the
/// truth.
fn moments(run: &Run, what: &str) -> Vec<(i64, Option<u32>, Option<u64>)> {
    let number = |value: &Value| value.as_u64();
    let list = run.truth["moments"].as_array().expect("moments");
    (list.iter().filter(|moment| moment["what"] == what))
        .map(|moment| {
            (
                moment["at_ns"].as_i64().expect("a time"),
                number(&moment["process"]["id"]).map(|id| id as u32),
                number(&moment["value"]),
            )
        })
        .collect()
}

/// Returns true if a time in the trace equals the model's time. The trace's clock has ticks of 100
/// ns.
fn is_at(found: i64, expected: i64) -> bool {
    found.abs_diff(expected) < 100
}

#[test]
fn keys_and_focus_of_a_stall() {
    let run = run("rank-stall", None);
    let keys = moments(&run, "key");
    let mut rows = Vec::new();
    for input in &run.tables.input {
        for row in 0..input.len() {
            assert_eq!(input.kind.0[row], InputKind::KeyDown);
            rows.push((input.time_ns[row], input.key_code.get(row)));
        }
    }
    rows.sort_unstable();
    assert_eq!(rows.len(), keys.len());
    assert!(rows.len() > 10);
    for ((time, code), (at, _, value)) in rows.into_iter().zip(keys) {
        assert!(is_at(time, at));
        assert_eq!(code.map(u64::from), value);
    }

    let changes = moments(&run, "focus");
    let focus = &run.tables.focus;
    // A process has the focus at the trace's start. In the table, this focus starts at time 0.
    assert!(!focus.starts_at_event[0] && focus.start_ns[0] == 0);
    assert!(is_at(focus.end_ns[0], changes[0].0));
    // A focus change to the idle process means that no process has the focus.
    let somebodys = |change: &(i64, Option<u32>, Option<u64>)| change.1 != Some(0);
    assert_eq!(
        focus.len(),
        1 + changes.iter().filter(|c| somebodys(c)).count()
    );
    let ends = changes[1..]
        .iter()
        .map(|change| Some(change.0))
        .chain([None]);
    let held = changes
        .iter()
        .zip(ends)
        .filter(|(change, _)| somebodys(change));
    for (row, ((at, process, _), end)) in (1..).zip(held) {
        assert!(is_at(focus.start_ns[row], *at));
        assert_eq!(focus.ends_at_event[row], end.is_some());
        // The trace lasts a little longer than the model's time, because the rundown is logged at
        // the end.
        match end {
            Some(end) => assert!(is_at(focus.end_ns[row], end)),
            None => assert!(focus.end_ns[row] >= run.duration()),
        }
        assert_eq!(Some(focus.process_id[row]), *process);
        let name = (focus.process_row.get(row))
            .and_then(|row| run.tables.processes.image_name.get(row as usize));
        assert!(name.is_some());
    }
    let marks: Vec<&str> = (run.tables.marks.iter().flat_map(|of| of.text.iter()))
        .flatten()
        .collect();
    for told in ["lid closed", "lid opened"] {
        assert!(marks.contains(&told), "{marks:?}");
    }
}

#[test]
fn a_frozen_process_is_frozen_from_freeze_to_thaw() {
    let run = run("frozen", None);
    let (freeze, thaw) = (moments(&run, "freeze")[0], moments(&run, "thaw")[0]);
    let freezes = &run.tables.process_freezes;
    assert_eq!(freezes.len(), 1);
    assert!(is_at(freezes.start_ns[0], freeze.0));
    assert!(is_at(freezes.end_ns[0], thaw.0));
    assert_eq!(Some(freezes.process_id[0]), freeze.1);
}

#[test]
fn pauses_and_thread_pools_of_dotnet() {
    let scenario = r#"
        title = ".NET"
        extends = "healthy"
        duration = "2s"
        [[add.process]]
        name = "net.exe"
        [[add.process.thread]]
        name = "collector"
        program = [ { repeat = 3, steps = [
            { sleep = "200ms" }, { collection = 1 }, { run = "30ms" }, { collection = false },
            { pool_threads = 8 }, { pool_threads = 9, starved = true },
        ] }, { collection = 2 }, { run = "5ms" }, { collection = false }, { until = "1h" } ]
    "#;
    let run = run_text(".NET", scenario, None, &[]);
    let (begun, ended) = (moments(&run, "collection"), moments(&run, "collected"));
    let pauses = &run.tables.dotnet_pauses;
    assert_eq!((pauses.len(), begun.len(), ended.len()), (4, 4, 4));
    for row in 0..4 {
        assert!(is_at(pauses.start_ns[row], begun[row].0));
        assert!(is_at(pauses.end_ns[row], ended[row].0));
        assert_eq!(Some(pauses.process_id[row]), begun[row].1);
        assert_eq!(pauses.generation.get(row).map(u64::from), begun[row].2);
        assert_eq!(pauses.collection.get(row), Some(row as u32 + 1));
    }
    let pools = &run.tables.dotnet_pools;
    let mut expected = moments(&run, "pool_threads");
    expected.extend(moments(&run, "pool_starved"));
    expected.sort_unstable();
    assert_eq!((pools.len(), expected.len()), (6, 6));
    for (row, (at, process, threads)) in expected.into_iter().enumerate() {
        assert!(is_at(pools.time_ns[row], at));
        assert_eq!(Some(pools.process_id[row]), process);
        assert_eq!(Some(u64::from(pools.threads[row])), threads);
        assert_eq!(pools.starved[row], threads == Some(9));
    }
}

#[test]
fn timer_requests_and_whether_they_are_ignored() {
    for name in ["timer-own", "timer-occluded"] {
        let run = run(name, None);
        let expected = moments(&run, "resolution");
        assert!(!expected.is_empty());
        let mut requests = Vec::new();
        for table in &run.tables.timer_requests {
            for row in 0..table.len() {
                if table.kind.0[row] == TimerRequestKind::Request {
                    let ns = table.resolution_ns.get(row).expect("known");
                    let id = table.process_id.get(row);
                    requests.push((table.time_ns[row], id, ns, table.ignored.get(row)));
                }
            }
        }
        requests.sort_unstable();
        assert_eq!(requests.len(), expected.len());
        for ((time, id, ns, ignored), (at, process, value)) in requests.into_iter().zip(expected) {
            assert!(is_at(time, at));
            assert_eq!(id, process);
            assert_eq!(ns as u64, value.unwrap_or(0) * 100);
            // Windows 11 logs whether a request is ignored. Earlier releases do not.
            let build = run.truth["windows_build"].as_u64().expect("a build");
            assert_eq!(ignored.is_some(), build >= 22_631, "{name}");
        }
    }
}
