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
use parquet::file::properties::WriterProperties;
use prove::columns::{self, Columns};
use prove::{Design, Group, Judgement, Question, Sides, Summary, Unit, judge, measured, picture};
use testdata::Rng;

/// Number of rows in a row group. It is small, so that runs span several row groups.
const ROW_GROUP: usize = 300;

fn write(folder: &Path, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
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

/// Rows of two drivers. Runs follow one after the other. In the first two runs, the drivers alternate from
/// row to row.
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
    prove::sides::within(groups, Some("old"), Some("new")).unwrap()
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
        let found = judged(&both);
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
            "no column `none`; its columns are text, flag, list, odd, run",
        ),
        ("run", "none", "no column `none`"),
        ("odd", "run", "a value is NaN; give finite numbers"),
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

#[test]
fn damaged_files_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows();
    let good = write(
        folder.path(),
        "good.parquet",
        vec![
            ("driver", Arc::new(StringArray::from(rows.driver))),
            ("run", Arc::new(Int64Array::from(rows.run))),
            ("frame_ms", Arc::new(Float64Array::from(rows.value))),
        ],
    );
    let good = fs::read(good).unwrap();
    let path = folder.path().join("damaged.parquet");
    let mut random = Rng(5);
    let (mut refused, mut read) = (0, 0);
    for _ in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = 4 + random.below(bytes.len() - 8);
            bytes[at] = [0, 0xFF, 0x80, random.bits() as u8][random.below(4)];
        }
        fs::write(&path, &bytes).unwrap();
        let sides = columns::read(&path, &columns_of("frame_ms"))
            .and_then(|groups| prove::sides::within(groups, Some("old"), Some("new")))
            .and_then(|both| Summary::read(&both));
        match sides {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20 && read > 20, "{refused} refused, {read} read");
}
