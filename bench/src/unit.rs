//! The unit of the figures: mapping a file and summing its bytes on one thread. `unsafe`, because
//! mapping is what is measured; nobody changes the files meanwhile.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

/// Maps the file anew and adds up its 64-bit words.
pub(crate) fn map_and_sum(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    // SAFETY: nobody changes the file while a benchmark reads it.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let (words, rest) = map.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, word| {
        sum.wrapping_add(u64::from_le_bytes(*word))
    });
    Ok(rest
        .iter()
        .fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte))))
}
