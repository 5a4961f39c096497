//! Tests of samples of live probes in Parquet files. Files of `laglab measure` are read. Other files are
//! refused.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use tables::{Cache, LatencySamples, LatencySamplesView, Options, Probe, SampleOutcome, Table};
use testdata::Rng;

/// Returns the path of a file that a test writes.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn write(name: &str, batches: &[RecordBatch]) -> PathBuf {
    let path = path(name);
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), None).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    path
}

/// Returns samples that started at the times `starts`. The latency of sample `i` is `i` microseconds. Sample
/// 1 is lost and has no latency.
fn samples(starts: &[i64]) -> RecordBatch {
    let mut samples = LatencySamples::default();
    for (place, start) in (0i64..).zip(starts) {
        samples.start_ns.push(*start);
        samples.intended_start_ns.push(*start - 7);
        samples
            .latency_ns
            .push((place != 1).then_some(place * 1_000));
        samples.probe.0.push(Probe::Net);
        samples.method.push(Some("udp"));
        samples.setting.push(Some("usual"));
        samples.phase.push(None);
        samples.run.push(3);
        samples.sequence.push(place as u64);
        samples.requested_ns.push(None);
        samples.resolution_ns.push(Some(50_000));
        samples.size_bytes.push(Some(64));
        samples.outcome.0.push(match place {
            1 => SampleOutcome::Lost,
            _ => SampleOutcome::Done,
        });
    }
    samples.into_batch()
}

/// Returns the error message that occurs when these files are opened.
fn refusal(files: &[PathBuf]) -> String {
    imports::open_store(files, Cache::Off)
        .unwrap_err()
        .to_string()
}

#[test]
fn samples_are_a_table_of_their_own() {
    let file = write(
        "samples.parquet",
        &[samples(&[5, 10, 10]), samples(&[10, 2_000_050])],
    );
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    assert_eq!(store.info().only_table, Some(Table::LatencySamples));
    // The time range includes the last sample. It ends at a multiple of 100 ns, because this is the
    // resolution of headers.
    assert_eq!(store.info().end_ns, 2_000_100);
    let table = store.table(Table::LatencySamples, Options::default());
    let table = table.unwrap();
    assert_eq!(table.rows(), 5);
    let names = LatencySamples::schema().columns;
    let names: Vec<&str> = names.iter().map(|column| column.name).collect();
    let batch = table.read(0, &names).unwrap();
    let view = LatencySamplesView::new(&batch).unwrap();
    assert_eq!(view.start_ns[..2], [5, 10]);
    assert_eq!(view.intended_start_ns[0], -2);
    assert_eq!(
        (view.latency_ns.get(0), view.latency_ns.get(1)),
        (Some(0), None)
    );
    assert_eq!(view.probe.get(0), Some("net"));
    assert_eq!(view.outcome.get(1), Some("lost"));
    assert_eq!(view.method.get(2), Some("udp"));
    assert_eq!(view.phase.get(2), None);
    assert_eq!(view.size_bytes.get(2), Some(64));
    // All other tables exist and are empty.
    let runs = store.table(Table::CpuRuns, Options::default()).unwrap();
    assert_eq!(runs.rows(), 0);
}

#[test]
fn no_trace_has_samples() {
    let file = testdata::path("etl/filtrace__etw.etl");
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    assert_eq!(store.info().only_table, None);
    let table = store.table(Table::LatencySamples, Options::default());
    assert_eq!(table.unwrap().rows(), 0);
}

#[test]
fn names_may_be_plain_text() {
    let whole = samples(&[1, 2]);
    let mut fields: Vec<Field> = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in whole.schema().fields().iter().zip(whole.columns()) {
        match field.name().as_str() {
            "probe" | "outcome" => {
                let text = if field.name() == "probe" {
                    "sleep"
                } else {
                    "done"
                };
                fields.push(Field::new(field.name(), DataType::Utf8, false));
                columns.push(Arc::new(StringArray::from(vec![text; 2])));
            }
            _ => {
                fields.push(field.as_ref().clone());
                columns.push(column.clone());
            }
        }
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let store = imports::open_store(&[write("plain.parquet", &[batch])], Cache::Off).unwrap();
    let table = store.table(Table::LatencySamples, Options::default());
    let batch = table.unwrap().read(0, &["probe", "outcome"]).unwrap();
    let view = LatencySamplesView::new(&batch).unwrap();
    assert_eq!(
        (view.probe.get(1), view.outcome.get(1)),
        (Some("sleep"), Some("done"))
    );
}

#[test]
fn other_parquet_files_are_refused_with_what_they_lack() {
    let foreign =
        RecordBatch::try_from_iter([("start_ns", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    let foreign = write("foreign.parquet", &[foreign.unwrap()]);
    let said = refusal(&[foreign]);
    assert!(
        said.contains("foreign.parquet: its column `start_ns` has the type Int32"),
        "{said}"
    );
    assert!(said.contains("laglab measure"), "{said}");

    let whole = samples(&[1, 2]);
    let less: Vec<usize> = (0..whole.num_columns())
        .filter(|place| *place != 2)
        .collect();
    let less = write("less.parquet", &[whole.project(&less).unwrap()]);
    let said = refusal(&[less]);
    assert!(said.contains("no column `latency_ns`"), "{said}");

    let unsorted = write("unsorted.parquet", &[samples(&[1, 5]), samples(&[4])]);
    let said = refusal(&[unsorted]);
    assert!(said.contains("not in the order of `start_ns`"), "{said}");

    let good = write("good.parquet", &[whole]);
    let said = refusal(&[good.clone(), testdata::path("etl/filtrace__etw.etl")]);
    assert!(said.contains("open each file alone"), "{said}");

    let bytes = fs::read(good).unwrap();
    let cut = path("cut.parquet");
    fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
    assert!(refusal(&[cut]).contains("damaged Parquet file"));
}

#[test]
fn names_that_are_not_known_are_refused() {
    let whole = samples(&[1]);
    let place = whole.schema().index_of("outcome").unwrap();
    let mut fields: Vec<Field> = Vec::new();
    for field in whole.schema().fields() {
        fields.push(field.as_ref().clone());
    }
    fields[place] = Field::new("outcome", DataType::Utf8, false);
    let mut columns = whole.columns().to_vec();
    columns[place] = Arc::new(StringArray::from(vec!["eaten by a bear"]));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let store = imports::open_store(&[write("bear.parquet", &[batch])], Cache::Off).unwrap();
    let said = store.table(Table::LatencySamples, Options::default());
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("`outcome` contains an unknown name"),
        "{said}"
    );
}

#[test]
fn damaged_files_are_survived() {
    let starts: Vec<i64> = (0..300).map(|place| place * 1_000).collect();
    let good = fs::read(write("whole.parquet", &[samples(&starts)])).unwrap();
    let path = path("damaged.parquet");
    let mut random = Rng(5);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = 4 + random.below(bytes.len() - 8);
            bytes[at] = [0, 0xFF, 0x80, random.bits() as u8][random.below(4)];
        }
        fs::write(&path, &bytes).unwrap();
        let table = imports::open_store(std::slice::from_ref(&path), Cache::Off)
            .and_then(|store| store.table(Table::LatencySamples, Options::default()));
        match table {
            Ok(table) => {
                assert!(table.rows() <= bytes.len());
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20 && read > 20, "{refused} refused, {read} read");
}
