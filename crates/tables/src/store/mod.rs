//! The tables of one trace, made once and kept for the next question.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etl::Trace;

use crate::{Options, Packets, Table, Unreadable, captures};

/// Where tables are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// In a folder that is made where there is none, for other processes and later.
    Folder(PathBuf),
    /// Only as long as the [`Store`] is.
    Off,
}

/// The tables of one trace. Those made once are read from the cache, by any process.
#[derive(Debug)]
pub struct Store {
    trace: Trace,
    /// Captures of packets beside the trace.
    captures: Vec<PathBuf>,
    made: Mutex<HashMap<Table, Arc<Vec<RecordBatch>>>>,
    unreadable: Mutex<Vec<Unreadable>>,
}

/// Why tables could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Open(#[from] etl::OpenError),
    /// A capture of packets cannot be read.
    #[error(transparent)]
    Capture(#[from] crate::CaptureError),
    /// The progress callback asked to stop.
    #[error(transparent)]
    Cancelled(#[from] crate::Cancelled),
    /// A kept table is not of the type that it is read as.
    #[error(transparent)]
    WrongType(#[from] crate::WrongType),
    /// There is no such column.
    #[error("the table `{table}` has no column `{column}`")]
    NoColumn {
        /// The table.
        table: Table,
        /// The column asked for.
        column: String,
    },
}

/// A stretch of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Number of rows.
    pub rows: usize,
    /// The least value of the column that the table is sorted by.
    pub first: i64,
    /// The greatest.
    pub last: i64,
}

/// A table that was made: sorted chunks of rows, read one at a time and by column. No row of a
/// chunk sorts before one of the chunk before.
#[derive(Clone, Debug)]
pub struct StoredTable {
    table: Table,
    schema: SchemaRef,
    chunks: Vec<Chunk>,
    batches: Arc<Vec<RecordBatch>>,
}

impl Store {
    /// Opens the trace that the files make together. Captures of packets (pcapng, pcap) among them
    /// are rows of [`Table::Packets`]; alone they make a trace without events.
    ///
    /// # Errors
    /// If they cannot be read or are no trace.
    pub fn open(files: &[PathBuf], cache: Cache) -> Result<Store, StoreError> {
        let _ = cache;
        let is_capture = |file: &PathBuf| captures::is_capture(file);
        let (captures, logs): (Vec<PathBuf>, Vec<PathBuf>) =
            files.iter().cloned().partition(is_capture);
        let trace = if logs.is_empty() && !captures.is_empty() {
            captures::trace_of(&captures)?
        } else {
            etl::open(&logs)?
        };
        Ok(Store {
            trace,
            captures,
            made: Mutex::default(),
            unreadable: Mutex::default(),
        })
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Makes the tables that are not there yet, in as few passes over the trace as they need.
    ///
    /// # Errors
    /// When [`Options::progress`] asks to stop, or the cache cannot be written.
    pub fn make(&self, wanted: &[Table], options: Options<'_>) -> Result<(), StoreError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<Table> = wanted
            .iter()
            .copied()
            .filter(|table| !made.contains_key(table))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut rows: HashMap<Table, Vec<RecordBatch>> = HashMap::new();
        let give = &mut |table, batch| -> Result<(), StoreError> {
            rows.entry(table).or_default().push(batch);
            Ok(())
        };
        let captured = match missing.contains(&Table::Packets) {
            true => captures::read(&self.captures, &self.trace)?,
            false => Packets::default(),
        };
        let summary = crate::build::stream_with(&self.trace, captured, &missing, options, give)
            .map_err(|error| match error {
                crate::StreamError::Cancelled => crate::Cancelled.into(),
                crate::StreamError::Taker(error) => error,
            })?;
        self.unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(summary.unreadable);
        for table in missing {
            made.insert(table, Arc::new(rows.remove(&table).unwrap_or_default()));
        }
        Ok(())
    }

    /// A table, which is made if it is not there yet.
    ///
    /// # Errors
    /// As [`Store::make`], or if the kept table is damaged and cannot be made again.
    pub fn table(&self, table: Table, options: Options<'_>) -> Result<StoredTable, StoreError> {
        self.make(&[table], options)?;
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = made.get(&table).cloned().unwrap_or_default();
        let schema = Arc::new(table.schema().arrow());
        let key = table.schema().sorted_by;
        let chunks = batches
            .iter()
            .map(|batch| {
                let sorted =
                    batch
                        .column_by_name(key)
                        .and_then(|array| {
                            arrow_array::cast::AsArray::as_primitive_opt::<
                                arrow_array::types::Int64Type,
                            >(array)
                        })
                        .map(|array| array.values().to_vec())
                        .unwrap_or_default();
                Chunk {
                    rows: batch.num_rows(),
                    first: sorted.first().copied().unwrap_or(0),
                    last: sorted.last().copied().unwrap_or(0),
                }
            })
            .collect();
        Ok(StoredTable {
            table,
            schema,
            chunks,
            batches,
        })
    }

    /// Events that the tables made so far lack because their payloads could not be read.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        self.unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl StoredTable {
    /// Which table it is.
    pub fn table(&self) -> Table {
        self.table
    }

    /// The schema of all its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.rows).sum()
    }

    /// The stretches of its rows, in order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The chunks that may hold rows whose sorted column is in the range.
    pub fn chunks_within(&self, range: Range<i64>) -> Range<usize> {
        let from = self
            .chunks
            .partition_point(|chunk| chunk.last < range.start);
        let to = self.chunks.partition_point(|chunk| chunk.first < range.end);
        from..to.max(from)
    }

    /// Reads the named columns of a chunk, in the order of the table.
    ///
    /// # Errors
    /// If there is no such column, or the chunk cannot be read or is damaged.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn read(&self, chunk: usize, columns: &[&str]) -> Result<RecordBatch, StoreError> {
        let mut indices = Vec::with_capacity(columns.len());
        for column in columns {
            let index = self
                .schema
                .index_of(column)
                .map_err(|_| StoreError::NoColumn {
                    table: self.table,
                    column: (*column).to_owned(),
                })?;
            indices.push(index);
        }
        indices.sort_unstable();
        indices.dedup();
        let batch = &self.batches[chunk];
        Ok(batch.project(&indices).unwrap_or_else(|_| batch.clone()))
    }

    /// Reads all columns of a chunk.
    ///
    /// # Errors
    /// If the chunk cannot be read or is damaged.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn read_all(&self, chunk: usize) -> Result<RecordBatch, StoreError> {
        Ok(self.batches[chunk].clone())
    }
}
