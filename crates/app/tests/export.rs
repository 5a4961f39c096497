//! Tests of `laglab export`: its options and its output. The crate `export` tests the contents of the files.

use crate::program;

use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use simulated::Simulated;

/// Runs an export, and returns the JSON output.
fn export(trace: &str, to: &Path, more: &[&str]) -> Value {
    let to = to.to_str().unwrap();
    program::json(&[&["export", "--json", trace, "-o", to], more].concat())
}

/// Runs an export that must fail, and returns the line on stderr.
fn refusal(trace: &str, to: &Path, more: &[&str]) -> String {
    let to = to.to_str().unwrap();
    let output = program::laglab(&[&["export", trace, "-o", to], more].concat());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn rows(file: &Path) -> i64 {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows()
}

#[test]
fn the_output_path_selects_the_format() {
    let usb = Simulated::new("usb-wdf01000", &["duration=200ms"]);
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("x.pftrace", "perfetto"), ("x.json", "firefox")] {
        let to = folder.path().join(name);
        let report = export(&usb.trace, &to, &[]);
        assert_eq!(report["format"], format);
        assert_eq!(report["files"], 1);
        assert_eq!(report["bytes"], fs::metadata(&to).unwrap().len());
        let is_perfetto = format == "perfetto";
        assert_eq!(report["slices_left_out"].is_u64(), is_perfetto, "{report}");
    }
    let fleet = folder.path().join("fleet");
    let report = export(&usb.trace, &fleet, &[]);
    assert_eq!(report["format"], "parquet");
    assert!(
        fleet
            .join("cpu_runs/trace=simulated/part-0.parquet")
            .exists()
    );
    let more = ["--tables", "interrupts,samples", "--name", "b=1"];
    let report = export(&usb.trace, &fleet, &more);
    assert_eq!(report["files"], 2);
    let rows = ["interrupts", "samples"]
        .map(|table| rows(&fleet.join(table).join("trace=b%3D1/part-0.parquet")));
    assert!(rows[0] > 0);
    assert_eq!(report["rows"], rows.iter().sum::<i64>());
    assert!(!fleet.join("cpu_runs/trace=b%3D1").exists());

    let other = Simulated::new("usb-wdf01000", &["duration=1s"]);
    let refusal = refusal(&other.trace, &fleet, &["--tables", "interrupts"]);
    assert!(refusal.contains("belongs to another trace"), "{refusal}");
}

#[test]
fn a_range_divides_a_trace_into_parts_without_loss() {
    let usb = Simulated::new("usb-wdf01000", &["duration=200ms"]);
    let folder = tempfile::tempdir().unwrap();
    let count = |to: &str, more: &[&str]| {
        let more = [&["--tables", "interrupts"], more].concat();
        let report = export(&usb.trace, &folder.path().join(to), &more);
        report["rows"].as_u64().unwrap()
    };
    let first = count("first", &["--to", "0.1"]);
    let second = count("second", &["--from", "100ms"]);
    assert!(first > 0 && second > 0);
    assert_eq!(first + second, count("whole", &[]));
}

#[test]
fn contradictory_options_are_refused() {
    let usb = Simulated::new("usb-wdf01000", &["duration=200ms"]);
    let folder = tempfile::tempdir().unwrap();
    for (to, more, what) in [
        ("two.xlsx", &[][..], "unknown format"),
        ("two.etl", &[], "unknown format"),
        ("none/two.json", &[], "its folder does not exist"),
        ("two.json", &["--tables", "samples"], "need Parquet"),
        ("all", &["--from", "2", "--to", "1"], "is not before"),
        (
            "late.json",
            &["--from", "12", "--to", "15"],
            "outside the trace",
        ),
    ] {
        let refusal = refusal(&usb.trace, &folder.path().join(to), more);
        assert!(refusal.contains(what), "{to}: {refusal}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
