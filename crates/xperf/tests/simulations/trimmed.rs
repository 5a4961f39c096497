//! Checks reports of parts of traces. A part has the context switches of some threads only, so that most runs of other
//! threads have no end.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use etl::write::Writer;
use events::Decoder;
use raw_events::{Filter, Processes, Sieve};
use simulated::{Simulated, list, number, sums};
use tables::Options;
use tempfile::TempDir;
use trim::Selection;
use xperf::{CSwitch, CpuDisk, Whose};

use super::reported::{open_files, rows};

/// Writes the part of a trace that belongs to a process.
fn part(trace: &Path, process: u32, folder: &TempDir) -> PathBuf {
    let trace = etl::open(&[trace.to_owned()]).unwrap();
    let filter = Filter {
        process_ids: vec![process],
        ..Filter::default()
    };
    let mut decoder = Decoder::new();
    let processes = Processes::learn(&mut decoder, &trace, Options::default()).unwrap();
    let session = trim::session(&trace, &filter).unwrap();
    let path = folder.path().join(format!("{process}.etl"));
    let mut writer = Writer::new(File::create(&path).unwrap(), session).unwrap();
    let sieve = Sieve::new(&filter, &decoder, &processes);
    let selection = Selection::new(&filter, sieve);
    trim::copy(&trace, selection, None, &mut writer, Options::default()).unwrap();
    writer.finish().unwrap();
    path
}

/// Returns the CPU time of each process, from the two reports of context switches.
fn cpu_times(trace: &Path) -> [BTreeMap<i64, i64>; 2] {
    let trace = open_files(&[trace.to_owned()]);
    let by_process = CSwitch {
        by: Some(Whose::Process),
    };
    [rows(&by_process, &trace), rows(&CpuDisk::default(), &trace)].map(|rows| {
        let known = rows.into_iter().filter(|row| !row["process_id"].is_null());
        let known: Vec<_> = known.collect();
        sums(&known, "cpu_ns", |row| number(row, "process_id"))
    })
}

/// The times are those of the whole trace, in nanoseconds.
#[test]
fn runs_that_are_open_to_the_end_of_a_part_make_no_cpu_time() {
    let whole = testdata::path("etl/filtrace__etw.etl");
    let folder = tempfile::tempdir().unwrap();
    for process in [40_356, 48_348] {
        for times in cpu_times(&part(&whole, process, &folder)) {
            for (id, cpu_ns) in [(9_144, 598_192_300), (40_356, 137_377_700)] {
                let found = times.get(&id).copied().unwrap_or(0);
                assert!(found <= cpu_ns, "{process}: {found} of {id}");
            }
        }
    }
    for times in cpu_times(&part(&whole, 40_356, &folder)) {
        assert_eq!(times[&40_356], 137_377_700);
    }
}

#[test]
fn a_part_shows_no_process_longer_than_it_ran() {
    /// Maximum time by which a reported CPU time may exceed the true one, because runs include interrupts.
    const OFF_NS: i64 = 50_000_000;
    let healthy = Simulated::new("healthy", &[]);
    let folder = tempfile::tempdir().unwrap();
    let processes = list(&healthy.truth, "processes");
    let mut busiest: Vec<_> = processes
        .iter()
        .filter(|it| number(it, "id") != 0)
        .collect();
    busiest.sort_by_key(|process| -number(process, "cpu_ns"));
    for selected in busiest.iter().take(5) {
        let id = number(selected, "id") as u32;
        for times in cpu_times(&part(Path::new(&healthy.trace), id, &folder)) {
            for process in &busiest {
                let (other, cpu_ns) = (number(process, "id"), number(process, "cpu_ns"));
                let found = times.get(&other).copied().unwrap_or(0);
                assert!(found <= cpu_ns + OFF_NS, "{id}: {found}, not {process}");
            }
        }
    }
}
