//! Columns of text with nulls.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;

use crate::column::bits::Bits;
use crate::column::{Cells, Column, Place};
use crate::view::TextView;

/// A column of text with nulls. All rows together have up to 2 GiB. If a text does not fit, its row becomes
/// null.
#[derive(Clone, Debug)]
pub struct Text {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    known: Bits,
}

impl Default for Text {
    fn default() -> Self {
        Text {
            bytes: Vec::new(),
            offsets: vec![0],
            known: Bits::default(),
        }
    }
}

impl Text {
    /// Adds a row.
    pub fn push(&mut self, text: Option<&str>) {
        let text = text.filter(|text| i32::try_from(self.bytes.len() + text.len()).is_ok());
        self.bytes
            .extend_from_slice(text.unwrap_or_default().as_bytes());
        self.offsets.push(self.bytes.len() as i32);
        self.known.push(text.is_some());
    }

    /// Returns the text of a row, if it is known.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        let (from, to) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
        self.known
            .get(row)
            .then(|| str::from_utf8(&self.bytes[from..to]).unwrap_or_default())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.known.len() == 0
    }

    /// Returns the texts of all rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.get(row))
    }
}

impl<'a> FromIterator<Option<&'a str>> for Text {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(rows: I) -> Self {
        let mut column = Text::default();
        rows.into_iter().for_each(|row| column.push(row));
        column
    }
}

impl Cells for Text {
    fn rows(&self) -> usize {
        self.len()
    }

    fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
    }

    fn gather(parts: &[&Self], order: &[Place]) -> Self {
        let row = |place: &Place| parts[place.part as usize].get(place.row as usize);
        order.iter().map(row).collect()
    }

    fn append(&mut self, other: Self) {
        other.iter().for_each(|text| self.push(text));
    }

    fn split_off(&mut self, at: usize) -> Self {
        let tail = (at..self.len()).map(|row| self.get(row)).collect();
        *self = (0..at).map(|row| self.get(row)).collect();
        tail
    }

    fn fill(&mut self, rows: usize) {
        while self.len() < rows {
            self.push(None);
        }
    }
}

impl Column for Text {
    const NULLABLE: bool = true;
    type View<'a> = TextView<'a>;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn into_array(self) -> ArrayRef {
        let offsets = OffsetBuffer::new(self.offsets.into());
        let values = Buffer::from_vec(self.bytes);
        Arc::new(StringArray::new(offsets, values, self.known.into_nulls()))
    }

    fn view(array: Option<&ArrayRef>) -> Option<TextView<'_>> {
        TextView::read(array)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    #[test]
    fn rows_move_whole() {
        let first: Text = [Some("a"), None].into_iter().collect();
        let second: Text = [Some("ccc")].into_iter().collect();
        let order = [(1, 0), (0, 1), (0, 0)].map(|(part, row)| Place { part, row });
        let text = Text::gather(&[&first, &second], &order);
        let rows: Vec<_> = text.iter().collect();
        assert_eq!(rows, [Some("ccc"), None, Some("a")]);
        let array = text.into_array();
        let expected = StringArray::from(vec![Some("ccc"), None, Some("a")]);
        assert_eq!(array.as_ref(), &expected as &dyn Array);
    }
}
