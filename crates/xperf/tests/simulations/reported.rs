//! Rows of reports.

use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use session::{SymbolOptions, TraceTables, Unobserved};
use simulated::Simulated;
use tables::Cache;
use xperf::{
    By, CSwitch, CpuDisk, Filter, Format, PlaceOptions, Profile, Recording, Report, Whose, Writer,
};

/// Opens a simulated trace.
pub(crate) fn open(simulated: &Simulated) -> Recording {
    open_files(&[PathBuf::from(&simulated.trace)])
}

/// Opens the files of a trace.
pub(crate) fn open_files(files: &[PathBuf]) -> Recording {
    let tables = TraceTables::open(files, Cache::Off, Arc::new(Unobserved)).unwrap();
    Recording {
        names: tables.identities().unwrap(),
        tables,
        range: i64::MIN..i64::MAX,
        filter: Filter::default(),
    }
}

/// Returns the rows of a report.
pub(crate) fn rows(report: &impl Report, trace: &Recording) -> Vec<Value> {
    let (rows, _) = rows_and_warnings(report, trace);
    rows
}

/// Returns the rows and the warnings of a report.
pub(crate) fn rows_and_warnings(
    report: &impl Report,
    trace: &Recording,
) -> (Vec<Value>, Vec<String>) {
    let mut file = tempfile::tempfile().unwrap();
    let out = file.try_clone().unwrap();
    let mut out = Writer::new(Format::Json, Box::new(out));
    trace.tables.make(&report.tables()).unwrap();
    report.write(trace, &mut out).unwrap();
    out.finish().unwrap();
    let mut lines = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut lines).unwrap();
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (rows.collect(), out.warnings().to_vec())
}

/// Returns options that group addresses by function.
pub(crate) fn by_function(simulated: &Simulated) -> PlaceOptions {
    PlaceOptions {
        by: By::Function,
        symbols: SymbolOptions::default().with_folder(Path::new(&simulated.symbols)),
    }
}

/// Writes a copy of a trace whose header counts other processors.
fn with_processors(bytes: &[u8], processors: u32) -> tempfile::NamedTempFile {
    // The first record is in an uncompressed buffer: 72 bytes of the buffer's header, 32 of the record's header, and
    // the size of buffers, the version and the build of the system (TRACE_LOGFILE_HEADER).
    const PROCESSORS: usize = 72 + 32 + 12;
    let mut bytes = bytes.to_vec();
    bytes[PROCESSORS..][..4].copy_from_slice(&processors.to_le_bytes());
    let mut file = tempfile::Builder::new().suffix(".etl").tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file
}

/// The trace has events of 32 CPUs. It has 62,386,028 µs of samples of process 9144 in 6.632 s, which is 29.4 % of 32
/// CPUs.
#[test]
fn percentages_use_all_cpus_that_logged_events_if_the_header_counts_fewer() {
    let bytes = testdata::bytes("etl/filtrace__etw.etl");
    let of = |processors| {
        let file = with_processors(&bytes, processors);
        let trace = open_files(&[file.path().to_owned()]);
        let by_process = CSwitch {
            by: Some(Whose::Process),
        };
        let profile = rows(&Profile::default(), &trace);
        let sampled = profile.iter().find(|row| row["process_id"] == 9144);
        let share = sampled.unwrap()["cpu_percent"].as_f64().unwrap();
        assert!((share - 29.40).abs() < 0.01, "{processors}: {share}");
        [rows(&by_process, &trace), rows(&CpuDisk::default(), &trace)]
    };
    assert_eq!(of(16), of(32));
}
