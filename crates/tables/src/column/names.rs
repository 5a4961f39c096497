//! Names out of a fixed few.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use arrow_schema::DataType;

use crate::column::{Cells, Column, Place};
use crate::view::TextView;

/// Something that has one of a few names.
pub trait Named: Copy {
    /// The names, by code.
    const NAMES: &'static [&'static str];

    /// Index in [`Named::NAMES`].
    fn code(self) -> i8;

    /// Its name.
    fn name(self) -> &'static str {
        Self::NAMES[self.code() as usize]
    }
}

/// A column of names out of a fixed few: a dictionary in Arrow.
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
