//! Numbers and flags that may be unknown.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;

use crate::column::bits::Bits;
use crate::column::{Cells, Column, Primitive};
use crate::view::{Flags, NullableView};

/// A column of numbers or flags of which some are unknown.
#[derive(Clone, Debug, Default)]
pub struct Nullable<T> {
    values: Vec<T>,
    known: Bits,
}

impl<T: Copy + Default> Nullable<T> {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        self.values.push(value.unwrap_or_default());
        self.known.push(value.is_some());
    }

    /// The value of a row, if it is known.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        self.known.get(row).then(|| self.values[row])
    }

    /// Replaces the value of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set(&mut self, row: usize, value: Option<T>) {
        self.values[row] = value.unwrap_or_default();
        self.known.set(row, value.is_some());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> {
        (0..self.len()).map(|row| self.get(row))
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Nullable<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(rows: I) -> Self {
        let mut column = Nullable::default();
        rows.into_iter().for_each(|row| column.push(row));
        column
    }
}

impl<T: Copy + Default> Cells for Nullable<T> {
    fn rows(&self) -> usize {
        self.len()
    }

    fn permute(&mut self, order: &[usize]) {
        self.values.permute(order);
        self.known.permute(order);
    }

    fn append(&mut self, mut other: Self) {
        self.values.append(&mut other.values);
        self.known.append(&other.known);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Nullable {
            values: self.values.split_off(at),
            known: self.known.split_off(at),
        }
    }

    fn fill(&mut self, rows: usize) {
        while self.len() < rows {
            self.push(None);
        }
    }
}

impl<T: Primitive + Default> Column for Nullable<T> {
    const NULLABLE: bool = true;
    type View<'a> = NullableView<'a, T>;

    fn data_type() -> DataType {
        T::Arrow::DATA_TYPE
    }

    fn into_array(self) -> ArrayRef {
        let values: ScalarBuffer<T> = self.values.into();
        let nulls = self.known.into_nulls();
        Arc::new(PrimitiveArray::<T::Arrow>::new(values, nulls))
    }

    fn view(array: Option<&ArrayRef>) -> Option<NullableView<'_, T>> {
        NullableView::read(array)
    }
}

impl Column for Nullable<bool> {
    const NULLABLE: bool = true;
    type View<'a> = Flags<'a>;

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn into_array(self) -> ArrayRef {
        let nulls = self.known.into_nulls();
        Arc::new(BooleanArray::new(self.values.into(), nulls))
    }

    fn view(array: Option<&ArrayRef>) -> Option<Flags<'_>> {
        Flags::read(array)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::types::UInt32Type;

    use super::*;

    /// Every change between known and unknown at every place of a byte.
    #[test]
    fn what_is_pushed_is_what_arrow_holds() {
        for change in 0..20usize {
            for first in [false, true] {
                let rows: Vec<Option<u32>> = (0..20)
                    .map(|i| (first == ((i as usize) < change)).then_some(i))
                    .collect();
                let mut column: Nullable<u32> = rows.iter().copied().collect();
                assert_eq!(column.iter().collect::<Vec<_>>(), rows);
                column.set(3, Some(77));
                column.set(4, None);
                let mut changed = rows.clone();
                (changed[3], changed[4]) = (Some(77), None);
                let array = column.into_array();
                let expected = PrimitiveArray::<UInt32Type>::from(changed);
                assert_eq!(array.as_ref(), &expected as &dyn Array);
            }
        }
    }
}
