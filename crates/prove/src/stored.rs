//! Runs whose samples stay in a Parquet file until they are needed. A comparison of many long runs therefore needs
//! memory for only a few runs at a time.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ord::partition::partition;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use rayon::prelude::*;

use crate::columns::{Columns, RANGE, is_comparable, no_column, several_columns, unit_of};
use crate::runs::{GroupBuilder, Run, TimedSamples, Values};
use crate::{Error, Group, Unit};

/// Number of rows that are decoded at once.
const BATCH_ROWS: usize = 1 << 16;

/// Number of rows that a file may have, however small it is: equal values take nearly no bytes.
const ALWAYS_READ: u64 = 1 << 20;

/// Maximum number of values for which memory is reserved before they are read.
const MOST_RESERVED: usize = 1 << 20;

/// Parquet file, and its column of values.
pub(crate) struct StoredFile {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// Index of the column of values.
    value: usize,
    /// Factor by which values are multiplied.
    factor: f64,
    /// Index of the column with the starts of samples, in nanoseconds. The rows are sorted by this column.
    /// `None` if the file has no starts.
    time: Option<usize>,
}

/// Samples of a run, as ranges of rows of a file.
#[derive(Clone, Debug)]
pub(crate) struct StoredRun {
    file: Arc<StoredFile>,
    parts: Vec<Part>,
}

/// Consecutive rows of one row group that belong to one run.
#[derive(Clone, Copy, Debug)]
struct Part {
    row_group: u32,
    start: u32,
    len: u32,
}

/// Neighbouring rows of a row group that are equal in the columns that identify the group and the run.
struct Equal {
    rows: Range<usize>,
    /// Cells of one of the rows, in the columns that identify the group and the run.
    columns: Vec<ArrayRef>,
}

/// Columns of a file: the columns that identify the run of a row, and the columns with the data of its sample.
pub(crate) struct Keys<'k> {
    /// Column of the values.
    pub(crate) value: &'k str,
    /// Columns that identify the group.
    pub(crate) group: &'k [&'k str],
    /// Column that identifies the run.
    pub(crate) run: &'k str,
    /// Function that returns the name of a row's group. Its arguments are the columns of `group` and the
    /// index of the row.
    pub(crate) name: &'k dyn Fn(&[ArrayRef], usize) -> String,
    /// Column with the starts of samples. It must be given only if the rows are sorted by it.
    pub(crate) time: Option<&'k str>,
}

/// Reads the runs of a file that another program wrote.
pub(crate) fn read(path: &Path, columns: &Columns) -> Result<Vec<Group>, Error> {
    let by: Vec<&str> = columns.by.as_deref().into_iter().collect();
    let name = |keys: &[ArrayRef], row: usize| match keys.first() {
        Some(by) => text(by, row),
        None => columns.value.clone(),
    };
    let Some(run) = &columns.run else {
        return each_row_a_run(path, columns, &by, &name);
    };
    let keys = Keys {
        value: &columns.value,
        group: &by,
        run,
        name: &name,
        time: None,
    };
    read_runs(path, &keys)
}

/// Finds the rows of each run, but does not read the values.
pub(crate) fn read_runs(path: &Path, keys: &Keys<'_>) -> Result<Vec<Group>, Error> {
    let (mut file, unit) = StoredFile::open(path, keys.value)?;
    file.time = keys.time.map(|name| file.key(name)).transpose()?;
    let file = Arc::new(file);
    let mut indices = vec![file.key(keys.run)?];
    for name in keys.group {
        indices.push(file.key(name)?);
    }
    // Parts of each run. The indexes are the group, the run and the part.
    let mut parts: Vec<Vec<Vec<Part>>> = Vec::new();
    let mut growing = GroupBuilder::default();
    let mut began = 0;
    let all: Vec<usize> = (0..file.row_groups()).collect();
    for row_groups in all.chunks(rayon::current_num_threads()) {
        let read = row_groups.par_iter();
        let read: Result<Vec<Vec<Equal>>, Error> = read
            .map(|row_group| file.equal_rows(*row_group, &indices))
            .collect();
        for (row_group, equal) in row_groups.iter().zip(read?) {
            let mut last = None;
            for Equal { rows, columns } in equal {
                let name = (keys.name)(&columns[1..], 0);
                let group = growing.group(&name, unit);
                let run = text(&columns[0], 0);
                let run = growing.run(group, &run, |name| {
                    let run = StoredRun {
                        file: Arc::clone(&file),
                        parts: Vec::new(),
                    };
                    Run::stored(name, Some(began), run)
                });
                began += 1;
                parts.resize_with(growing.groups.len(), Vec::new);
                let of_group = &mut parts[group];
                of_group.resize_with(growing.groups[group].runs.len(), Vec::new);
                let of_run = &mut of_group[run];
                match of_run.last_mut() {
                    Some(part) if last == Some((group, run)) => part.len += rows.len() as u32,
                    _ => of_run.push(Part {
                        row_group: *row_group as u32,
                        start: rows.start as u32,
                        len: rows.len() as u32,
                    }),
                }
                last = Some((group, run));
            }
        }
    }
    for (group, parts) in growing.groups.iter_mut().zip(parts) {
        for (run, parts) in group.runs.iter_mut().zip(parts) {
            let stored = StoredRun {
                file: Arc::clone(&file),
                parts,
            };
            *run = Run::stored(std::mem::take(&mut run.name), run.began, stored);
        }
    }
    Ok(growing.groups)
}

/// Returns the difference between the maximum and the minimum of a column of integers. Both are read from the
/// statistics in the file. Returns `None` if the statistics are missing.
pub(crate) fn span(path: &Path, column: &str) -> Result<Option<i64>, Error> {
    let (file, _) = StoredFile::open(path, column)?;
    let mut range: Option<(i64, i64)> = None;
    for group in file.metadata.metadata().row_groups() {
        let mut chunks = group.columns().iter();
        let chunk = chunks.find(|chunk| chunk.column_path().string() == column);
        let Some(Statistics::Int64(stated)) = chunk.and_then(|chunk| chunk.statistics()) else {
            return Ok(None);
        };
        let (Some(least), Some(greatest)) = (stated.min_opt(), stated.max_opt()) else {
            return Ok(None);
        };
        let (low, high) = range.unwrap_or((*least, *greatest));
        range = Some((low.min(*least), high.max(*greatest)));
    }
    Ok(range.and_then(|(low, high)| high.checked_sub(low)))
}

/// Reads a file in which each row is a run.
fn each_row_a_run(
    path: &Path,
    columns: &Columns,
    by: &[&str],
    name: &dyn Fn(&[ArrayRef], usize) -> String,
) -> Result<Vec<Group>, Error> {
    let (file, unit) = StoredFile::open(path, &columns.value)?;
    let mut indices = vec![file.value];
    for name in by {
        indices.push(file.key(name)?);
    }
    let all: Vec<usize> = (0..file.row_groups()).collect();
    let mut growing = GroupBuilder::default();
    let mut number = 0_u64;
    for batch in file.batches(&indices, all, None)? {
        let batch = batch?;
        let mut values = Values::default();
        for row in 0..batch[0].len() {
            let group = growing.group(&name(&batch[1..], row), unit);
            file.add(&batch[0].slice(row, 1), &mut values)?;
            let known = std::mem::take(&mut values.known).into_owned();
            let unknown = std::mem::take(&mut values.unknown);
            number += 1;
            // Each row gets a different number as its name, also across groups, so runs of different groups do not form
            // pairs.
            growing.groups[group]
                .runs
                .push(Run::new(number.to_string(), known, unknown));
        }
    }
    Ok(growing.groups)
}

/// Returns a cell as text. A cell without a value is empty.
pub(crate) fn text(column: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options);
    formatter.map_or_else(|_| String::new(), |text| text.value(row).to_string())
}

impl StoredFile {
    fn open(path: &Path, value: &str) -> Result<(StoredFile, Unit), Error> {
        let io = |source| Error::Io {
            file: path.to_owned(),
            source,
        };
        let failed = |what: String| Error::format(path, what);
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let options = ArrowReaderOptions::new();
        let metadata = contained(|| ArrowReaderMetadata::load(&file, options).map_err(text_of))
            .map_err(|error| failed(format!("it is a damaged Parquet file ({error})")))?;
        /// Maximum number of rows for each byte of a large file. The maximum is high, because equal values take
        /// less than one bit each.
        const ROWS_PER_BYTE: u64 = 64;
        let most_rows = bytes.saturating_mul(ROWS_PER_BYTE).max(ALWAYS_READ);
        imports::check_parquet(metadata.metadata(), most_rows).map_err(failed)?;
        if let Some(codec) = unread_codec(metadata.metadata()) {
            return Err(failed(format!(
                "it is compressed with {codec}, which laglab cannot read; write it with Snappy, gzip, LZ4 or Zstandard, \
                 or without compression"
            )));
        }
        let mut groups = metadata.metadata().row_groups().iter();
        if groups.any(|group| u32::try_from(group.num_rows()).is_err()) {
            return Err(failed(
                "a row group has more than 4,294,967,295 rows; write it with smaller row groups"
                    .to_owned(),
            ));
        }
        let index = column(metadata.schema(), value).map_err(failed)?;
        let (unit, factor) = match metadata.schema().field(index).data_type() {
            DataType::Duration(TimeUnit::Second) => (Unit::Nanoseconds, 1e9),
            DataType::Duration(TimeUnit::Millisecond) => (Unit::Nanoseconds, 1e6),
            DataType::Duration(TimeUnit::Microsecond) => (Unit::Nanoseconds, 1e3),
            DataType::Duration(TimeUnit::Nanosecond) => (Unit::Nanoseconds, 1.0),
            numeric if numeric.is_numeric() => unit_of(value),
            other => {
                return Err(failed(format!(
                    "its column `{}` has the type {other}; give a column of numbers or durations with --value",
                    wording::Printable(value)
                )));
            }
        };
        let metadata = with_dictionaries(metadata);
        let file = StoredFile {
            path: path.to_owned(),
            metadata,
            value: index,
            factor,
            time: None,
        };
        Ok((file, unit))
    }

    /// Returns the index of a column that identifies groups or runs.
    fn key(&self, name: &str) -> Result<usize, Error> {
        let schema = self.metadata.schema();
        let index = column(schema, name).map_err(|what| Error::format(&self.path, what))?;
        let kind = schema.field(index).data_type();
        let is_nested = kind.is_nested() && !matches!(kind, DataType::Dictionary(..));
        if is_nested {
            Err(Error::format(
                &self.path,
                format!(
                    "its column `{}` has the type {kind}; give a column of text or numbers with --run and --by",
                    wording::Printable(name)
                ),
            ))
        } else {
            Ok(index)
        }
    }

    fn row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    fn rows_of(&self, row_group: usize) -> usize {
        let rows = self.metadata.metadata().row_group(row_group).num_rows();
        usize::try_from(rows).unwrap_or(0)
    }

    fn damaged(&self, error: &dyn fmt::Display) -> Error {
        Error::format(
            &self.path,
            format!("it cannot be read to its end ({error})"),
        )
    }

    /// Returns neighbouring rows of a row group that are equal in some columns.
    fn equal_rows(&self, row_group: usize, indices: &[usize]) -> Result<Vec<Equal>, Error> {
        let rows = self.rows_of(row_group);
        if rows == 0 {
            return Ok(Vec::new());
        }
        // If the statistics of the file show that a column has the same value in all rows of the row group, the first
        // row is enough for this column.
        let selection = RowSelection::from_consecutive_ranges(std::iter::once(0..1), rows);
        let first = self
            .batches(indices, vec![row_group], Some(selection))?
            .next();
        let Some(first) = first.transpose()? else {
            return Err(self.damaged(&"a row group has no rows"));
        };
        let group = self.metadata.metadata().row_group(row_group);
        let is_constant = |index: &usize| {
            let chunk = self.metadata.parquet_schema().root_schema();
            let is_flat = chunk.get_fields().len() == group.num_columns();
            is_flat
                && group
                    .columns()
                    .get(*index)
                    .is_some_and(|chunk| has_one_value(chunk, rows))
        };
        let varying: Vec<usize> = indices
            .iter()
            .copied()
            .filter(|it| !is_constant(it))
            .collect();
        let mut equal: Vec<Equal> = Vec::new();
        if varying.is_empty() {
            equal.push(Equal {
                rows: 0..rows,
                columns: first,
            });
            return Ok(equal);
        }
        let mut start = 0;
        for batch in self.batches(&varying, vec![row_group], None)? {
            let columns = batch?;
            // Keys of dictionaries are compared faster than texts. A text may have several keys, so neighbouring rows
            // with the same text may stay separate here. `read_runs` joins them.
            let keys = columns
                .iter()
                .map(|column| match column.as_any_dictionary_opt() {
                    Some(dictionary) => dictionary.keys().slice(0, column.len()),
                    None => Arc::clone(column),
                });
            let keys: Vec<ArrayRef> = keys.collect();
            let ranges = partition(&keys).map_err(|error| self.damaged(&error))?;
            for range in ranges.ranges() {
                let one = |(index, first): (&usize, &ArrayRef)| {
                    let place = varying.iter().position(|varying| varying == index);
                    place.map_or_else(
                        || Arc::clone(first),
                        |place| columns[place].slice(range.start, 1),
                    )
                };
                let rows = start + range.start..start + range.end;
                match equal.last_mut() {
                    // Equal rows can continue in the next batch.
                    Some(last)
                        if range.start == 0 && last.is_equal(&columns, &varying, indices) =>
                    {
                        last.rows.end = rows.end;
                    }
                    _ => equal.push(Equal {
                        rows,
                        columns: indices.iter().zip(&first).map(one).collect(),
                    }),
                }
            }
            start += columns[0].len();
        }
        if start == rows {
            Ok(equal)
        } else {
            Err(self.damaged(&format!("a row group has {start} rows, not {rows}")))
        }
    }

    /// Reads columns of some row groups in batches. The columns of a batch are in the order of `indices`.
    fn batches<'f>(
        &'f self,
        indices: &'f [usize],
        row_groups: Vec<usize>,
        selection: Option<RowSelection>,
    ) -> Result<impl Iterator<Item = Result<Vec<ArrayRef>, Error>> + 'f, Error> {
        // Runs are read in parallel, so each reader needs a separate file handle with its own position.
        let file = File::open(&self.path).map_err(|source| Error::Io {
            file: self.path.clone(),
            source,
        })?;
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(row_groups)
                .with_batch_size(BATCH_ROWS);
        if let Some(selection) = selection {
            builder = builder.with_row_selection(selection);
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), indices.iter().copied());
        let reader = contained(|| builder.with_projection(mask).build().map_err(text_of));
        let mut reader = reader.map_err(|error| self.damaged(&error))?;
        let mut sorted = indices.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let in_order = move |batch: RecordBatch| -> Option<Vec<ArrayRef>> {
            let place = |index: &usize| sorted.binary_search(index).ok();
            let column = |index| batch.columns().get(place(index)?).map(Arc::clone);
            indices.iter().map(column).collect()
        };
        let mut is_over = false;
        let next = move || {
            if is_over {
                return None;
            }
            let batch = contained(|| reader.next().transpose().map_err(text_of));
            is_over = batch.is_err();
            let batch = batch.map_err(|error| self.damaged(&error)).transpose()?;
            Some(batch.and_then(|batch| {
                in_order(batch).ok_or_else(|| self.damaged(&"a column is missing"))
            }))
        };
        Ok(std::iter::from_fn(next))
    }

    /// Adds the values of an array.
    fn add(&self, array: &ArrayRef, values: &mut Values<'static>) -> Result<(), Error> {
        if let Some(whole) = array.as_primitive_opt::<Int64Type>()
            && whole.null_count() == 0
        {
            let numbers = whole
                .values()
                .iter()
                .map(|value| *value as f64 * self.factor);
            values.known.to_mut().extend(numbers);
            return Ok(());
        }
        let numbers = match array.data_type() {
            DataType::Duration(_) => cast(array, &DataType::Int64),
            _ => Ok(Arc::clone(array)),
        };
        let numbers = numbers.and_then(|numbers| cast(&numbers, &DataType::Float64));
        let numbers = numbers.map_err(|error| self.damaged(&error))?;
        let numbers = numbers.as_primitive::<Float64Type>();
        let known = values.known.to_mut();
        let before = known.len();
        match numbers.null_count() {
            0 => known.extend(numbers.values().iter().map(|value| value * self.factor)),
            missing => {
                let present = numbers.iter().flatten();
                known.extend(present.map(|value| value * self.factor));
                values.unknown += missing as u64;
            }
        }
        if known[before..].iter().all(|value| is_comparable(*value)) {
            return Ok(());
        }
        let mut values = numbers.iter().flatten();
        let odd = values.find(|value| !is_comparable(value * self.factor));
        let what = match odd {
            Some(odd) if odd.is_finite() => {
                format!("a value is too large or too small ({odd:e}); {RANGE}")
            }
            odd => format!(
                "a value is {}; give finite numbers, and leave unknown values empty",
                odd.unwrap_or(f64::NAN)
            ),
        };
        Err(Error::format(&self.path, what))
    }
}

/// Returns the name of a codec that the reader lacks, if a column of the file is compressed with it.
fn unread_codec(file: &ParquetMetaData) -> Option<&'static str> {
    let mut chunks = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    chunks.find_map(|chunk| match chunk.compression() {
        Compression::BROTLI(_) => Some("Brotli"),
        Compression::LZO => Some("LZO"),
        _ => None,
    })
}

/// Returns true if all rows of a column chunk have the same value, according to its statistics.
fn has_one_value(chunk: &ColumnChunkMetaData, rows: usize) -> bool {
    let Some(stated) = chunk.statistics() else {
        return false;
    };
    match stated.null_count_opt() {
        Some(0) => {
            let is_exact = stated.min_is_exact() && stated.max_is_exact();
            let bounds = stated.min_bytes_opt().zip(stated.max_bytes_opt());
            is_exact && bounds.is_some_and(|(least, greatest)| least == greatest)
        }
        Some(nulls) => nulls == rows as u64,
        None => false,
    }
}

impl Equal {
    /// Returns true if the first row of `batch` continues these rows: it is equal in the columns `varying`.
    /// `indices` are the columns that `self.columns` contains.
    fn is_equal(&self, batch: &[ArrayRef], varying: &[usize], indices: &[usize]) -> bool {
        let mut pairs = batch.iter().zip(varying);
        pairs.all(|(column, index)| {
            let own = indices.iter().position(|known| known == index);
            let own = own.and_then(|place| self.columns.get(place));
            own.is_some_and(|own| {
                own.is_null(0) == column.is_null(0) && text(own, 0) == text(column, 0)
            })
        })
    }
}

/// Runs code that decodes Parquet, and converts its panics to errors. The decoder trusts numbers in the file and
/// panics on some damaged files. Such a panic must not end the program.
fn contained<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let caught = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(text.unwrap_or("the decoder gave up").to_owned())
    };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(caught)
}

fn text_of(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Returns the index of a column.
fn column(schema: &Schema, name: &str) -> Result<usize, String> {
    let names = || schema.fields().iter().map(|field| field.name().as_str());
    if names().filter(|known| *known == name).count() > 1 {
        return Err(several_columns(name));
    }
    let index = schema.index_of(name);
    index.map_err(|_| no_column(name, names()))
}

/// Configures the reader so that it keeps the dictionaries of text columns. Equal neighbouring texts are then found
/// quickly.
fn with_dictionaries(metadata: ArrowReaderMetadata) -> ArrowReaderMetadata {
    let fields = metadata.schema().fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            other => other.clone(),
        };
        Field::new(field.name(), kind, field.is_nullable()).with_metadata(field.metadata().clone())
    });
    let schema = Schema::new_with_metadata(
        fields.collect::<Vec<Field>>(),
        metadata.schema().metadata().clone(),
    );
    let options = ArrowReaderOptions::new().with_schema(SchemaRef::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).unwrap_or(metadata)
}

impl StoredRun {
    pub(crate) fn rows(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.len)).sum()
    }

    /// Reads columns of the rows of this run, batch by batch.
    fn batches<'f>(
        &'f self,
        indices: &'f [usize],
    ) -> Result<impl Iterator<Item = Result<Vec<ArrayRef>, Error>> + 'f, Error> {
        let groups = self.parts.iter().map(|part| part.row_group as usize);
        let mut groups: Vec<usize> = groups.collect();
        groups.dedup();
        let mut offset = 0;
        let mut ranges = Vec::with_capacity(self.parts.len());
        for parts in self.parts.chunk_by(|a, b| a.row_group == b.row_group) {
            ranges.extend(parts.iter().map(|part| {
                let start = offset + part.start as usize;
                start..start + part.len as usize
            }));
            offset += self.file.rows_of(parts[0].row_group as usize);
        }
        let selection = RowSelection::from_consecutive_ranges(ranges.into_iter(), offset);
        self.file.batches(indices, groups, Some(selection))
    }

    /// Reads the values of this run from the file.
    pub(crate) fn values(&self) -> Result<Values<'static>, Error> {
        // Limits the reserved memory, because a damaged file may state more rows than it has.
        let rows = usize::try_from(self.rows()).unwrap_or(0).min(MOST_RESERVED);
        let mut values = Values {
            known: Cow::Owned(Vec::with_capacity(rows)),
            unknown: 0,
        };
        for batch in self.batches(&[self.file.value])? {
            self.file.add(&batch?[0], &mut values)?;
        }
        Ok(values)
    }

    /// Reads the starts and values of this run. Returns `None` if the file has no starts.
    pub(crate) fn timed(&self) -> Result<Option<TimedSamples>, Error> {
        let Some(time) = self.file.time else {
            return Ok(None);
        };
        let mut samples = Vec::new();
        for batch in self.batches(&[time, self.file.value])? {
            let batch = batch?;
            let numbers = cast(&batch[1], &DataType::Float64);
            let numbers = numbers.map_err(|error| self.file.damaged(&error))?;
            let numbers = numbers.as_primitive::<Float64Type>().iter();
            let Some(starts) = batch[0].as_primitive_opt::<Int64Type>() else {
                return Ok(None);
            };
            let values = numbers.map(|value| value.map(|value| value * self.file.factor));
            samples.extend(starts.values().iter().copied().zip(values));
        }
        Ok(Some(samples))
    }
}

impl fmt::Debug for StoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
