//! Runs from Parquet files of any program. They are compared with the same runs from CSV files.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, DurationMicrosecondArray, Float32Array, Float64Array, Int32Array,
    Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray, StringViewArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use prove::columns::{self, Columns};
use prove::{
    Design, Group, Judgement, Pairing, Question, Sides, Summary, Unit, judge, measured, picture,
};
use testdata::Rng;

/// Number of rows in a row group. It is small, so that runs span several row groups.
const ROW_GROUP: usize = 300;

fn write(folder: &Path, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    write_with(folder, name, columns, Compression::UNCOMPRESSED)
}

fn write_with(
    folder: &Path,
    name: &str,
    columns: Vec<(&str, ArrayRef)>,
    codec: Compression,
) -> PathBuf {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let path = folder.join(name);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_data_page_row_count_limit(100)
        .set_compression(codec)
        .build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

fn columns_of(value: &str) -> Columns {
    Columns {
        value: value.to_owned(),
        run: Some("run".to_owned()),
        by: Some("driver".to_owned()),
    }
}

/// Rows of two drivers, run after run. In the first two runs, the drivers alternate from row to row.
struct Rows {
    run: Vec<i64>,
    driver: Vec<&'static str>,
    value: Vec<Option<f64>>,
}

fn rows() -> Rows {
    let mut rng = Rng(31);
    let (mut run, mut driver, mut value) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..8 {
        for row in 0..400 {
            run.push(number);
            let is_old = if number < 2 { row % 2 == 0 } else { row < 200 };
            driver.push(if is_old { "old" } else { "new" });
            let ms = (if is_old { 900 } else { 300 }) + rng.below(200);
            value.push((row % 50 != 7).then(|| f64::from(ms as u32) / 64.0));
        }
    }
    Rows { run, driver, value }
}

fn sides(groups: Vec<Group>) -> Sides {
    prove::sides::within(groups, Some("old"), Some("new"), Pairing::Found).unwrap()
}

fn judged(both: &Sides) -> Judgement {
    let summary = Summary::read(both).unwrap();
    judge(both, &summary, Question { margin: 0.02 }).unwrap()
}

#[test]
fn runs_of_a_parquet_file_are_those_of_the_csv_file() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows();
    let mut text = String::from("driver,run,frame_ms\n");
    for ((run, driver), value) in rows.run.iter().zip(&rows.driver).zip(&rows.value) {
        let value = value.map_or(String::new(), |value| value.to_string());
        writeln!(text, "{driver},{run},{value}").unwrap();
    }
    let csv = folder.path().join("rows.csv");
    fs::write(&csv, text).unwrap();
    let from_csv = sides(columns::read(&csv, &columns_of("frame_ms")).unwrap());
    let expected = judged(&from_csv);
    assert_eq!((expected.runs_before, expected.design), (8, Design::Paired));
    assert!(expected.unknown > 0 && expected.lines[0].verdict.is_some());
    let pictures = picture(&from_csv, &Summary::read(&from_csv).unwrap()).unwrap();

    let names = |text: &dyn Fn(&[&str]) -> ArrayRef| text(&rows.driver);
    let whole = |scale: f64| rows.value.iter().map(move |value| Some((*value)? * scale));
    let run: ArrayRef = Arc::new(Int64Array::from(rows.run.clone()));
    let run_text: ArrayRef = Arc::new(StringArray::from_iter_values(
        rows.run.iter().map(ToString::to_string),
    ));
    let files: Vec<(&str, Vec<(&str, ArrayRef)>)> = vec![
        (
            "frame_ms",
            vec![
                (
                    "driver",
                    names(&|it| Arc::new(StringArray::from(it.to_vec()))),
                ),
                ("run", Arc::clone(&run)),
                ("frame_ms", Arc::new(Float64Array::from(rows.value.clone()))),
            ],
        ),
        (
            "frame_ms",
            vec![
                (
                    "frame_ms",
                    Arc::new(Float32Array::from_iter(
                        whole(1.0).map(|value| value.map(|value| value as f32)),
                    )),
                ),
                ("run", Arc::clone(&run_text)),
                (
                    "driver",
                    names(&|it| Arc::new(LargeStringArray::from(it.to_vec()))),
                ),
            ],
        ),
        (
            "frame_ns",
            vec![
                ("run", Arc::clone(&run)),
                (
                    "driver",
                    names(&|it| Arc::new(StringViewArray::from_iter_values(it))),
                ),
                (
                    "frame_ns",
                    Arc::new(Int32Array::from_iter(
                        whole(1e6).map(|value| value.map(|value| value as i32)),
                    )),
                ),
            ],
        ),
        (
            "frame",
            vec![
                ("run", Arc::clone(&run)),
                (
                    "driver",
                    names(&|it| Arc::new(StringArray::from(it.to_vec()))),
                ),
                (
                    "frame",
                    Arc::new(DurationMicrosecondArray::from_iter(
                        whole(1e3).map(|value| value.map(|value| value as i64)),
                    )),
                ),
            ],
        ),
    ];
    for (number, (value, columns)) in files.into_iter().enumerate() {
        let path = write(folder.path(), &format!("{number}.parquet"), columns);
        let groups = columns::read(&path, &columns_of(value)).unwrap();
        assert_eq!(groups[0].unit, Unit::Nanoseconds);
        let both = sides(groups);
        let mut found = judged(&both);
        assert_eq!(
            found.column.replace("frame_ms".to_owned()).as_deref(),
            Some(value)
        );
        if number != 3 {
            assert_eq!(found, expected, "file {number}");
            let summary = Summary::read(&both).unwrap();
            assert_eq!(picture(&both, &summary).unwrap(), pictures);
        }
        // Values in microseconds are truncated, so the medians are only nearly equal.
        let medians = [found.lines[0].before, expected.lines[0].before];
        assert!((medians[0].unwrap() - medians[1].unwrap()).abs() < 1_000.0);
        assert_eq!(found.unknown, expected.unknown);
    }
}

/// Writes the same rows with each codec, and reads them. Snappy is the default of most programs.
#[test]
fn compressed_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let written = |codec: Compression| {
        let rows = rows();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("driver", Arc::new(StringArray::from(rows.driver))),
            ("run", Arc::new(Int64Array::from(rows.run))),
            ("frame_ms", Arc::new(Float64Array::from(rows.value))),
        ];
        write_with(folder.path(), "codec.parquet", columns, codec)
    };
    let judged_file = |path: &Path| {
        let groups = columns::read(path, &columns_of("frame_ms"));
        groups.map(|groups| judged(&sides(groups)))
    };
    let plain = fs::read(written(Compression::UNCOMPRESSED)).unwrap();
    let expected = judged_file(&folder.path().join("codec.parquet")).unwrap();
    for codec in [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let path = written(codec);
        assert!(
            fs::metadata(&path).unwrap().len() < plain.len() as u64,
            "{codec:?}"
        );
        assert_eq!(judged_file(&path).unwrap(), expected, "{codec:?}");
    }
    // The metadata of a column has its codec after its path. In the specification of Parquet, Brotli has the code 4 and
    // LZO has the code 3. The encoding (Thrift) doubles the codes.
    for (code, name) in [(8, "Brotli"), (6, "LZO")] {
        let mut other = plain.clone();
        let pattern = b"\x08frame_ms\x15\x00";
        let places = (0..plain.len()).filter(|at| plain[*at..].starts_with(pattern));
        let places: Vec<usize> = places.collect();
        assert!(!places.is_empty());
        for at in places {
            other[at + pattern.len() - 1] = code;
        }
        let path = folder.path().join("other.parquet");
        fs::write(&path, other).unwrap();
        let error = judged_file(&path).unwrap_err().to_string();
        let expected = format!(
            "other.parquet: it is compressed with {name}, which laglab cannot read; write it with Snappy"
        );
        assert!(error.contains(&expected), "{error}");
    }
}

/// Compares ten pairs with 10 ms and 11 ms. All values of one run are null.
#[test]
fn a_run_of_nulls_is_left_out_with_its_pair() {
    let folder = tempfile::tempdir().unwrap();
    let (mut run, mut driver, mut value) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..10 {
        for (name, ms) in [("old", 10.0), ("new", 11.0)] {
            for sample in 0..30 {
                run.push(number);
                driver.push(name);
                let is_null = number == 4 && name == "new";
                value.push((!is_null).then(|| ms + f64::from(sample + number as i32) / 1_000.0));
            }
        }
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("driver", Arc::new(StringArray::from(driver))),
        ("run", Arc::new(Int64Array::from(run))),
        ("frame_ms", Arc::new(Float64Array::from(value))),
    ];
    let path = write(folder.path(), "nulls.parquet", columns);
    let found = judged(&sides(
        columns::read(&path, &columns_of("frame_ms")).unwrap(),
    ));
    assert_eq!((found.runs_before, found.runs_after), (9, 9));
    assert_eq!((found.samples_before, found.samples_after), (270, 270));
    assert_eq!(found.lines[0].verdict, Some(prove::Verdict::Higher));
    let doubt = "1 pair of runs is left out, because a run has no value (run 4).";
    assert!(
        found.doubts.iter().any(|it| it == doubt),
        "{:?}",
        found.doubts
    );
}

#[test]
fn rows_without_a_run_are_runs() {
    let folder = tempfile::tempdir().unwrap();
    let value: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0)]));
    let path = write(folder.path(), "a.parquet", vec![("fps", value)]);
    let columns = Columns {
        value: "fps".to_owned(),
        ..Columns::default()
    };
    let groups = columns::read(&path, &columns).unwrap();
    assert_eq!((groups[0].runs.len(), groups[0].unit), (3, Unit::Other));
}

#[test]
fn columns_of_other_types_are_errors_that_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(vec![
        Some(vec![Some(1)]),
        None,
    ]);
    let file = write(
        folder.path(),
        "types.parquet",
        vec![
            ("text", Arc::new(StringArray::from(vec!["a", "b"]))),
            ("flag", Arc::new(BooleanArray::from(vec![true, false]))),
            ("list", Arc::new(list)),
            ("odd", Arc::new(Float64Array::from(vec![f64::NAN, 1.0]))),
            ("huge_s", Arc::new(Float64Array::from(vec![1.0, 1e300]))),
            ("twice", Arc::new(Int32Array::from(vec![1, 2]))),
            ("twice", Arc::new(Int32Array::from(vec![1, 2]))),
            ("run", Arc::new(Int32Array::from(vec![1, 2]))),
        ],
    );
    let refused = |value: &str, run: &str| {
        let columns = Columns {
            value: value.to_owned(),
            run: Some(run.to_owned()),
            by: None,
        };
        let groups = match columns::read(&file, &columns) {
            Err(error) => return error.to_string(),
            Ok(groups) => groups,
        };
        let both = Sides {
            name: String::new(),
            design: Design::Unpaired,
            before: groups[0].clone(),
            after: groups[0].clone(),
            alone: [0, 0],
            same_names: 0,
            has_looks: false,
        };
        Summary::read(&both).unwrap_err().to_string()
    };
    for (value, run, expected) in [
        (
            "text",
            "run",
            "`text` has the type Utf8; give a column of numbers or durations with --value",
        ),
        ("flag", "run", "`flag` has the type Boolean"),
        ("list", "run", "`list` has the type List"),
        ("run", "list", "`list` has the type List"),
        (
            "none",
            "run",
            "no column `none`; its columns are text, flag, list, odd, huge_s, twice, twice, run",
        ),
        ("run", "none", "no column `none`"),
        ("odd", "run", "a value is NaN; give finite numbers"),
        (
            "huge_s",
            "run",
            "a value is too large or too small (1e300); give 0, or values",
        ),
        (
            "twice",
            "run",
            "it has several columns named `twice`; rename them",
        ),
        ("odd", "twice", "it has several columns named `twice`"),
    ] {
        let error = refused(value, run);
        assert!(
            error.contains("types.parquet: ") && error.contains(expected),
            "{error}"
        );
    }
    let foreign = measured::read(&file).unwrap_err().to_string();
    assert!(foreign.contains("no column `latency_ns`"), "{foreign}");
    assert!(
        foreign.contains("name its columns with --value and --run"),
        "{foreign}"
    );
}

/// Equal values take few bytes. A file with more than 64 rows per byte is read if it has at most a million rows.
#[test]
fn many_equal_values_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("equal.parquet");
    let written = |rows: usize| {
        let batch = RecordBatch::try_from_iter([
            ("run", Arc::new(Int32Array::from(vec![1; rows])) as ArrayRef),
            ("fps", Arc::new(Float64Array::from(vec![60.0; rows]))),
        ]);
        let batch = batch.unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(rows))
            .set_data_page_row_count_limit(rows)
            .build();
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let bytes = fs::metadata(&path).unwrap().len();
        assert!(rows as u64 > 64 * bytes, "{bytes} bytes");
        let columns = Columns {
            value: "fps".to_owned(),
            run: Some("run".to_owned()),
            by: None,
        };
        columns::read(&path, &columns)
    };
    let groups = written(1_000_000).unwrap();
    assert_eq!(groups[0].runs.len(), 1);
    assert_eq!(groups[0].runs[0].samples(), 1_000_000);
    let group = || groups[0].clone();
    let both = Sides {
        name: String::new(),
        design: Design::Unpaired,
        before: group(),
        after: group(),
        alone: [0, 0],
        same_names: 0,
        has_looks: false,
    };
    assert_eq!(judged(&both).lines[0].before, Some(60.0));
    let error = written(2_000_000).unwrap_err().to_string();
    let expected = "it claims to have 2000000 rows, which do not fit into its size; if it is not damaged, divide them among \
                    several files";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn damaged_files_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.parquet");
    let mut random = Rng(5);
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
    ] {
        let rows = rows();
        let good = write_with(
            folder.path(),
            "good.parquet",
            vec![
                ("driver", Arc::new(StringArray::from(rows.driver))),
                ("run", Arc::new(Int64Array::from(rows.run))),
                ("frame_ms", Arc::new(Float64Array::from(rows.value))),
            ],
            codec,
        );
        let good = fs::read(good).unwrap();
        let (mut refused, mut read) = (0, 0);
        for _ in 0..400 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = 4 + random.below(bytes.len() - 8);
                bytes[at] = [0, 0xFF, 0x80, random.bits() as u8][random.below(4)];
            }
            fs::write(&path, &bytes).unwrap();
            let sides = columns::read(&path, &columns_of("frame_ms"))
                .and_then(|groups| {
                    prove::sides::within(groups, Some("old"), Some("new"), Pairing::Found)
                })
                .and_then(|both| Summary::read(&both));
            match sides {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(
            refused > 20 && read > 5,
            "{codec:?}: {refused} refused, {read} read"
        );
    }
}
