//! Reads samples of live probes from Parquet files that `laglab measure` wrote.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use tables::{
    GiveRows, LatencySamples, Named, Options, Probe, Recording, RecordingInfo, SampleOutcome,
    SessionHeader, Sessions, StoreError, Table, Tables, Unreadable,
};

/// A failure to read a file of samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Reason given by the operating system.
        source: std::io::Error,
    },
    /// The Parquet file is damaged, or `laglab measure` did not write it.
    #[error(
        "cannot read {}: {what}; only Parquet files that `laglab measure … -o FILE.parquet` wrote \
         can be read",
        file.display()
    )]
    NotSamples {
        /// Path of the file.
        file: PathBuf,
        /// Description of the fault.
        what: String,
    },
    /// The file was given together with other files.
    #[error(
        "cannot open {} together with other files: its times are relative to its own measurement, \
         whose start is unknown; open each file alone",
        file.display()
    )]
    NotAlone {
        /// Path of the file.
        file: PathBuf,
    },
}

/// Samples of a live probe.
#[derive(Debug)]
pub struct SampleRecording {
    file: PathBuf,
    info: RecordingInfo,
}

impl SampleRecording {
    /// Opens a file with samples. It must be opened alone.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if `files` has more than one file.
    pub fn open(files: &[PathBuf]) -> Result<SampleRecording, StoreError> {
        let [file] = files else {
            let file = files.iter().find(|file| is_parquet(file));
            let file = file.cloned().unwrap_or_default();
            return Err(SamplesError::NotAlone { file }.into());
        };
        // The recording ends at the first 100 ns tick after the start of the last sample.
        let last_ns = last_ns(file)?;
        let end_ns = last_ns.map(|ns| ns.max(0) / 100 * 100 + 100);
        let header = SessionHeader {
            name: "measurement".to_owned(),
            end_ns,
            ..SessionHeader::default()
        };
        Ok(SampleRecording {
            file: file.clone(),
            info: RecordingInfo::without_events(files, header, Table::LatencySamples),
        })
    }
}

impl Recording for SampleRecording {
    fn info(&self) -> &RecordingInfo {
        &self.info
    }

    fn memory(&self, _: &[Table]) -> u64 {
        self.info.size_bytes
    }

    fn rows(
        &self,
        wanted: &[Table],
        _: Options<'_>,
        give: &mut GiveRows<'_>,
    ) -> Result<Vec<Unreadable>, StoreError> {
        if wanted.contains(&Table::LatencySamples) {
            read(&self.file, &mut |batch| give(Table::LatencySamples, batch))?;
        }
        let mut tables = Tables {
            sessions: Sessions::from_info(&self.info),
            ..Tables::default()
        };
        tables.give(wanted, give)?;
        Ok(Vec::new())
    }
}

impl From<SamplesError> for StoreError {
    fn from(error: SamplesError) -> StoreError {
        StoreError::of_format(error)
    }
}

/// First and last bytes of a Parquet file.
const MAGIC: [u8; 4] = *b"PAR1";

/// Maximum number of rows of a batch. It is also the maximum number of rows of a row group.
const BATCH_ROWS: usize = 1 << 16;

/// Returns true if a file begins like a Parquet file. Returns false if the file cannot be read.
pub fn is_parquet(file: &Path) -> bool {
    files::first_bytes(file) == Some(MAGIC)
}

/// Returns the start of the last sample, in nanoseconds since the measurement's start. Returns `None` if
/// there are no samples.
///
/// # Errors
/// Returns an error if the file cannot be read or was not written by `laglab measure`.
pub(crate) fn last_ns(file: &Path) -> Result<Option<i64>, SamplesError> {
    let mut last = None;
    walk(file, &["start_ns"], &mut |batch| {
        let starts = batch.column(0).as_primitive::<Int64Type>();
        last = starts.values().last().copied().or(last);
        Ok::<(), SamplesError>(())
    })?;
    Ok(last)
}

/// Reads all samples in the order of their start, and passes them to `give` as batches of [`LatencySamples`].
///
/// # Errors
/// Returns an error if the file cannot be read or was not written by `laglab measure`, or if `give` fails.
pub(crate) fn read<E: From<SamplesError>>(
    file: &Path,
    give: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let schema = LatencySamples::schema();
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name).collect();
    walk(file, &names, give)
}

/// Reads the columns `wanted` of the file and converts them to the types of the table. Passes them to `give`
/// batch by batch.
fn walk<E: From<SamplesError>>(
    path: &Path,
    wanted: &[&str],
    give: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let not_samples = |what: String| SamplesError::NotSamples {
        file: path.to_owned(),
        what,
    };
    let io = |source| SamplesError::Io {
        file: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| not_samples(format!("it is a damaged Parquet file ({error})")))?;
    let table = LatencySamples::schema().arrow();
    check(&builder, &table, bytes).map_err(not_samples)?;
    let columns = ProjectionMask::columns(builder.parquet_schema(), wanted.iter().copied());
    let reader = builder.with_projection(columns).with_batch_size(BATCH_ROWS);
    let damaged = |error: &dyn std::fmt::Display| {
        not_samples(format!("it cannot be read to its end ({error})"))
    };
    let indices: Result<Vec<usize>, _> = wanted.iter().map(|name| table.index_of(name)).collect();
    let indices = indices.map_err(|error| damaged(&error))?;
    let schema: SchemaRef = Arc::new(table.project(&indices).map_err(|error| damaged(&error))?);
    let mut last = i64::MIN;
    for batch in reader.build().map_err(|error| damaged(&error))? {
        let batch = batch.map_err(|error| damaged(&error))?;
        let columns = wanted.iter().map(|name| {
            column(&batch, name)
                .ok_or_else(|| not_samples(format!("its column `{name}` contains an unknown name")))
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, SamplesError>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| not_samples(error.to_string()))?;
        let starts = batch.column_by_name("start_ns");
        for start in starts.map_or(&[][..], |starts| {
            starts.as_primitive::<Int64Type>().values()
        }) {
            if *start < last {
                let what = "its rows are not in the order of `start_ns`".to_owned();
                return Err(not_samples(what).into());
            }
            last = *start;
        }
        give(batch)?;
    }
    Ok(())
}

/// Checks the columns and the number of rows of a file. The error describes the first fault that is found.
fn check(
    builder: &ParquetRecordBatchReaderBuilder<File>,
    table: &Schema,
    file_bytes: u64,
) -> Result<(), String> {
    for field in table.fields() {
        let column = builder.schema().field_with_name(field.name());
        let column = column.map_err(|_| format!("its table has no column `{}`", field.name()))?;
        if !fits(field.data_type(), column.data_type()) {
            return Err(format!(
                "its column `{}` has the type {}, not {}",
                field.name(),
                column.data_type(),
                field.data_type()
            ));
        }
    }
    // Every sample takes at least one byte. So the size of the file limits the number of samples.
    check_parquet(builder.metadata(), file_bytes)
}

/// Checks the number of rows and the positions of columns, because the reader of Parquet files does not check
/// them. `most_rows` is the maximum number of rows that fits the size of the file. If a file claims to have
/// more rows, reading it could take forever.
///
/// # Errors
/// Returns an error that describes the first fault.
pub fn check_parquet(metadata: &ParquetMetaData, most_rows: u64) -> Result<(), String> {
    let rows = metadata.file_metadata().num_rows();
    let groups = metadata.row_groups().iter();
    let mut of_groups = groups.clone().map(|group| u64::try_from(group.num_rows()));
    let sum = of_groups.try_fold(0_u64, |sum, rows| sum.checked_add(rows.ok()?));
    if sum.is_none_or(|sum| sum > most_rows)
        || u64::try_from(rows).is_ok_and(|rows| rows > most_rows)
    {
        return Err(format!(
            "it claims to have {rows} rows, which do not fit into its size; if it is not damaged, divide them among \
             several files"
        ));
    }
    // The reader panics if an offset or a length is negative.
    let is_negative = groups.flat_map(|group| group.columns()).any(|column| {
        let start = column.dictionary_page_offset();
        start.unwrap_or(column.data_page_offset()) < 0 || column.compressed_size() < 0
    });
    if is_negative {
        Err("it claims that a column begins or ends before the file".to_owned())
    } else {
        Ok(())
    }
}

/// Returns a column, converted to the type of the table. Returns `None` if the file has no such column. Also
/// returns `None` if the column contains a name that is not a value of the table's enumeration.
fn column(batch: &RecordBatch, name: &str) -> Option<ArrayRef> {
    let array = batch.column_by_name(name)?;
    match name {
        "probe" => names_column::<Probe>(array),
        "outcome" => names_column::<SampleOutcome>(array),
        _ => Some(Arc::clone(array)),
    }
}

/// Returns true if a file's column can be converted to the table's type. A column of names may also be plain
/// text in the file, because other programs write names as text.
fn fits(expected: &DataType, found: &DataType) -> bool {
    let has_names = matches!(expected, DataType::Dictionary(..));
    expected == found || has_names && *found == DataType::Utf8
}

/// Converts a column of names to the codes of the table. Returns `None` if a name is not a value of the
/// enumeration `K`.
fn names_column<K: Named>(array: &ArrayRef) -> Option<ArrayRef> {
    let code = |name: &str| {
        let place = K::NAMES.iter().position(|known| *known == name)?;
        i8::try_from(place).ok()
    };
    let codes: Option<Vec<i8>> = match array.as_dictionary_opt::<Int8Type>() {
        Some(named) => {
            let names = named.downcast_dict::<StringArray>()?;
            names.into_iter().map(|name| code(name?)).collect()
        }
        None => array
            .as_string_opt::<i32>()?
            .iter()
            .map(|name| code(name?))
            .collect(),
    };
    let names: ArrayRef = Arc::new(StringArray::from(K::NAMES.to_vec()));
    Some(Arc::new(DictionaryArray::<Int8Type>::new(
        codes?.into(),
        names,
    )))
}
