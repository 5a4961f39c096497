//! Samples of live probes, as `laglab measure` keeps them in Parquet files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::column::Named;
use crate::{LatencySamples, Probe, SampleOutcome};

/// A file of samples cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is a Parquet file that `laglab measure` did not write, or a damaged one.
    #[error(
        "{}: {what}; of Parquet files those are read that `laglab measure … -o FILE.parquet` writes",
        file.display()
    )]
    NotSamples {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It was to be one trace with other files.
    #[error(
        "{}: samples count their time from the start of their own measurement and say not when that \
         was, so that they are no part of a trace with other files; look at them side by side",
        file.display()
    )]
    NotAlone {
        /// The file.
        file: PathBuf,
    },
}

/// What a Parquet file begins and ends with.
const MAGIC: [u8; 4] = *b"PAR1";

/// Rows that are read at once: those of a chunk.
const BATCH_ROWS: usize = 1 << 16;

/// Whether a file begins as a Parquet file does; one that cannot be read does not.
pub fn is_parquet(file: &Path) -> bool {
    begins_with(file, &[MAGIC])
}

/// Whether a file begins with one of these; one that cannot be read does not.
pub(crate) fn begins_with(file: &Path, magics: &[[u8; 4]]) -> bool {
    // Asked before opening: opening a pipe would wait for a writer.
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut magic = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magics.contains(&magic)
}

/// When the last of the samples began, in nanoseconds since the measurement's start; nothing if
/// there are none.
///
/// # Errors
/// If the file cannot be read or holds no samples of `laglab measure`.
pub(crate) fn last_ns(file: &Path) -> Result<Option<i64>, SamplesError> {
    let mut last = None;
    walk(file, &["start_ns"], &mut |batch| {
        let starts = batch.column(0).as_primitive::<Int64Type>();
        last = starts.values().last().copied().or(last);
        Ok::<(), SamplesError>(())
    })?;
    Ok(last)
}

/// Gives all samples away, as batches of [`LatencySamples`], in the order of their start.
///
/// # Errors
/// If the file cannot be read or holds no samples of `laglab measure`, or what `give` fails with.
pub(crate) fn read<E: From<SamplesError>>(
    file: &Path,
    give: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let schema = LatencySamples::schema();
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name).collect();
    walk(file, &names, give)
}

/// Gives the named columns of the file away, batch by batch, as the table has them.
fn walk<E: From<SamplesError>>(
    path: &Path,
    wanted: &[&str],
    give: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let not_samples = |what: String| SamplesError::NotSamples {
        file: path.to_owned(),
        what,
    };
    let io = |error| SamplesError::Io {
        file: path.to_owned(),
        error,
    };
    let table: SchemaRef = Arc::new(LatencySamples::schema().arrow());
    let file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|error| not_samples(format!("it is a damaged Parquet file ({error})")))?;
    for field in table.fields() {
        let found = builder.schema().field_with_name(field.name());
        let found = found
            .map_err(|_| not_samples(format!("its table has no column `{}`", field.name())))?;
        if !fits(field.data_type(), found.data_type()) {
            return Err(not_samples(format!(
                "its column `{}` has the type {}, not {}",
                field.name(),
                found.data_type(),
                field.data_type()
            ))
            .into());
        }
    }
    // No sample takes less than a byte, and what says so would be endless.
    let rows = builder.metadata().file_metadata().num_rows();
    if u64::try_from(rows).is_ok_and(|rows| rows > bytes) {
        let what = format!("it is said to hold {rows} rows in {bytes} bytes");
        return Err(not_samples(what).into());
    }
    let columns = ProjectionMask::columns(builder.parquet_schema(), wanted.iter().copied());
    let reader = builder.with_projection(columns).with_batch_size(BATCH_ROWS);
    let damaged = |error: &dyn std::fmt::Display| {
        not_samples(format!("it cannot be read to its end ({error})"))
    };
    let places: Result<Vec<usize>, _> = wanted.iter().map(|name| table.index_of(name)).collect();
    let places = places.map_err(|error| damaged(&error))?;
    let schema: SchemaRef = Arc::new(table.project(&places).map_err(|error| damaged(&error))?);
    let mut last = i64::MIN;
    for batch in reader.build().map_err(|error| damaged(&error))? {
        let batch = batch.map_err(|error| damaged(&error))?;
        let column = |name: &str| {
            let array = batch.column_by_name(name)?;
            match name {
                "probe" => of_names::<Probe>(array),
                "outcome" => of_names::<SampleOutcome>(array),
                _ => Some(Arc::clone(array)),
            }
        };
        let columns = wanted.iter().map(|name| {
            column(name).ok_or_else(|| {
                not_samples(format!("its column `{name}` has a name that is not known"))
            })
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

/// Whether a file's column can be read as one of the table: names may be plain text too, as other
/// programs write them.
fn fits(of_table: &DataType, found: &DataType) -> bool {
    let is_of_names = matches!(of_table, DataType::Dictionary(..));
    of_table == found || is_of_names && *found == DataType::Utf8
}

/// A column of names with the codes that the table has for them; nothing if one is not known.
fn of_names<K: Named>(array: &ArrayRef) -> Option<ArrayRef> {
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
