//! Bounds-checked little-endian reads.

/// Defines functions that read a little-endian integer of fixed size at a byte offset. The functions return
/// `None` if `bytes` is too short.
macro_rules! readers {
    ($($name:ident: $ty:ty),*) => {$(
        #[doc = concat!("Reads a little-endian `", stringify!($ty), "` at byte `at`.")]
        #[inline]
        pub fn $name(bytes: &[u8], at: usize) -> Option<$ty> {
            bytes.get(at..)?.first_chunk().map(|b| <$ty>::from_le_bytes(*b))
        }
    )*};
}

readers!(u16: u16, u32: u32, u64: u64, i32: i32, i64: i64);
