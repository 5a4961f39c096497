//! Columns that are filled row by row and become Arrow arrays.
//!
//! Plain `Vec`s hold columns that are always known; [`Nullable`] and [`Text`] those that may be
//! unknown; [`Names`] a few fixed names. Numbers and text move into Arrow's buffers uncopied.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, ListArray, PrimitiveArray, StringArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{DataType, Field, FieldRef};

use crate::view::{AddressesView, Flags, NullableView, TextView};

/// A column under construction.
pub trait Column: Sized {
    /// Whether rows may be unknown.
    const NULLABLE: bool;

    /// The Arrow type.
    fn data_type() -> DataType;

    /// The column as an Arrow array.
    fn into_array(self) -> ArrayRef;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// Row `i` becomes what row `order[i]` was.
    fn permute(&mut self, order: &[usize]);

    /// Adds the rows of another part of the table.
    fn append(&mut self, other: Self);

    /// Takes the rows from `at` on out.
    fn split_off(&mut self, at: usize) -> Self;

    /// What rows that were never filled hold: unknown, or what stands for nothing.
    fn fill(&mut self, rows: usize);

    /// The column as it is read from an Arrow array of [`Column::data_type`].
    type View<'a>;

    /// Reads an array; `None` stands for a column that was not read. `None` is returned if the
    /// array has another type.
    fn view(array: Option<&ArrayRef>) -> Option<Self::View<'_>>;
}

/// A number that Arrow has a primitive type for.
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

impl<T: Primitive> Column for Vec<T> {
    const NULLABLE: bool = false;
    type View<'a> = &'a [T];

    fn view(array: Option<&ArrayRef>) -> Option<&[T]> {
        let Some(array) = array else {
            return Some(&[]);
        };
        Some(array.as_primitive_opt::<T::Arrow>()?.values())
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn append(&mut self, mut other: Self) {
        Vec::append(self, &mut other);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Vec::split_off(self, at)
    }

    fn fill(&mut self, rows: usize) {
        self.resize(rows, T::default());
    }

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
    type View<'a> = Flags<'a>;

    fn view(array: Option<&ArrayRef>) -> Option<Flags<'_>> {
        Flags::read(array)
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn append(&mut self, mut other: Self) {
        Vec::append(self, &mut other);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Vec::split_off(self, at)
    }

    fn fill(&mut self, rows: usize) {
        self.resize(rows, false);
    }

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

    fn append(&mut self, other: &Bits) {
        if self.len == 0 {
            *self = other.clone();
        } else if self.bytes.is_empty() && other.bytes.is_empty() && self.all == other.all {
            self.len += other.len;
        } else {
            (0..other.len).for_each(|row| self.push(other.get(row)));
        }
    }

    fn split_off(&mut self, at: usize) -> Bits {
        let mut tail = Bits::default();
        (at..self.len).for_each(|row| tail.push(self.get(row)));
        self.len = at.min(self.len);
        if !self.bytes.is_empty() {
            self.bytes.truncate(self.len.div_ceil(8));
            if let (Some(last), used @ 1..) = (self.bytes.last_mut(), self.len % 8) {
                *last &= (1 << used) - 1;
            }
            if self.len == 0 {
                *self = Bits::default();
            }
        }
        tail
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
        if self.known.bytes.is_empty() {
            return Nullable {
                values: order.iter().map(|row| self.values[*row]).collect(),
                known: Bits {
                    len: order.len(),
                    ..self.known.clone()
                },
            };
        }
        order.iter().map(|row| self.get(*row)).collect()
    }

    fn append_rows(&mut self, mut other: Self) {
        self.values.append(&mut other.values);
        self.known.append(&other.known);
    }

    fn split_rows(&mut self, at: usize) -> Self {
        Nullable {
            values: self.values.split_off(at),
            known: self.known.split_off(at),
        }
    }

    fn fill_rows(&mut self, rows: usize) {
        while self.len() < rows {
            self.push(None);
        }
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Nullable<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(rows: I) -> Self {
        let mut column = Nullable::default();
        rows.into_iter().for_each(|row| column.push(row));
        column
    }
}

impl<T: Primitive + Default> Column for Nullable<T> {
    const NULLABLE: bool = true;
    type View<'a> = NullableView<'a, T>;

    fn view(array: Option<&ArrayRef>) -> Option<NullableView<'_, T>> {
        NullableView::read(array)
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn append(&mut self, other: Self) {
        self.append_rows(other);
    }

    fn split_off(&mut self, at: usize) -> Self {
        self.split_rows(at)
    }

    fn fill(&mut self, rows: usize) {
        self.fill_rows(rows);
    }

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
    type View<'a> = Flags<'a>;

    fn view(array: Option<&ArrayRef>) -> Option<Flags<'_>> {
        Flags::read(array)
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn append(&mut self, other: Self) {
        self.append_rows(other);
    }

    fn split_off(&mut self, at: usize) -> Self {
        self.split_rows(at)
    }

    fn fill(&mut self, rows: usize) {
        self.fill_rows(rows);
    }

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
    type View<'a> = TextView<'a>;

    fn view(array: Option<&ArrayRef>) -> Option<TextView<'_>> {
        TextView::read(array)
    }

    fn rows(&self) -> usize {
        self.len()
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
    type View<'a> = TextView<'a>;

    fn view(array: Option<&ArrayRef>) -> Option<TextView<'_>> {
        TextView::read(array)
    }

    fn rows(&self) -> usize {
        self.0.len()
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Names(self.0.split_off(at))
    }

    /// Names are of what rows are made from, so there are always as many.
    fn fill(&mut self, _rows: usize) {}

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

/// Addresses of each row, the innermost call first: a list in Arrow. Holds up to 2^31 addresses;
/// what does not fit stays empty.
#[derive(Clone, Debug)]
pub struct Addresses {
    values: Vec<u64>,
    offsets: Vec<i32>,
}

impl Default for Addresses {
    fn default() -> Self {
        Addresses {
            values: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Addresses {
    /// Adds a row.
    pub fn push(&mut self, addresses: &[u64]) {
        if i32::try_from(self.values.len() + addresses.len()).is_ok() {
            self.values.extend_from_slice(addresses);
        }
        self.offsets.push(self.values.len() as i32);
    }

    /// The addresses of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: usize) -> &[u64] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

impl Column for Addresses {
    const NULLABLE: bool = false;
    type View<'a> = AddressesView<'a>;

    fn view(array: Option<&ArrayRef>) -> Option<AddressesView<'_>> {
        AddressesView::read(array)
    }

    fn data_type() -> DataType {
        DataType::List(Self::item())
    }

    fn into_array(self) -> ArrayRef {
        let values = PrimitiveArray::<UInt64Type>::new(self.values.into(), None);
        let offsets = OffsetBuffer::new(self.offsets.into());
        Arc::new(ListArray::new(
            Self::item(),
            offsets,
            Arc::new(values),
            None,
        ))
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn permute(&mut self, order: &[usize]) {
        let mut permuted = Addresses::default();
        order.iter().for_each(|row| permuted.push(self.get(*row)));
        *self = permuted;
    }

    fn append(&mut self, other: Self) {
        (0..other.rows()).for_each(|row| self.push(other.get(row)));
    }

    fn split_off(&mut self, at: usize) -> Self {
        let mut tail = Addresses::default();
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
}

impl Addresses {
    fn item() -> FieldRef {
        Arc::new(Field::new("item", DataType::UInt64, false))
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
