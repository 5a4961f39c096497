//! Records of the kernel, one after another.

/// Size in bytes of the header of a record.
const HEADER: usize = 8;

/// Calls `each` with the kind (`PERF_RECORD_…`) and the bytes of each record. Stops at a record that is cut off.
pub(crate) fn each<'r>(records: &'r [u8], mut each: impl FnMut(u32, &'r [u8])) {
    let mut rest = records;
    while let Some((header, _)) = rest.split_first_chunk::<HEADER>() {
        let [a, b, c, d, _, _, low, high] = *header;
        let size = usize::from(u16::from_ne_bytes([low, high]));
        let Some(record) = rest.get(..size).filter(|_| size >= HEADER) else {
            break;
        };
        each(u32::from_ne_bytes([a, b, c, d]), record);
        rest = &rest[size..];
    }
}
