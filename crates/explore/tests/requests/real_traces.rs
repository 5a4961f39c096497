//! Tests with real traces, including old and damaged ones. The groups must contain every row once, and
//! nothing may panic.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use explore::{ColumnKind, Explorer, Id, PivotAnswer};
use serde::de::DeserializeOwned;
use serde_json::json;
use tables::{Cache, Store};
use testdata::Rng;

static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

fn request<T: DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).expect("a request")
}

fn explore(store: Store) -> Explorer {
    Explorer::new(Arc::new(store), None, 10_000_000)
}

fn pivot(explorer: &Explorer, table: &str, keys: &[&str], path: &[Id]) -> PivotAnswer {
    let pivot = request(json!({
        "table": table, "keys": keys, "path": path, "first": 1000,
        "sort": {"by": "key", "descending": false},
    }));
    explorer.pivot(&pivot, &NOT_CANCELLED).expect("an answer")
}

/// Groups every table by every key, and draws every group over time. Returns the number of all rows.
fn explore_everything(explorer: &Explorer) -> u64 {
    explorer.prepare(&[], &NOT_CANCELLED).expect("tables");
    let mut rows = 0;
    for table in explorer.tables().expect("tables") {
        let all = table.rows.expect("it was made");
        rows += all;
        let keys = table
            .columns
            .iter()
            .filter(|column| column.kind == ColumnKind::Key);
        for key in keys.map(|key| key.name.as_str()) {
            let level = pivot(explorer, table.name, &[key], &[]);
            assert_eq!(level.rows, all, "{} by {key}", table.name);
            if level.groups.len() == level.groups_total {
                let sum: u64 = level.groups.iter().map(|group| group.rows).sum();
                assert_eq!(sum, all, "{} by {key}", table.name);
            }
            for group in level.groups.iter().take(2) {
                let under = pivot(explorer, table.name, &[key, key], &[group.id]);
                assert_eq!(
                    under.rows, group.rows,
                    "{} {key} {}",
                    table.name, group.label
                );
            }
        }
        let time = if table.interval.is_some() {
            "time"
        } else {
            "rows"
        };
        let timeline = request(json!({
            "table": table.name, "measure": time, "buckets": 100, "first": 5,
        }));
        explorer
            .timeline(&timeline, &NOT_CANCELLED)
            .expect("a timeline");
        for stack in &table.stacks {
            let flame = request(json!({"table": table.name, "stack": stack, "weight": "rows"}));
            let flame = explorer
                .flame(&flame, &NOT_CANCELLED)
                .expect("a flame graph");
            assert_eq!(flame.total as u64, all, "{} {stack}", table.name);
        }
    }
    explorer
        .lanes(&request(json!({"width": 300})), &NOT_CANCELLED)
        .expect("lanes");
    explorer.overview(&NOT_CANCELLED).expect("an overview");
    rows
}

#[test]
fn groups_of_real_traces_contain_every_row_once() {
    const LARGEST: u64 = 5_000_000;
    let mut rows = 0;
    for (file, _) in testdata::traces() {
        let path = testdata::path(&file);
        if path.metadata().expect("a file").len() < LARGEST {
            let store = imports::open_store(&[path], Cache::Off);
            rows += store.map_or(0, |store| explore_everything(&explore(store)));
        }
    }
    assert!(rows > 100_000, "{rows}");
}

#[test]
fn damaged_traces_are_explored_without_panics() {
    let sound = testdata::bytes("etl/perfview__diaghub__diaghub.user_injected.1.etl");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.etl");
    let mut rng = Rng(17);
    for _ in 0..15 {
        let mut bytes = sound.clone();
        for _ in 0..200 {
            let place = rng.below(bytes.len());
            bytes[place] = rng.bits() as u8;
        }
        bytes.truncate(sound.len() - rng.below(sound.len() / 2));
        std::fs::write(&path, &bytes).expect("a file");
        if let Ok(store) = imports::open_store(std::slice::from_ref(&path), Cache::Off) {
            explore_everything(&explore(store));
        }
    }
}

#[test]
fn concurrent_requests_have_equal_answers() {
    let path = testdata::path("etl/filtrace__etw.etl");
    let explorer = explore(imports::open_store(&[path], Cache::Off).expect("a trace"));
    let ask = || pivot(&explorer, "samples", &["process", "module"], &[]);
    let answers: Vec<PivotAnswer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert!(answers[0].rows > 0);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}
