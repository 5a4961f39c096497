//! Columns that are filled row by row and become Arrow arrays.
//!
//! `Vec` is for values that are always known. [`Nullable`] and [`Text`] are for values that may be null.
//! [`Names`] and [`NullableNames`] are for values of an enumeration. [`Lists`] is for lists. Values move into Arrow's buffers
//! without a copy.

mod bits;
mod lists;
mod names;
mod nullable;
mod text;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

pub use crate::column::lists::{Addresses, Bytes, Lists};
pub use crate::column::names::{Named, Names, NullableNames};
pub use crate::column::nullable::Nullable;
pub use crate::column::text::Text;
use crate::view::Flags;

/// Position of a row in a table that consists of several parts.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index of the part.
    pub part: u32,
    /// Index of the row in the part.
    pub row: u32,
}

/// Rows of a column under construction.
pub trait Cells: Default {
    /// Returns the number of rows.
    fn rows(&self) -> usize;

    /// Reserves memory for additional rows.
    fn reserve(&mut self, rows: usize);

    /// Copies rows of several parts. `order` gives the order of the rows in the result.
    fn gather(parts: &[&Self], order: &[Place]) -> Self;

    /// Appends the rows of `other`, another part of the table.
    fn append(&mut self, other: Self);

    /// Removes the rows from index `at` to the end. Returns the removed rows.
    fn split_off(&mut self, at: usize) -> Self;

    /// Adds null rows until the column has the given number of rows. Does nothing if the column
    /// cannot have nulls.
    fn fill(&mut self, _rows: usize) {}
}

/// A column under construction.
pub trait Column: Cells {
    /// True if rows may be null.
    const NULLABLE: bool;

    /// Reader of an Arrow array. The array has the type that [`Column::data_type`] returns.
    type View<'a>;

    /// Returns the Arrow type.
    fn data_type() -> DataType;

    /// Converts the column to an Arrow array.
    fn into_array(self) -> ArrayRef;

    /// Makes a reader of an array. `array` is `None` if the column was not read. Returns `None` if the array
    /// has another type.
    fn view(array: Option<&ArrayRef>) -> Option<Self::View<'_>>;
}

/// A column whose values may be unknown.
pub(crate) trait KnownValue<T> {
    /// Returns the value of a row, if it is known.
    fn known(&self, row: usize) -> Option<T>;
}

impl<T: Copy> KnownValue<T> for Vec<T> {
    fn known(&self, row: usize) -> Option<T> {
        Some(self[row])
    }
}

impl<T: Copy + Default> KnownValue<T> for Nullable<T> {
    fn known(&self, row: usize) -> Option<T> {
        self.get(row)
    }
}

/// A number with a primitive Arrow type.
pub trait Primitive: ArrowNativeType {
    /// The Arrow type.
    type Arrow: ArrowPrimitiveType<Native = Self>;
}

macro_rules! primitives {
    ($($native:ty: $arrow:ty),*) => {$(
        impl Primitive for $native {
            type Arrow = $arrow;
        }
    )*};
}

primitives!(
    i8: Int8Type, u8: UInt8Type, u16: UInt16Type, i32: Int32Type, u32: UInt32Type,
    i64: Int64Type, u64: UInt64Type
);

impl<T: Copy> Cells for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }

    fn reserve(&mut self, rows: usize) {
        Vec::reserve(self, rows);
    }

    fn gather(parts: &[&Self], order: &[Place]) -> Self {
        let row = |place: &Place| parts[place.part as usize][place.row as usize];
        order.iter().map(row).collect()
    }

    fn append(&mut self, mut other: Self) {
        Vec::append(self, &mut other);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Vec::split_off(self, at)
    }
}

impl<T: Primitive> Column for Vec<T> {
    const NULLABLE: bool = false;
    type View<'a> = &'a [T];

    fn data_type() -> DataType {
        T::Arrow::DATA_TYPE
    }

    fn into_array(self) -> ArrayRef {
        Arc::new(PrimitiveArray::<T::Arrow>::new(self.into(), None))
    }

    fn view(array: Option<&ArrayRef>) -> Option<&[T]> {
        let read = array.map(|array| array.as_primitive_opt::<T::Arrow>());
        read.map_or(Some(&[]), |array| Some(array?.values()))
    }
}

impl Column for Vec<bool> {
    const NULLABLE: bool = false;
    type View<'a> = Flags<'a>;

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn into_array(self) -> ArrayRef {
        Arc::new(BooleanArray::from(self))
    }

    fn view(array: Option<&ArrayRef>) -> Option<Flags<'_>> {
        Flags::read(array)
    }
}
