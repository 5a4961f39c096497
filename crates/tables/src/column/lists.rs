//! Columns of lists.

use std::sync::Arc;

use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, LargeBinaryArray, ListArray, OffsetSizeTrait, PrimitiveArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use crate::column::{Cells, Column, Place};
use crate::view::{AddressesView, BytesView};

/// A column of lists without nulls. `O` is Arrow's type of offsets. If the end offset of a list does not fit
/// into `O`, the column stores an empty list instead.
#[derive(Clone, Debug)]
pub struct Lists<T, O> {
    values: Vec<T>,
    offsets: Vec<O>,
}

/// Column with a list of addresses in each row. The innermost call comes first. All rows together have fewer
/// than 2^31 addresses.
pub type Addresses = Lists<u64, i32>;

/// Column with bytes in each row.
pub type Bytes = Lists<u8, i64>;

impl<T, O: OffsetSizeTrait> Default for Lists<T, O> {
    fn default() -> Self {
        Lists {
            values: Vec::new(),
            offsets: vec![O::default()],
        }
    }
}

impl<T: Copy, O: OffsetSizeTrait> Lists<T, O> {
    /// Adds a row.
    pub fn push(&mut self, list: &[T]) {
        let end = match O::from_usize(self.values.len() + list.len()) {
            Some(end) => {
                self.values.extend_from_slice(list);
                end
            }
            None => self.offsets[self.rows()],
        };
        self.offsets.push(end);
    }

    /// Returns the list of a row.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn get(&self, row: usize) -> &[T] {
        &self.values[self.offsets[row].as_usize()..self.offsets[row + 1].as_usize()]
    }
}

impl<T: Copy, O: OffsetSizeTrait> Cells for Lists<T, O> {
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
    }

    fn gather(parts: &[&Self], order: &[Place]) -> Self {
        let mut gathered = Lists::default();
        for place in order {
            gathered.push(parts[place.part as usize].get(place.row as usize));
        }
        gathered
    }

    fn append(&mut self, other: Self) {
        (0..other.rows()).for_each(|row| self.push(other.get(row)));
    }

    fn split_off(&mut self, at: usize) -> Self {
        let mut tail = Lists::default();
        (at..self.rows()).for_each(|row| tail.push(self.get(row)));
        self.offsets.truncate(at + 1);
        self.values.truncate(self.offsets[at].as_usize());
        tail
    }
}

impl Addresses {
    fn item() -> FieldRef {
        Arc::new(Field::new("item", DataType::UInt64, false))
    }
}

impl Column for Addresses {
    const NULLABLE: bool = false;
    type View<'a> = AddressesView<'a>;

    fn data_type() -> DataType {
        DataType::List(Self::item())
    }

    fn into_array(self) -> ArrayRef {
        let values = Arc::new(PrimitiveArray::<UInt64Type>::new(self.values.into(), None));
        let offsets = OffsetBuffer::new(self.offsets.into());
        Arc::new(ListArray::new(Self::item(), offsets, values, None))
    }

    fn view(array: Option<&ArrayRef>) -> Option<AddressesView<'_>> {
        AddressesView::read(array)
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

    fn view(array: Option<&ArrayRef>) -> Option<BytesView<'_>> {
        BytesView::read(array)
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
        let tail = column.split_off(2);
        assert_eq!((column.rows(), tail.rows()), (2, 2));
        let order = [(0, 1), (1, 0), (0, 0)].map(|(part, row)| Place { part, row });
        column.append(Bytes::gather(&[&tail, &column], &order));
        let array = column.into_array();
        let view = Bytes::view(Some(&array)).unwrap();
        let values = [0, 1, 2, 3, 4].map(|row| view.get(row));
        assert_eq!(values, [rows[0], rows[1], rows[3], rows[0], rows[2]]);
    }
}
