//! Columns of numbers and flags with nulls.

use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;

use crate::column::bits::Bits;
use crate::column::{Cells, Column, Place, Primitive};
use crate::view::{Flags, NullableView};

/// A column of numbers or flags with nulls. While all rows are null, no values are stored. This saves memory:
/// if the system that wrote the trace has no such field, the whole column is null.
#[derive(Clone, Debug, Default)]
pub struct Nullable<T> {
    values: Vec<T>,
    known: Bits,
}

impl<T: Copy + Default> Nullable<T> {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        if value.is_some() || !self.values.is_empty() {
            if self.values.len() < self.known.len() {
                self.store_values();
            }
            self.values.push(value.unwrap_or_default());
        }
        self.known.push(value.is_some());
    }

    /// Adds a row for each element of `rows`.
    pub(crate) fn extend<R>(&mut self, rows: &[R], value: impl Fn(&R) -> Option<T>) {
        // 64 rows are added at a time, because their bits fill one word.
        for rows in rows.chunks(64) {
            let known = (0..).zip(rows).fold(0, |word, (at, row)| {
                word | u64::from(value(row).is_some()) << at
            });
            if known != 0 || !self.values.is_empty() {
                self.store_values();
                let values = rows.iter().map(|row| value(row).unwrap_or_default());
                self.values.extend(values);
            }
            self.known.extend(known, rows.len());
        }
    }

    /// Stores a value for every row. Rows without a value get a default.
    fn store_values(&mut self) {
        self.values.resize(self.known.len(), T::default());
    }

    /// Returns the value of a row, if it is known.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        self.known.get(row).then(|| self.values[row])
    }

    /// Replaces the value of a row.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn set(&mut self, row: usize, value: Option<T>) {
        self.store_values();
        self.values[row] = value.unwrap_or_default();
        self.known.set(row, value.is_some());
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.known.len() == 0
    }

    /// Returns the values of all rows in order.
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

    fn reserve(&mut self, rows: usize) {
        self.values.reserve(rows);
    }

    fn gather(parts: &[&Self], order: &[Place]) -> Self {
        let known: Vec<&Bits> = parts.iter().map(|part| &part.known).collect();
        let known = Bits::gather(&known, order);
        let values: Vec<&[T]> = parts.iter().map(|part| &part.values[..]).collect();
        if values.iter().all(|values| values.is_empty()) {
            let values = Vec::new();
            return Nullable { values, known };
        }
        let row = |place: &Place| {
            let values = values[place.part as usize];
            values.get(place.row as usize).copied().unwrap_or_default()
        };
        Nullable {
            values: order.iter().map(row).collect(),
            known,
        }
    }

    fn append(&mut self, mut other: Self) {
        if !other.values.is_empty() {
            self.store_values();
            other.store_values();
            self.values.append(&mut other.values);
        } else if !self.values.is_empty() {
            let rows = self.len() + other.len();
            self.values.resize(rows, T::default());
        }
        self.known.append(&other.known);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Nullable {
            values: self.values.split_off(at.min(self.values.len())),
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
        if self.values.is_empty() {
            return Arc::new(PrimitiveArray::<T::Arrow>::new_null(self.len()));
        }
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
        if self.values.is_empty() {
            return Arc::new(BooleanArray::new_null(self.len()));
        }
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

    /// Tests the change from known to null and from null to known at every bit of a byte.
    #[test]
    fn pushed_values_are_in_the_array() {
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

    /// Tests that pushing, splitting, gathering and appending keep the values of rows.
    #[test]
    fn parts_make_the_whole() {
        // Sequences of known rows and sequences of null rows alternate. The sequences become longer and
        // longer.
        for (length, first) in (0..200).flat_map(|length| [(length, 0), (length, 1)]) {
            let is_known = |row: usize| (row.isqrt() + first) % 2 == 1;
            let rows: Vec<Option<u16>> = (0..length)
                .map(|row| is_known(row).then_some(row as u16))
                .collect();
            let mut pushed = Nullable::default();
            rows.iter().for_each(|row| pushed.push(*row));
            for at in [0, length / 3, length] {
                let mut head: Nullable<u16> = rows[..at].iter().copied().collect();
                head.extend(&rows[at..], |row| *row);
                assert_eq!(head.iter().collect::<Vec<_>>(), rows);
                let mut tail = head.split_off(at);
                assert_eq!(head.iter().collect::<Vec<_>>(), rows[..at]);
                assert_eq!(tail.iter().collect::<Vec<_>>(), rows[at..]);
                let part = |part, rows: usize| {
                    let places = 0..rows as u32;
                    places.map(move |row| Place { part, row })
                };
                let order: Vec<Place> = part(1, at).chain(part(0, length - at)).collect();
                let gathered = Nullable::gather(&[&tail, &head], &order);
                assert_eq!(gathered.iter().collect::<Vec<_>>(), rows);
                tail.append(head);
                let turned = [&rows[at..], &rows[..at]].concat();
                assert_eq!(tail.iter().collect::<Vec<_>>(), turned);
                assert_eq!(
                    gathered.into_array().as_ref(),
                    pushed.clone().into_array().as_ref()
                );
            }
        }
    }
}
