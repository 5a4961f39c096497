//! Columns of bytes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeBinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;

use crate::column::Column;

/// A column of bytes of any length, known in every row.
#[derive(Clone, Debug)]
pub struct Bytes {
    values: Vec<u8>,
    offsets: Vec<i64>,
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes {
            values: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Bytes {
    /// Adds a row.
    pub fn push(&mut self, bytes: &[u8]) {
        self.values.extend_from_slice(bytes);
        self.offsets.push(self.values.len() as i64);
    }

    /// The bytes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: usize) -> &[u8] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

impl Column for Bytes {
    const NULLABLE: bool = false;
    type View<'a> = BytesView<'a>;

    fn data_type() -> DataType {
        DataType::LargeBinary
    }

    fn into_array(self) -> ArrayRef {
        let offsets = OffsetBuffer::new(self.offsets.into());
        let values = Buffer::from_vec(self.values);
        Arc::new(LargeBinaryArray::new(offsets, values, None))
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn permute(&mut self, order: &[usize]) {
        let mut permuted = Bytes::default();
        order.iter().for_each(|row| permuted.push(self.get(*row)));
        *self = permuted;
    }

    fn append(&mut self, other: Self) {
        (0..other.rows()).for_each(|row| self.push(other.get(row)));
    }

    fn split_off(&mut self, at: usize) -> Self {
        let mut tail = Bytes::default();
        (at..self.rows()).for_each(|row| tail.push(self.get(row)));
        self.offsets.truncate(at + 1);
        self.values.truncate(self.offsets[at] as usize);
        tail
    }

    fn fill(&mut self, rows: usize) {
        while self.rows() < rows {
            self.push(&[]);
        }
    }

    fn view(array: Option<&ArrayRef>) -> Option<BytesView<'_>> {
        let Some(array) = array else {
            return Some(BytesView(None));
        };
        Some(BytesView(Some(array.as_binary_opt::<i64>()?)))
    }
}

/// Bytes of each row.
#[derive(Clone, Copy, Debug)]
pub struct BytesView<'a>(Option<&'a LargeBinaryArray>);

impl<'a> BytesView<'a> {
    /// The bytes of a row; none in columns that were not read.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> &'a [u8] {
        match self.0 {
            Some(array) if array.is_valid(row) => array.value(row),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_bytes() {
        let rows: [&[u8]; 4] = [b"one", b"", b"three", b"4"];
        let mut column = Bytes::default();
        rows.iter().for_each(|row| column.push(row));
        let mut tail = column.split_off(2);
        assert_eq!((column.rows(), tail.rows()), (2, 2));
        tail.permute(&[1, 0]);
        column.append(tail);
        let array = column.into_array();
        let view = Bytes::view(Some(&array)).unwrap();
        let found = [0, 1, 2, 3].map(|row| view.get(row));
        assert_eq!(found, [rows[0], rows[1], rows[3], rows[2]]);
    }
}
