//! Views that read the rows of Arrow arrays.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeBinaryArray, ListArray, PrimitiveArray, StringArray,
};
use arrow_buffer::NullBuffer;

use crate::column::Primitive;

/// Reader of numbers with nulls.
#[derive(Clone, Copy, Debug)]
pub struct NullableView<'a, T> {
    values: &'a [T],
    known: Validity<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Validity<'a> {
    All,
    None,
    Some(&'a NullBuffer),
}

impl<'a, T: Primitive> NullableView<'a, T> {
    /// Reads a column. Returns `None` if its type is another one. Without a column, all values are unknown.
    pub fn read(array: Option<&'a ArrayRef>) -> Option<Self> {
        let Some(array) = array else {
            return Some(NullableView {
                values: &[],
                known: Validity::None,
            });
        };
        let array = array.as_primitive_opt::<T::Arrow>()?;
        Some(NullableView {
            values: array.values(),
            known: array.nulls().map_or(Validity::All, Validity::Some),
        })
    }

    /// Returns the value of a row. Returns `None` if the value is unknown or the column was not read.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        match self.known {
            Validity::All => Some(self.values[row]),
            Validity::None => None,
            Validity::Some(nulls) => nulls.is_valid(row).then(|| self.values[row]),
        }
    }
}

/// Reader of flags, with or without nulls.
#[derive(Clone, Copy, Debug)]
pub struct Flags<'a>(Option<&'a BooleanArray>);

impl<'a> Flags<'a> {
    /// Reads a column. Returns `None` if it has no flags. Without a column, all flags are unknown.
    pub fn read(array: Option<&'a ArrayRef>) -> Option<Self> {
        let read = array.map(|array| array.as_boolean_opt());
        read.map_or(Some(Flags(None)), |array| Some(Flags(Some(array?))))
    }

    /// Returns the flag of a row. Returns `None` if the flag is unknown or the column was not read.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<bool> {
        let array = self.0?;
        array.is_valid(row).then(|| array.value(row))
    }
}

/// Reader of text with nulls, or of names of an enumeration.
#[derive(Clone, Copy, Debug)]
pub struct TextView<'a>(Kind<'a>);

#[derive(Clone, Copy, Debug)]
enum Kind<'a> {
    Absent,
    Plain(&'a StringArray),
    Named(&'a PrimitiveArray<Int8Type>, &'a StringArray),
}

impl<'a> TextView<'a> {
    /// Reads a column. Returns `None` if it has no text. Without a column, all texts are unknown.
    pub fn read(array: Option<&'a ArrayRef>) -> Option<Self> {
        let Some(array) = array else {
            return Some(TextView(Kind::Absent));
        };
        if let Some(plain) = array.as_string_opt::<i32>() {
            return Some(TextView(Kind::Plain(plain)));
        }
        let named = array.as_dictionary_opt::<Int8Type>()?;
        let names = named.values().as_string_opt::<i32>()?;
        Some(TextView(Kind::Named(named.keys(), names)))
    }

    /// Returns the text of a row. Returns `None` if the text is unknown or the column was not read.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&'a str> {
        match self.0 {
            Kind::Absent => None,
            Kind::Plain(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Kind::Named(codes, names) => {
                let code = codes.is_valid(row).then(|| codes.value(row))?;
                Some(names.value(usize::try_from(code).ok()?))
            }
        }
    }
}

/// Reader of lists of addresses. In a list, the innermost call comes first.
#[derive(Clone, Copy, Debug)]
pub struct AddressesView<'a>(Option<&'a ListArray>);

impl<'a> AddressesView<'a> {
    pub(crate) fn read(array: Option<&'a ArrayRef>) -> Option<Self> {
        let Some(array) = array else {
            return Some(AddressesView(None));
        };
        let lists = array.as_list_opt::<i32>()?;
        lists.values().as_primitive_opt::<UInt64Type>()?;
        Some(AddressesView(Some(lists)))
    }

    /// Returns the addresses of a row. Returns an empty slice if the column was not read.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> &'a [u64] {
        let Some(lists) = self.0 else {
            return &[];
        };
        let offsets = lists.value_offsets();
        let values = lists.values().as_primitive::<UInt64Type>().values();
        &values[offsets[row] as usize..offsets[row + 1] as usize]
    }
}

/// Reader of binary values.
#[derive(Clone, Copy, Debug)]
pub struct BytesView<'a>(Option<&'a LargeBinaryArray>);

impl<'a> BytesView<'a> {
    pub(crate) fn read(array: Option<&'a ArrayRef>) -> Option<Self> {
        let read = array.map(|array| array.as_binary_opt());
        read.map_or(Some(BytesView(None)), |array| Some(BytesView(Some(array?))))
    }

    /// Returns the bytes of a row. Returns an empty slice if the column was not read.
    ///
    /// # Panics
    /// Panics if there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> &'a [u8] {
        match self.0 {
            Some(array) if array.is_valid(row) => array.value(row),
            _ => &[],
        }
    }
}
