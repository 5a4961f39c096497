//! A table in a file, read one row group at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use store::{Corrupt, RowGroup, TableFile, TableFileHandle};

use crate::trace_store::StoreState;
use crate::{StoreError, Table};

/// A table in a file. The table consists of row groups. One row group, or some of its columns, is read at a
/// time. The rows are sorted: the sort value of a row is not less than the sort values in earlier row groups.
#[derive(Clone, Debug)]
pub struct StoredTable {
    shared: Arc<StoreState>,
    table: Table,
    file: Arc<TableFileHandle>,
}

impl StoredTable {
    pub(crate) fn new(
        shared: Arc<StoreState>,
        table: Table,
        file: Arc<TableFileHandle>,
    ) -> StoredTable {
        StoredTable {
            shared,
            table,
            file,
        }
    }

    /// Returns the identifier of the table.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Returns the schema of all columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.file.file().spec().schema
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.chunks().iter().map(|group| group.rows).sum()
    }

    /// Returns the row groups, in order.
    pub fn chunks(&self) -> &[RowGroup] {
        self.file.file().row_groups()
    }

    /// Returns the row groups that can contain rows in the range. The range is a range of values of the
    /// sorted column.
    pub fn chunks_within(&self, range: Range<i64>) -> Range<usize> {
        let groups = self.chunks();
        let from = groups.partition_point(|group| group.last < range.start);
        let to = groups.partition_point(|group| group.first < range.end);
        from..to.max(from)
    }

    /// Reads the columns with the given names in a row group. The columns of the batch are in the order of
    /// the table. The batch owns the bytes that were read, so text is not copied.
    ///
    /// # Errors
    /// Returns an error if one of the columns does not exist. If the row group is damaged, the table is made
    /// again. In this case, returns an error only if the new file also cannot be read.
    ///
    /// # Panics
    /// Panics if there is no such row group.
    pub fn read(&self, group: usize, columns: &[&str]) -> Result<RecordBatch, StoreError> {
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
        self.read_columns(group, &indices)
    }

    /// Reads all columns of a row group.
    ///
    /// # Errors
    /// Returns an error if the row group is still damaged after the table was made again.
    ///
    /// # Panics
    /// Panics if there is no such row group.
    pub fn read_all(&self, group: usize) -> Result<RecordBatch, StoreError> {
        let all: Vec<usize> = (0..self.schema().fields().len()).collect();
        self.read_columns(group, &all)
    }

    fn read_columns(&self, group: usize, columns: &[usize]) -> Result<RecordBatch, StoreError> {
        let read = |file: &TableFile| {
            if file.row_groups() == self.chunks() {
                file.read(group, columns)
            } else {
                Err(Corrupt {
                    offset: 0,
                    what: "its row groups differ from those of the first file".to_owned(),
                })
            }
        };
        read(self.file.file()).or_else(|corrupt| {
            let file = self.shared.replace(self.table, &self.file, &corrupt)?;
            read(file.file()).map_err(|corrupt| file.error(corrupt).into())
        })
    }
}
