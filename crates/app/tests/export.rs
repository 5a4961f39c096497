//! Tests of `laglab export`: contents of files, and exports that are refused. `cargo xtask test` also reads
//! the files with other programs.

mod program;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

/// Scenario with disk interrupts. Its program has the focus first. Later, no program has the focus.
const SCENARIO: &str = r#"
    title = "Two threads read"
    duration = "1s"
    [machine]
    processors = 2
    threads_per_core = 1
    [[disk]]
    number = 0
    service = "uniform(150us, 250us)"
    isr = { in = ["storport.sys!Isr"], cost = "5us" }
    dpc = { in = ["storport.sys!Dpc"], cost = "20us" }
    [[process]]
    name = "reader.exe"
    focus = true
    [[process.thread]]
    count = 2
    program = [{ forever = [{ run = "3ms" }, { read = "64 KiB" }] }]
    [[at]]
    time = "200ms"
    focus = "Idle"
"#;

/// Simulated trace in a temporary folder, with the truth file of its simulation.
struct Simulated {
    folder: tempfile::TempDir,
    truth: Value,
}

impl Simulated {
    fn new(seed: &str) -> Simulated {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("two.toml");
        fs::write(&scenario, SCENARIO).unwrap();
        let trace = folder.path().join("two.etl");
        let (scenario, out) = (scenario.to_str().unwrap(), trace.to_str().unwrap());
        program::text(&["simulate", scenario, "-o", out, "--seed", seed]);
        let truth = fs::read_to_string(folder.path().join("two.truth.json")).unwrap();
        Simulated {
            truth: serde_json::from_str(&truth).unwrap(),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exports the trace, and returns the JSON output.
    fn export(&self, to: &Path, more: &[&str]) -> Value {
        let trace = self.path("two.etl");
        let (trace, to) = (trace.to_str().unwrap(), to.to_str().unwrap());
        program::json(&[&["export", "--json", trace, "--to", to], more].concat())
    }

    /// Runs an export that must fail, and returns the line on stderr.
    fn refusal(&self, to: &Path, more: &[&str]) -> String {
        let trace = self.path("two.etl");
        let (trace, to) = (trace.to_str().unwrap(), to.to_str().unwrap());
        let output = program::laglab(&[&["export", trace, "--to", to], more].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    }

    /// Returns the number of completed DPCs and service routines in the truth file.
    fn routines(&self) -> u64 {
        let routines = self.truth["windows"][0]["routines"].as_array().unwrap();
        let of_all_cpus = routines.iter().filter(|r| r.get("cpu").is_none());
        of_all_cpus.map(|r| r["count"].as_u64().unwrap()).sum()
    }

    /// Returns the number of profile samples in the truth file.
    fn samples(&self) -> u64 {
        let processes = self.truth["processes"].as_array().unwrap();
        let samples = processes.iter().map(|p| p["samples"].as_u64().unwrap());
        samples.sum::<u64>() + self.truth["idle_samples"].as_u64().unwrap()
    }
}

fn rows(file: &Path) -> u64 {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows() as u64
}

#[test]
fn tables_are_partitions_of_a_folder_of_many_traces() {
    let (one, other) = (Simulated::new("1"), Simulated::new("2"));
    let fleet = one.path("fleet");
    let interrupts = |name: &str| fleet.join(format!("interrupts/trace={name}/part-0.parquet"));
    let report = one.export(&fleet, &[]);
    assert_eq!(rows(&interrupts("two")), one.routines());

    // A second export of the same trace replaces the first one.
    assert_eq!(one.export(&fleet, &[]), report);
    assert_eq!(rows(&interrupts("two")), one.routines());

    // Another trace must not replace these files. It needs another name.
    let refusal = other.refusal(&fleet, &["--tables", "interrupts"]);
    assert!(
        refusal.contains("belongs to another trace called `two`"),
        "{refusal}"
    );
    assert_eq!(rows(&interrupts("two")), one.routines());
    let more = ["--tables", "interrupts,samples", "--name", "b=1"];
    let report = other.export(&fleet, &more);
    assert_eq!(report["files"], 2);
    assert_eq!(report["rows"], other.routines() + other.samples());
    assert_eq!(rows(&interrupts("b%3D1")), other.routines());
    assert!(!fleet.join("cpu_runs/trace=b%3D1").exists());
    assert_eq!(
        fs::read_dir(fleet.join("interrupts/trace=two"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn files_that_laglab_did_not_write_stay() {
    let trace = Simulated::new("1");
    let there = trace.path("samples/trace=two/part-0.parquet");
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    fs::write(&there, "mine").unwrap();
    let refusal = trace.refusal(trace.folder.path(), &[]);
    assert!(refusal.contains("was not written by laglab"), "{refusal}");
    assert_eq!(fs::read(&there).unwrap(), b"mine");
    assert!(
        !trace.path("interrupts").exists(),
        "nothing is written before"
    );
}

#[test]
fn a_range_divides_a_trace_into_parts_without_loss() {
    let trace = Simulated::new("1");
    let count = |to: &str, more: &[&str]| {
        let more = [&["--tables", "interrupts"], more].concat();
        trace.export(&trace.path(to), &more)["rows"]
            .as_u64()
            .unwrap()
    };
    let first = count("first", &["--until", "0.4"]);
    let second = count("second", &["--from", "0.4"]);
    assert!(first > 0 && second > 0);
    assert_eq!(first + second, trace.routines());
}

#[test]
fn a_profile_has_every_sample() {
    let trace = Simulated::new("1");
    let to = trace.path("two.json");
    trace.export(&to, &[]);
    let profile: Value = serde_json::from_slice(&fs::read(&to).unwrap()).unwrap();
    let threads = profile["threads"].as_array().unwrap();
    let weights = threads
        .iter()
        .flat_map(|t| t["samples"]["weight"].as_array().unwrap());
    let samples: u64 = weights.map(|weight| weight.as_u64().unwrap()).sum();
    assert_eq!(samples, trace.samples());
    let readers = threads.iter().filter(|t| t["processName"] == "reader.exe");
    assert_eq!(readers.count(), 2);
}

#[test]
fn a_perfetto_trace_is_written_whole() {
    let trace = Simulated::new("1");
    let to = trace.path("two.pftrace");
    let report = trace.export(&to, &[]);
    let bytes = fs::read(&to).unwrap();
    assert_eq!(report["bytes"].as_u64(), Some(bytes.len() as u64));
    assert_eq!(report["slices_left_out"], 0);
    assert!(bytes.windows(10).any(|text| text == b"reader.exe"));
}

#[test]
fn perfetto_parts_have_the_focus_from_before() {
    let trace = Simulated::new("1");
    let to = trace.path("part.pftrace");
    let has_focus = |from: &str, until: &str| {
        trace.export(&to, &["--from", from, "--until", until]);
        let track = b"Window in focus";
        let bytes = fs::read(&to).unwrap();
        bytes.windows(track.len()).any(|text| text == track)
    };
    assert!(has_focus("0.1", "0.15"), "since before");
    assert!(!has_focus("0.3", "0.35"), "no focus");
}

#[test]
fn contradictory_options_are_refused() {
    let trace = Simulated::new("1");
    for (to, more, what) in [
        ("two.xlsx", &[][..], "unknown format"),
        ("two.etl", &[], "unknown format"),
        ("none/two.json", &[], "its folder does not exist"),
        ("two.json", &["--tables", "samples"], "need Parquet"),
        ("all", &["--from", "2", "--until", "1"], "is not before"),
    ] {
        let refusal = trace.refusal(&trace.path(to), more);
        assert!(refusal.contains(what), "{to}: {refusal}");
    }
    let files = fs::read_dir(trace.folder.path()).unwrap();
    assert_eq!(files.count(), 3, "the scenario, the trace and its truth");
}
