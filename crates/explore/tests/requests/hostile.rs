//! Tests of invalid requests. They must be refused, and no request may panic or exceed its limits.

use std::sync::atomic::AtomicBool;

use crate::simulated::{Explored, NOT_CANCELLED};
use explore::{ExploreError, Explorer};
use serde_json::{Value, json};
use testdata::Rng;

/// Executes a request that the page could send. Returns `Err(None)` if the request cannot be parsed.
fn ask(explorer: &Explorer, kind: &str, request: Value) -> Result<Value, Option<ExploreError>> {
    macro_rules! ask {
        ($method:ident) => {{
            let request = serde_json::from_value(request).map_err(|_| None)?;
            let answer = explorer.$method(&request, &NOT_CANCELLED).map_err(Some)?;
            Ok(serde_json::to_value(answer).expect("an answer is JSON"))
        }};
    }
    match kind {
        "timeline" => ask!(timeline),
        "pivot" => ask!(pivot),
        "rows" => ask!(rows),
        "flame" => ask!(flame),
        "butterfly" => ask!(butterfly),
        "heat" => ask!(heat),
        "histogram" => ask!(histogram),
        "lanes" => ask!(lanes),
        other => panic!("{other}"),
    }
}

/// Returns a valid request for each kind of request.
fn valid() -> Vec<(&'static str, Value)> {
    vec![
        (
            "timeline",
            json!({"table": "cpu_runs", "by": "process", "measure": "cpu_ns", "buckets": 10,
                "first": 5, "range": [0, 1_000_000], "filter": []}),
        ),
        (
            "pivot",
            json!({"table": "cpu_runs", "keys": ["process", "cpu"], "path": [0],
                "aggregates": ["cpu_ns:sum"], "first": 10, "offset": 0,
                "sort": {"by": "rows", "descending": true}, "filter": [],
                "range": [0, 1_000_000]}),
        ),
        (
            "rows",
            json!({"table": "cpu_runs", "columns": ["cpu"], "first": 10, "offset": 0,
                "sort": {"column": "cpu", "descending": true}, "filter": [],
                "range": [0, 1_000_000]}),
        ),
        (
            "flame",
            json!({"table": "samples", "stack": "stack_id", "weight": "rows",
                "least_share": 0.1, "range": [0, 1_000_000], "root": ["a"], "filter": []}),
        ),
        (
            "butterfly",
            json!({"table": "samples", "stack": "stack_id", "weight": "rows", "frame": "x",
                "least_share": 0.1, "range": [0, 1_000_000], "filter": []}),
        ),
        (
            "heat",
            json!({"table": "cpu_runs", "value": "ready_ns", "buckets": 10, "rows": 10,
                "values": [1, 100], "range": [0, 1_000_000], "filter": []}),
        ),
        (
            "histogram",
            json!({"table": "cpu_runs", "value": "ready_ns", "by": "process", "classes": 10,
                "first": 5, "values": [1, 100], "range": [0, 1_000_000], "filter": []}),
        ),
        (
            "lanes",
            json!({"width": 100, "range": [0, 1_000_000], "cpus": [0]}),
        ),
    ]
}

#[test]
fn invalid_fields_are_refused_with_a_message() {
    let explorer = &Explored::busy().explorer;
    let nothing = json!(null);
    let wrong = [
        ("table", json!("secrets")),
        ("table", json!("stacks")),
        ("by", json!("ready_ns")),
        ("by", json!("nonsense")),
        ("measure", json!("process")),
        ("buckets", json!(0)),
        ("buckets", json!(1_000_000_000)),
        ("buckets", json!(-1)),
        ("first", json!(1_000_000)),
        ("range", json!([5, 5])),
        ("range", json!([i64::MAX, i64::MIN])),
        ("range", json!([0])),
        ("filter", json!([{"column": "nonsense", "in": [1]}])),
        ("filter", json!([{"column": "process", "from": 1}])),
        ("filter", json!([{"column": "ready_ns", "in": [1]}])),
        ("filter", json!([{"column": "cpu", "near": 1}])),
        (
            "filter",
            json!(vec![json!({"column": "cpu", "in": [1]}); 65]),
        ),
        ("keys", json!(["ready_ns"])),
        ("keys", json!(vec!["cpu"; 65])),
        ("path", json!([0, 0])),
        ("path", json!(vec![nothing.clone(); 1000])),
        ("aggregates", json!(["cpu_ns:p75"])),
        ("aggregates", json!(["process:sum"])),
        ("aggregates", json!(["cpu_ns:"])),
        ("aggregates", json!([":"])),
        ("sort", json!({"by": "cpu_ns:max", "descending": true})),
        ("columns", json!(["nonsense"])),
        ("columns", json!([])),
        ("stack", json!("readying_stack_id")),
        ("weight", json!("in_dpc")),
        ("least_share", json!(-1.0)),
        ("least_share", json!(1.5)),
        ("root", json!(vec!["a"; 1001])),
        ("value", json!("process")),
        ("values", json!([5, 1])),
        ("values", json!([i64::MIN, 0])),
        ("rows", json!(0)),
        ("rows", json!(257)),
        ("classes", json!(0)),
        ("width", json!(0)),
        ("width", json!(u32::MAX)),
        ("cpus", json!(vec![0; 1025])),
        ("cpus", json!([70_000])),
        ("colour", json!("red")),
    ];
    let mut tried = vec![false; wrong.len()];
    for (kind, request) in valid() {
        assert!(ask(explorer, kind, request.clone()).is_ok(), "{kind}");
        for (tried, (field, value)) in tried.iter_mut().zip(&wrong) {
            if request.get(field).is_none() && *field != "colour" {
                continue;
            }
            *tried = true;
            let mut request = request.clone();
            request[field] = value.clone();
            match ask(explorer, kind, request) {
                Err(None) => {}
                Err(Some(error)) => {
                    assert!(error.is_of_request(), "{kind} {field} {value}: {error}");
                    assert!(error.to_string().len() < 400, "{error}");
                }
                // A field may accept a value in one kind of request and refuse it in another. In these two kinds, the
                // value is valid.
                Ok(_) => assert!(
                    matches!((kind, *field), ("rows", "sort") | ("butterfly", "first")),
                    "{kind} {field} {value}"
                ),
            }
        }
    }
    for (tried, (field, value)) in tried.iter().zip(&wrong) {
        assert!(tried, "{field} {value} is in no request");
    }
}

#[test]
fn ids_that_do_not_exist_have_no_rows() {
    let explorer = &Explored::busy().explorer;
    for id in [i64::MIN, -1, 1 << 31, 1 << 32, (1 << 32) - 1, i64::MAX] {
        let pivot = json!({"table": "cpu_runs", "keys": ["process", "cpu"], "path": [id],
            "first": 5});
        assert_eq!(ask(explorer, "pivot", pivot).unwrap()["rows"], 0, "{id}");
        for column in ["process", "cpu", "starts_at_switch"] {
            let of = |condition: &str| {
                let filter = json!([{"column": column, condition: [id]}]);
                let pivot = json!({"table": "cpu_runs", "first": 0, "filter": filter});
                ask(explorer, "pivot", pivot).unwrap()["rows"].clone()
            };
            assert_eq!(of("in"), 0, "{column} {id}");
            assert_ne!(of("not_in"), 0, "{column} {id}");
        }
    }
}

#[test]
fn a_set_flag_cancels_a_request() {
    let explorer = &Explored::busy().explorer;
    let stop = AtomicBool::new(true);
    let pivot = json!({"table": "cpu_runs", "keys": ["process"], "first": 5});
    let pivot = serde_json::from_value(pivot).unwrap();
    let stopped = explorer.pivot(&pivot, &stop);
    assert!(matches!(stopped, Err(ExploreError::Cancelled)));
    assert!(
        explorer.pivot(&pivot, &NOT_CANCELLED).is_ok(),
        "other requests continue"
    );
}

#[test]
fn random_requests_are_answered_or_refused() {
    let explorer = &Explored::busy().explorer;
    let tables = explorer.tables().unwrap();
    let mut rng = Rng(5);
    let mut answered = 0;
    for _ in 0..400 {
        let table = &tables[rng.below(tables.len())];
        let mut column = || table.columns[rng.below(table.columns.len())].name.clone();
        let columns: Vec<String> = (0..6).map(|_| column()).collect();
        let from = rng.bits() as i64 >> rng.below(63);
        let to = rng.bits() as i64 >> rng.below(63);
        let filter = match rng.below(6) {
            0 => json!([{"column": columns[0], "in": [from, null]}]),
            1 => json!([{"column": columns[0], "not_in": [from, null]}]),
            2 => json!([{"column": columns[0], "from": from, "to": to}]),
            3 => json!([{"column": columns[0], "contains": "E"}]),
            _ => json!([]),
        };
        let range = match rng.below(3) {
            0 => json!([from, to]),
            _ => json!(null),
        };
        let (kind, mut request) = match rng.below(5) {
            0 => (
                "timeline",
                json!({"by": columns[1], "measure": columns[2], "buckets": 1 + rng.below(4000),
                    "first": rng.below(65)}),
            ),
            1 => (
                "pivot",
                json!({"keys": [columns[1], columns[2]], "path": [from], "first": 10,
                    "aggregates": [format!("{}:p50", columns[3]), columns[4]]}),
            ),
            2 => (
                "rows",
                json!({"columns": columns, "first": 10, "offset": rng.below(100),
                    "sort": {"column": columns[5], "descending": true}}),
            ),
            3 => (
                "heat",
                json!({"value": columns[2], "buckets": 1 + rng.below(4000),
                    "rows": 1 + rng.below(256)}),
            ),
            _ => ("histogram", json!({"value": columns[2], "by": columns[1]})),
        };
        request["table"] = json!(table.name);
        request["filter"] = filter;
        request["range"] = range;
        match ask(explorer, kind, request.clone()) {
            Ok(_) => answered += 1,
            Err(Some(error)) => assert!(error.is_of_request(), "{request}: {error}"),
            Err(None) => panic!("no request: {request}"),
        }
    }
    assert!(answered > 50, "{answered}");
}
