//! Columns with values of an enumeration, with and without nulls.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;

use crate::column::{Cells, Column, Nullable, Place};
use crate::view::TextView;

/// An enumeration whose values have names.
pub trait Named: Copy {
    /// Names of the values. The index of a name is the code of its value.
    const NAMES: &'static [&'static str];

    /// Returns the code of the value, which is its index in [`Named::NAMES`].
    fn code(self) -> i8;

    /// Returns the name.
    fn name(self) -> &'static str {
        Self::NAMES[self.code() as usize]
    }
}

/// A column of names, stored as an Arrow dictionary.
#[derive(Clone, Debug)]
pub struct Names<K>(pub Vec<K>);

impl<K> Default for Names<K> {
    fn default() -> Self {
        Names(Vec::new())
    }
}

impl<K: Copy> Cells for Names<K> {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
    }

    fn gather(parts: &[&Self], order: &[Place]) -> Self {
        let parts: Vec<&Vec<K>> = parts.iter().map(|part| &part.0).collect();
        Names(Cells::gather(&parts, order))
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Names(self.0.split_off(at))
    }
}

impl<K: Named> Column for Names<K> {
    const NULLABLE: bool = false;
    type View<'a> = TextView<'a>;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
    }

    fn into_array(self) -> ArrayRef {
        let codes: Vec<i8> = self.0.iter().map(|kind| kind.code()).collect();
        with_names::<K>(codes.into())
    }

    fn view(array: Option<&ArrayRef>) -> Option<TextView<'_>> {
        TextView::read(array)
    }
}

/// Joins codes with the names of their values.
fn with_names<K: Named>(codes: PrimitiveArray<Int8Type>) -> ArrayRef {
    let names: ArrayRef = Arc::new(StringArray::from(K::NAMES.to_vec()));
    Arc::new(DictionaryArray::new(codes, names))
}

/// A column of names with nulls. While all rows are null, no values are stored (see [`Nullable`]).
#[derive(Clone, Debug)]
pub struct NullableNames<K>(Nullable<i8>, PhantomData<K>);

impl<K> Default for NullableNames<K> {
    fn default() -> Self {
        NullableNames(Nullable::default(), PhantomData)
    }
}

impl<K: Named> NullableNames<K> {
    /// Adds a row for each element of `rows`.
    pub(crate) fn extend<R>(&mut self, rows: &[R], value: impl Fn(&R) -> Option<K>) {
        self.0.extend(rows, |row| value(row).map(K::code));
    }
}

impl<K> Cells for NullableNames<K> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
    }

    fn gather(parts: &[&Self], order: &[Place]) -> Self {
        let parts: Vec<&Nullable<i8>> = parts.iter().map(|part| &part.0).collect();
        NullableNames(Cells::gather(&parts, order), PhantomData)
    }

    fn append(&mut self, other: Self) {
        self.0.append(other.0);
    }

    fn split_off(&mut self, at: usize) -> Self {
        NullableNames(self.0.split_off(at), PhantomData)
    }

    fn fill(&mut self, rows: usize) {
        self.0.fill(rows);
    }
}

impl<K: Named> Column for NullableNames<K> {
    const NULLABLE: bool = true;
    type View<'a> = TextView<'a>;

    fn data_type() -> DataType {
        Names::<K>::data_type()
    }

    fn into_array(self) -> ArrayRef {
        with_names::<K>(self.0.into_array().as_primitive().clone())
    }

    fn view(array: Option<&ArrayRef>) -> Option<TextView<'_>> {
        TextView::read(array)
    }
}
