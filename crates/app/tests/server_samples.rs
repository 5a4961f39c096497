//! Tests of `laglab open` with files of samples that `laglab measure` wrote.

use crate::program;
use crate::served;

use serde_json::{Value, json};
use served::Served;

#[test]
fn measured_samples_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("samples.parquet");
    let path = path.to_str().unwrap();
    let method = if cfg!(windows) { "Sleep" } else { "nanosleep" };
    let plan = ["--method", method, "--request", "1ms", "--count", "40"];
    let report =
        program::json(&[&["measure", "sleep"][..], &plan, &["-o", path, "--json"]].concat());
    let measured = &report["results"][0]["latency"];

    let served = Served::open(&[path]);
    let trace = &served.get("api/session")["traces"][0];
    assert_eq!(trace["name"], "samples.parquet");
    assert_eq!(trace["only"], "latency_samples");
    for unknown in [
        "system",
        "start_utc",
        "size_bytes",
        "machine",
        "cpus",
        "events",
    ] {
        assert_eq!(trace[unknown], Value::Null, "{unknown}");
    }
    let [from, to] = [0, 1].map(|end| trace["range"][end].as_i64().unwrap());
    assert!(from == 0 && to > 40_000_000, "{from} to {to}");

    let graphs = loop {
        let overview = served.get("api/traces/0/overview");
        if overview["complete"] == true {
            break overview["graphs"].as_array().unwrap().clone();
        }
    };
    let of_samples = |graph: &Value| graph["view"]["table"] == "latency_samples";
    assert!(
        graphs.len() == 2 && graphs.iter().all(of_samples),
        "{graphs:?}"
    );

    let pivot = json!({"table": "latency_samples", "keys": ["method"], "path": [],
        "aggregates": ["latency_ns:count", "latency_ns:max"], "offset": 0, "first": 50});
    let pivot = served.post("api/traces/0/pivot", &pivot);
    assert_eq!(pivot["groups"][0]["label"], method);
    assert_eq!(
        pivot["totals"],
        json!([measured["count"], measured["max_ns"]])
    );
    assert!(measured["count"].as_u64().unwrap() >= 40);

    // Every sample is in a cell of the heat map, or is counted as above or below its range.
    let heat =
        json!({"table": "latency_samples", "value": "latency_ns", "buckets": 50, "rows": 20});
    let heat = served.post("api/traces/0/heat", &heat);
    let slices = heat["counts"].as_array().unwrap().iter();
    let inside = slices.flat_map(|slice| slice.as_array().unwrap());
    let inside: u64 = inside.map(|count| count.as_u64().unwrap()).sum();
    let beyond = heat["above"].as_u64().unwrap() + heat["below"].as_u64().unwrap();
    assert_eq!(Some(inside + beyond), measured["count"].as_u64());

    let findings = served.get("api/traces/0/findings");
    let conclusion = findings["conclusion"].as_str().unwrap();
    assert!(
        conclusion.contains("measured latency samples over"),
        "{conclusion}"
    );
    let panels = json!([{"view": graphs[1]["view"]}]);
    let body = json!({"trace": 0, "panels": panels}).to_string();
    let report = served.post_text(&served.path("api/report"), body.as_bytes());
    assert_eq!(report.status, 200, "{}", report.text());
    let report = report.text();
    assert!(report.contains(r#"data-picture="0""#) && !report.contains("1601-01-01"));
}

/// Checks that other Parquet files are rejected before the server starts.
#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tables/");
    let folder = folder.to_str().unwrap();
    program::text(&[
        "export",
        "filtrace__etw.etl",
        "-o",
        folder,
        "--tables",
        "samples",
    ]);
    let foreign = dir
        .path()
        .join("tables/samples/trace=filtrace__etw/part-0.parquet");
    let foreign = foreign.to_str().unwrap();
    for (args, said) in [
        (
            &["open", "--no-browser", foreign][..],
            "has no column `start_ns`",
        ),
        (
            &["info", foreign],
            "is a Parquet file and contains no events",
        ),
        (
            &[
                "open",
                "--no-browser",
                "--merge",
                "filtrace__etw.etl",
                foreign,
            ],
            "open each file alone",
        ),
    ] {
        let output = program::laglab(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
}
