//! A table that was made, read a chunk at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::shelf::ShelvedFile;
use super::table_file::{Damaged, TableFile};
use super::{Shared, StoreError};
use crate::Table;

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
    shared: Arc<Shared>,
    file: Arc<ShelvedFile>,
}

impl StoredTable {
    pub(super) fn new(shared: Arc<Shared>, file: Arc<ShelvedFile>) -> StoredTable {
        StoredTable { shared, file }
    }

    /// Which table it is.
    pub fn table(&self) -> Table {
        self.file.table.table()
    }

    /// The schema of all its columns.
    pub fn schema(&self) -> &SchemaRef {
        self.file.table.schema()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.chunks().iter().map(|chunk| chunk.rows).sum()
    }

    /// The stretches of its rows, in order.
    pub fn chunks(&self) -> &[Chunk] {
        self.file.table.chunks()
    }

    /// The chunks that may hold rows whose sorted column is in the range.
    pub fn chunks_within(&self, range: Range<i64>) -> Range<usize> {
        let chunks = self.chunks();
        let from = chunks.partition_point(|chunk| chunk.last < range.start);
        let to = chunks.partition_point(|chunk| chunk.first < range.end);
        from..to.max(from)
    }

    /// Reads the named columns of a chunk, in the order of the table. Text is not
    /// copied: the batch takes over what was read.
    ///
    /// # Errors
    /// If there is no such column. A chunk that cannot be read or is damaged is an error only if
    /// the table, made again, cannot be read either.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn read(&self, chunk: usize, columns: &[&str]) -> Result<RecordBatch, StoreError> {
        let mut indices = Vec::with_capacity(columns.len());
        for column in columns {
            let index = self.schema().index_of(column);
            indices.push(index.map_err(|_| StoreError::NoColumn {
                table: self.table(),
                column: (*column).to_owned(),
            })?);
        }
        indices.sort_unstable();
        indices.dedup();
        self.read_columns(chunk, &indices)
    }

    /// Reads all columns of a chunk.
    ///
    /// # Errors
    /// If the chunk cannot be read or is damaged, and the table made again is so too.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn read_all(&self, chunk: usize) -> Result<RecordBatch, StoreError> {
        let all: Vec<usize> = (0..self.schema().fields().len()).collect();
        self.read_columns(chunk, &all)
    }

    fn read_columns(&self, chunk: usize, columns: &[usize]) -> Result<RecordBatch, StoreError> {
        let read = |file: &TableFile| match file.chunks() == self.chunks() {
            true => file.read(chunk, columns),
            false => Err(Damaged {
                offset: 0,
                what: "its rows are not those of before".to_owned(),
            }),
        };
        read(&self.file.table).or_else(|_| {
            let file = self.shared.replace(&self.file)?;
            read(&file.table).map_err(|damaged| file.error(damaged))
        })
    }
}
