//! Encoding of a column chunk. Integers are stored in as few bytes as their range needs. A constant column needs no
//! bytes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, downcast_integer, new_null_array};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

/// Encoding of the rows of a column chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Packing {
    /// The Arrow array is stored unchanged.
    Plain,
    /// No bytes are stored, because every row is null.
    Unknown,
    /// No bytes are stored, because every row is this integer.
    All(u64),
    /// Narrower unsigned integers are stored. The value of a row is the stored integer plus this
    /// base.
    Above(u64),
}

/// An integer of up to 64 bits.
trait Bits: Copy + Ord {
    /// Returns the bits of the integer, sign-extended to 64 bits.
    fn bits(self) -> u64;

    /// Makes an integer from the lowest bits of `bits`.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($number:ty),*) => {$(
        impl Bits for $number {
            #[inline]
            fn bits(self) -> u64 {
                self as u64
            }

            #[inline]
            fn from_bits(bits: u64) -> $number {
                bits as $number
            }
        }
    )*};
}

bits!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Chooses the encoding of a column. Returns the encoding and the array to store, if any.
pub(crate) fn pack(array: &ArrayRef) -> (Packing, Option<ArrayRef>) {
    if array.null_count() == array.len() {
        return (Packing::Unknown, None);
    }
    macro_rules! numbers {
        ($type:ty) => {
            pack_numbers::<$type>(array.as_primitive())
        };
    }
    let packed = downcast_integer! {
        array.data_type() => (numbers),
        _ => None
    };
    packed.unwrap_or_else(|| (Packing::Plain, Some(array.clone())))
}

/// Encodes integers in fewer bytes. Returns `None` if the integers need the full width of their type.
fn pack_numbers<T>(array: &PrimitiveArray<T>) -> Option<(Packing, Option<ArrayRef>)>
where
    T: ArrowPrimitiveType<Native: Bits>,
{
    let width = size_of::<T::Native>();
    let is_known = array.null_count() == 0;
    let range = |(least, greatest): (T::Native, T::Native), number: T::Native| {
        (least.min(number), greatest.max(number))
    };
    let first = array.iter().flatten().next()?;
    // Null rows hold the value 0. In 64-bit columns (times), the other values can be far from 0, so null rows are
    // excluded from the range. In other columns, null rows are included.
    let (least, greatest) = if is_known || width < size_of::<i64>() {
        array.values().iter().copied().fold((first, first), range)
    } else {
        array.iter().flatten().fold((first, first), range)
    };
    let base = least.bits();
    let stored: ArrayRef = match greatest.bits().wrapping_sub(base) {
        0 if is_known => return Some((Packing::All(base), None)),
        0..=0xFF if width > 1 => Arc::new(narrow::<T, UInt8Type>(array, base)),
        0..=0xFFFF if width > 2 => Arc::new(narrow::<T, UInt16Type>(array, base)),
        0..=0xFFFF_FFFF if width > 4 => Arc::new(narrow::<T, UInt32Type>(array, base)),
        _ => return None,
    };
    Some((Packing::Above(base), Some(stored)))
}

fn narrow<T, S>(array: &PrimitiveArray<T>, base: u64) -> PrimitiveArray<S>
where
    T: ArrowPrimitiveType<Native: Bits>,
    S: ArrowPrimitiveType<Native: Bits>,
{
    array.unary(|number| S::Native::from_bits(number.bits().wrapping_sub(base)))
}

impl Packing {
    /// Returns true if bytes are stored for the chunk.
    pub(crate) fn is_stored(self) -> bool {
        matches!(self, Packing::Plain | Packing::Above(_))
    }

    /// Decodes a column of the given type and number of rows. Returns `None` if the stored array does not fit the
    /// encoding.
    pub(crate) fn unpack(
        self,
        stored: Option<ArrayRef>,
        data_type: &DataType,
        rows: usize,
    ) -> Option<ArrayRef> {
        match (self, stored) {
            (Packing::Plain, stored) => stored,
            (Packing::Unknown, _) => Some(new_null_array(data_type, rows)),
            (Packing::All(number), _) => {
                macro_rules! all {
                    ($type:ty) => {
                        Arc::new(all::<$type>(number, rows))
                    };
                }
                Some(downcast_integer! {
                    data_type => (all),
                    _ => return None
                })
            }
            (Packing::Above(base), stored) => {
                let stored = stored?;
                macro_rules! widen {
                    ($type:ty) => {
                        widen::<$type>(&stored, base)
                    };
                }
                downcast_integer! {
                    data_type => (widen),
                    _ => None
                }
            }
        }
    }
}

fn all<T: ArrowPrimitiveType<Native: Bits>>(number: u64, rows: usize) -> PrimitiveArray<T> {
    PrimitiveArray::from_value(T::Native::from_bits(number), rows)
}

fn widen<T: ArrowPrimitiveType<Native: Bits>>(stored: &ArrayRef, base: u64) -> Option<ArrayRef> {
    fn add<S, T>(stored: &PrimitiveArray<S>, base: u64) -> ArrayRef
    where
        S: ArrowPrimitiveType<Native: Bits>,
        T: ArrowPrimitiveType<Native: Bits>,
    {
        let add = |number: S::Native| T::Native::from_bits(number.bits().wrapping_add(base));
        Arc::new(stored.unary::<_, T>(add))
    }
    Some(match stored.data_type() {
        DataType::UInt8 => add::<UInt8Type, T>(stored.as_primitive(), base),
        DataType::UInt16 => add::<UInt16Type, T>(stored.as_primitive(), base),
        DataType::UInt32 => add::<UInt32Type, T>(stored.as_primitive(), base),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, Int8Array, Int64Array, StringArray, UInt32Array, UInt64Array};

    use super::*;

    /// Packs a column, checks that it unpacks to the same rows, and returns the stored type.
    fn stored(array: impl Array + 'static) -> (Packing, Option<DataType>) {
        let array: ArrayRef = Arc::new(array);
        let (packing, stored) = pack(&array);
        assert_eq!(packing.is_stored(), stored.is_some());
        let kind = stored.as_ref().map(|stored| stored.data_type().clone());
        let back = packing.unpack(stored, array.data_type(), array.len());
        assert_eq!(back.unwrap().as_ref(), array.as_ref());
        (packing, kind)
    }

    #[test]
    fn numbers_are_as_narrow_as_their_range() {
        use Packing::{Above, All, Plain};
        let at = |least: i64, span: i64| stored(Int64Array::from(vec![least + span, least]));
        for base in [0, -1, 1 << 40, i64::MIN] {
            let bits = base.cast_unsigned();
            assert_eq!(at(base, 0), (All(bits), None));
            assert_eq!(at(base, 0xFF), (Above(bits), Some(DataType::UInt8)));
            assert_eq!(at(base, 0x100), (Above(bits), Some(DataType::UInt16)));
            assert_eq!(at(base, 0x1_0000), (Above(bits), Some(DataType::UInt32)));
            assert_eq!(at(base, 1 << 32), (Plain, Some(DataType::Int64)));
        }
        let all = vec![i64::MIN, i64::MAX];
        assert_eq!(stored(Int64Array::from(all)).0, Plain);
        let all = vec![0, u64::MAX];
        assert_eq!(stored(UInt64Array::from(all)).0, Plain);
        let all = vec![u64::MAX - 7, u64::MAX];
        assert_eq!(stored(UInt64Array::from(all)).0, Above(u64::MAX - 7));
        assert_eq!(stored(Int8Array::from(vec![-3, 4])).0, Plain);
        let minus_three = (-3_i64).cast_unsigned();
        assert_eq!(stored(Int8Array::from(vec![-3, -3])).0, All(minus_three));
    }

    #[test]
    fn null_rows_stay_null() {
        let far = 1 << 50;
        let times = Int64Array::from(vec![None, Some(far), Some(far + 9)]);
        let packing = Packing::Above(far.cast_unsigned());
        assert_eq!(stored(times), (packing, Some(DataType::UInt8)));
        let number = UInt32Array::from(vec![Some(300), None]);
        let packing = Packing::Above(0);
        assert_eq!(stored(number), (packing, Some(DataType::UInt16)));
        assert_eq!(stored(Int64Array::new_null(3)), (Packing::Unknown, None));
        assert_eq!(stored(BooleanArray::new_null(3)).0, Packing::Unknown);
        assert_eq!(stored(StringArray::new_null(3)).0, Packing::Unknown);
        assert_eq!(stored(StringArray::from(vec!["a"])).0, Packing::Plain);
    }

    #[test]
    fn a_stored_array_of_another_type_is_refused() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let above = |stored, kind| Packing::Above(1).unpack(stored, kind, 1);
        assert!(above(Some(text), &DataType::Int64).is_none());
        assert!(above(None, &DataType::Int64).is_none());
        let bytes: ArrayRef = Arc::new(arrow_array::UInt8Array::from(vec![1]));
        assert!(above(Some(bytes), &DataType::Utf8).is_none());
        assert!(Packing::All(1).unpack(None, &DataType::Utf8, 1).is_none());
        assert!(Packing::Plain.unpack(None, &DataType::Utf8, 1).is_none());
    }
}
