//! Columns with values of an enumeration.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use arrow_schema::DataType;

use crate::column::{Cells, Column, Place};
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
        let names: ArrayRef = Arc::new(StringArray::from(K::NAMES.to_vec()));
        Arc::new(DictionaryArray::<Int8Type>::new(codes.into(), names))
    }

    fn view(array: Option<&ArrayRef>) -> Option<TextView<'_>> {
        TextView::read(array)
    }
}
