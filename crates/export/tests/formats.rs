//! Contents of exported files, and exports that are refused. `cargo xtask test` also reads the files with
//! other programs.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use export::parquet::ParquetSummary;
use export::{Error, Part, firefox, parquet, perfetto};
use serde_json::Value;
use session::{TraceTables, Unobserved};
use simulated::Simulated;
use tables::{Cache, Table};
use tempfile::TempDir;

/// Time range of a whole trace.
const WHOLE: Range<i64> = i64::MIN..i64::MAX;

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

/// Simulated trace with a folder for exports.
struct Exported {
    simulated: Simulated,
    tables: TraceTables,
    folder: TempDir,
}

impl Exported {
    fn new(seed: u32) -> Exported {
        let simulated = Simulated::of_text("two", SCENARIO, &[&format!("seed={seed}")]);
        let files = [PathBuf::from(&simulated.trace)];
        let tables = TraceTables::open(&files, Cache::Off, Arc::new(Unobserved)).unwrap();
        Exported {
            simulated,
            tables,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn part(&self, range: Range<i64>, wanted: &[Table]) -> Part<'_> {
        Part::new(&self.tables, range, wanted).unwrap()
    }

    /// Exports tables to a partition of a folder.
    fn partition(
        &self,
        wanted: &[Table],
        folder: &Path,
        name: &str,
    ) -> Result<ParquetSummary, Error> {
        parquet::write(&self.part(WHOLE, wanted), wanted, folder, name)
    }

    fn perfetto(&self, range: Range<i64>) -> (u64, Vec<u8>) {
        let mut trace = Vec::new();
        let part = self.part(range, &perfetto::TABLES);
        let left_out = perfetto::write(&part, &mut trace).unwrap();
        (left_out, trace)
    }

    /// Returns the number of completed DPCs and service routines in the truth file.
    fn routines(&self) -> u64 {
        let routines = self.simulated.truth["windows"][0]["routines"]
            .as_array()
            .unwrap();
        let of_all_cpus = routines.iter().filter(|r| r.get("cpu").is_none());
        of_all_cpus.map(|r| r["count"].as_u64().unwrap()).sum()
    }

    /// Returns the number of profile samples in the truth file.
    fn samples(&self) -> u64 {
        let processes = self.simulated.truth["processes"].as_array().unwrap();
        let samples = processes.iter().map(|p| p["samples"].as_u64().unwrap());
        samples.sum::<u64>() + self.simulated.truth["idle_samples"].as_u64().unwrap()
    }
}

fn rows(file: &Path) -> u64 {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows() as u64
}

#[test]
fn tables_are_partitions_of_a_folder_of_many_traces() {
    let (one, other) = (Exported::new(1), Exported::new(2));
    let fleet = one.folder.path().join("fleet");
    let interrupts = |name: &str| fleet.join(format!("interrupts/trace={name}/part-0.parquet"));
    let first = one.partition(Table::ALL, &fleet, "two").unwrap();
    assert_eq!(rows(&interrupts("two")), one.routines());

    // A second export of the same trace replaces the first one.
    let second = one.partition(Table::ALL, &fleet, "two").unwrap();
    assert_eq!((second.files, second.rows), (first.files, first.rows));
    assert_eq!(second.bytes, first.bytes);
    assert_eq!(rows(&interrupts("two")), one.routines());

    // Another trace must not replace these files. It needs another name.
    let refusal = other.partition(&[Table::Interrupts], &fleet, "two");
    let refusal = refusal.unwrap_err().to_string();
    assert!(
        refusal.contains("belongs to another trace called `two`"),
        "{refusal}"
    );
    assert_eq!(rows(&interrupts("two")), one.routines());
    let some = [Table::Interrupts, Table::Samples];
    let written = other.partition(&some, &fleet, "b=1").unwrap();
    assert_eq!(written.files, 2);
    assert_eq!(written.rows, other.routines() + other.samples());
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
    let trace = Exported::new(1);
    let folder = trace.folder.path();
    let there = folder.join("samples/trace=two/part-0.parquet");
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    fs::write(&there, "mine").unwrap();
    let refusal = trace.partition(Table::ALL, folder, "two");
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("was not written by laglab"), "{refusal}");
    assert_eq!(fs::read(&there).unwrap(), b"mine");
    assert!(
        !folder.join("interrupts").exists(),
        "nothing is written before"
    );
}

#[test]
fn a_range_divides_a_trace_into_parts_without_loss() {
    let trace = Exported::new(1);
    let wanted = [Table::Interrupts];
    let count = |range: Range<i64>, name: &str| {
        let part = trace.part(range, &wanted);
        let written = parquet::write(&part, &wanted, trace.folder.path(), name);
        written.unwrap().rows
    };
    let first = count(i64::MIN..400_000_000, "first");
    let second = count(400_000_000..i64::MAX, "second");
    assert!(first > 0 && second > 0);
    assert_eq!(first + second, trace.routines());
}

#[test]
fn a_profile_has_every_sample() {
    let trace = Exported::new(1);
    let mut profile = Vec::new();
    firefox::write(&trace.part(WHOLE, &firefox::TABLES), &mut profile).unwrap();
    let profile: Value = serde_json::from_slice(&profile).unwrap();
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
    let (left_out, bytes) = Exported::new(1).perfetto(WHOLE);
    assert_eq!(left_out, 0);
    assert!(bytes.windows(10).any(|text| text == b"reader.exe"));
}

#[test]
fn perfetto_parts_have_the_focus_from_before() {
    let trace = Exported::new(1);
    let has_focus = |range: Range<i64>| {
        let (_, bytes) = trace.perfetto(range);
        let track = b"Window in focus";
        bytes.windows(track.len()).any(|text| text == track)
    };
    assert!(has_focus(100_000_000..150_000_000), "since before");
    assert!(!has_focus(300_000_000..350_000_000), "no focus");
}
