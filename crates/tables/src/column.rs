//! Columns that are filled row by row and become Arrow arrays.
//!
//! Plain `Vec`s hold columns that are always known; [`Nullable`] and [`Text`] those that may be
//! unknown; [`Names`] a few fixed names. Numbers and text move into Arrow's buffers uncopied.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::DataType;

/// A column under construction.
pub(crate) trait Column {
    /// Whether rows may be unknown.
    const NULLABLE: bool;

    /// The Arrow type.
    fn data_type() -> DataType;

    /// The column as an Arrow array.
    fn into_array(self) -> ArrayRef;

    /// Row `i` becomes what row `order[i]` was.
    fn permute(&mut self, order: &[usize]);
}

/// A number that Arrow has a primitive type for.
pub(crate) trait Primitive: ArrowNativeType {
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

impl<T: Primitive> Column for Vec<T> {
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        T::Arrow::DATA_TYPE
    }

    fn into_array(self) -> ArrayRef {
        Arc::new(PrimitiveArray::<T::Arrow>::new(self.into(), None))
    }

    fn permute(&mut self, order: &[usize]) {
        *self = order.iter().map(|i| self[*i]).collect();
    }
}

impl Column for Vec<bool> {
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn into_array(self) -> ArrayRef {
        Arc::new(BooleanArray::from(self))
    }

    fn permute(&mut self, order: &[usize]) {
        *self = order.iter().map(|i| self[*i]).collect();
    }
}

/// One bit per row, as Arrow packs them; no bytes as long as all rows have the same bit, as in most
/// columns of a trace that one system wrote.
#[derive(Clone, Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    len: usize,
    /// The bit of all rows, while there are no bytes.
    all: bool,
}

impl Bits {
    #[inline]
    fn push(&mut self, bit: bool) {
        if self.bytes.is_empty() {
            if self.all == bit || self.len == 0 {
                self.all = bit;
                self.len += 1;
                return;
            }
            self.spread();
        }
        let at = self.len % 8;
        if at == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << at;
        }
        self.len += 1;
    }

    /// Gives every row its own bit.
    #[cold]
    fn spread(&mut self) {
        self.bytes = vec![if self.all { 0xFF } else { 0 }; self.len.div_ceil(8)];
        if let (Some(last), used @ 1..) = (self.bytes.last_mut(), self.len % 8) {
            *last &= (1 << used) - 1;
        }
    }

    #[inline]
    fn get(&self, row: usize) -> bool {
        if self.bytes.is_empty() {
            return self.all;
        }
        self.bytes[row / 8] >> (row % 8) & 1 != 0
    }

    fn set(&mut self, row: usize, bit: bool) {
        if self.bytes.is_empty() {
            if self.all == bit {
                return;
            }
            self.spread();
        }
        let byte = &mut self.bytes[row / 8];
        *byte = *byte & !(1 << (row % 8)) | u8::from(bit) << (row % 8);
    }

    fn into_nulls(self) -> Option<NullBuffer> {
        if self.bytes.is_empty() {
            return (!self.all).then(|| NullBuffer::new_null(self.len));
        }
        let bits = BooleanBuffer::new(Buffer::from_vec(self.bytes), 0, self.len);
        Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
    }
}

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

    fn permuted(&self, order: &[usize]) -> Self {
        order.iter().map(|row| self.get(*row)).collect()
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Nullable<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(rows: I) -> Self {
        let mut column = Nullable::default();
        rows.into_iter().for_each(|row| column.push(row));
        column
    }
}

impl<T: Primitive> Column for Nullable<T> {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        T::Arrow::DATA_TYPE
    }

    fn into_array(self) -> ArrayRef {
        let values: ScalarBuffer<T> = self.values.into();
        Arc::new(PrimitiveArray::<T::Arrow>::new(
            values,
            self.known.into_nulls(),
        ))
    }

    fn permute(&mut self, order: &[usize]) {
        *self = self.permuted(order);
    }
}

impl Column for Nullable<bool> {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn into_array(self) -> ArrayRef {
        let nulls = self.known.into_nulls();
        Arc::new(BooleanArray::new(self.values.into(), nulls))
    }

    fn permute(&mut self, order: &[usize]) {
        *self = self.permuted(order);
    }
}

/// A column of text of which some is unknown. Holds up to 2 GiB; what does not fit stays unknown.
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

    /// The text of a row, if it is known.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        let (from, to) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
        self.known
            .get(row)
            .then(|| str::from_utf8(&self.bytes[from..to]).unwrap_or_default())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.known.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.known.len == 0
    }

    /// The rows in order.
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

impl Column for Text {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn into_array(self) -> ArrayRef {
        let offsets = OffsetBuffer::new(self.offsets.into());
        let values = Buffer::from_vec(self.bytes);
        Arc::new(StringArray::new(offsets, values, self.known.into_nulls()))
    }

    fn permute(&mut self, order: &[usize]) {
        *self = order.iter().map(|row| self.get(*row)).collect();
    }
}

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

impl<K: Named> Column for Names<K> {
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
    }

    fn into_array(self) -> ArrayRef {
        let codes: Vec<i8> = self.0.iter().map(|kind| kind.code()).collect();
        let names: Arc<dyn Array> = Arc::new(StringArray::from(K::NAMES.to_vec()));
        Arc::new(DictionaryArray::<Int8Type>::new(codes.into(), names))
    }

    fn permute(&mut self, order: &[usize]) {
        self.0 = order.iter().map(|row| self.0[*row]).collect();
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn rows_move_whole() {
        let mut text: Text = [Some("a"), None, Some("ccc")].into_iter().collect();
        text.permute(&[2, 1, 0]);
        let rows: Vec<_> = text.iter().collect();
        assert_eq!(rows, [Some("ccc"), None, Some("a")]);
        let array = text.into_array();
        let expected = StringArray::from(vec![Some("ccc"), None, Some("a")]);
        assert_eq!(array.as_ref(), &expected as &dyn Array);
    }
}
